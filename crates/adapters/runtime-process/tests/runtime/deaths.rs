use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use muster_ports::runtime::Observation;
use muster_runtime_process::machine_time;
use rustix::process::Signal;
use tempfile::tempdir;

use crate::yard::{DEADLINE, Watched, Yard, codes, descendants, eventually, handle, launch, parent_of};

/// Something of everything: a plain program, one that refuses to end, children in the background, and one that left its group
/// and its parent.
const STUBBORN: &str =
    "trap '' TERM HUP; sleep 3600 & setsid sleep 3600 & (setsid sleep 3600 &) ; echo up; wait";

/// Starts some attempts and answers with all their processes.
async fn fill(yard: &mut Yard, count: usize) -> Vec<Watched> {
    for index in 0..count {
        yard.start(&format!("t{index}"), STUBBORN);
    }
    for index in 0..count {
        yard.started(&format!("t{index}")).await;
        let log = || yard.log(&format!("t{index}"));
        eventually("the script", || log().contains("up").then_some(())).await;
    }
    let shepherd = yard.shepherd();
    let settled = |found: &Vec<Watched>| {
        let sleeping = found.iter().filter(|process| process.name() == "sleep").count();
        (found.len(), sleeping) == (4 * count, 3 * count)
    };
    eventually("all processes", || Some(descendants(shepherd.pid)).filter(settled)).await
}

/// The process that a script wrote down.
async fn written_down(root: &Path, file: &str) -> Watched {
    let path = root.join("t-1/work").join(file);
    eventually(file, || {
        Some(Watched::new(std::fs::read_to_string(&path).ok()?.trim().parse().expect("a test needs it")))
    })
    .await
}

/// A shell command that leaves its group and its parents, and writes down its number.
fn escapes(file: &str, then: &str) -> String {
    format!("(setsid sh -c 'echo $$ > {file}.new; mv {file}.new {file}; exec {then}' > /dev/null 2>&1 &)")
}

#[tokio::test]
async fn a_killed_shepherd_loses_its_attempts_and_leaves_no_process() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    let processes = fill(&mut yard, 5).await;
    let shepherd = yard.shepherd();
    let warden = parent_of(shepherd.pid);
    shepherd.signal(Signal::KILL);
    for index in 0..5 {
        yard.lost(&format!("t{index}")).await;
    }
    // Nothing may be left when an attempt is lost: another one may begin.
    processes.iter().chain([&warden]).for_each(Watched::assert_has_ended);
    yard.start("next", "exit 6");
    assert_eq!(codes(&yard.ending("next").await), [6], "another shepherd goes on");
    assert_eq!(yard.seen.len(), 5 * 2 + 2, "each is reported once");
}

#[tokio::test]
async fn the_end_is_waited_for_also_after_somebody_gave_up_waiting() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    let processes = fill(&mut yard, 2).await;
    let impatient = tokio::time::timeout(Duration::ZERO, yard.runtime.end()).await;
    assert!(impatient.is_err(), "processes do not end at once");
    yard.runtime.end().await;
    processes.iter().for_each(Watched::assert_has_ended);
}

#[tokio::test]
async fn a_killed_warden_loses_the_attempts_and_leaves_no_process() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    let processes = fill(&mut yard, 3).await;
    let shepherd = yard.shepherd();
    parent_of(shepherd.pid).signal(Signal::KILL);
    for index in 0..3 {
        yard.lost(&format!("t{index}")).await;
    }
    processes.iter().for_each(Watched::assert_has_ended);
    // It closed its socket as the last thing it did.
    shepherd.assert_ends();
    yard.start("next", "exit 6");
    assert_eq!(codes(&yard.ending("next").await), [6]);
}

#[tokio::test]
async fn a_dropped_runtime_leaves_no_process() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    let processes = fill(&mut yard, 3).await;
    let shepherd = yard.shepherd();
    let Yard { runtime, mut facts, .. } = yard;
    drop(runtime);
    while let Some(fact) = facts.recv().await {
        assert!(matches!(fact.what, Observation::Lost { .. }), "{fact:?}");
    }
    processes.iter().chain([&shepherd]).for_each(Watched::assert_has_ended);
}

