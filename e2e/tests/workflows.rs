//! Groups and jobs, end to end: manifests applied by the real program, run by a real server, also when it is killed.

use std::process::{Command, Output};
use std::time::Duration;

use muster_e2e::http::Http;
use muster_e2e::server::Server;
use muster_e2e::wait::wait_for;
use serde_json::{Value, json};

const API: &str = "/apis/muster.dev/v1alpha1/namespaces/default";
const SOON: Duration = Duration::from_mins(2);

struct World {
    server: Server,
    http: Http,
}

impl World {
    fn new() -> Self {
        let server = Server::start(&["--roles", "api,engine", "--slots", "4"]);
        let http = server.http();
        Self { server, http }
    }

    /// The program as a user of this server runs it.
    fn muster(&self, arguments: &[&str]) -> Output {
        let program = std::env::var_os("MUSTER_BIN").expect("MUSTER_BIN names the program");
        let mut command = Command::new(program);
        command.arg("--kubeconfig").arg(self.server.kubeconfig()).args(arguments);
        command.output().expect("the program can be started")
    }

    /// The same, which must succeed; what it printed.
    fn told(&self, arguments: &[&str]) -> String {
        let output = self.muster(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {error}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn create(&self, plural: &str, kind: &str, name: &str, spec: &Value) {
        let object = json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec,
        });
        let answer = self.http.post(&format!("{API}/{plural}"), &object.to_string());
        assert_eq!(answer.code, 201, "{}", answer.text());
    }

    fn get(&self, path: &str) -> Value {
        self.http.get(&format!("{API}/{path}")).json()
    }

    fn wait_for_state(&self, path: &str, state: &str) -> Value {
        wait_for(&format!("{path} is {state}"), SOON, || self.get(path)["status"]["state"] == state);
        self.get(path)
    }

    fn tasks_of(&self, job: &str) -> Vec<Value> {
        let list = self.get(&format!("tasks?labelSelector=muster.dev/job%3D{job}"));
        list["items"].as_array().expect("a list").clone()
    }
}

