//! Tasks run: a real server, real processes, and what their tasks say afterwards.

use std::time::Duration;

use muster_e2e::http::Http;
use muster_e2e::server::Server;
use muster_e2e::wait::wait_for;
use serde_json::{Value, json};

const TASKS: &str = "/apis/muster.dev/v1alpha1/namespaces/default/tasks";
const SOON: Duration = Duration::from_mins(1);

struct World {
    server: Server,
    http: Http,
}

impl World {
    fn new() -> Self {
        let server = Server::start(&["--roles", "api,engine", "--slots", "2", "--absent-wait", "1s"]);
        let http = Http::new(server.address(), Some(&server.admin_token()));
        Self { server, http }
    }

    fn create(&self, name: &str, spec: &Value) {
        let task = json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": { "name": name }, "spec": spec,
        });
        let answer = self.http.post(TASKS, &task.to_string());
        assert_eq!(answer.code, 201, "{}", answer.text());
    }

    fn task(&self, name: &str) -> Value {
        self.http.get(&format!("{TASKS}/{name}")).json()
    }

    fn state(&self, name: &str) -> String {
        self.task(name)["status"]["state"].as_str().unwrap_or("none").to_owned()
    }

    fn wait_for_state(&self, name: &str, state: &str) {
        wait_for(&format!("{name} is {state}"), SOON, || self.state(name) == state);
    }
}

fn shell(script: &str) -> Value {
    json!({ "container": { "command": ["sh", "-c", script] } })
}

#[test]
fn a_task_runs_and_succeeds_and_its_log_is_kept() {
    let world = World::new();
    world.create("hello", &shell("echo hello from $MUSTER_TASK"));
    world.wait_for_state("hello", "Succeeded");
    let task = world.task("hello");
    let attempt = &task["status"]["attempts"][0];
    assert_eq!((attempt["exitCode"].as_i64(), attempt["number"].as_i64()), (Some(0), Some(1)));
    let log = world.http.get(&format!("{TASKS}/hello/log"));
    assert_eq!(log.text(), "hello from hello\n");
}

#[test]
fn a_task_of_high_priority_starts_with_the_next_free_slot_after_many_short_ones_and_before_slow_ones() {
    let world = World::new();
    let order = world.server.data().join("order");
    let noting = |name: &str, nap: &str| shell(&format!("echo {name} >> {}; sleep {nap}", order.display()));
    // Short ones teach the server that slots turn fast; then slow ones come.
    for number in 0..300 {
        world.create(&format!("short-{number}"), &json!({ "container": { "command": ["true"] } }));
    }
    for number in 0..30 {
        world.create(&format!("slow-{number}"), &noting("slow", "1"));
    }
    let started = || std::fs::read_to_string(&order).unwrap_or_default().lines().count();
    wait_for("slow ones run", SOON, || started() >= 2);
    let mut urgent = noting("urgent", "0");
    urgent["priority"] = json!(1000);
    world.create("urgent", &urgent);
    let before = started();
    world.wait_for_state("urgent", "Succeeded");
    let lines = std::fs::read_to_string(&order).expect("they wrote");
    let place = lines.lines().position(|line| line == "urgent").expect("it ran");
    // Each of the two slots may have been given away while it was made.
    assert!(place <= before + 2, "{place} started before it, {before} of them before it was made");
    let late = world.task("slow-29");
    assert_eq!(late["status"].get("attempts"), None, "{late}");
}

#[test]
fn a_task_that_exits_with_a_code_fails_and_says_so() {
    let world = World::new();
    world.create("seven", &shell("exit 7"));
    world.wait_for_state("seven", "Failed");
    let task = world.task("seven");
    assert_eq!(task["status"]["attempts"][0]["exitCode"], 7);
    let errors = task["status"]["errors"].to_string();
    assert!(errors.contains("exit code 7"), "{errors}");
}

