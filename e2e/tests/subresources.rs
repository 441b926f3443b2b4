//! What a task has besides its object: logs, reports, files, retries. Real server, real processes, real archives.

use std::fs;
use std::process::Command;
use std::time::Duration;

use muster_e2e::http::Http;
use muster_e2e::server::Server;
use muster_e2e::wait::wait_for;
use serde_json::{Value, json};
use tempfile::TempDir;

const TASKS: &str = "/apis/muster.dev/v1alpha1/namespaces/default/tasks";
const SOON: Duration = Duration::from_mins(1);

struct World {
    /// Ends with the test.
    _server: Server,
    http: Http,
}

impl World {
    fn new() -> Self {
        let server = Server::start(&["--roles", "api,engine", "--slots", "2"]);
        let http = server.http();
        Self { _server: server, http }
    }

    fn create(&self, name: &str, script: &str) {
        let task = json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": { "name": name },
            "spec": { "container": { "command": ["sh", "-c", script] } },
        });
        let answer = self.http.post(TASKS, &task.to_string());
        assert_eq!(answer.code, 201, "{}", answer.text());
    }

    fn task(&self, name: &str) -> Value {
        self.http.get(&format!("{TASKS}/{name}")).json()
    }

    fn wait_for_state(&self, name: &str, state: &str) {
        wait_for(&format!("{name} is {state}"), SOON, || self.task(name)["status"]["state"] == state);
    }

    fn cancel(&self, name: &str) {
        let answer =
            self.http.patch(&format!("{TASKS}/{name}"), "merge-patch+json", r#"{"spec":{"cancel":true}}"#);
        assert_eq!(answer.code, 200, "{}", answer.text());
    }

    /// Runs a task that tells its token, and speaks with that from then on.
    fn speak_as_attempt(&self, name: &str) -> Http {
        self.create(name, "echo $MUSTER_TOKEN; exec sleep 600");
        let mut log = self.http.request("GET", &format!("{TASKS}/{name}/log?follow=true")).stream();
        let token = log.next_within(SOON).expect("the attempt tells its token");
        self.http.with_token(Some(&token))
    }
}

#[test]
fn following_a_log_shows_all_of_it_and_ends_with_the_task() {
    let world = World::new();
    world.create("counts", "for n in 1 2 3 4 5; do echo line $n; done; echo no newline | tr -d '\\n'");
    let mut log = world.http.request("GET", &format!("{TASKS}/counts/log?follow=true")).stream();
    let lines: Vec<_> = std::iter::from_fn(|| log.next_within(SOON)).collect();
    assert_eq!(lines, ["line 1", "line 2", "line 3", "line 4", "line 5", "no newline"]);
    world.wait_for_state("counts", "Succeeded");
    let tail = world.http.get(&format!("{TASKS}/counts/log?tailLines=2"));
    assert_eq!(tail.text(), "line 5\nno newline");
    let attached = world.http.get(&format!("{TASKS}/counts/attachments")).json();
    assert_eq!(attached["items"][0]["name"], "addon.log", "{attached}");
    let whole = world.http.get(&format!("{TASKS}/counts/attachments/addon.log"));
    assert!(whole.text().starts_with("line 1\n") && whole.text().ends_with("no newline"), "{}", whole.text());
}

