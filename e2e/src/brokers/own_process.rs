//! A process of a test: ended with it, even if the test itself is killed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// Kills a process once nobody holds the other end of the standard input.
const GUARD: &str = r#"read -r _; kill -9 "$1" 2>/dev/null"#;

/// A process that can be started again.
pub struct OwnProcess {
    command: Command,
    child: Child,
    guard: Child,
    log: PathBuf,
}

impl OwnProcess {
    /// Starts it; what it says goes into a file of the directory.
    pub fn start(mut command: Command, dir: &Path, name: &str) -> Self {
        let log = dir.join(format!("{name}.log"));
        let output = File::options().create(true).append(true).open(&log).expect("a log can be opened");
        let errors = output.try_clone().expect("a file can be shared");
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = spawn(&mut command);
        let guard = watch_over(&child);
        Self { command, child, guard, log }
    }

    /// False if it ended by itself.
    pub fn is_alive(&self) -> bool {
        Path::new(&format!("/proc/{}/exe", self.child.id())).exists()
    }

    /// Fails the test if it ended by itself.
    pub fn assert_alive(&self) {
        assert!(self.is_alive(), "it ended; it said:\n{}", fs::read_to_string(&self.log).unwrap_or_default());
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it at once, and its children, which would answer for a moment before they notice that they are alone.
    pub fn kill(&mut self) {
        let children = children_of(self.child.id());
        end(&mut self.child);
        for child in children {
            // One that ended with it is gone already.
            kill_process(child, Signal::KILL).ok();
        }
        end(&mut self.guard);
    }

    /// Starts it again after it was killed.
    pub fn restart(&mut self) {
        self.child = spawn(&mut self.command);
        self.guard = watch_over(&self.child);
    }
}

impl Drop for OwnProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(command: &mut Command) -> Child {
    command.spawn().expect("a program of the tests can be started")
}

fn children_of(process: u32) -> Vec<Pid> {
    let listed = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)).collect()
}

fn watch_over(process: &Child) -> Child {
    Command::new("sh")
        .args(["-c", GUARD, "guard", &process.id().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell can be started")
}

/// A child that ended already keeps its id until it is waited for, so nobody else is hit.
fn end(child: &mut Child) {
    drop(child.kill());
    child.wait().expect("a child can be waited for");
}
