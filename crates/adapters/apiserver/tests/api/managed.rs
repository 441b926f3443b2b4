//! Managed resources: what is taken in, what counts as a change, and how they end.

use hyper::header::ACCEPT;
use muster_ports::store::{Batch, Key, Precondition, ResourceName, Write};
use serde_json::{Value, json};

use crate::declaring::{TYPES, clusters, node_pools, resource_type};
use crate::server::{APPLY_PATCH, Ask, MERGE_PATCH, Server, TABLE};

const CLUSTERS: &str = "/apis/resources.muster.dev/v1alpha1/namespaces/default/clusters";
const POOLS: &str = "/apis/resources.muster.dev/v1alpha1/namespaces/default/nodepools";

pub fn managed(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "resources.muster.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec,
    })
}

pub fn cluster(name: &str) -> Value {
    managed("Cluster", name, &json!({"region": "eu"}))
}

fn pool(name: &str, cluster: &str) -> Value {
    managed("NodePool", name, &json!({ "cluster": cluster }))
}

impl Server {
    /// A server that knows clusters and node pools.
    pub async fn with_clusters() -> Self {
        let server = Self::start().await;
        server.declare(&clusters()).await;
        server.declare(&node_pools()).await;
        server
    }

    /// Takes a managed resource out of the store, as the engine does when its adapters agree.
    pub async fn finalize(&self, path: &str) {
        let segments: Vec<&str> = path.rsplit('/').collect();
        let resource = ResourceName::new(&format!("{}.resources.muster.dev", segments[1]));
        let key = Key::new(&resource, segments[2], segments[0]);
        let write = Write::Delete { key, expect: Precondition::Exists };
        self.store.commit(Batch::of(write)).await.unwrap();
    }
}

fn condition<'a>(object: &'a Value, name: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|condition| condition["type"] == name).unwrap()
}

#[tokio::test]
async fn a_new_resource_has_defaults_a_finalizer_and_is_not_ready() {
    let server = Server::with_clusters().await;
    let mut wanted = cluster("a");
    wanted["status"] = json!({"conditions": [], "observedGeneration": 7});
    let made = server.post(CLUSTERS, &wanted).await.good();
    assert_eq!(made["spec"], json!({"region": "eu", "nodes": 3}));
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made["metadata"]["finalizers"], json!(["resources.muster.dev/adapters"]));
    for name in ["Ready", "Available"] {
        let condition = condition(&made, name);
        assert_eq!(
            (&condition["status"], &condition["reason"]),
            (&json!("False"), &json!("AdaptersMissingReports"))
        );
    }
    assert_eq!(server.get(&format!("{CLUSTERS}/a")).await.good(), made);
    assert_eq!(server.get(CLUSTERS).await.good()["items"], json!([made]));
}

#[tokio::test]
async fn what_the_schema_does_not_allow_is_refused_with_the_path() {
    let server = Server::with_clusters().await;
    for (spec, field, why) in [
        (json!({}), "spec.region", "Required value"),
        (json!({"region": "mars"}), "spec.region", "must be one of \"eu\", \"us\""),
        (json!({"region": "eu", "nodes": 0}), "spec.nodes", "must be at least 1"),
        (json!({"region": "eu", "nodes": "many"}), "spec.nodes", "must be a whole number"),
        (json!({"region": "eu", "labels": {"a.b": 1}}), "spec.labels[\"a.b\"]", "must be text"),
        (json!("text"), "spec", "must be an object"),
        (json!([]), "spec", "must be an object"),
    ] {
        let answer = server.post(CLUSTERS, &managed("Cluster", "a", &spec)).await;
        assert_eq!(answer.code, 422, "{spec}: {answer:?}");
        let cause = &answer.json()["details"]["causes"][0];
        assert_eq!(cause["field"], field, "{spec}");
        assert!(cause["message"].as_str().unwrap().contains(why), "{spec}: {cause}");
        server.get(&format!("{CLUSTERS}/a")).await.refused(404);
    }
    server.post(CLUSTERS, &cluster("a")).await.good();
    let change = json!({"spec": {"nodes": -1}});
    server.patch(&format!("{CLUSTERS}/a"), MERGE_PATCH, &change).await.refused(422);
}

