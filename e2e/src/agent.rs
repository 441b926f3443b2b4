//! A real `muster-agent` as a process, which ends with the test that started it, and what it runs too.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::wait::wait_for;

/// How long what was killed may take to be gone.
const GONE: Duration = Duration::from_mins(1);

/// A robot.
pub struct Agent {
    process: Child,
    url: String,
    id: String,
    flags: Vec<String>,
    token: String,
    /// Where it works; its log is there too.
    pub work_dir: PathBuf,
}

impl Agent {
    /// Starts one that joins with a token.
    pub fn start(id: &str, url: &str, token: &str, work_dir: &Path, flags: &[&str]) -> Self {
        let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        let process = launch(id, url, token, work_dir, &flags);
        Self {
            process,
            url: url.to_owned(),
            id: id.to_owned(),
            flags,
            token: token.to_owned(),
            work_dir: work_dir.to_owned(),
        }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Ends it, and what it runs, at once, as a power cut would.
    pub fn cut_power(&mut self) {
        self.kill();
        self.end_programs();
    }

    /// What it runs ends when the warden does, which is written down in the file that is locked until all of it has.
    fn end_programs(&self) {
        let Ok(file) = File::open(self.place_of_warden()) else { return };
        let warden = self.warden().and_then(Pid::from_raw);
        wait_for("what the robot ran is gone", GONE, || match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                // One that is gone meanwhile is as good.
                warden.map(|warden| kill_process(warden, Signal::KILL).ok());
                false
            }
            locked => locked.is_ok(),
        });
    }

    /// The process above all that it runs, also when it was killed itself.
    pub fn warden(&self) -> Option<i32> {
        fs::read_to_string(self.place_of_warden()).ok()?.split(' ').nth(1)?.parse().ok()
    }

    fn place_of_warden(&self) -> PathBuf {
        self.work_dir.join("attempts/.shepherd")
    }

    /// Asks it to end, and waits until it has.
    pub fn end(&mut self) {
        let id = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw);
        kill_process(id.expect("a process has a number"), Signal::TERM).expect("a child can be asked to end");
        self.process.wait().expect("a child can be waited for");
    }

    /// Ends it alone, at once. What it runs goes on.
    pub fn kill(&mut self) {
        self.process.kill().expect("a child can be killed");
        self.process.wait().expect("a child can be waited for");
    }

    /// Starts it again after it was killed.
    pub fn restart(&mut self) {
        self.process = launch(&self.id, &self.url, &self.token, &self.work_dir, &self.flags);
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // One that has ended is as good.
        drop(self.process.kill());
        drop(self.process.wait());
        self.end_programs();
    }
}

fn launch(id: &str, url: &str, token: &str, work_dir: &Path, flags: &[String]) -> Child {
    let program = PathBuf::from(std::env::var_os("MUSTER_BIN").expect("MUSTER_BIN names the program"));
    fs::create_dir_all(work_dir).expect("a directory can be made");
    let log = File::options().create(true).append(true).open(work_dir.join("agent.log"));
    // What lies in `bin` of its work directory is installed on this robot alone.
    let path = std::env::var("PATH").unwrap_or_default();
    Command::new(program.with_file_name("muster-agent"))
        .env("PATH", format!("{}:{path}", work_dir.join("bin").display()))
        .args(["--broker", url, "--robot-id", id, "--heartbeat", "1s"])
        .arg("--work-dir")
        .arg(work_dir)
        .args(flags)
        .env("MUSTER_JOIN_TOKEN", token)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log.expect("a log can be opened"))
        .spawn()
        .expect("muster-agent stands beside muster")
}
