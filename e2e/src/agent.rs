//! A real `muster-agent` as a process, which ends with the test that started it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

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

    /// Ends it at once, as a power cut would.
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
    }
}

fn launch(id: &str, url: &str, token: &str, work_dir: &Path, flags: &[String]) -> Child {
    let program = PathBuf::from(std::env::var_os("MUSTER_BIN").expect("MUSTER_BIN names the program"));
    fs::create_dir_all(work_dir).expect("a directory can be made");
    let log = File::options().create(true).append(true).open(work_dir.join("agent.log"));
    Command::new(program.with_file_name("muster-agent"))
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