#[tokio::test]
async fn what_escaped_from_an_attempt_ends_after_it() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    yard.start("t", &format!("{}; until test -e escaped; do :; done", escapes("escaped", "sleep 3600")));
    yard.ending("t").await;
    written_down(temp.path(), "escaped").await.assert_ends();
}

#[tokio::test]
async fn what_escaped_has_ended_when_the_end_of_its_attempt_is_told() {
    for is_stopped in [false, true] {
        let temp = tempdir().expect("a test needs it");
        let mut yard = Yard::new(temp.path());
        // Another attempt runs on, so that the age of what escaped says nothing.
        yard.start("older", "exec sleep 3600");
        yard.started("older").await;
        let escape = escapes("escaped", "sleep 3600");
        yard.start("t", &format!("trap '' TERM; {escape}; until test -e go; do sleep 0.01; done"));
        let escaped = written_down(temp.path(), "escaped").await;
        escaped.assert_runs();
        if is_stopped {
            yard.runtime.stop(&handle("t"), Duration::from_millis(50));
        } else {
            std::fs::write(temp.path().join("t-1/work/go"), "").expect("a test needs it");
        }
        yard.ending("t").await;
        escaped.assert_has_ended();
    }
}

#[tokio::test]
async fn what_escaped_is_left_alone_while_its_attempt_runs() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    let (stays, ends) = (escapes("stays", "sleep 3600"), escapes("ends", "true"));
    yard.start("t", &format!("{stays}; {ends}; exec sleep 3600"));
    let stays = written_down(temp.path(), "stays").await;
    let ends = written_down(temp.path(), "ends").await;
    // It is waited for when orphans are looked at.
    eventually("a look at orphans", || muster_exec::stat_of(ends.pid).is_none().then_some(())).await;
    stays.assert_runs();
    yard.runtime.stop(&handle("t"), Duration::ZERO);
    yard.ending("t").await;
    stays.assert_ends();
}

/// A server in a process of its own that runs some attempts; all its descendants.
struct Server {
    process: Child,
    shepherd: Watched,
    warden: Watched,
    programs: Vec<Watched>,
}

const SERVER_VARIABLE: &str = "MUSTER_TEST_SERVER";
/// Says that the server runs attempts under a lease, which it renews all the time.
const LEASED_VARIABLE: &str = "MUSTER_TEST_LEASED";
const LEASE: Duration = Duration::from_secs(2);

impl Server {
    fn start(root: &Path) -> Self {
        Self::start_with(root, &[])
    }

    fn start_with(root: &Path, variables: &[(&str, &str)]) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("a test needs it"))
            .args(["deaths::server_entry", "--exact", "--nocapture"])
            .env(SERVER_VARIABLE, root)
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a test needs it");
        let mut lines = BufReader::new(process.stdout.take().expect("a test needs it"))
            .lines()
            .map(|line| line.expect("a test needs it"));
        let shepherd = lines.find_map(|line| line.strip_prefix("shepherd ")?.parse().ok());
        let shepherd = Watched::new(shepherd.expect("a test needs it"));
        let warden = parent_of(shepherd.pid);
        let programs = descendants(shepherd.pid);
        assert_eq!(programs.len(), 20);
        Self { process, shepherd, warden, programs }
    }
}

/// Not a test of its own: what this program does when it was started as a server.
#[tokio::test]
async fn server_entry() {
    let Some(root) = std::env::var_os(SERVER_VARIABLE).map(PathBuf::from) else { return };
    let mut yard = Yard::new(&root);
    let is_leased = std::env::var_os(LEASED_VARIABLE).is_some();
    if is_leased {
        yard.runtime.run_until(machine_time() + DEADLINE);
    }
    let processes = fill(&mut yard, 5).await;
    println!("\nshepherd {}", yard.runtime.shepherd().expect("a test needs it"));
    if is_leased {
        let Yard { runtime, mut facts, .. } = yard;
        let mut renewals = tokio::time::interval(LEASE / 10);
        loop {
            tokio::select! {
                _ = renewals.tick() => runtime.run_until(machine_time() + LEASE),
                fact = facts.recv() => if !matches!(fact.expect("a test needs it").what, Observation::Started) { break },
            }
        }
    } else {
        yard.until("t0", |what| !matches!(what, Observation::Started)).await;
    }
    drop(processes);
}

