//! Child processes: ended with us, and measured from outside.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

/// A child that is killed when it is dropped.
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts a program with its output kept in `log`.
    pub fn start(command: &mut Command, log: &std::path::Path) -> anyhow::Result<Self> {
        let file = fs::File::create(log)?;
        let errors = file.try_clone()?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
        Ok(Self { child })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Time on a processor so far, of all its threads.
    pub fn cpu_time(&self) -> anyhow::Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 10))
    }

    /// The same in nanoseconds, of the threads it has now.
    pub fn cpu_nanos(&self) -> anyhow::Result<u64> {
        let mut sum = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            // A thread may end meanwhile.
            let text = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
            sum += text.split(' ').next().and_then(|nanos| nanos.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(sum)
    }

    /// Resident memory in bytes.
    pub fn rss(&self) -> anyhow::Result<u64> {
        rss_of(self.child.id())
    }

    /// Asks the program to end and waits for it.
    pub fn terminate(mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(pid.context("no pid")?, rustix::process::Signal::TERM)?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the program ended with {status}");
        }
        Ok(())
    }

    /// True while the program runs.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A program named by an environment variable.
pub fn program(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.exists())
}

/// Resident memory of a process in bytes.
pub fn rss_of(process: u32) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS in /proc")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kib * 1024)
}
