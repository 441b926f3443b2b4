//! How long things last: tasks, what their attempts left, and their files. Real server, real processes.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use muster_e2e::http::Http;
use muster_e2e::server::Server;
use muster_e2e::wait::wait_for;
use serde_json::{Value, json};

const API: &str = "/apis/muster.dev/v1alpha1/namespaces/default";
const SOON: Duration = Duration::from_mins(1);

struct World {
    server: Server,
    http: Http,
}

impl World {
    fn new() -> Self {
        Self::with(&[])
    }

    /// The same with further flags.
    fn with(flags: &[&str]) -> Self {
        let server = Server::start(&[&["--roles", "api,engine", "--slots", "2"], flags].concat());
        let http = Http::new(server.address(), Some(&server.admin_token()));
        Self { server, http }
    }

    fn create(&self, kind: &str, name: &str, spec: &Value) {
        let plural = format!("{}s", kind.to_lowercase());
        let object = json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": kind, "metadata": { "name": name }, "spec": spec,
        });
        let answer = self.http.post(&format!("{API}/{plural}"), &object.to_string());
        assert_eq!(answer.code, 201, "{}", answer.text());
    }

    fn task(&self, name: &str) -> Value {
        self.http.get(&format!("{API}/tasks/{name}")).json()
    }

    fn wait_for_state(&self, name: &str, state: &str) {
        wait_for(&format!("{name} is {state}"), SOON, || self.task(name)["status"]["state"] == state);
    }

    fn is_gone(&self, name: &str) -> bool {
        self.http.get(&format!("{API}/tasks/{name}")).code == 404
    }

    fn log(&self, name: &str) -> (u16, String) {
        let answer = self.http.get(&format!("{API}/tasks/{name}/log"));
        (answer.code, answer.text())
    }

    /// Where the latest attempt of a task ran.
    fn attempt_dir(&self, name: &str) -> PathBuf {
        let handle =
            self.task(name)["status"]["attempts"][0]["handle"].as_str().expect("a handle").to_owned();
        self.server.data().join("attempts").join(handle)
    }
}

fn shell(script: &str, more: Value) -> Value {
    let mut spec = json!({ "container": { "command": ["sh", "-c", script] } });
    if let (Value::Object(spec), Value::Object(more)) = (&mut spec, more) {
        spec.extend(more);
    }
    spec
}

#[test]
fn what_a_succeeded_attempt_left_goes_after_a_second_and_its_log_stays() {
    let world = World::new();
    world.create("Task", "t", &shell("echo kept; touch file", json!({})));
    world.wait_for_state("t", "Succeeded");
    let directory = world.attempt_dir("t");
    wait_for("the directory is gone", SOON, || !directory.exists());
    assert_eq!(world.log("t"), (200, "kept\n".to_owned()));
}

#[test]
fn what_a_failed_attempt_left_stays_to_be_looked_at() {
    let world = World::new();
    world.create("Task", "bad", &shell("echo evidence > file; exit 1", json!({})));
    world.create("Task", "good", &shell("true", json!({})));
    world.wait_for_state("bad", "Failed");
    world.wait_for_state("good", "Succeeded");
    let good = world.attempt_dir("good");
    wait_for("the other's directory is gone", SOON, || !good.exists());
    let file = world.attempt_dir("bad").join("work/file");
    assert_eq!(fs::read_to_string(file).unwrap(), "evidence\n");
}

#[test]
fn a_deleted_task_takes_its_attempt_and_all_its_files_with_it() {
    let world = World::new();
    world.create("Task", "ended", &shell("echo text; exit 1", json!({})));
    world.create("Task", "runs", &shell("echo text; sleep 600", json!({ "killTimeout": "1s" })));
    world.wait_for_state("ended", "Failed");
    world.wait_for_state("runs", "Running");
    let directories = [world.attempt_dir("ended"), world.attempt_dir("runs")];
    for name in ["ended", "runs"] {
        assert_eq!(world.http.delete(&format!("{API}/tasks/{name}")).code, 200);
    }
    wait_for("the directories are gone", SOON, || directories.iter().all(|directory| !directory.exists()));
    assert_eq!(world.log("ended").0, 404);
}

