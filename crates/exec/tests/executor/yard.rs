//! An executor in a directory of its own, and the words to tell stories about it.

#![allow(clippy::panic, reason = "what a test waits for and does not get ends the test")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use muster_exec::{AttemptDirs, Executor, Settings};
use muster_types::attempt::{Ending, Fact, Handle, Launch, LaunchContainer, Limits, Observation};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Long enough for a loaded machine; a test that waits so long has failed.
pub const DEADLINE: Duration = Duration::from_mins(1);
pub const LONG: Duration = Duration::from_hours(1);

pub struct Yard {
    pub executor: Executor,
    pub dirs: AttemptDirs,
    pub facts: Vec<Fact>,
    pub temp: tempfile::TempDir,
}

impl Yard {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let temp = tempfile::tempdir().expect("a test needs it");
        let mut settings = Settings::new(temp.path().join("work-root"));
        change(&mut settings);
        let dirs = AttemptDirs::new(&settings.work_root);
        Self { executor: Executor::new(settings).expect("a test needs it"), dirs, facts: Vec::new(), temp }
    }

    /// Runs one shell script to its end.
    pub fn run(&mut self, task: &str, script: &str) -> Ending {
        self.executor.start(launch(task, &[("main", script)]));
        self.ending(task)
    }

    pub fn step(&mut self) {
        self.executor.poll(Some(Duration::from_secs(1)), &mut self.facts).expect("a test needs it");
    }

    /// Works until a condition holds.
    pub fn until<T>(&mut self, what: &str, mut condition: impl FnMut(&mut Self) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = condition(self) {
                return found;
            }
            assert!(
                begun.elapsed() < DEADLINE,
                "waited in vain for {what}; last fact: {:?}",
                self.facts.last()
            );
            self.step();
        }
    }

    /// Works until nothing runs.
    pub fn until_idle(&mut self) {
        self.until("the end of everything", |yard| yard.executor.is_idle().then_some(()));
        self.executor.poll(Some(Duration::ZERO), &mut self.facts).expect("a test needs it");
    }

    pub fn ending(&mut self, task: &str) -> Ending {
        self.until(&format!("the end of {task}"), |yard| {
            yard.observations(task).into_iter().find_map(|what| match what {
                Observation::Ended(ending) => Some(ending),
                Observation::StartFailed { message, .. } => panic!("{task} did not start: {message}"),
                _ => None,
            })
        })
    }

    pub fn start_failure(&mut self, task: &str) -> (String, String, bool) {
        self.until(&format!("the failure of {task}"), |yard| {
            yard.observations(task).into_iter().find_map(|what| match what {
                Observation::StartFailed { reason, message, transient } => Some((reason, message, transient)),
                _ => None,
            })
        })
    }

    pub fn observations(&self, task: &str) -> Vec<Observation> {
        let own = self.facts.iter().filter(|fact| fact.handle.task == task);
        own.map(|fact| fact.what.clone()).collect()
    }

    pub fn log(&self, task: &str) -> String {
        self.log_of(task, "main")
    }

    pub fn log_of(&self, task: &str, container: &str) -> String {
        let part = self.dirs.read_log(&handle(task), container, 0, usize::MAX).expect("a test needs it");
        String::from_utf8(part.bytes).expect("a test needs it")
    }

    /// Works until a container has written a whole line that starts with a word, and answers the rest of it.
    pub fn line_of(&mut self, task: &str, container: &str, word: &str) -> String {
        self.until(&format!("{word} in the log of {task}"), |yard| {
            // There may be none yet.
            let read = yard.dirs.read_log(&handle(task), container, 0, usize::MAX);
            let log = read.map(|part| String::from_utf8_lossy(&part.bytes).into_owned()).unwrap_or_default();
            let mut lines = log.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
            lines.find_map(|line| line.strip_prefix(word)).map(|rest| rest.trim().to_string())
        })
    }

    pub fn work(&self, task: &str) -> PathBuf {
        self.dirs.path(&handle(task)).join("work")
    }
}

pub fn handle(task: &str) -> Handle {
    Handle { task: task.into(), attempt: 1 }
}

/// An attempt of shell scripts, each in a container.
pub fn launch(task: &str, scripts: &[(&str, &str)]) -> Launch {
    let container = |(name, script): &(&str, &str)| LaunchContainer {
        name: (*name).into(),
        command: ["/bin/sh", "-c", script].map(String::from).to_vec(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
    };
    Launch {
        handle: handle(task),
        containers: scripts.iter().map(container).collect(),
        timeout: None,
        kill_timeout: LONG,
        priority: 0,
        prefetch: 0,
        limits: Limits::default(),
        pod: None,
        robot: None,
        image: None,
        data: None,
    }
}

/// An attempt of one program.
pub fn command(task: &str, command: &[&str]) -> Launch {
    let mut launch = launch(task, &[("main", "")]);
    launch.containers[0].command = command.iter().map(ToString::to_string).collect();
    launch
}

pub fn codes(ending: &Ending) -> Vec<i32> {
    ending.containers.iter().map(|container| container.exit_code).collect()
}

/// A process that must come to its end.
pub struct Watched(Option<rustix::fd::OwnedFd>);

impl Watched {
    pub fn new(pid: &str) -> Self {
        let pid = Pid::from_raw(pid.parse().expect("a test needs it")).expect("a test needs it");
        Self(pidfd_open(pid, PidfdFlags::empty()).ok())
    }

    pub fn assert_ends(&self) {
        let Some(pidfd) = &self.0 else { return };
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        let timeout = Timespec::try_from(DEADLINE).expect("a test needs it");
        assert_eq!(
            poll(&mut fds, Some(&timeout)).expect("a test needs it"),
            1,
            "a process goes on that should have ended"
        );
    }

    pub fn assert_runs(&self) {
        let pidfd = self.0.as_ref().expect("the process should run");
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        assert_eq!(
            poll(&mut fds, Some(&Timespec::default())).expect("a test needs it"),
            0,
            "the process should run"
        );
    }
}

/// Makes a program. A process of its own writes it: what another test starts meanwhile would hold it open for writing, if this one did,
/// and what is open for writing cannot be run.
pub fn write_program(path: &std::path::Path, text: &str) {
    let status = std::process::Command::new("/bin/sh")
        .args(["-c", "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .arg(text)
        .status();
    assert!(status.is_ok_and(|status| status.success()), "{} cannot be made", path.display());
}
