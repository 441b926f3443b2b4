//! Adapters that apply manifests, to a real cluster.

use muster_e2e::cluster::{Cluster, POD};
use muster_e2e::http::Http;
use muster_e2e::wait::wait_for;
use serde_json::{Value, json};

const OWN: &str = "/apis/muster.dev/v1alpha1";

fn make(http: &Http, path: &str, object: &Value) {
    let answer = http.post(path, &object.to_string());
    assert_eq!(answer.code, 201, "{}", answer.text());
}

fn is_true(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.filter(|condition| condition["type"] == kind).any(|condition| condition["status"] == "True")
}

#[test]
fn a_manifest_is_applied_followed_changed_and_deleted_with_its_resource() {
    let cluster = Cluster::new();
    let kubeconfig = cluster.kubeconfig_with(|_| {});
    let server = cluster.server(&["--adapter-kubeconfig", kubeconfig.to_str().unwrap()]);
    let http = server.http();
    make(
        &http,
        &format!("{OWN}/resourcetypes"),
        &json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": "ResourceType", "metadata": {"name": "sites"},
            "spec": {"names": {"kind": "Site", "plural": "sites"}, "adapters": ["deploy"], "pulse": {"notReady": "1s"}},
        }),
    );
    let container = json!({"name": "web", "image": Cluster::image(), "command": ["sleep", "600"]});
    let template = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "{{ resource.metadata.name }}", "namespace": cluster.namespace},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"site": "{{ resource.metadata.name }}"}},
            "template": {
                "metadata": {
                    "labels": {"site": "{{ resource.metadata.name }}"},
                    "annotations": {"title": "{{ resource.spec.title }}"},
                },
                "spec": {"containers": [container]},
            },
        },
    });
    make(
        &http,
        &format!("{OWN}/namespaces/{}/adapters", cluster.namespace),
        &json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": "Adapter", "metadata": {"name": "deploy"},
            "spec": {"resourceType": "sites", "manifest": {"template": template}},
        }),
    );
    let sites = format!("/apis/resources.muster.dev/v1alpha1/namespaces/{}/sites", cluster.namespace);
    make(
        &http,
        &sites,
        &json!({
            "apiVersion": "resources.muster.dev/v1alpha1", "kind": "Site", "metadata": {"name": "home"},
            "spec": {"title": "first"},
        }),
    );
    let site = || http.get(&format!("{sites}/home")).json();
    wait_for("the site to be ready", POD, || is_true(&site(), "Ready"));
    let title = "jsonpath={.spec.template.metadata.annotations.title}";
    let there = |path: &str| cluster.kubectl(&["get", "deployment", "home", "-o", path]);
    assert_eq!(there(title), "first");
    assert_eq!(there("jsonpath={.metadata.managedFields[0].manager}"), "muster-adapter");
    let change = json!({"spec": {"title": "second"}}).to_string();
    assert_eq!(http.patch(&format!("{sites}/home"), "merge-patch+json", &change).code, 200);
    wait_for("the change to be applied", POD, || there(title) == "second");
    wait_for("the site to be ready again", POD, || {
        let site = site();
        is_true(&site, "Ready") && site["status"]["observedGeneration"] == site["metadata"]["generation"]
    });
    http.delete(&format!("{sites}/home"));
    wait_for("the site to be gone", POD, || http.get(&format!("{sites}/home")).code == 404);
    assert_eq!(cluster.kubectl(&["get", "deployments", "-o", "name"]), "");
}
