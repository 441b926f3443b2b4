//! Attempts that go on when whoever asked for them is killed, and are taken up by whoever comes next.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use muster_exec::{Decoder, encode};
use muster_ports::runtime::{Cause, Launch, Observation};
use muster_runtime_process::Settings;
use muster_types::robot_launch::RobotLaunch;
use rustix::process::Signal;
use tempfile::{TempDir, tempdir};

use crate::yard::{DEADLINE, Watched, Yard, codes, eventually, handle, launch, parent_of, settings};

/// Says which process it is, waits until it is let go, and ends with a code of its own.
const WAITS: &str =
    "echo begun; echo $$ > new; mv new pid; until test -e go; do sleep 0.02; done; echo ended; exit 7";
const AGENT_VARIABLE: &str = "MUSTER_TEST_AGENT";

/// An agent that was killed while its attempt ran.
struct Orphaned {
    temp: TempDir,
    shepherd: Watched,
    program: Watched,
}

impl Orphaned {
    async fn new(at_most: Duration, launch: &Launch) -> Self {
        let temp = tempdir().expect("a test needs it");
        let mut frame = Vec::new();
        encode(launch, &mut frame).expect("a test needs it");
        fs::write(temp.path().join("launch"), frame).expect("a test needs it");
        let mut agent = Command::new(std::env::current_exe().expect("a test needs it"))
            .args(["takeover::agent_entry", "--exact", "--nocapture"])
            .env(AGENT_VARIABLE, format!("{} {}", at_most.as_millis(), temp.path().display()))
            .stdout(Stdio::null())
            .spawn()
            .expect("a test needs it");
        let number = |file: PathBuf| async move {
            eventually("a process", || fs::read_to_string(&file).ok()?.trim().parse().ok()).await
        };
        let shepherd = Watched::new(number(temp.path().join("shepherd")).await);
        let program = Watched::new(number(work(temp.path()).join("pid")).await);
        agent.kill().expect("a test needs it");
        agent.wait().expect("a test needs it");
        Self { temp, shepherd, program }
    }

    /// The agent that comes next, which asks what became of the attempt.
    fn next_agent(&self) -> Yard {
        let yard = Yard::with(that_go_on(self.temp.path(), DEADLINE));
        yard.runtime.take_up([handle("t")]);
        yard
    }

    fn let_go(&self) {
        fs::write(work(self.temp.path()).join("go"), "").expect("a test needs it");
    }
}

fn root(dir: &Path) -> PathBuf {
    dir.join("root")
}

fn work(dir: &Path) -> PathBuf {
    root(dir).join("t-1/work")
}

fn that_go_on(dir: &Path, at_most: Duration) -> Settings {
    settings(&root(dir)).that_go_on(at_most)
}

fn waits() -> Launch {
    launch("t", &[("main", WAITS)])
}

