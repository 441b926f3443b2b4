//! Reports of adapters: what is taken in, what is told to the reporter, and who may report.

use muster_apiserver::access::Role;
use serde_json::{Value, json};

use crate::declaring::{TYPES, clusters};
use crate::managed::cluster;
use crate::server::{Answer, Ask, MERGE_PATCH, Server};

const CLUSTERS: &str = "/apis/resources.muster.dev/v1alpha1/namespaces/default/clusters";

fn report(adapter: &str, generation: i64, available: &str) -> Value {
    json!({
        "adapter": adapter, "observedGeneration": generation,
        "conditions": [
            {"type": "Applied", "status": "True"},
            {"type": "Available", "status": available, "reason": "Done", "message": "it is there"},
            {"type": "Health", "status": "True"},
        ],
        "data": {"zone": "a"},
    })
}

async fn start() -> Server {
    let server = Server::start().await;
    server.declare(&clusters()).await;
    server.post(CLUSTERS, &cluster("a")).await.good();
    server
}

async fn put(server: &Server, report: &Value) -> Answer {
    server.put(&format!("{CLUSTERS}/a/statuses"), report).await
}

/// Status of Ready and Available, and the generation of the latter.
async fn standing(server: &Server) -> (String, String, i64) {
    let object = server.get(&format!("{CLUSTERS}/a")).await.good();
    let conditions = object["status"]["conditions"].as_array().unwrap();
    let find = |name: &str| conditions.iter().find(|condition| condition["type"] == name).unwrap();
    let status = |name: &str| find(name)["status"].as_str().unwrap().to_owned();
    (status("Ready"), status("Available"), find("Available")["observedGeneration"].as_i64().unwrap())
}

fn is(ready: &str, available: &str, generation: i64) -> (String, String, i64) {
    (ready.to_owned(), available.to_owned(), generation)
}

#[tokio::test]
async fn reports_make_a_resource_ready_and_a_new_spec_makes_it_not_ready_at_once() {
    let server = start().await;
    let answer = put(&server, &report("validation", 1, "True")).await.good();
    assert_eq!(
        (&answer["kind"], &answer["outcome"], &answer["metadata"]["generation"]),
        (&json!("AdapterReportAnswer"), &json!("Accepted"), &json!(1))
    );
    assert_eq!(standing(&server).await, is("False", "False", 1));
    put(&server, &report("dns", 1, "True")).await.good();
    assert_eq!(standing(&server).await, is("True", "True", 1));
    server.patch(&format!("{CLUSTERS}/a"), MERGE_PATCH, &json!({"spec": {"nodes": 5}})).await.good();
    assert_eq!(standing(&server).await, is("False", "True", 1));
    for adapter in ["validation", "dns"] {
        put(&server, &report(adapter, 2, "True")).await.good();
    }
    assert_eq!(standing(&server).await, is("True", "True", 2));
}

#[tokio::test]
async fn the_verdict_is_in_the_answer_and_what_is_discarded_changes_nothing() {
    let server = start().await;
    put(&server, &report("dns", 1, "True")).await.good();
    server.patch(&format!("{CLUSTERS}/a"), MERGE_PATCH, &json!({"spec": {"nodes": 5}})).await.good();
    put(&server, &report("dns", 2, "False")).await.good();
    let before = server.revision();
    let mut other = report("dns", 2, "True");
    other["uid"] = json!("another");
    for (report, reason) in [
        (report("dns", 1, "True"), "StaleGeneration"),
        (report("dns", 3, "True"), "FutureGeneration"),
        (other, "OtherResource"),
    ] {
        let answer = put(&server, &report).await.good();
        assert_eq!((&answer["outcome"], &answer["reason"]), (&json!("Discarded"), &json!(reason)));
        assert!(!answer["message"].as_str().unwrap().is_empty());
    }
    assert_eq!(server.revision(), before);
    let answer = put(&server, &report("validation", 2, "Unknown")).await.good();
    assert_eq!(answer["outcome"], "Traced");
    assert_eq!(standing(&server).await, is("False", "False", 1));
}

