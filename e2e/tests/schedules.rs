//! Schedules, end to end: a real server that is killed while occurrences come and go.

use std::collections::BTreeSet;
use std::time::Duration;

use muster_e2e::http::Http;
use muster_e2e::server::Server;
use muster_e2e::wait::wait_for;
use serde_json::{Value, json};

const API: &str = "/apis/muster.dev/v1alpha1/namespaces/default";
const SOON: Duration = Duration::from_mins(2);

fn create(http: &Http, plural: &str, object: &Value) {
    let answer = http.post(&format!("{API}/{plural}"), &object.to_string());
    assert_eq!(answer.code, 201, "{}", answer.text());
}

fn schedule(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Schedule", "metadata": {"name": name}, "spec": spec})
}

fn runs(http: &Http, plural: &str, name: &str) -> Vec<Value> {
    let list = http.get(&format!("{API}/{plural}?labelSelector=muster.dev/schedule%3D{name}")).json();
    list["items"].as_array().expect("a list").clone()
}

fn ended(runs: &[Value]) -> usize {
    runs.iter().filter(|run| run["status"]["state"] == "Succeeded").count()
}

#[test]
fn every_occurrence_is_made_once_though_the_server_is_killed_again_and_again() {
    let mut server = Server::start(&["--roles", "api,engine", "--slots", "4"]);
    let spec = json!({
        "schedulePolicy": {"timeSpec": "R8/PT1S", "allowConcurrent": true, "skipOutdated": false},
        "template": {"spec": {"container": {"command": ["true"]}}},
    });
    create(&server.http(), "schedules", &schedule("steady", &spec));
    for least in [1, 4] {
        wait_for("some runs are made", SOON, || runs(&server.http(), "tasks", "steady").len() >= least);
        server.kill();
        server.restart();
    }
    let http = server.http();
    wait_for("all runs have ended", SOON, || ended(&runs(&http, "tasks", "steady")) == 8);
    let times: BTreeSet<String> = runs(&http, "tasks", "steady")
        .iter()
        .map(|run| run["metadata"]["annotations"]["muster.dev/scheduled-at"].to_string())
        .collect();
    assert_eq!(times.len(), 8);
    let status = http.get(&format!("{API}/schedules/steady")).json()["status"].clone();
    assert_eq!(
        (&status["made"], &status["remaining"], &status["dropped"]),
        (&json!(8), &json!(0), &Value::Null)
    );
}

#[test]
fn a_schedule_makes_jobs_and_the_end_of_a_job_triggers_another_schedule_once() {
    let mut server = Server::start(&["--roles", "api,engine", "--slots", "2"]);
    let tasks = json!([{"name": "t", "spec": {"container": {"command": ["true"]}}}]);
    let job = json!({"metadata": {"labels": {"base": "yes"}}, "spec": {"taskGroups": [{"name": "g", "tasks": tasks}]}});
    let after = json!({
        "triggers": [{"on": {"kind": "Job", "selector": {"base": "yes"}, "outcome": "Succeeded"}}],
        "template": {"spec": {"container": {"command": ["true"]}}},
    });
    create(&server.http(), "schedules", &schedule("after", &after));
    let first = json!({"schedulePolicy": {"timeSpec": "R2/PT2S"}, "jobTemplate": job});
    create(&server.http(), "schedules", &schedule("first", &first));
    wait_for("both jobs made their run", SOON, || ended(&runs(&server.http(), "tasks", "after")) == 2);
    server.kill();
    server.restart();
    let http = server.http();
    // A schedule made after the restart has its run only when everything older was looked at.
    let last = json!({
        "schedulePolicy": {"timeSpec": "R1/PT1S"}, "template": {"spec": {"container": {"command": ["true"]}}},
    });
    create(&http, "schedules", &schedule("last", &last));
    wait_for("the last schedule made its run", SOON, || runs(&http, "tasks", "last").len() == 1);
    assert_eq!(runs(&http, "jobs", "first").len(), 2);
    assert_eq!(runs(&http, "tasks", "after").len(), 2);
}