#[tokio::test]
async fn fields_the_schema_does_not_have_are_treated_as_the_client_asks() {
    let server = Server::with_clusters().await;
    let extra = managed("Cluster", "a", &json!({"region": "eu", "zone": "x"}));
    let said = server.post(&format!("{CLUSTERS}?fieldValidation=Strict"), &extra).await.refused(400);
    assert!(said.contains("unknown field \"spec.zone\""), "{said}");
    let warned = server.post(&format!("{CLUSTERS}?fieldValidation=Warn"), &extra).await;
    assert!(warned.headers["warning"].to_str().unwrap().contains("spec.zone"));
    assert_eq!(warned.good()["spec"], json!({"region": "eu", "nodes": 3}));
    let mut extra = cluster("b");
    extra["metadata"]["nope"] = json!(1);
    extra["other"] = json!(1);
    let said = server.post(&format!("{CLUSTERS}?fieldValidation=Strict"), &extra).await.refused(400);
    assert!(said.contains("metadata.nope") && said.contains("\"other\""), "{said}");
}

#[tokio::test]
async fn documents_of_another_kind_are_refused() {
    let server = Server::with_clusters().await;
    for object in [pool("a", "b"), json!({"metadata": {"name": "a"}}), json!([]), json!("x")] {
        assert_eq!(server.post(CLUSTERS, &object).await.code, 400, "{object}");
    }
    server.get(&format!("{CLUSTERS}/a")).await.refused(404);
}

#[tokio::test]
async fn a_generation_counts_changes_of_the_spec_and_nothing_else() {
    let server = Server::with_clusters().await;
    server.post(CLUSTERS, &cluster("a")).await.good();
    let path = format!("{CLUSTERS}/a");
    let change = |change: Value| {
        let (server, path) = (&server, &path);
        async move { server.patch(path, MERGE_PATCH, &change).await.good() }
    };
    let generation = |object: &Value| object["metadata"]["generation"].as_i64().unwrap();
    assert_eq!(generation(&change(json!({"metadata": {"labels": {"a": "b"}}})).await), 1);
    assert_eq!(generation(&change(json!({"spec": {"nodes": 3}})).await), 1);
    let changed = change(json!({"spec": {"nodes": 4}})).await;
    assert_eq!(generation(&changed), 2);
    assert_eq!(condition(&changed, "Ready")["observedGeneration"], 2);
    assert_eq!(generation(&change(json!({"metadata": {"generation": 99}})).await), 2);
    let status = json!({"spec": {"nodes": 9}, "status": {}});
    let changed = server.patch(&format!("{path}/status"), MERGE_PATCH, &status).await.good();
    assert_eq!((generation(&changed), &changed["spec"]["nodes"]), (2, &json!(4)));
    let deleted = server.delete(&path).await.good();
    assert_eq!(generation(&deleted), 3);
    assert_eq!(condition(&deleted, "Ready")["reason"], "Deleting");
    assert_eq!(generation(&server.delete(&path).await.good()), 3);
}

#[tokio::test]
async fn what_only_the_server_says_cannot_be_taken_away() {
    let server = Server::with_clusters().await;
    server.post(CLUSTERS, &cluster("c")).await.good();
    let made = server.post(POOLS, &pool("p", "c")).await.good();
    let change = json!({"metadata": {"finalizers": ["example.com/more"], "ownerReferences": null}});
    let changed = server.patch(&format!("{POOLS}/p"), MERGE_PATCH, &change).await.good();
    let finalizers = changed["metadata"]["finalizers"].as_array().unwrap();
    assert!(finalizers.contains(&json!("resources.muster.dev/adapters")), "{finalizers:?}");
    assert_eq!(changed["metadata"]["ownerReferences"], made["metadata"]["ownerReferences"]);
}

#[tokio::test]
async fn server_side_apply_knows_the_fields_of_a_declared_kind() {
    let server = Server::with_clusters().await;
    let path = format!("{CLUSTERS}/a");
    let made = server.apply(&path, "one", &cluster("a")).await.good();
    assert_eq!(made["spec"]["nodes"], 3);
    let nodes = json!({
        "apiVersion": "resources.muster.dev/v1alpha1", "kind": "Cluster", "spec": {"nodes": 5},
    });
    server.apply(&path, "two", &nodes).await.good();
    let said =
        server.apply(&path, "one", &managed("Cluster", "a", &json!({"region": "eu", "nodes": 6}))).await;
    assert!(said.refused(409).contains(".spec.nodes"));
    let strange = managed("Cluster", "a", &json!({"zone": "x"}));
    let strict = format!("{path}?fieldManager=one&fieldValidation=Strict");
    let said = server.patch(&strict, APPLY_PATCH, &strange).await.refused(400);
    assert!(said.contains("spec.zone"), "{said}");
}