#[tokio::test]
async fn how_adapters_stand_can_be_read() {
    let server = start().await;
    put(&server, &report("dns", 1, "Unknown")).await.good();
    put(&server, &report("dns", 1, "True")).await.good();
    let shown = server.get(&format!("{CLUSTERS}/a/statuses")).await.good();
    assert_eq!((&shown["kind"], &shown["metadata"]["name"]), (&json!("AdapterReportList"), &json!("a")));
    let standing = &shown["items"][0];
    assert_eq!(
        (&standing["adapter"], &standing["observedGeneration"], &standing["data"]),
        (&json!("dns"), &json!(1), &json!({"zone": "a"}))
    );
    assert_eq!(standing["history"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_report_that_is_malformed_is_refused_with_the_field_and_changes_nothing() {
    let server = start().await;
    let before = server.revision();
    let condition = |name: &str, status: &str| json!({"type": name, "status": status});
    let three = || ["Applied", "Available", "Health"].map(|name| condition(name, "True")).to_vec();
    let with = |change: Value| {
        let mut report = report("dns", 1, "True");
        json_patch::merge(&mut report, &change);
        report
    };
    let twice: Vec<_> = three().into_iter().chain([condition("Health", "True")]).collect();
    for (report, code, field, why) in [
        (with(json!({"adapter": null})), 422, "adapter", "name the adapter"),
        (with(json!({"adapter": "nobody"})), 422, "adapter", "no adapter of this type"),
        (with(json!({"observedGeneration": 0})), 422, "observedGeneration", "at least 1"),
        (with(json!({"observedTime": "2001-01-01T00:00:00Z"})), 422, "observedTime", "30 minutes"),
        (with(json!({"observedTime": "2101-01-01T00:00:00Z"})), 422, "observedTime", "future"),
        (with(json!({"conditions": three()[..2]})), 422, "conditions", "Health is missing"),
        (with(json!({ "conditions": twice })), 422, "conditions[3].type", "twice"),
        (with(json!({"data": "x".repeat(70_000)})), 422, "data", "65536"),
        (with(json!({"conditions": [condition("Applied", "Maybe")]})), 400, "conditions[0].status", "Maybe"),
        (with(json!({"conditions": [{"status": "True"}]})), 400, "conditions[0]", "type"),
        (with(json!({"observedTime": "noon"})), 400, "observedTime", "noon"),
        (with(json!({"observed": 1})), 400, "observed", "unknown field"),
        (with(json!({"conditions": {"Applied": "True"}})), 400, "conditions", "sequence"),
    ] {
        let answer = put(&server, &report).await;
        assert_eq!(answer.code, code, "{report}: {answer:?}");
        let cause = &answer.json()["details"]["causes"][0];
        assert_eq!(cause["field"], field, "{cause}");
        assert!(cause["message"].as_str().unwrap().contains(why), "{cause}");
    }
    for body in ["", "[1]", "no json", "null"] {
        let ask = Ask::new("PUT", &format!("{CLUSTERS}/a/statuses")).body(body);
        assert!(server.send(ask).await.refused(400).contains("report"), "{body}");
    }
    assert_eq!(server.revision(), before);
}

#[tokio::test]
async fn a_report_on_what_is_not_there_is_not_found() {
    let server = start().await;
    server.put(&format!("{CLUSTERS}/b/statuses"), &report("dns", 1, "True")).await.refused(404);
    server.finalize(&format!("{CLUSTERS}/a")).await;
    put(&server, &report("dns", 1, "True")).await.refused(404);
    server.delete(&format!("{TYPES}/clusters")).await.good();
    put(&server, &report("dns", 1, "True")).await.refused(404);
}

#[tokio::test]
async fn only_what_there_is_can_be_done_with_statuses() {
    let server = start().await;
    for method in ["POST", "PATCH", "DELETE"] {
        server.send(Ask::new(method, &format!("{CLUSTERS}/a/statuses"))).await.refused(405);
    }
    server.get(&format!("{CLUSTERS}/a/statuses/more")).await.refused(404);
    server.get("/apis/muster.dev/v1alpha1/namespaces/default/tasks/a/statuses").await.refused(404);
}

#[tokio::test]
async fn an_adapter_that_the_type_does_not_require_reports_once_it_is_declared() {
    let server = start().await;
    put(&server, &report("extra", 1, "True")).await.refused(422);
    let adapter = |resource_type: &str| {
        json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": "Adapter", "metadata": {"name": "extra"},
            "spec": {"resourceType": resource_type, "task": {"spec": {"container": {"command": ["true"]}}}},
        })
    };
    server.create(&adapter("others")).await;
    put(&server, &report("extra", 1, "True")).await.refused(422);
    let path = "/apis/muster.dev/v1alpha1/namespaces/default/adapters/extra";
    server.patch(path, MERGE_PATCH, &json!({"spec": {"resourceType": "clusters"}})).await.good();
    assert_eq!(put(&server, &report("extra", 1, "True")).await.good()["outcome"], "Accepted");
}

#[tokio::test]
async fn a_dry_run_of_a_report_gives_the_verdict_and_stores_nothing() {
    let server = start().await;
    let before = server.revision();
    let dry = format!("{CLUSTERS}/a/statuses?dryRun=All");
    assert_eq!(server.put(&dry, &report("dns", 1, "True")).await.good()["outcome"], "Accepted");
    assert_eq!(server.revision(), before);
}

#[tokio::test]
async fn a_reporter_reports_for_its_own_adapter_and_opens_nothing_else() {
    let server = start().await;
    let secret = server.token("dns", Role::Reporter).await;
    let ask = |method: &str, path: &str| Ask::new(method, path).token(&secret);
    let statuses = format!("{CLUSTERS}/a/statuses");
    let mut nameless = report("dns", 1, "True");
    nameless.as_object_mut().unwrap().remove("adapter");
    assert_eq!(server.send(ask("PUT", &statuses).json(&nameless)).await.good()["outcome"], "Accepted");
    let said = server.send(ask("PUT", &statuses).json(&report("validation", 1, "True"))).await.refused(403);
    assert!(said.contains("reports for the adapter \"dns\", not for \"validation\""), "{said}");
    for path in [format!("{CLUSTERS}/a"), CLUSTERS.to_owned(), statuses.clone()] {
        server.send(ask("GET", &path)).await.good();
    }
    for (method, path) in [
        ("DELETE", format!("{CLUSTERS}/a")),
        ("POST", CLUSTERS.to_owned()),
        ("PATCH", format!("{CLUSTERS}/a")),
        ("PATCH", format!("{CLUSTERS}/a/status")),
        ("GET", TYPES.to_owned()),
        ("GET", "/apis/muster.dev/v1alpha1/tasks".to_owned()),
        ("GET", "/tokens".to_owned()),
        ("GET", "/metrics".to_owned()),
    ] {
        server.send(ask(method, &path)).await.refused(403);
    }
}

#[tokio::test]
async fn the_token_of_a_reporter_names_its_adapter() {
    let server = Server::start().await;
    for (wanted, why) in [
        (json!({"name": "a", "role": "reporter"}), "needs the name of its adapter"),
        (json!({"name": "a", "role": "reporter", "adapter": "No Name"}), "not valid"),
        (json!({"name": "a", "role": "viewer", "adapter": "dns"}), "only a reporter"),
    ] {
        let said = server.post("/tokens", &wanted).await.refused(422);
        assert!(said.contains(why), "{said}");
    }
    server.post("/tokens", &json!({"name": "a", "role": "reporter", "adapter": "dns"})).await.good();
    let listed = server.get("/tokens").await.good();
    let token = listed["items"].as_array().unwrap().iter().find(|token| token["name"] == "a").unwrap();
    assert_eq!((&token["role"], &token["adapter"]), (&json!("reporter"), &json!("dns")));
}
