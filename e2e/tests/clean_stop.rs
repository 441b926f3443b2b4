//! A server that is told to stop takes back what waits at its executor and takes in what has ended: nothing runs twice for it, and
//! nothing is lost but what runs. That has time to end, and is tried again however often the server is stopped.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use muster_e2e::server::Server;
use muster_e2e::wait::wait_for;
use serde_json::{Value, json};

const TASKS: &str = "/apis/muster.dev/v1alpha1/namespaces/default/tasks";
const COUNT: usize = 600;
const SLOTS: usize = 2;
const LONG: Duration = Duration::from_mins(2);

#[test]
fn what_has_ended_does_not_run_again_after_a_clean_stop() {
    let mut server = Server::start(&["--roles", "api,engine", "--slots", "2"]);
    let marks = tempfile::tempdir().expect("a directory");
    let ran = marks.path().join("ran");
    let script = format!("echo $MUSTER_TASK >> {}", ran.display());
    let tasks: Vec<Value> = (0..COUNT)
        .map(|number| {
            json!({
                "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": format!("t{number}")},
                "spec": {"container": {"command": ["sh", "-c", script]}, "retry": {"lostLimit": 5}},
            })
        })
        .collect();
    let list = json!({"apiVersion": "muster.dev/v1alpha1", "kind": "TaskList", "items": tasks});
    assert_eq!(server.http().post(TASKS, &list.to_string()).code, 201);
    for _ in 0..3 {
        let before = fs::read_to_string(&ran).unwrap_or_default().lines().count();
        wait_for("some run", LONG, || {
            let now = fs::read_to_string(&ran).unwrap_or_default().lines().count();
            now > before + 20 || now >= COUNT
        });
        server.stop();
        server.restart();
    }
    let all = || {
        server.http().get(&format!("{TASKS}?limit=1000")).json()["items"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let has_succeeded = |task: &Value| task["status"]["state"] == "Succeeded";
    wait_for("all succeed", LONG, || all().iter().filter(|task| has_succeeded(task)).count() == COUNT);
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for name in fs::read_to_string(&ran).expect("all ran").lines() {
        *times.entry(name.to_owned()).or_default() += 1;
    }
    assert_eq!(times.len(), COUNT);
    let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    // What runs when the server stops is ended, and may have said so already.
    assert!(twice.len() <= 3 * SLOTS, "{twice:?}");
    let has_lost_one = |task: &&Value| task["status"]["lost"].as_u64().unwrap_or(0) > 0;
    let losers = all().iter().filter(has_lost_one).count();
    assert!(losers <= 3 * SLOTS, "{losers} tasks lost an attempt: what only waited for a slot did not run");
}

/// Makes a task that runs a script.
fn submit(server: &Server, name: &str, script: &str, more: &Value) {
    let mut spec = json!({"container": {"command": ["sh", "-c", script]}});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let metadata = json!({"name": name});
    let task =
        json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": metadata, "spec": spec});
    assert_eq!(server.http().post(TASKS, &task.to_string()).code, 201);
}

fn lines(file: &Path) -> usize {
    fs::read_to_string(file).unwrap_or_default().lines().count()
}

#[test]
fn programs_have_their_kill_timeout_when_the_server_is_stopped() {
    let mut server = Server::start(&["--roles", "api,engine", "--slots", "3", "--stop-timeout", "3s"]);
    let marks = tempfile::tempdir().expect("a directory");
    let mark = |name: &str| marks.path().join(name);
    let (ready, said) = (mark("ready"), mark("said"));
    let goodbye = format!(
        "trap 'sleep 1; echo bye >> {}; exit 0' TERM; echo >> {}; while :; do sleep 3600 & wait $!; done",
        said.display(),
        ready.display()
    );
    let ignores = format!("trap '' TERM; echo >> {}; while :; do sleep 3600; done", ready.display());
    submit(&server, "obeys", &goodbye, &json!({}));
    submit(&server, "short", &ignores, &json!({"killTimeout": "500ms"}));
    submit(&server, "long", &ignores, &json!({"killTimeout": "1h"}));
    wait_for("all run", LONG, || lines(&ready) == 3);
    let begun = Instant::now();
    server.stop();
    let took = begun.elapsed();
    assert_eq!(lines(&said), 1, "it had the time that it took to end");
    assert!(took >= Duration::from_secs(3) && took < Duration::from_secs(30), "{took:?}");
    server.restart();
    wait_for("all run again", LONG, || lines(&ready) == 6);
    for name in ["obeys", "short", "long"] {
        let status = server.http().get(&format!("{TASKS}/{name}")).json()["status"].clone();
        let first = &status["attempts"][0];
        let code = if name == "obeys" { 0 } else { 137 };
        assert_eq!((&first["reason"], &first["exitCode"]), (&json!("ServerStopped"), &json!(code)), "{name}");
    }
}

#[test]
fn a_long_task_outlives_more_clean_stops_than_it_may_lose_attempts() {
    let mut server = Server::start(&["--roles", "api,engine", "--slots", "1"]);
    let marks = tempfile::tempdir().expect("a directory");
    let (begun, goes_on) = (marks.path().join("begun"), marks.path().join("goes-on"));
    let script =
        format!("echo >> {}; until [ -e {} ]; do sleep 0.1; done", begun.display(), goes_on.display());
    submit(&server, "long", &script, &json!({"retry": {"lostLimit": 1}}));
    for stops in 1..=4 {
        wait_for("it runs", LONG, || lines(&begun) == stops);
        server.stop();
        server.restart();
    }
    wait_for("it runs", LONG, || lines(&begun) == 5);
    fs::write(&goes_on, "").expect("a file");
    let status = || server.http().get(&format!("{TASKS}/long")).json()["status"].clone();
    wait_for("its end", LONG, || status()["state"] == "Succeeded");
    let status = status();
    assert_eq!((status["attempt"].as_u64(), status["lost"].as_u64().unwrap_or(0)), (Some(5), 0), "{status}");
}