#[tokio::test]
async fn a_table_has_the_columns_of_the_type() {
    let server = Server::with_clusters().await;
    server.post(CLUSTERS, &cluster("a")).await.good();
    let table = server.send(Ask::new("GET", CLUSTERS).header(ACCEPT, TABLE)).await.good();
    let columns: Vec<_> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
    assert_eq!(columns, ["Name", "Ready", "Available", "Region", "Age", "Nodes", "Reason"]);
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(cells[..4], ["a", "False", "False", "eu"]);
    assert_eq!(cells[5..], ["3", "AdaptersMissingReports"]);
}

#[tokio::test]
async fn a_watch_of_a_declared_kind_tells_changes() {
    let server = Server::with_clusters().await;
    let mut watch = server.watch(&format!("{CLUSTERS}?watch=1")).await;
    server.post(CLUSTERS, &cluster("a")).await.good();
    server.patch(&format!("{CLUSTERS}/a"), MERGE_PATCH, &json!({"spec": {"nodes": 4}})).await.good();
    server.finalize(&format!("{CLUSTERS}/a")).await;
    let words: Vec<_> = [watch.next().await, watch.next().await, watch.next().await]
        .iter()
        .map(|event| event.word.clone())
        .collect();
    assert_eq!(words, ["ADDED", "MODIFIED", "DELETED"]);
}

#[tokio::test]
async fn a_child_belongs_to_the_parent_that_its_spec_names() {
    let server = Server::with_clusters().await;
    let said = server.post(POOLS, &pool("p", "c")).await.refused(422);
    assert!(said.contains("spec.cluster") && said.contains("no such one among clusters"), "{said}");
    let said = server.post(POOLS, &managed("NodePool", "p", &json!({}))).await.refused(422);
    assert!(said.contains("spec.cluster: Required value"), "{said}");
    let parent = server.post(CLUSTERS, &cluster("c")).await.good();
    let child = server.post(POOLS, &pool("p", "c")).await.good();
    let owner = &child["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["name"], &owner["uid"], &owner["apiVersion"]),
        (&json!("Cluster"), &json!("c"), &parent["metadata"]["uid"], &json!("resources.muster.dev/v1alpha1"))
    );
    server.post(CLUSTERS, &cluster("d")).await.good();
    let said = server.patch(&format!("{POOLS}/p"), MERGE_PATCH, &json!({"spec": {"cluster": "d"}})).await;
    assert!(said.refused(422).contains("stays with its parent"));
    let list = server.get(&format!("{POOLS}?fieldSelector=spec.cluster%3Dc")).await.good();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    let list = server.get(&format!("{POOLS}?fieldSelector=spec.cluster%3Dd")).await.good();
    assert_eq!(list["items"].as_array().unwrap().len(), 0);
    server.delete(&format!("{CLUSTERS}/c")).await.good();
    let said = server.post(POOLS, &pool("q", "c")).await.refused(422);
    assert!(said.contains("being deleted"), "{said}");
}

#[tokio::test]
async fn children_can_hold_back_the_end_of_their_parent() {
    let server = Server::with_clusters().await;
    let change = json!({"spec": {"parent": {"onDelete": "Restrict"}}});
    server.patch(&format!("{TYPES}/nodepools"), MERGE_PATCH, &change).await.good();
    server.post(CLUSTERS, &cluster("c")).await.good();
    for name in ["p", "q"] {
        server.post(POOLS, &pool(name, "c")).await.good();
    }
    let said = server.delete(&format!("{CLUSTERS}/c")).await.refused(409);
    assert!(said.contains("it still has 2 nodepools; delete them first"), "{said}");
    assert_eq!(server.get(&format!("{CLUSTERS}/c")).await.good()["metadata"]["generation"], 1);
    for name in ["p", "q"] {
        server.finalize(&format!("{POOLS}/{name}")).await;
    }
    let deleted = server.delete(&format!("{CLUSTERS}/c")).await.good();
    assert!(deleted["metadata"]["deletionTimestamp"].is_string());
}