#[test]
fn files_of_a_task_that_was_deleted_while_nobody_looked_are_found_after_a_restart() {
    let mut world = World::new();
    world.create("Task", "t", &shell("echo text; exit 1", json!({})));
    world.wait_for_state("t", "Failed");
    let directory = world.attempt_dir("t");
    let elsewhere = world.server.data().join("attempts/00000000-0000-7000-8000-00000000dead-1");
    world.server.kill();
    fs::create_dir_all(elsewhere.join("work")).unwrap();
    world.server.restart();
    wait_for("what belongs to nobody is gone", SOON, || !elsewhere.exists());
    assert!(directory.exists(), "what belongs to a task stays");
}

#[test]
fn members_of_a_group_share_a_bucket_that_lasts_as_long_as_the_group() {
    let mut world = World::new();
    let member = |name: &str| json!({ "name": name, "spec": shell("true", json!({})) });
    world.create("TaskGroup", "g", &json!({ "tasks": [member("a"), member("b")] }));
    world.create("Task", "alone", &shell("true", json!({})));
    for name in ["g-a", "g-b", "alone"] {
        world.wait_for_state(name, "Succeeded");
    }
    let file = |name: &str| format!("{API}/tasks/{name}/bucket/out/result.txt");
    assert_eq!(world.http.put(&file("g-a"), "shared").code, 201);
    let group = world.http.get(&format!("{API}/taskgroups/g")).json();
    let uid = group["metadata"]["uid"].as_str().unwrap().to_owned();
    // However many tasks there are without files.
    for number in 0..8 {
        world.create("Task", &format!("idle-{number}"), &shell("true", json!({ "suspend": true })));
    }
    world.server.kill();
    world.server.restart();
    world.create("Task", "after", &shell("true", json!({})));
    world.wait_for_state("after", "Succeeded");
    assert_eq!(world.http.get(&file("g-b")).text(), "shared");
    assert_eq!(world.http.get(&file("alone")).code, 404);
    assert_eq!(world.http.delete(&format!("{API}/tasks/g-a")).code, 200);
    wait_for("a member is gone", SOON, || world.is_gone("g-a"));
    assert_eq!(world.http.get(&file("g-b")).text(), "shared");
    let kept = world.server.data().join("files/files/tasks").join(uid);
    assert!(kept.exists());
    assert_eq!(world.http.delete(&format!("{API}/taskgroups/g")).code, 200);
    wait_for("the bucket is gone with the group", SOON, || !kept.exists());
}

#[test]
fn a_task_that_ran_longer_than_its_ttl_is_stopped_and_deleted() {
    let world = World::new();
    // What it says stays: on a busy machine the task may be gone before anybody saw it run.
    let said = world.server.data().join("where-it-ran");
    let script = format!("pwd > {}; exec sleep 600", said.display());
    let spec = shell(&script, json!({ "ttl": { "running": "1s" }, "killTimeout": "1s" }));
    world.create("Task", "long", &spec);
    wait_for("the task is gone", SOON, || world.is_gone("long"));
    let directory = PathBuf::from(fs::read_to_string(&said).expect("it ran").trim());
    assert!(directory.starts_with(world.server.data().join("attempts")), "{}", directory.display());
    wait_for("and what it left", SOON, || !directory.exists());
}

