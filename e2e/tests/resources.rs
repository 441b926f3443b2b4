//! Managed resources, end to end: adapters that run real processes, generations, deletion, `kill -9`, and the guide.

use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use muster_e2e::guide::{repository, script};
use muster_e2e::http::Http;
use muster_e2e::server::Server;
use muster_e2e::wait::wait_for;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_mins(2);
const OWN: &str = "/apis/muster.dev/v1alpha1";
const MANAGED: &str = "/apis/resources.muster.dev/v1alpha1/namespaces/default";

fn muster() -> String {
    std::env::var("MUSTER_BIN").expect("run the tests with `cargo xtask test`")
}

/// Applies an example, as a user does.
fn apply(server: &Server, example: &str) {
    let output = Command::new(muster())
        .args(["apply", "-f"])
        .arg(repository().join("examples/clusters").join(example))
        .env("MUSTER_DATA", server.data())
        .output()
        .expect("muster runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn declare(server: &Server) {
    apply(server, "types.yaml");
    apply(server, "adapters.yaml");
}

fn get(http: &Http, path: &str) -> Value {
    http.get(&format!("{MANAGED}/{path}")).json()
}

fn condition<'a>(object: &'a Value, r#type: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().find(|condition| condition["type"] == r#type).unwrap_or(&Value::Null)
}

fn is_ready(object: &Value) -> bool {
    condition(object, "Ready")["status"] == "True"
        && condition(object, "Ready")["observedGeneration"] == object["metadata"]["generation"]
}

fn wait_ready(http: &Http, path: &str) -> Value {
    wait_for(&format!("{path} is Ready"), SOON, || is_ready(&get(http, path)));
    get(http, path)
}

fn patch(http: &Http, path: &str, change: &Value) -> Value {
    let answer = http.patch(&format!("{MANAGED}/{path}"), "merge-patch+json", &change.to_string());
    assert_eq!(answer.code, 200, "{}", answer.text());
    answer.json()
}

fn delete(http: &Http, path: &str) {
    let answer = http.delete(&format!("{MANAGED}/{path}"));
    assert!(answer.code < 300, "{}", answer.text());
}

fn is_gone(http: &Http, path: &str) -> bool {
    http.get(&format!("{MANAGED}/{path}")).code == 404
}

fn tasks(http: &Http, adapter: &str) -> Vec<Value> {
    let path =
        format!("{OWN}/namespaces/default/tasks?labelSelector=resources.muster.dev/adapter%3D{adapter}");
    http.get(&path).json()["items"].as_array().expect("a list").clone()
}

#[test]
fn a_cluster_becomes_ready_through_tasks_and_goes_with_its_node_pools() {
    let server = Server::start(&["--roles", "api,engine", "--slots", "4"]);
    declare(&server);
    apply(&server, "cluster.yaml");
    let http = server.http();
    let cluster = wait_ready(&http, "clusters/blue");
    assert_eq!(condition(&cluster, "Available")["observedGeneration"], 1);
    assert_eq!(condition(&cluster, "Addressable")["status"], "True");
    let dns = &cluster["status"]["adapters"][0];
    assert_eq!((&dns["adapter"], &dns["data"]), (&json!("dns"), &json!({"zone": "blue.example.org"})));
    wait_ready(&http, "nodepools/blue-workers");
    // A change makes Ready False with the very answer, and True again when the adapters are done.
    let changed = patch(&http, "clusters/blue", &json!({"spec": {"size": 5}}));
    assert_eq!(condition(&changed, "Ready")["status"], "False");
    assert_eq!(condition(&changed, "Available")["status"], "True");
    let cluster = wait_ready(&http, "clusters/blue");
    assert_eq!(condition(&cluster, "Available")["observedGeneration"], 2);
    // Deleting the cluster deletes its node pools first, and its adapters clean up.
    delete(&http, "clusters/blue");
    wait_for("the cluster is gone", SOON, || is_gone(&http, "clusters/blue"));
    assert!(is_gone(&http, "nodepools/blue-workers"));
    wait_for("its tasks are gone", SOON, || tasks(&http, "dns").is_empty());
}

#[test]
fn a_failing_adapter_is_reported_and_a_better_spec_repairs_it() {
    let server = Server::start(&["--roles", "api,engine", "--slots", "4"]);
    declare(&server);
    let http = server.http();
    let cluster = json!({
        "apiVersion": "resources.muster.dev/v1alpha1", "kind": "Cluster", "metadata": {"name": "bad"},
        "spec": {"region": "south", "baseDomain": "nodots"},
    });
    assert_eq!(http.post(&format!("{MANAGED}/clusters"), &cluster.to_string()).code, 201);
    let failed = |cluster: &Value| condition(cluster, "Ready")["reason"] == "AdapterReportedNotAvailable";
    wait_for("validation failed", SOON, || {
        let cluster = get(&http, "clusters/bad");
        let adapters = cluster["status"]["adapters"].as_array().cloned().unwrap_or_default();
        let validation = adapters.into_iter().find(|standing| standing["adapter"] == "validation");
        failed(&cluster)
            && validation.is_some_and(|standing| standing["conditions"][1]["reason"] == "TaskFailed")
    });
    assert!(tasks(&http, "dns").is_empty(), "dns waits for validation");
    patch(&http, "clusters/bad", &json!({"spec": {"baseDomain": "dots.example.org"}}));
    wait_ready(&http, "clusters/bad");
}