#[tokio::test]
async fn the_end_of_a_resource_is_left_to_its_adapters_whatever_policy_is_asked_for() {
    let server = Server::with_clusters().await;
    for policy in ["Foreground", "Background"] {
        server.post(CLUSTERS, &cluster("a")).await.good();
        let deleted = server.delete(&format!("{CLUSTERS}/a?propagationPolicy={policy}")).await.good();
        assert_eq!(deleted["metadata"]["finalizers"], json!(["resources.muster.dev/adapters"]), "{policy}");
        server.finalize(&format!("{CLUSTERS}/a")).await;
    }
}

#[tokio::test]
async fn a_resource_that_ends_changes_no_more_but_can_be_let_go_for_a_reason() {
    let server = Server::with_clusters().await;
    server.post(CLUSTERS, &cluster("a")).await.good();
    let path = format!("{CLUSTERS}/a");
    let force =
        |reason: &str| json!({"metadata": {"annotations": {"resources.muster.dev/force-delete": reason}}});
    let said = server.patch(&path, MERGE_PATCH, &force("why not")).await.refused(422);
    assert!(said.contains("delete it first"), "{said}");
    server.delete(&path).await.good();
    let said = server.patch(&path, MERGE_PATCH, &json!({"spec": {"nodes": 9}})).await.refused(422);
    assert!(said.contains("being deleted"), "{said}");
    for reason in [" ", &"x".repeat(1025)] {
        assert!(
            server
                .patch(&path, MERGE_PATCH, &force(reason))
                .await
                .refused(422)
                .contains("must be the reason")
        );
    }
    server.patch(&path, MERGE_PATCH, &force("the account is gone")).await.good();
    server.patch(&path, MERGE_PATCH, &json!({"metadata": {"labels": {"a": "b"}}})).await.good();
}

#[tokio::test]
async fn resources_without_namespaces_have_paths_without_them() {
    let server = Server::start().await;
    let regions =
        resource_type(&json!({"names": {"kind": "Region", "plural": "regions"}, "scope": "Cluster"}));
    server.declare(&regions).await;
    let path = "/apis/resources.muster.dev/v1alpha1/regions";
    let made = server.post(path, &managed("Region", "eu", &json!({"any": ["thing", null]}))).await.good();
    assert_eq!(made["spec"], json!({"any": ["thing", null]}));
    assert_eq!(made["metadata"].get("namespace"), None);
    assert_eq!(server.get(&format!("{path}/eu/statuses")).await.good()["items"], json!([]));
    server.get("/apis/resources.muster.dev/v1alpha1/namespaces/default/regions").await.refused(404);
}

#[tokio::test]
async fn a_type_that_goes_takes_nothing_new() {
    let server = Server::start().await;
    let mut held = clusters();
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    server.declare(&held).await;
    server.delete(&format!("{TYPES}/clusters")).await.good();
    assert!(server.post(CLUSTERS, &cluster("a")).await.refused(422).contains("is being deleted"));
    let change = json!({"metadata": {"finalizers": null}});
    server.patch(&format!("{TYPES}/clusters"), MERGE_PATCH, &change).await.good();
    server.get(&format!("{TYPES}/clusters")).await.refused(404);
}

#[tokio::test]
async fn a_resource_that_was_allowed_once_may_stay_when_its_type_becomes_stricter() {
    let server = Server::with_clusters().await;
    server.post(CLUSTERS, &cluster("a")).await.good();
    let stricter = json!({"spec": {"schema": {"properties": {"nodes": {"minimum": 10, "default": 10}}}}});
    server.patch(&format!("{TYPES}/clusters"), MERGE_PATCH, &stricter).await.good();
    let path = format!("{CLUSTERS}/a");
    let labelled =
        server.patch(&path, MERGE_PATCH, &json!({"metadata": {"labels": {"a": "b"}}})).await.good();
    assert_eq!((&labelled["spec"]["nodes"], &labelled["metadata"]["generation"]), (&json!(3), &json!(1)));
    server.patch(&path, MERGE_PATCH, &json!({"spec": {"region": "us"}})).await.refused(422);
    server.patch(&path, MERGE_PATCH, &json!({"spec": {"region": "us", "nodes": 10}})).await.good();
}

#[tokio::test]
async fn a_name_that_could_not_be_a_label_is_refused() {
    let server = Server::with_clusters().await;
    let said = server.post(CLUSTERS, &cluster(&"a".repeat(64))).await.refused(422);
    assert!(said.contains("metadata.name") && said.contains("labelled"), "{said}");
}