#[test]
fn a_task_that_waited_or_was_done_longer_than_its_ttl_is_deleted() {
    let world = World::new();
    world.create("Task", "created", &shell("true", json!({ "suspend": true, "ttl": { "created": "1s" } })));
    world.create("Task", "done", &shell("true", json!({ "ttl": { "succeeded": "1s" } })));
    let subject = json!({ "kind": "Application", "name": "app" });
    world.create("Application", "app", &json!({}));
    world.create("Task", "first", &shell("sleep 600", json!({ "subject": subject, "killTimeout": "1s" })));
    world.wait_for_state("first", "Running");
    world.create("Task", "waits", &shell("true", json!({ "subject": subject, "ttl": { "pending": "1s" } })));
    world.create("Task", "stays", &shell("true", json!({})));
    for name in ["created", "done", "waits"] {
        wait_for(&format!("{name} is gone"), SOON, || world.is_gone(name));
    }
    world.wait_for_state("stays", "Succeeded");
}

#[test]
fn jobs_and_groups_are_let_go_when_the_server_is_told_to() {
    let world = World::with(&["--reap-jobs-succeeded", "1s", "--reap-jobs-failed", "2s"]);
    let member = |script: &str| json!({ "tasks": [{ "name": "a", "spec": shell(script, json!({})) }] });
    world.create("TaskGroup", "good", &member("true"));
    world.create("TaskGroup", "bad", &member("exit 1"));
    let job = |script: &str| {
        let group = json!({ "name": "g", "tasks": [{ "name": "a", "spec": shell(script, json!({})) }] });
        json!({ "taskGroups": [group] })
    };
    world.create("Job", "good-job", &job("true"));
    world.create("Job", "bad-job", &job("exit 1"));
    let get = |path: &str| world.http.get(&format!("{API}/{path}"));
    for path in ["taskgroups/good", "tasks/good-a", "jobs/good-job", "tasks/good-job-g-a"] {
        wait_for(&format!("{path} is gone"), SOON, || get(path).code == 404);
    }
    for path in ["taskgroups/bad", "jobs/bad-job"] {
        wait_for(&format!("{path} is released"), SOON, || get(path).json()["status"]["released"].is_string());
        assert_eq!(get(path).json()["status"]["state"], "Failed");
    }
    for name in ["bad-a", "bad-job-g-a"] {
        assert_eq!(world.task(name)["status"]["state"], "Failed", "{name}");
    }
}

#[test]
fn addons_say_whether_they_can_be_used() {
    let world = World::new();
    world.create("Addon", "fine", &json!({ "task": "x", "container": { "command": ["true"] } }));
    let ready = || {
        let addon = world.http.get(&format!("{API}/addons/fine")).json();
        addon["status"]["conditions"][0].clone()
    };
    wait_for("the addon is ready", SOON, || ready()["status"] == "True");
    assert_eq!((ready()["type"].as_str(), ready()["observedGeneration"].as_i64()), (Some("Ready"), Some(1)));
}

#[test]
fn an_attempt_can_report_about_itself_while_it_runs_and_not_after() {
    let world = World::new();
    let muster = std::env::var("MUSTER_BIN").unwrap();
    let script =
        format!("{muster} report --activity halfway --total 2 --completed 1; echo token $MUSTER_TOKEN");
    world.create("Task", "reports", &shell(&script, json!({})));
    world.wait_for_state("reports", "Succeeded");
    let status = world.task("reports")["status"].clone();
    assert_eq!((&status["completed"], &status["activity"][0]), (&json!(1), &json!("halfway")), "{status}");
    let (_, log) = world.log("reports");
    let token = log.lines().find_map(|line| line.strip_prefix("token ")).expect("a token").to_owned();
    let late = world.http.with_token(Some(&token)).get(&format!("{API}/tasks/reports"));
    assert_eq!(late.code, 401, "{}", late.text());
}

#[test]
fn a_member_of_an_array_knows_its_index() {
    let world = World::new();
    let task = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Task",
        "metadata": { "name": "member", "labels": { "muster.dev/index": "17" } },
        "spec": shell("echo $MUSTER_INDEX", json!({})),
    });
    assert_eq!(world.http.post(&format!("{API}/tasks"), &task.to_string()).code, 201);
    world.wait_for_state("member", "Succeeded");
    assert_eq!(world.log("member").1, "17\n");
}