#[test]
fn a_killed_server_leaves_no_process() {
    let temp = tempdir().expect("a test needs it");
    let mut server = Server::start(temp.path());
    server.process.kill().expect("a test needs it");
    server.process.wait().expect("a test needs it");
    for process in server.programs.iter().chain([&server.shepherd, &server.warden]) {
        process.assert_ends();
    }
}

#[tokio::test]
async fn a_paused_server_leaves_no_process_when_its_lease_is_over() {
    let temp = tempdir().expect("a test needs it");
    let mut server = Server::start_with(temp.path(), &[(LEASED_VARIABLE, "yes")]);
    let paused = Watched::new(i32::try_from(server.process.id()).expect("a test needs it"));
    paused.signal(Signal::STOP);
    eventually("all threads to halt", || paused.is_halted().then_some(())).await;
    for process in server.programs.iter().chain([&server.shepherd, &server.warden]) {
        process.assert_ends();
    }
    assert!(paused.is_halted(), "nobody but the shepherd could do it");
    server.process.kill().expect("a test needs it");
    server.process.wait().expect("a test needs it");
}

#[tokio::test]
async fn attempts_run_on_while_the_lease_is_renewed_and_end_with_it() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    yard.runtime.run_until(machine_time() + LEASE);
    let processes = fill(&mut yard, 1).await;
    let until = machine_time() + LEASE * 2;
    let mut renewals = tokio::time::interval(LEASE / 10);
    while machine_time() < until {
        renewals.tick().await;
        yard.runtime.run_until(machine_time() + LEASE);
    }
    processes.iter().for_each(Watched::assert_runs);
    let message = yard.lost("t0").await;
    assert!(message.contains("lease was over"), "{message}");
    processes.iter().for_each(Watched::assert_has_ended);
}

#[tokio::test]
async fn nothing_is_started_when_the_lease_is_over() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    yard.runtime.run_until(machine_time());
    yard.start("late", "exit 0");
    yard.lost("late").await;
    assert!(!temp.path().join("late-1").exists(), "it was begun");
    yard.runtime.run_until(machine_time() + DEADLINE);
    yard.start("next", "exit 6");
    assert_eq!(codes(&yard.ending("next").await), [6], "a lease that was renewed allows it again");
}

#[tokio::test]
async fn what_survives_when_all_are_killed_at_once_is_ended_by_the_next_server() {
    let temp = tempdir().expect("a test needs it");
    let mut server = Server::start(temp.path());
    // Halted, none of them can do anything about the others.
    for process in [&server.shepherd, &server.warden] {
        process.signal(Signal::STOP);
        eventually("all threads to halt", || process.is_halted().then_some(())).await;
    }
    server.process.kill().expect("a test needs it");
    server.process.wait().expect("a test needs it");
    // The shepherd first: when its parent ends, the kernel wakes it.
    for process in [&server.shepherd, &server.warden] {
        process.signal(Signal::KILL);
        process.assert_ends();
    }
    let in_session = |process: &&Watched| {
        muster_exec::stat_of(process.pid).is_some_and(|stat| stat.session == server.warden.pid)
    };
    let (left, escaped): (Vec<_>, Vec<_>) = server.programs.iter().partition(in_session);
    assert_eq!(left.len(), 10, "what stayed in the session runs on");
    let mut yard = Yard::new(temp.path());
    yard.runtime.start(launch("next", &[("main", "exit 6")]));
    assert_eq!(codes(&yard.ending("next").await), [6]);
    left.into_iter().for_each(Watched::assert_has_ended);
    // What left the session too is beyond reach when nobody was there to take it in.
    for process in escaped {
        process.signal(Signal::KILL);
    }
}

#[tokio::test]
async fn attempts_of_an_earlier_server_are_lost() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    yard.start("t", "exec sleep 3600");
    yard.started("t").await;
    drop(yard);
    let mut yard = Yard::new(temp.path());
    yard.start("t", "exec sleep 3600");
    let message = yard.lost("t").await;
    assert_eq!(message, "it was started before and is not started twice");
}
