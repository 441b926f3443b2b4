//! Ends of the server that nobody asked for, and one that somebody did: nothing that was acknowledged is lost.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use muster_e2e::load::Load;
use muster_e2e::load::check::{Kind, Violation, check};
use muster_e2e::load::history::{Event, History, Outcome};
use muster_e2e::load::random::Random;
use muster_e2e::server::Server;
use muster_e2e::wait::{SOON, holds_within, wait_for};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

const KILLS: u64 = 50;
/// Most acknowledged writes, and most time, between a start and the next kill.
const WRITES: u64 = 600;
const MILLISECONDS: u64 = 900;
/// How long a server takes to start, about: kills before that hit its start.
const STARTING: u64 = 150;
/// How long a server that is asked to stop may take.
const STOPPING: Duration = Duration::from_secs(10);
/// Short, so that the server is also killed while it forgets; long enough for a watch to come back.
const FLAGS: [&str; 6] = ["--history-changes", "3000", "--bookmark-interval", "40ms", "--max-requests", "0"];

fn choose_seed() -> u64 {
    let given = std::env::var("MUSTER_CRASH_SEED").ok().and_then(|seed| seed.parse().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    given.unwrap_or_else(|| u64::from(now.subsec_nanos()) ^ now.as_secs())
}

/// Fails with everything that was found, and the seed that finds it again.
fn assert_sound(seed: u64, history: &History) {
    let violations = check(history);
    let shown: Vec<_> =
        violations.iter().take(20).map(|Violation { kind, what }| format!("{kind:?}: {what}")).collect();
    assert!(
        violations.is_empty(),
        "MUSTER_CRASH_SEED={seed} finds {} violations again, more or less:\n{}",
        violations.len(),
        shown.join("\n")
    );
}

fn summary(history: &History) -> String {
    let count =
        |wanted: fn(&Outcome) -> bool| history.writes.iter().filter(|write| wanted(&write.outcome)).count();
    let events = history.watches.iter().flat_map(|watch| &watch.events);
    let changes = events.filter(|event| matches!(event, Event::Change(..))).count();
    format!(
        "{} writes acknowledged, {} refused, {} without an answer; {changes} watch events over {} resumed watches; {} lists",
        count(|outcome| matches!(outcome, Outcome::Acknowledged(_))),
        count(|outcome| matches!(outcome, Outcome::Refused(_))),
        count(|outcome| matches!(outcome, Outcome::Unknown)),
        history.watches.iter().map(|watch| watch.resumed).sum::<usize>(),
        history.lists.len() + history.watches.iter().map(|watch| watch.lists.len()).sum::<usize>(),
    )
}

/// Waits for some writes, or for some time if they do not come that fast.
fn wait_a_random_while(load: &Load, random: &mut Random) {
    let enough = load.acknowledged() + random.below(WRITES);
    let time = Duration::from_millis(random.below(MILLISECONDS));
    holds_within(time, || load.acknowledged() >= enough);
}

/// Starts a server on the directory and kills it before it is ready, or shortly after.
fn start_and_kill_at_once(server: &Server, random: &mut Random) {
    let mut stillborn = start(&server.data(), server.address());
    let time = Duration::from_millis(random.below(STARTING));
    holds_within(time, || matches!(stillborn.try_wait(), Ok(Some(_))));
    stillborn.kill().expect("a child can be killed");
    stillborn.wait().expect("a child can be waited for");
}

fn start(data: &Path, listen: &str) -> Child {
    Command::new(std::env::var_os("MUSTER_BIN").expect("MUSTER_BIN names the muster binary"))
        .args(["up", "--listen", listen, "--data"])
        .arg(data)
        .env("MUSTER_MQTT_LISTEN", "off")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the muster binary can be started")
}

#[test]
fn fifty_kills_lose_no_acknowledged_write_reuse_no_revision_and_hide_nothing_from_a_watch() {
    let seed = choose_seed();
    println!("MUSTER_CRASH_SEED={seed}");
    let mut random = Random::new(seed);
    let mut server = Server::start(&FLAGS);
    let mut load = Load::start(server.address(), &server.admin_token(), seed);
    for round in 0..KILLS {
        wait_a_random_while(&load, &mut random);
        server.kill();
        if round % 5 == 4 {
            start_and_kill_at_once(&server, &mut random);
        }
        server.restart();
        load.server_is_back();
    }
    let enough = load.acknowledged() + WRITES;
    wait_for("writes after the last start", SOON, || load.acknowledged() >= enough);
    let history = load.finish();
    println!("{KILLS} kills: {}", summary(&history));
    assert_sound(seed, &history);
    let acknowledged =
        history.writes.iter().filter(|write| matches!(write.outcome, Outcome::Acknowledged(_)));
    assert!(acknowledged.count() as u64 > KILLS * 20, "there was hardly any load: {}", summary(&history));
}

#[test]
fn the_check_finds_a_server_out_that_lost_what_it_acknowledged() {
    let seed = choose_seed();
    println!("MUSTER_CRASH_SEED={seed}");
    let mut server = Server::start(&FLAGS);
    let mut load = Load::start(server.address(), &server.admin_token(), seed);
    wait_for("some load", SOON, || load.acknowledged() >= WRITES);
    server.kill();
    let log = server.data().join("muster.db-wal");
    let written_ahead = fs::metadata(&log).unwrap().len();
    fs::File::options().write(true).open(&log).unwrap().set_len(written_ahead / 2).unwrap();
    server.restart();
    load.server_is_back();
    let enough = load.acknowledged() + WRITES;
    wait_for("load after the loss", SOON, || load.acknowledged() >= enough);
    let found: BTreeSet<_> = check(&load.finish()).into_iter().map(|violation| violation.kind).collect();
    for kind in [Kind::Lost, Kind::RevisionReused, Kind::RevisionWentBack] {
        assert!(found.contains(&kind), "{kind:?} is not among {found:?}");
    }
}

/// The exit code of a server that has ended, before anybody waits for it.
fn exit_code(server: &Server) -> Option<i32> {
    let id = i32::try_from(server.id()).ok().and_then(Pid::from_raw).expect("a child has an id");
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(id), options)
        .expect("a child can be asked about")
        .and_then(|status| status.exit_status())
}