/// Not a test of its own: what this program does when it was started as an agent.
#[tokio::test]
async fn agent_entry() {
    let Ok(told) = std::env::var(AGENT_VARIABLE) else { return };
    let (at_most, dir) = told.split_once(' ').expect("a test needs it");
    let (at_most, dir) = (Duration::from_millis(at_most.parse().expect("a test needs it")), Path::new(dir));
    let mut decoder = Decoder::default();
    decoder.extend(&fs::read(dir.join("launch")).expect("a test needs it"));
    let launch: Launch = decoder.next_message().expect("a test needs it").expect("a test needs it");
    let mut yard = Yard::with(that_go_on(dir, at_most));
    yard.runtime.observe_hearing(true);
    yard.runtime.start(launch);
    yard.started("t").await;
    let shepherd = yard.runtime.shepherd().expect("a test needs it");
    fs::write(dir.join("shepherd.new"), shepherd.to_string()).expect("a test needs it");
    fs::rename(dir.join("shepherd.new"), dir.join("shepherd")).expect("a test needs it");
    // Until it is killed.
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn what_runs_goes_on_without_its_agent_and_is_taken_up_by_the_next() {
    let orphaned = Orphaned::new(DEADLINE, &waits()).await;
    let mut yard = orphaned.next_agent();
    yard.started("t").await;
    assert_eq!(yard.shepherd().pid, orphaned.shepherd.pid);
    orphaned.program.assert_runs();
    orphaned.let_go();
    assert_eq!(codes(&yard.ending("t").await), [7]);
    assert_eq!(yard.log("t"), "begun\nended\n");
    assert_eq!(yard.seen.len(), 2, "each is said once: {:?}", yard.seen);
    yard.start("next", "exit 6");
    assert_eq!(codes(&yard.ending("next").await), [6], "the shepherd takes orders");
}

#[tokio::test]
async fn how_it_ended_meanwhile_is_told_to_the_next_agent() {
    let orphaned = Orphaned::new(DEADLINE, &waits()).await;
    orphaned.let_go();
    orphaned.shepherd.assert_ends();
    let mut yard = orphaned.next_agent();
    let ending = yard.ending("t").await;
    assert_eq!((codes(&ending), ending.cause), (vec![7], Cause::Itself));
    assert_eq!(yard.log("t"), "begun\nended\n");
}

#[tokio::test]
async fn a_timeout_holds_without_an_agent() {
    let timeout = Some(Duration::from_millis(500));
    let orphaned = Orphaned::new(DEADLINE, &Launch { timeout, ..waits() }).await;
    orphaned.program.assert_ends();
    let ending = orphaned.next_agent().ending("t").await;
    assert_eq!((codes(&ending), ending.cause), (vec![143], Cause::Timeout));
}

#[tokio::test]
async fn what_may_not_run_unseen_ends_without_an_agent() {
    let robot = RobotLaunch {
        robot: "r1".into(),
        task: "default/t".into(),
        user: String::new(),
        artifacts: Vec::new(),
        stop_after_silence: Some(Duration::from_millis(1)),
    };
    let orphaned = Orphaned::new(DEADLINE, &Launch { robot: Some(Box::new(robot)), ..waits() }).await;
    orphaned.program.assert_ends();
    let ending = orphaned.next_agent().ending("t").await;
    assert_eq!((codes(&ending), ending.cause), (vec![143], Cause::Stopped));
    assert_eq!(ending.message.as_deref(), Some("the server was away for too long"));
}

#[tokio::test]
async fn what_nobody_comes_back_for_is_ended() {
    let orphaned = Orphaned::new(Duration::ZERO, &waits()).await;
    orphaned.program.assert_ends();
    orphaned.shepherd.assert_ends();
    let ending = orphaned.next_agent().ending("t").await;
    assert_eq!((codes(&ending), ending.cause), (vec![143], Cause::Stopped));
    assert_eq!(ending.message.as_deref(), Some("the agent was away for too long"));
}

#[tokio::test]
async fn what_was_taken_up_can_be_stopped() {
    let orphaned = Orphaned::new(DEADLINE, &waits()).await;
    let mut yard = orphaned.next_agent();
    // Also before it is known that it runs.
    yard.runtime.stop(&handle("t"), DEADLINE);
    yard.started("t").await;
    assert_eq!(codes(&yard.ending("t").await), [143]);
}

#[tokio::test]
async fn what_was_killed_with_its_shepherd_is_lost() {
    let orphaned = Orphaned::new(DEADLINE, &waits()).await;
    let warden = parent_of(orphaned.shepherd.pid);
    orphaned.shepherd.signal(Signal::KILL);
    warden.assert_ends();
    orphaned.program.assert_has_ended();
    let mut yard = orphaned.next_agent();
    assert_eq!(yard.lost("t").await, "what ran it was killed, or the machine was restarted");
    yard.runtime.take_up([handle("never")]);
    assert_eq!(yard.lost("never").await, "it was not started before its agent ended");
}

#[tokio::test]
async fn what_was_killed_because_its_warden_was_is_lost() {
    let orphaned = Orphaned::new(DEADLINE, &waits()).await;
    parent_of(orphaned.shepherd.pid).signal(Signal::KILL);
    orphaned.shepherd.assert_ends();
    orphaned.program.assert_has_ended();
    let mut yard = orphaned.next_agent();
    assert_eq!(yard.lost("t").await, "what ran it was killed, or the machine was restarted");
}

#[tokio::test]
async fn a_shepherd_that_was_taken_over_loses_its_attempts_when_it_is_killed() {
    let orphaned = Orphaned::new(DEADLINE, &waits()).await;
    let mut yard = orphaned.next_agent();
    yard.started("t").await;
    orphaned.shepherd.signal(Signal::KILL);
    yard.lost("t").await;
    orphaned.program.assert_has_ended();
    yard.start("next", "exit 6");
    assert_eq!(codes(&yard.ending("next").await), [6], "another shepherd goes on");
}

#[tokio::test]
async fn an_agent_that_is_told_to_end_leaves_nothing() {
    let orphaned = Orphaned::new(DEADLINE, &waits()).await;
    let mut yard = orphaned.next_agent();
    yard.started("t").await;
    yard.runtime.shutdown(DEADLINE).await;
    while let Some(fact) = yard.facts.recv().await {
        assert!(matches!(fact.what, Observation::Ended(_)), "{fact:?}");
    }
    for process in [&orphaned.program, &orphaned.shepherd] {
        process.assert_has_ended();
    }
}

#[tokio::test]
async fn while_an_agent_is_there_another_is_not_let_in() {
    let temp = tempdir().expect("a test needs it");
    let mut first = Yard::with(that_go_on(temp.path(), DEADLINE));
    first.runtime.start(waits());
    first.started("t").await;
    let patience = Duration::from_millis(100);
    let mut second = Yard::with(Settings { patience, ..that_go_on(temp.path(), DEADLINE) });
    second.runtime.take_up([handle("t")]);
    second.start("other", "true");
    match second.until("other", |_| true).await {
        Observation::StartFailed { reason, transient, .. } => {
            assert_eq!((&*reason, transient), ("NoShepherd", true));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(second.runtime.open(), [handle("t")], "nothing is said of what runs elsewhere");
    let shepherd = first.shepherd();
    drop(first);
    second.started("t").await;
    assert_eq!(second.shepherd().pid, shepherd.pid);
    fs::write(work(temp.path()).join("go"), "").expect("a test needs it");
    assert_eq!(codes(&second.ending("t").await), [7]);
}