fn example(name: &str) -> String {
    format!("{}/../examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn shell(script: &str) -> Value {
    json!({"container": {"command": ["sh", "-c", script]}})
}

fn group_states(job: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let groups = job["status"]["groups"].as_array().expect("groups");
    groups.iter().map(|group| (text(&group["name"]), text(&group["state"]))).collect()
}

#[test]
fn a_job_with_a_pipeline_a_fan_out_and_branches_runs_to_its_end() {
    let world = World::new();
    world.told(&["apply", "-f", &example("nightly.yaml")]);
    let watched = world.told(&["watch", "job/nightly"]);
    assert!(watched.lines().any(|line| line.starts_with("nightly/prepare ")), "{watched}");
    assert!(watched.trim_end().ends_with("nightly Succeeded 55/55"), "{watched}");
    let job = world.get("jobs/nightly");
    let states: Vec<String> =
        group_states(&job).into_iter().map(|(name, state)| format!("{name} {state}")).collect();
    assert_eq!(
        states,
        ["prepare Succeeded", "analyze Succeeded", "report Succeeded", "alarm Skipped", "tidy Succeeded"]
    );
    assert_eq!(job["status"]["counts"], json!({"succeeded": 55}));
    let log = world.told(&["logs", "nightly-analyze-part-41"]);
    assert_eq!(log, "part 41 of 50\n");
    let part = world.get("tasks/nightly-analyze-part-41");
    assert_eq!(part["spec"]["data"], json!({"depth": {"files": 3, "lines": 500}}));
    let row = world.told(&["get", "jobs"]);
    assert!(row.contains("Succeeded") && row.contains("5/5") && row.contains("55/55"), "{row}");
    assert!(world.told(&["describe", "job/nightly"]).contains("none of the groups it depends on failed"));
    world.told(&["wait", "job/nightly"]);
}

#[test]
fn a_failure_runs_its_branch_and_a_retry_runs_only_what_failed() {
    let world = World::new();
    let flag = world.server.data().join("go");
    let script = format!("test $MUSTER_INDEX != 3 || test -e {}", flag.display());
    world.create(
        "jobs",
        "Job",
        "night",
        &json!({"taskGroups": [
            {"name": "fetch", "tasks": [{"name": "one", "spec": shell("true")}]},
            {"name": "work", "dependsOn": ["fetch"], "count": 5, "tasks": [{"name": "w", "spec": shell(&script)}]},
            {"name": "ship", "dependsOn": ["work"], "tasks": [{"name": "s", "spec": shell("true")}]},
            {"name": "alarm", "dependsOn": ["work"], "when": "failed", "tasks": [{"name": "a", "spec": shell("true")}]},
        ]}),
    );
    let waited = world.muster(&["wait", "job/night"]);
    assert_eq!(waited.status.code(), Some(1), "{}", String::from_utf8_lossy(&waited.stdout));
    let states: Vec<String> =
        group_states(&world.get("jobs/night")).into_iter().map(|(_, state)| state).collect();
    assert_eq!(states, ["Succeeded", "Failed", "Skipped", "Succeeded"]);
    std::fs::write(flag, "").expect("a file can be written");
    let new = world.told(&["retry", "job/night"]);
    let new = new.trim();
    let job = world.wait_for_state(&format!("jobs/{new}"), "Succeeded");
    assert_eq!(job["metadata"]["annotations"]["muster.dev/retry-of"], "night");
    let mut names: Vec<String> = world
        .tasks_of(new)
        .iter()
        .map(|task| task["metadata"]["name"].as_str().expect("a name").replace(new, "new"))
        .collect();
    names.sort();
    assert_eq!(names, ["new-ship-s", "new-work-w-3"]);
}

#[test]
fn a_failed_member_of_a_pipeline_cancels_the_rest_with_the_reason() {
    let world = World::new();
    let tasks = json!([
        {"name": "a", "spec": shell("true")}, {"name": "b", "spec": shell("exit 3")}, {"name": "c", "spec": shell("true")},
    ]);
    world.create("taskgroups", "TaskGroup", "line", &json!({"mode": "pipeline", "tasks": tasks}));
    let group = world.wait_for_state("taskgroups/line", "Failed");
    assert_eq!(group["status"]["counts"], json!({"succeeded": 1, "failed": 1, "canceled": 1}));
    let rest = world.get("tasks/line-c");
    assert_eq!(rest["status"]["message"], "Canceled:line-c, when (pipelined) task:line-b failed.");
}

#[test]
fn every_example_of_a_group_runs() {
    let world = World::new();
    world.told(&["apply", "-f", &example("pipeline.yaml")]);
    world.told(&["wait", "taskgroup/release"]);
    let order: Vec<String> = ["build", "test", "publish"]
        .map(|name| world.get(&format!("tasks/release-{name}"))["status"]["started"].to_string())
        .to_vec();
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(world.get("tasks/release-test")["spec"]["priority"], 20);
}

#[test]
fn a_canceled_job_stops_what_runs_and_is_gone_with_all_it_made_when_deleted() {
    let world = World::new();
    let spec = json!({"taskGroups": [
        {"name": "long", "count": 3, "tasks": [{"name": "t", "spec": shell("sleep 1000")}]},
        {"name": "after", "dependsOn": ["long"], "when": "completed", "tasks": [{"spec": shell("true")}]},
    ]});
    world.create("jobs", "Job", "forever", &spec);
    world.wait_for_state("tasks/forever-long-t-2", "Running");
    world.told(&["cancel", "job/forever", "--wait"]);
    let job = world.get("jobs/forever");
    assert_eq!(job["status"]["state"], "Canceled");
    assert_eq!(job["status"]["counts"], json!({"canceled": 3}));
    world.told(&["delete", "job/forever"]);
    wait_for("all tasks are gone", SOON, || world.tasks_of("forever").is_empty());
    assert_eq!(world.http.get(&format!("{API}/taskgroups/forever-long")).code, 404);
}

#[test]
fn a_fan_out_survives_a_server_that_is_killed_in_the_middle() {
    let mut world = World::new();
    let spec = json!({"taskGroups": [
        {"name": "many", "count": 400, "parallelism": 20, "tasks": [{"name": "t", "spec": shell("true")}]},
        {"name": "join", "dependsOn": ["many"], "tasks": [{"spec": shell("true")}]},
    ]});
    world.create("jobs", "Job", "wide", &spec);
    for least in [1, 60] {
        wait_for("some tasks have ended", SOON, || {
            let counts = &world.get("taskgroups/wide-many")["status"]["counts"];
            counts["succeeded"].as_u64().unwrap_or(0) >= least
        });
        world.server.kill();
        world.server.restart();
    }
    let job = world.wait_for_state("jobs/wide", "Succeeded");
    assert_eq!(job["status"]["counts"], json!({"succeeded": 401}));
    assert_eq!(world.tasks_of("wide").len(), 401);
}

#[test]
fn a_suspended_job_waits_and_its_deadline_ends_it_when_it_takes_too_long() {
    let world = World::new();
    let long = json!([{"name": "t", "spec": shell("sleep 1000")}]);
    let spec = json!({"suspend": true, "deadline": "1s", "taskGroups": [{"name": "g", "tasks": long}]});
    world.create("jobs", "Job", "late", &spec);
    wait_for("it is noticed", SOON, || world.get("jobs/late")["status"]["suspendedSince"].is_string());
    assert_eq!(world.http.get(&format!("{API}/taskgroups/late-g")).code, 404);
    world.told(&["apply", "--force-conflicts", "-f", &write_resumed(&world, &spec)]);
    let job = world.wait_for_state("jobs/late", "Failed");
    assert_eq!(job["status"]["stopping"], "DeadlineExceeded");
    assert_eq!(job["status"]["groups"][0]["state"], "Canceled");
}

/// The same job, to go on, as a file.
fn write_resumed(world: &World, spec: &Value) -> String {
    let mut spec = spec.clone();
    spec["suspend"] = json!(false);
    let object = json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Job", "metadata": {"name": "late"}, "spec": spec});
    let path = world.server.data().join("late.json");
    std::fs::write(&path, object.to_string()).expect("a file can be written");
    path.display().to_string()
}