#[test]
fn no_work_is_done_twice_though_the_server_is_killed_again_and_again() {
    let mut server = Server::start(&["--roles", "api,engine", "--slots", "4"]);
    declare(&server);
    for number in 0..12 {
        let cluster = json!({
            "apiVersion": "resources.muster.dev/v1alpha1", "kind": "Cluster", "metadata": {"name": format!("c{number}")},
            "spec": {"region": "south", "baseDomain": "example.org"},
        });
        assert_eq!(server.http().post(&format!("{MANAGED}/clusters"), &cluster.to_string()).code, 201);
    }
    for least in [1, 12, 24] {
        let made = |http: &Http| tasks(http, "validation").len() + tasks(http, "dns").len();
        wait_for("some work was made", SOON, || made(&server.http()) >= least);
        server.kill();
        server.restart();
    }
    let http = server.http();
    for number in 0..12 {
        let cluster = wait_ready(&http, &format!("clusters/c{number}"));
        // The script of dns asks the server, so it may well have failed once while there was none.
        let adapters = cluster["status"]["adapters"].as_array().expect("adapters").iter();
        for standing in adapters.filter(|standing| standing["adapter"] != "dns") {
            assert_eq!(standing["work"]["number"], 1, "{standing}");
        }
    }
}

#[test]
fn a_forced_deletion_says_why_in_its_last_change() {
    let server = Server::start(&["--roles", "api,engine"]);
    apply(&server, "types.yaml");
    let http = server.http();
    let cluster = json!({
        "apiVersion": "resources.muster.dev/v1alpha1", "kind": "Cluster", "metadata": {"name": "stuck"},
        "spec": {"region": "south", "baseDomain": "example.org"},
    });
    let created = http.post(&format!("{MANAGED}/clusters"), &cluster.to_string());
    assert_eq!(created.code, 201, "{}", created.text());
    let from = created.json()["metadata"]["resourceVersion"].as_str().expect("a revision").to_owned();
    delete(&http, "clusters/stuck");
    assert!(!is_gone(&http, "clusters/stuck"), "its adapters do not exist, so nobody agreed");
    let why =
        json!({"metadata": {"annotations": {"resources.muster.dev/force-delete": "the account is gone"}}});
    patch(&http, "clusters/stuck", &why);
    wait_for("it is gone", SOON, || is_gone(&http, "clusters/stuck"));
    let watched = http.get(&format!("{MANAGED}/clusters?watch=true&resourceVersion={from}&timeoutSeconds=1"));
    let last = watched.text().lines().last().expect("changes").to_owned();
    let last: Value = serde_json::from_str(&last).expect("a change");
    assert_eq!(last["type"], "DELETED");
    let said = condition(&last["object"], "ForceDeleted")["message"].clone();
    assert_eq!(said, "deleted without its adapters: the account is gone");
}

#[test]
fn the_guide_for_adapters_works_as_written_with_kubectl() {
    let server = Server::start(&["--roles", "api,engine", "--slots", "2"]);
    let home = tempfile::tempdir().unwrap();
    let programs = home.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    for (name, variable) in [("muster", "MUSTER_BIN"), ("kubectl", "MUSTER_KUBECTL")] {
        let program = std::env::var(variable).expect("run the tests with `cargo xtask test`");
        symlink(program, programs.join(name)).unwrap();
    }
    let guide = std::fs::read_to_string(repository().join("docs/guides/adapter.md")).unwrap();
    let script = script(&guide);
    assert!(script.lines().count() > 60, "the guide is missing:\n{script}");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let output = Command::new("timeout")
        .args(["180", "bash", "-euo", "pipefail", "-c", &script])
        .current_dir(home.path())
        .env("PATH", path)
        .env("HOME", home.path())
        .env("MUSTER_DATA", server.data())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    for part in [
        "website.resources.muster.dev/home created",
        "PreconditionsNotMet",
        "Precondition does not hold: resource.spec.title != 'draft'",
        "{\"pages\":3}",
        "home-publish-1",
        "\"outcome\":\"Accepted\"",
        "website.resources.muster.dev \"home\" deleted",
    ] {
        assert!(out.contains(part), "{part}:\n{out}\n{err}");
    }
}
