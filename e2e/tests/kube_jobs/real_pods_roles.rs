//! The Roles in `deploy/relay` suffice, and give no more than is needed.

use muster_e2e::cluster::{Cluster, POD};
use muster_e2e::server::Server;
use muster_e2e::wait::wait_for;
use serde_json::{Value, json};

use crate::world::{World, account, condition, deploy, make_sink};

/// What a service account may do with namespaced objects: resource and verbs.
fn rules(cluster: &Cluster, account: &str) -> Vec<(String, Vec<String>)> {
    let role: Value =
        serde_json::from_str(&cluster.kubectl(&["get", "role", account, "-o", "json"])).expect("JSON");
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect()
    };
    let rules = role["rules"].as_array().cloned().unwrap_or_default();
    rules.iter().map(|rule| (texts(&rule["resources"]).join(","), texts(&rule["verbs"]))).collect()
}

fn can(cluster: &Cluster, account: &str, verb: &str, resource: &str) -> bool {
    let who = format!("--as=system:serviceaccount:{}:{account}", cluster.namespace);
    let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
    let part = format!("--subresource={part}");
    cluster.kubectl_says(&["auth", "can-i", verb, resource, &part, &who]).trim() == "yes"
}

#[test]
fn the_relay_works_with_get_list_and_watch_on_jobs_and_pods_alone() {
    let (cluster, dir) = (Cluster::new(), tempfile::tempdir().unwrap());
    let config = account(&cluster, "relay", dir.path());
    let look = || ["get", "list", "watch"].map(str::to_owned).to_vec();
    assert_eq!(rules(&cluster, "muster-relay"), [("jobs".to_owned(), look()), ("pods".to_owned(), look())]);
    for (verb, resource) in [("delete", "jobs"), ("get", "pods/log"), ("get", "secrets"), ("create", "pods")]
    {
        assert!(!can(&cluster, "muster-relay", verb, resource), "{verb} {resource}");
    }
    let flags = ["--roles", "api,relay", "--cluster-kubeconfig", config.to_str().unwrap()];
    let world = World { server: Server::start(&flags), cluster };
    let source = json!({"kubeJobs": {"namespace": world.cluster.namespace}});
    make_sink(
        &world.server,
        "jobs",
        &json!({"file": {"path": "jobs.jsonl"}, "profile": "cds", "sources": source}),
    );
    world.wait_for_watching("Watching");
    world.job("bad", "exit 3", &json!({}));
    world.expect("bad", &["starting", "running", "failed"]);
    let elsewhere = json!({"kubeJobs": {"namespace": "default"}});
    make_sink(&world.server, "elsewhere", &json!({"file": {"path": "x.jsonl"}, "sources": elsewhere}));
    wait_for("it to be refused", POD, || {
        condition(&world.server, "elsewhere", "Watching")["reason"] == "NotPermitted"
    });
}

#[test]
fn the_responder_has_a_role_of_its_own() {
    let (cluster, dir) = (Cluster::new(), tempfile::tempdir().unwrap());
    account(&cluster, "responder", dir.path());
    for (verb, resource) in [("get", "jobs"), ("delete", "jobs"), ("list", "pods"), ("get", "pods/log")] {
        assert!(can(&cluster, "muster-responder", verb, resource), "{verb} {resource}");
    }
    for (verb, resource) in [("create", "jobs"), ("delete", "pods"), ("get", "secrets")] {
        assert!(!can(&cluster, "muster-responder", verb, resource), "{verb} {resource}");
    }
}

#[test]
fn what_is_to_be_deployed_is_taken_by_a_cluster() {
    let cluster = Cluster::new();
    let folder = deploy("");
    let made =
        cluster.kubectl(&["apply", "--dry-run=server", "-o", "name", "-k", folder.trim_end_matches('/')]);
    for name in ["role.rbac.authorization.k8s.io/muster-relay", "deployment.apps/muster-responder"] {
        assert!(made.contains(name), "{made}");
    }
}
