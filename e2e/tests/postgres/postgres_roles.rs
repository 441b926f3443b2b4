//! Servers of one database that differ in their roles, and one that is paused: the work of each role is done once.

use std::fs;
use std::path::Path;
use std::time::Duration;

use muster_e2e::databases::Postgres;
use muster_e2e::http::Http;
use muster_e2e::server::Server;
use muster_e2e::wait::wait_for;
use rustix::process::Signal;
use serde_json::json;

const API: &str = "/apis/muster.dev/v1alpha1/namespaces/default";
const LONG: Duration = Duration::from_mins(2);

fn start(store: &str, roles: &str) -> Server {
    Server::start(&["--store", store, "--roles", roles, "--slots", "1", "--lease", "3s"])
}

fn submit(http: &Http, name: &str, script: &str) {
    let task = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": { "name": name },
        "spec": { "container": { "command": ["sh", "-c", script] }, "retry": { "lostLimit": 10 } },
    });
    let answer = http.post(&format!("{API}/tasks"), &task.to_string());
    assert_eq!(answer.code, 201, "{}", answer.text());
}

fn state(http: &Http, name: &str) -> String {
    let task = http.get(&format!("{API}/tasks/{name}")).json();
    task["status"]["state"].as_str().unwrap_or_default().to_owned()
}

fn says(server: &Server, words: &str) -> bool {
    fs::read_to_string(server.log()).unwrap_or_default().contains(words)
}

#[test]
fn tasks_start_although_a_server_that_cannot_run_them_was_there_first() {
    let postgres = Postgres::shared();
    let store = postgres.fresh_url();
    let front = start(&store, "api,web");
    let holds = ["holds the lease of a role", "this server leads "];
    wait_for("the first server to hold what it can", LONG, || holds.iter().any(|words| says(&front, words)));
    let runner = start(&store, "api,engine");
    submit(&front.http(), "hello", "true");
    wait_for("the task to be run", LONG, || state(&front.http(), "hello") == "Succeeded");
    assert!(says(&runner, "this server leads "));
}

/// The lines that attempts wrote: number of the attempt, time in nanoseconds.
fn marks(file: &Path) -> Vec<(u32, u128)> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = |line: &str| {
        let (attempt, time) = line.split_once(' ')?;
        Some((attempt.parse().ok()?, time.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn processes_of_a_paused_leader_have_ended_before_the_next_one_starts_any() {
    let postgres = Postgres::shared();
    let store = postgres.fresh_url();
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let file = dir.path().join("marks");
    let leader = start(&store, "api,engine");
    wait_for("the first server to lead", LONG, || says(&leader, "this server leads "));
    let next = start(&store, "api,engine");
    let http = next.http();
    // One line at a time is appended whole.
    let script = format!(
        "me=${{PWD%/*}}; while :; do echo ${{me##*-}} $(date +%s%N) >> {}; sleep 0.05; done",
        file.display()
    );
    submit(&http, "writer", &script);
    wait_for("the first attempt to write", LONG, || !marks(&file).is_empty());
    leader.signal(Signal::STOP);
    // Long enough for the first one to be seen beside it.
    wait_for("the second attempt to write", LONG, || {
        marks(&file).iter().filter(|(attempt, _)| *attempt == 2).count() > 20
    });
    leader.signal(Signal::CONT);
    wait_for("the former leader to know", LONG, || says(&leader, "this server leads no longer"));
    let marks = marks(&file);
    let last = marks.iter().filter(|(attempt, _)| *attempt == 1).map(|(_, time)| *time).max();
    let first = marks.iter().filter(|(attempt, _)| *attempt == 2).map(|(_, time)| *time).min();
    assert!(last < first, "attempt 1 wrote at {last:?}, attempt 2 at {first:?}");
}

#[test]
fn a_list_that_one_server_began_goes_on_at_another_one() {
    let postgres = Postgres::shared();
    let store = postgres.fresh_url();
    let (first, second) = (start(&store, "api"), start(&store, "api"));
    for number in 0..5 {
        submit(&first.http(), &format!("t{number}"), "true");
    }
    let mut names = Vec::new();
    let mut more = String::new();
    // By turns, until the list is over.
    for server in [&first, &second].into_iter().cycle().take(5) {
        let page = server.http().get(&format!("{API}/tasks?limit=2&continue={more}"));
        assert_eq!(page.code, 200, "{}", page.text());
        let page = page.json();
        let items = page["items"].as_array().expect("items");
        names.extend(
            items.iter().map(|task| task["metadata"]["name"].as_str().unwrap_or_default().to_owned()),
        );
        page["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut more);
        if more.is_empty() {
            break;
        }
        // What comes meanwhile belongs to no page.
        submit(&first.http(), &format!("t{}-later", names.len()), "true");
    }
    assert_eq!(names, ["t0", "t1", "t2", "t3", "t4"]);
}
