//! `kubectl get --raw`, and commands that look beyond our kinds.

use muster_e2e::kubectl::Kubectl;
use serde_json::Value;

#[test]
fn raw_version_is_that_of_the_server() {
    let version: Value = serde_json::from_str(&Kubectl::current().ok("get --raw /version")).unwrap();
    assert!(version["gitVersion"].as_str().unwrap().contains("muster"), "{version}");
}

#[test]
fn raw_health_is_ok() {
    let kubectl = Kubectl::current();
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(kubectl.ok(&format!("get --raw {path}")), "ok", "{path}");
    }
}

#[test]
fn raw_health_in_words_names_its_checks() {
    let said = Kubectl::current().ok("get --raw /readyz?verbose");
    assert!(said.contains("[+]store ok") && said.contains("readyz check passed"), "{said}");
}

#[test]
fn raw_metrics_are_in_the_text_form() {
    let kubectl = Kubectl::current();
    kubectl.ok("get tasks");
    let said = kubectl.ok("get --raw /metrics");
    assert!(said.contains("# TYPE ") && said.contains("resource=\"tasks\""), "{said}");
}

#[test]
fn raw_openapi_leads_to_the_document_of_the_group() {
    let kubectl = Kubectl::current();
    let index: Value = serde_json::from_str(&kubectl.ok("get --raw /openapi/v3")).unwrap();
    let url = index["paths"]["apis/muster.dev/v1alpha1"]["serverRelativeURL"].as_str().unwrap();
    let document: Value = serde_json::from_str(&kubectl.ok(&format!("get --raw {url}"))).unwrap();
    assert!(document["components"]["schemas"]["dev.muster.v1alpha1.Task"].is_object());
}

#[test]
fn raw_create_and_delete_reach_the_collection() {
    let kubectl = Kubectl::current();
    let object =
        r#"{"apiVersion":"muster.dev/v1alpha1","kind":"Task","metadata":{"name":"a"},"spec":{"kind":"k"}}"#;
    kubectl.given(object).ok(&format!("create --raw {} -f -", kubectl.tasks_path()));
    assert_eq!(kubectl.ok("get tasks -o name"), "task.muster.dev/a\n");
    kubectl.ok(&format!("delete --raw {}/a", kubectl.tasks_path()));
    assert_eq!(kubectl.ok("get tasks -o name"), "");
}

#[test]
fn raw_of_a_path_that_is_not_served_is_not_found() {
    let said = Kubectl::current().fails("get --raw /nonsense");
    assert!(said.contains("(NotFound)"), "{said}");
}

#[test]
fn get_pods_is_refused_in_words() {
    let said = Kubectl::current().fails("get pods");
    assert!(said.contains(r#"the server doesn't have a resource type "pods""#), "{said}");
}

#[test]
fn get_all_is_refused_in_words() {
    let said = Kubectl::current().fails("get all");
    assert!(said.contains(r#"the server doesn't have a resource type "all""#), "{said}");
}

#[test]
fn cluster_info_is_refused_in_words() {
    let said = Kubectl::current().fails("cluster-info");
    assert!(said.contains(r#"the server doesn't have a resource type "services""#), "{said}");
}
