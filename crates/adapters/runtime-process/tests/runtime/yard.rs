//! A runtime in a directory of its own, and the words to tell stories about it.

#![allow(clippy::panic, reason = "what a test waits for and does not get ends the test")]

use std::path::Path;
use std::time::Duration;

use muster_exec::{ProcessStat, processes};
use muster_ports::logs::Logs;
use muster_ports::runtime::{Ending, Fact, Handle, Launch, LaunchContainer, Limits, Observation};
use muster_runtime_process::{ProcessRuntime, Settings};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::sync::mpsc::UnboundedReceiver;

/// Long enough for a loaded machine; a test that waits so long has failed.
pub const DEADLINE: Duration = Duration::from_mins(1);
pub const LONG: Duration = Duration::from_hours(1);

pub struct Yard {
    pub runtime: ProcessRuntime,
    pub facts: UnboundedReceiver<Fact>,
    /// Everything that was received.
    pub seen: Vec<Fact>,
}

/// This program, as the one to run as a shepherd.
pub fn settings(root: &Path) -> Settings {
    Settings::this_program(root, &["shepherd_entry", "--exact", "--nocapture"])
}

impl Yard {
    pub fn new(root: &Path) -> Self {
        Self::with(settings(root))
    }

    pub fn with(settings: Settings) -> Self {
        let (runtime, facts) = ProcessRuntime::new(settings).expect("a test needs it");
        Self { runtime, facts, seen: Vec::new() }
    }

    pub fn start(&self, task: &str, script: &str) {
        self.runtime.start(launch(task, &[("main", script)]));
    }

    /// Receives until a fact about a task is there.
    pub async fn until(&mut self, task: &str, wanted: impl Fn(&Observation) -> bool) -> Observation {
        loop {
            let mut own = self.seen.iter().filter(|fact| fact.handle.task == task);
            if let Some(found) = own.find(|fact| wanted(&fact.what)) {
                return found.what.clone();
            }
            self.receive().await;
        }
    }

    pub async fn receive(&mut self) {
        let fact = tokio::time::timeout(DEADLINE, self.facts.recv()).await;
        let fact = fact.unwrap_or_else(|_| panic!("waited in vain; last seen: {:?}", self.seen.last()));
        self.seen.push(fact.expect("the runtime should go on"));
    }

    pub async fn started(&mut self, task: &str) {
        self.until(task, |what| matches!(what, Observation::Started)).await;
    }

    pub async fn ending(&mut self, task: &str) -> Ending {
        match self.until(task, |what| !matches!(what, Observation::Started)).await {
            Observation::Ended(ending) => ending,
            other => panic!("{task} did not end but: {other:?}"),
        }
    }

    pub async fn lost(&mut self, task: &str) -> String {
        match self.until(task, |what| !matches!(what, Observation::Started)).await {
            Observation::Lost { message, .. } => message,
            other => panic!("{task} was not lost but: {other:?}"),
        }
    }

    /// Receives until all that was started is answered for.
    pub async fn until_idle(&mut self) {
        while !self.runtime.open().is_empty() {
            self.receive().await;
        }
        while let Ok(fact) = self.facts.try_recv() {
            self.seen.push(fact);
        }
    }

    pub fn observations(&self, task: &str) -> Vec<&Observation> {
        self.seen.iter().filter(|fact| fact.handle.task == task).map(|fact| &fact.what).collect()
    }

    /// The process that runs attempts.
    pub fn shepherd(&self) -> Watched {
        Watched::new(
            i32::try_from(self.runtime.shepherd().expect("a test needs it")).expect("a test needs it"),
        )
    }

    pub fn log(&self, task: &str) -> String {
        let part = self.runtime.logs().read(&handle(task), "main", 0, usize::MAX).expect("a test needs it");
        String::from_utf8(part.bytes).expect("a test needs it")
    }
}

/// Looks until something is there.
pub async fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = std::time::Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < DEADLINE, "waited in vain for {what}");
        tokio::task::yield_now().await;
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

pub fn codes(ending: &Ending) -> Vec<i32> {
    ending.containers.iter().map(|container| container.exit_code).collect()
}

/// A process, followed so that its number cannot come to mean another.
pub struct Watched {
    pub pid: i32,
    pidfd: Option<rustix::fd::OwnedFd>,
}

impl Watched {
    pub fn new(pid: i32) -> Self {
        Self {
            pid,
            pidfd: pidfd_open(Pid::from_raw(pid).expect("a test needs it"), PidfdFlags::empty()).ok(),
        }
    }

    pub fn name(&self) -> String {
        std::fs::read_to_string(format!("/proc/{}/comm", self.pid)).unwrap_or_default().trim().into()
    }

    /// Whether each of its threads is.
    pub fn is_halted(&self) -> bool {
        let mut threads =
            std::fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten().flatten();
        threads.all(|thread| {
            let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            status.lines().any(|line| line.starts_with("State:\tT"))
        })
    }

    pub fn signal(&self, signal: Signal) {
        pidfd_send_signal(self.pidfd.as_ref().expect("a test needs it"), signal).expect("a test needs it");
    }

    pub fn assert_ends(&self) {
        let Some(pidfd) = &self.pidfd else { return };
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        let timeout = Timespec::try_from(DEADLINE).expect("a test needs it");
        let ended = poll(&mut fds, Some(&timeout)).expect("a test needs it");
        assert_eq!(ended, 1, "process {} goes on that should have ended", self.pid);
    }

    pub fn assert_runs(&self) {
        let mut fds = [PollFd::new(self.pidfd.as_ref().expect("a test needs it"), PollFlags::IN)];
        let ended = poll(&mut fds, Some(&Timespec::default())).expect("a test needs it");
        assert_eq!(ended, 0, "process {} has ended", self.pid);
    }

    pub fn assert_has_ended(&self) {
        let Some(pidfd) = &self.pidfd else { return };
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        let ended = poll(&mut fds, Some(&Timespec::default())).expect("a test needs it");
        assert_eq!(ended, 1, "process {} still runs", self.pid);
    }
}

/// All that descends from a process, itself not included.
pub fn descendants(of: i32) -> Vec<Watched> {
    let all: Vec<ProcessStat> = processes().collect();
    let mut found = vec![of];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        found.extend(all.iter().filter(|process| process.parent == parent).map(|process| process.pid));
        next += 1;
    }
    found[1..].iter().map(|pid| Watched::new(*pid)).collect()
}

pub fn parent_of(pid: i32) -> Watched {
    Watched::new(muster_exec::stat_of(pid).expect("a test needs it").parent)
}
