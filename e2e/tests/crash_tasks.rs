//! `kill -9` of a server that runs two hundred processes: what was promised is kept by the next one.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use muster_e2e::http::Http;
use muster_e2e::server::Server;
use muster_e2e::wait::wait_for;
use serde_json::{Value, json};

const TASKS: &str = "/apis/muster.dev/v1alpha1/namespaces/default/tasks";
const SLOTS: usize = 200;
/// Processes are many, machines are slow.
const LONG: Duration = Duration::from_mins(3);

/// What the policy of a task says should become of it.
#[derive(Clone, Copy)]
enum Policy {
    /// Tried again, it succeeds.
    Again,
    /// Tried again, it fails with code 7.
    AgainAndFail,
    /// A lost executor is the end of it.
    Once,
    /// It has no slot when the server dies.
    Queued,
}

const ALL: [(Policy, &str, usize); 4] = [
    (Policy::Again, "again", 100),
    (Policy::AgainAndFail, "fails", 50),
    (Policy::Once, "once", 50),
    (Policy::Queued, "queued", 20),
];

impl Policy {
    /// The first attempt sleeps; the second finds what the first left.
    fn spec(self, marks: &Path, marker: &str) -> Value {
        let first = format!("mkdir {}/$MUSTER_TASK 2> /dev/null && exec sleep {marker}", marks.display());
        let (script, retry) = match self {
            Self::Again => (format!("{first}; exit 0"), json!({})),
            Self::AgainAndFail => (format!("{first}; exit 7"), json!({})),
            Self::Once => (format!("exec sleep {marker}"), json!({ "lostLimit": 0 })),
            Self::Queued => ("exit 0".to_owned(), json!({})),
        };
        // The queued come last in the order too.
        let priority = if matches!(self, Self::Queued) { 0 } else { 5 };
        json!({ "container": { "command": ["sh", "-c", script] }, "retry": retry, "priority": priority })
    }

    /// State, attempts, and the exit code of the last one.
    fn expected(self) -> (&'static str, u64, Option<i64>) {
        match self {
            Self::Again => ("Succeeded", 2, Some(0)),
            Self::AgainAndFail => ("Failed", 2, Some(7)),
            Self::Once => ("Failed", 1, None),
            Self::Queued => ("Succeeded", 1, Some(0)),
        }
    }
}

fn tasks(http: &Http) -> BTreeMap<String, Value> {
    let list = http.get(TASKS).json();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let named = |task: Value| (task["metadata"]["name"].as_str().unwrap_or_default().to_owned(), task);
    items.into_iter().map(named).collect()
}

fn in_state(http: &Http, state: &str) -> usize {
    tasks(http).values().filter(|task| task["status"]["state"] == state).count()
}

/// Processes that sleep for a time nobody else sleeps for.
fn sleepers(marker: &str) -> usize {
    let all = std::fs::read_dir("/proc").expect("there is a /proc");
    let lines = all.filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
    lines.filter(|line| line.starts_with(format!("sleep\0{marker}\0").as_bytes())).count()
}

#[test]
fn every_task_ends_as_its_policy_says_after_a_kill_with_two_hundred_processes() {
    let slots = SLOTS.to_string();
    let mut server = Server::start(&["--roles", "api,engine", "--slots", &slots]);
    let http = server.http();
    let marks = server.data().join("marks");
    std::fs::create_dir(&marks).unwrap();
    let marker = format!("{}.25", 200_000 + server.id());
    for (policy, name, count) in ALL {
        let spec = policy.spec(&marks, &marker);
        for number in 0..count {
            let task = json!({
                "apiVersion": "muster.dev/v1alpha1", "kind": "Task",
                "metadata": { "name": format!("{name}-{number}") }, "spec": spec,
            });
            let answer = http.post(TASKS, &task.to_string());
            assert_eq!(answer.code, 201, "{}", answer.text());
        }
    }
    wait_for("two hundred processes", LONG, || sleepers(&marker) == SLOTS);
    wait_for("two hundred running tasks", LONG, || in_state(&http, "Running") == SLOTS);

    server.kill();
    wait_for("no process outlives its server", LONG, || sleepers(&marker) == 0);
    server.restart();
    let http = server.http();

    let all: usize = ALL.iter().map(|(_, _, count)| count).sum();
    assert_eq!(tasks(&http).len(), all, "nothing that was acknowledged is lost");
    wait_for("the end of every task", LONG, || {
        in_state(&http, "Succeeded") + in_state(&http, "Failed") == all
    });
    let ended = tasks(&http);
    for (policy, name, count) in ALL {
        for number in 0..count {
            let task = &ended[&format!("{name}-{number}")];
            let status = &task["status"];
            let attempts = status["attempts"].as_array().map_or(&[][..], Vec::as_slice);
            let code = attempts.last().and_then(|attempt| attempt["exitCode"].as_i64());
            let state = status["state"].as_str().unwrap_or_default();
            let seen = (state, status["attempt"].as_u64().unwrap_or(0), code);
            assert_eq!(seen, policy.expected(), "{name}-{number}: {status}");
            if matches!(policy, Policy::Once) {
                let errors = status["errors"].to_string();
                assert!(errors.contains("the server was restarted"), "{errors}");
            }
        }
    }
    assert_eq!(sleepers(&marker), 0, "nothing runs any more");
}