#[test]
fn a_command_that_does_not_exist_fails_with_its_name() {
    let world = World::new();
    world.create("nowhere", &json!({ "container": { "command": ["no-such-command-anywhere"] } }));
    world.wait_for_state("nowhere", "Failed");
    let errors = world.task("nowhere")["status"]["errors"].to_string();
    assert!(errors.contains("CommandNotFound") && errors.contains("no-such-command-anywhere"), "{errors}");
}

#[test]
fn a_kind_that_does_not_exist_fails_the_task_with_its_name() {
    let world = World::new();
    world.create("kindless", &json!({ "kind": "nonsense" }));
    world.wait_for_state("kindless", "Failed");
    let errors = world.task("kindless")["status"]["errors"].to_string();
    assert!(errors.contains("nonsense"), "{errors}");
}

#[test]
fn a_task_that_takes_too_long_is_ended_and_fails() {
    let world = World::new();
    let mut spec = shell("sleep 1000");
    spec["timeout"] = json!("1s");
    world.create("slow", &spec);
    world.wait_for_state("slow", "Failed");
    let task = world.task("slow");
    assert_eq!(task["status"]["attempts"][0]["exitCode"], 143);
    assert_eq!(task["status"]["message"], "Task terminated: Task timeout");
}

#[test]
fn a_suspended_task_waits_until_it_is_submitted() {
    let world = World::new();
    let mut spec = shell("true");
    spec["suspend"] = json!(true);
    world.create("later", &spec);
    world.create("now", &shell("true"));
    world.wait_for_state("now", "Succeeded");
    assert_eq!(world.state("later"), "Created");
    let patch = json!({ "spec": { "suspend": false } }).to_string();
    world.http.patch(&format!("{TASKS}/later"), "merge-patch+json", &patch);
    world.wait_for_state("later", "Succeeded");
}

#[test]
fn a_running_task_can_be_canceled() {
    let world = World::new();
    world.create("long", &shell("sleep 1000"));
    world.wait_for_state("long", "Running");
    let patch = json!({ "spec": { "cancel": true } }).to_string();
    world.http.patch(&format!("{TASKS}/long"), "merge-patch+json", &patch);
    world.wait_for_state("long", "Canceled");
}

#[test]
fn no_more_tasks_run_at_once_than_there_are_slots_and_all_of_them_run() {
    let world = World::new();
    for number in 0..40 {
        world.create(&format!("task-{number}"), &shell("sleep 0.05"));
    }
    for number in 0..40 {
        world.wait_for_state(&format!("task-{number}"), "Succeeded");
    }
}

#[test]
fn after_a_kill_every_task_is_tried_again_and_nothing_survives_unowned() {
    let mut world = World::new();
    let marker = format!("{}", 100_000 + world.server.id());
    for number in 0..4 {
        world.create(&format!("task-{number}"), &shell(&format!("sleep {marker}.5")));
    }
    let running = |world: &World, attempt: i64| {
        let tasks = (0..4).map(|number| world.task(&format!("task-{number}")));
        tasks
            .filter(|task| task["status"]["state"] == "Running" && task["status"]["attempt"] == attempt)
            .count()
    };
    wait_for("two tasks run", SOON, || running(&world, 1) == 2);
    world.server.kill();
    wait_for("no process of the dead server is left", SOON, || processes_with(&marker) == 0);
    world.server.restart();
    world.http = Http::new(world.server.address(), Some(&world.server.admin_token()));
    wait_for("the two run again", SOON, || running(&world, 2) == 2);
    let lost =
        (0..4).map(|number| world.task(&format!("task-{number}"))).filter(|task| task["status"]["lost"] == 1);
    assert_eq!(lost.count(), 2, "the two that ran were lost once");
}

/// Processes whose command line holds a text.
fn processes_with(text: &str) -> usize {
    let all = std::fs::read_dir("/proc").expect("there is a /proc");
    let lines = all.filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(&format!("sleep\0{text}"))).count()
}