#[test]
fn a_server_that_is_asked_to_stop_under_load_loses_nothing_ends_its_watches_and_exits_with_zero() {
    let seed = choose_seed();
    println!("MUSTER_CRASH_SEED={seed}");
    let mut server = Server::start(&FLAGS);
    let mut load = Load::start(server.address(), &server.admin_token(), seed);
    for _ in 0..3 {
        let enough = load.acknowledged() + WRITES;
        wait_for("some load", SOON, || load.acknowledged() >= enough);
        let id = i32::try_from(server.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(id, Signal::TERM).unwrap();
        wait_for("the server to stop", STOPPING, || exit_code(&server).is_some());
        assert_eq!(exit_code(&server), Some(0));
        server.stop();
        server.restart();
        load.server_is_back();
    }
    let history = load.finish();
    println!("{}", summary(&history));
    assert_sound(seed, &history);
    for watch in &history.watches {
        // One that came back while the server was still stopping was ended in order once more.
        assert!(
            watch.ended >= 3,
            "{}: the server ends its watches in order, ended {}",
            watch.name,
            watch.ended
        );
    }
}

/// The words with which a server refuses to start; they come with an exit code.
#[track_caller]
fn refusal_to_start(data: &Path) -> String {
    let mut process = start(data, "127.0.0.1:0");
    let ended = holds_within(SOON, || matches!(process.try_wait(), Ok(Some(_))));
    process.kill().expect("a child can be killed");
    let status = process.wait().expect("a child can be waited for");
    assert!(ended, "the server started");
    assert_eq!(status.code(), Some(1), "{status}");
    let mut words = String::new();
    process
        .stderr
        .take()
        .expect("standard error is piped")
        .read_to_string(&mut words)
        .expect("words are text");
    words
}

/// A server with some objects in it.
fn filled_server() -> (Server, Vec<String>) {
    let server = Server::start(&[]);
    let http = server.http();
    let path = "/apis/muster.dev/v1alpha1/namespaces/default/applications";
    for number in 0..40 {
        let object = format!(
            r#"{{"apiVersion":"muster.dev/v1alpha1","kind":"Application","metadata":{{"name":"a{number}"}}}}"#
        );
        assert_eq!(http.post(path, &object).code, 201);
    }
    let filled = objects(&server);
    (server, filled)
}

fn objects(server: &Server) -> Vec<String> {
    let list = server.http().get("/apis/muster.dev/v1alpha1/applications").json();
    list["items"].as_array().expect("a list has items").iter().map(ToString::to_string).collect()
}

#[test]
fn a_damaged_database_is_refused_with_words_that_say_what_to_do() {
    let (mut server, _) = filled_server();
    // In order, so that everything is in the one file.
    server.stop();
    let database = server.data().join("muster.db");
    let sound = fs::read(&database).unwrap();
    let mut flipped = sound.clone();
    for at in (100..flipped.len()).step_by(1000) {
        flipped[at] ^= 0xff;
    }
    let damages: [(&str, Vec<u8>); 4] = [
        ("flipped bytes", flipped),
        ("nothing", Vec::new()),
        ("a part", sound[..sound.len() / 2].to_vec()),
        ("another sort of file", b"#!/bin/sh\necho hello\n".repeat(1000)),
    ];
    for (what, damaged) in damages {
        fs::write(&database, &damaged).unwrap();
        let words = refusal_to_start(&server.data());
        assert!(words.contains("muster.db is damaged") && words.contains("backup"), "{what}: {words}");
        assert_eq!(fs::read(&database).unwrap(), damaged, "{what}: a file that is refused is left as it was");
    }
}

#[test]
fn a_database_that_went_missing_is_not_replaced_by_an_empty_one() {
    let (mut server, _) = filled_server();
    server.kill();
    fs::rename(server.data().join("muster.db"), server.data().join("elsewhere")).unwrap();
    let words = refusal_to_start(&server.data());
    assert!(words.contains("muster.db") && words.contains("backup"), "{words}");
}

#[test]
fn a_log_that_ends_in_the_middle_of_a_write_is_read_up_to_there() {
    let (mut server, objects_before) = filled_server();
    server.kill();
    let log = server.data().join("muster.db-wal");
    let mut torn = fs::read(&log).unwrap();
    assert!(!torn.is_empty(), "a kill leaves the write-ahead log behind");
    // The beginning of the next write: all there was time for.
    let beginning = torn[32..5000].to_vec();
    torn.extend_from_slice(&beginning);
    fs::write(&log, &torn).unwrap();
    server.restart();
    assert_eq!(objects(&server), objects_before);
}

#[test]
fn a_log_that_is_damaged_in_the_middle_is_refused() {
    let (mut server, _) = filled_server();
    server.kill();
    let log = server.data().join("muster.db-wal");
    let mut damaged = fs::read(&log).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xff;
    fs::write(&log, &damaged).unwrap();
    let words = refusal_to_start(&server.data());
    assert!(words.contains("write-ahead log") && words.contains("backup"), "{words}");
    assert_eq!(fs::read(&log).unwrap(), damaged, "a file that is refused is left as it was");
}

#[test]
fn a_second_server_on_the_same_directory_is_refused() {
    let server = Server::start(&[]);
    let words = refusal_to_start(&server.data());
    assert!(words.contains("in use") && words.contains("--data"), "{words}");
    assert_eq!(server.http().get("/healthz").code, 200);
}