#[test]
fn an_attempt_reports_with_its_own_token_until_it_ends() {
    let world = World::new();
    world.create("other", "exec sleep 600");
    let addon = world.speak_as_attempt("own");
    let report =
        json!({"activity": ["began"], "total": 4, "completed": 1, "errors": [{"description": "odd"}]});
    let answer = addon.post(&format!("{TASKS}/own/report"), &report.to_string());
    assert_eq!(answer.code, 200, "{}", answer.text());
    let kept =
        addon.request("PUT", &format!("{TASKS}/own/attachments/notes.txt?activity=1")).body("notes").send();
    assert_eq!(kept.code, 201, "{}", kept.text());
    assert_eq!(addon.get(&format!("{TASKS}/own")).code, 200);
    for foreign in
        [format!("{TASKS}/other"), format!("{TASKS}/other/report"), TASKS.to_owned(), "/metrics".to_owned()]
    {
        assert_eq!(addon.get(&foreign).code, 403, "{foreign}");
    }
    world.cancel("own");
    world.wait_for_state("own", "Canceled");
    assert_eq!(addon.get(&format!("{TASKS}/own")).code, 401);
    assert_eq!(addon.post(&format!("{TASKS}/own/report"), r#"{"completed": 2}"#).code, 401);
    let status = world.task("own")["status"].clone();
    assert_eq!((&status["completed"], &status["activity"]), (&json!(1), &json!(["began"])));
    assert!(status["errors"].to_string().contains("(addon) odd"), "{status}");
    assert_eq!(world.http.get(&format!("{TASKS}/own/attachments/notes.txt")).text(), "notes");
}

#[test]
fn reports_and_files_survive_a_kill_of_the_server() {
    let mut server = Server::start(&["--roles", "api,engine", "--slots", "2"]);
    let http = server.http();
    let task = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": { "name": "own" },
        "spec": { "container": { "command": ["sleep", "600"] } },
    });
    assert_eq!(http.post(TASKS, &task.to_string()).code, 201);
    let place = format!("{TASKS}/own");
    wait_for("own is Running", SOON, || http.get(&place).json()["status"]["state"] == "Running");
    assert_eq!(http.post(&format!("{place}/report"), r#"{"sequence": 1, "completed": 7}"#).code, 200);
    for path in ["attachments/kept", "bucket/dir/kept"] {
        let answer = http.request("PUT", &format!("{place}/{path}")).body("kept").send();
        assert_eq!(answer.code, 201, "{}", answer.text());
    }
    server.kill();
    // Without an engine, which would begin another attempt and with it another report.
    server.restart_with(&["--roles", "api"]);
    assert_eq!(http.get(&place).json()["status"]["completed"], 7);
    let late = http.post(&format!("{place}/report"), r#"{"sequence": 1, "completed": 9}"#).json();
    assert!(late["ignored"].is_string() && late["completed"] == 7, "{late}");
    for path in ["attachments/kept", "bucket/dir/kept"] {
        assert_eq!(http.get(&format!("{place}/{path}")).text(), "kept");
    }
}

#[test]
fn a_bucket_takes_and_gives_archives_of_tar() {
    let world = World::new();
    world.create("own", "exec sleep 600");
    let dir = TempDir::new().expect("a directory");
    fs::create_dir_all(dir.path().join("in/deep")).expect("a directory can be made");
    fs::write(dir.path().join("in/deep/a.txt"), "text").expect("a file can be written");
    fs::write(dir.path().join("in/b.bin"), vec![7; 300_000]).expect("a file can be written");
    tar(dir.path(), &["-cf", "in.tar", "-C", "in", "."]);
    let packed = fs::read(dir.path().join("in.tar")).expect("the archive is there");
    let bucket = format!("{TASKS}/own/bucket/");
    let put =
        world.http.request("PUT", &bucket).header("Content-Type", "application/x-tar").body(packed).send();
    assert_eq!(put.code, 200, "{}", put.text());
    let listed = world.http.get(&bucket).json();
    assert_eq!(
        listed["items"],
        json!([{"path": "b.bin", "size": 300_000}, {"path": "deep/a.txt", "size": 4}])
    );
    let got = world.http.request("GET", &bucket).header("Accept", "application/x-tar").send();
    fs::write(dir.path().join("out.tar"), got.bytes()).expect("a file can be written");
    fs::create_dir(dir.path().join("out")).expect("a directory can be made");
    tar(dir.path(), &["-xf", "out.tar", "-C", "out"]);
    assert_eq!(fs::read_to_string(dir.path().join("out/deep/a.txt")).expect("it came back"), "text");
    assert_eq!(fs::read(dir.path().join("out/b.bin")).expect("it came back"), vec![7; 300_000]);
}

fn tar(dir: &std::path::Path, arguments: &[&str]) {
    let ended = Command::new("tar").args(arguments).current_dir(dir).status().expect("tar can be run");
    assert!(ended.success(), "tar {arguments:?} failed");
}

#[test]
fn a_task_that_ended_runs_again_as_another() {
    let world = World::new();
    world.create("fails", "exit 3");
    world.wait_for_state("fails", "Failed");
    let answer = world.http.request("POST", &format!("{TASKS}/fails/retry")).send();
    assert_eq!(answer.code, 201, "{}", answer.text());
    let new = answer.json();
    assert_eq!(new["metadata"]["annotations"]["muster.dev/retry-of"], "fails");
    let name = new["metadata"]["name"].as_str().expect("a name");
    world.wait_for_state(name, "Failed");
}

#[test]
fn a_running_task_refuses_what_comes_too_late() {
    let world = World::new();
    world.create("runs", "exec sleep 600");
    world.wait_for_state("runs", "Running");
    let place = format!("{TASKS}/runs");
    let late = world.http.patch(&place, "merge-patch+json", r#"{"spec":{"timeout":"1s","locator":"x"}}"#);
    assert_eq!(late.code, 422, "{}", late.text());
    assert!(
        late.text().contains("spec.timeout") && !late.text().contains("spec.locator:"),
        "{}",
        late.text()
    );
    let fine = world.http.patch(&place, "merge-patch+json", r#"{"spec":{"locator":"x"}}"#);
    assert_eq!(fine.code, 200, "{}", fine.text());
    assert_eq!(world.http.request("POST", &format!("{place}/retry")).send().code, 409);
}

#[test]
fn a_task_that_runs_is_explained() {
    let world = World::new();
    world.create("runs", "exec sleep 600");
    world.wait_for_state("runs", "Running");
    let told = world.http.get(&format!("{TASKS}/runs/explain")).json();
    assert_eq!((&told["kind"], &told["state"]), (&json!("TaskExplanation"), &json!("Running")), "{told}");
}
