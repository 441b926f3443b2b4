//! Declaring kinds: what a ResourceType may say, and that its kind is served from then on.

use hyper::header::ACCEPT;
use serde_json::{Value, json};

use crate::server::{Ask, MERGE_PATCH, Server, TABLE};

pub const TYPES: &str = "/apis/muster.dev/v1alpha1/resourcetypes";
const GROUP: &str = "/apis/resources.muster.dev/v1alpha1";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

pub fn resource_type(spec: &Value) -> Value {
    let plural = spec["names"]["plural"].as_str().unwrap_or("none");
    json!({"apiVersion": "muster.dev/v1alpha1", "kind": "ResourceType", "metadata": {"name": plural}, "spec": spec})
}

/// Clusters, as the guide has them.
pub fn clusters() -> Value {
    resource_type(&json!({
        "names": {"kind": "Cluster", "plural": "clusters", "shortNames": ["cl"]},
        "adapters": ["validation", "dns"],
        "schema": {
            "type": "object", "required": ["region"],
            "properties": {
                "region": {"type": "string", "description": "Where it runs.", "enum": ["eu", "us"]},
                "nodes": {"type": "integer", "minimum": 1, "default": 3},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        },
        "columns": [
            {"name": "Region", "path": ".spec.region"},
            {"name": "Nodes", "path": ".spec.nodes", "wide": true},
        ],
    }))
}

/// Node pools, which belong to clusters.
pub fn node_pools() -> Value {
    resource_type(&json!({
        "names": {"kind": "NodePool", "plural": "nodepools", "shortNames": ["np"]},
        "adapters": ["validation"],
        "parent": {"resourceType": "clusters", "field": "cluster"},
        "schema": {"properties": {"cluster": {"type": "string"}, "size": {"type": "integer"}}},
    }))
}

impl Server {
    /// Declares a kind.
    pub async fn declare(&self, declared: &Value) -> Value {
        self.post(TYPES, declared).await.good()
    }
}

/// A type with some of its spec changed.
fn with(change: &Value) -> Value {
    let mut declared = clusters();
    json_patch::merge(&mut declared["spec"], change);
    declared
}

/// The fields a refusal blames, with the reasons.
async fn blamed(server: &Server, declared: &Value) -> Vec<(String, String)> {
    let answer = server.post(TYPES, declared).await;
    assert_eq!(answer.code, 422, "{declared}: {answer:?}");
    let causes = answer.json()["details"]["causes"].as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    causes.iter().map(|cause| (text(&cause["field"]), text(&cause["message"]))).collect()
}

#[tokio::test]
async fn a_kind_is_served_by_discovery_as_soon_as_it_is_declared_and_until_it_is_not() {
    let server = Server::start().await;
    assert_eq!(server.get(GROUP).await.good()["resources"], json!([]));
    server.get(&format!("{GROUP}/clusters")).await.refused(404);
    server.declare(&clusters()).await;
    let listed = server.get(GROUP).await.good();
    let entry = &listed["resources"][0];
    assert_eq!(
        (&entry["name"], &entry["singularName"], &entry["kind"], &entry["shortNames"], &entry["namespaced"]),
        (&json!("clusters"), &json!("cluster"), &json!("Cluster"), &json!(["cl"]), &json!(true))
    );
    let parts: Vec<_> = listed["resources"].as_array().unwrap().iter().map(|entry| &entry["name"]).collect();
    assert_eq!(parts, ["clusters", "clusters/status", "clusters/statuses"]);
    let all = server.send(Ask::new("GET", "/apis").header(ACCEPT, AGGREGATED)).await.good();
    let groups = all["items"].as_array().unwrap();
    let group = groups.iter().find(|group| group["metadata"]["name"] == "resources.muster.dev").unwrap();
    assert_eq!(group["versions"][0]["resources"][0]["resource"], "clusters");
    assert!(server.get("/apis").await.good().to_string().contains("resources.muster.dev/v1alpha1"));
    assert_eq!(server.get(&format!("{GROUP}/clusters")).await.good()["kind"], "ClusterList");
    server.delete(&format!("{TYPES}/clusters")).await.good();
    assert_eq!(server.get(GROUP).await.good()["resources"], json!([]));
    server.get(&format!("{GROUP}/clusters")).await.refused(404);
    assert!(!server.get("/apis").await.good().to_string().contains("resources.muster.dev"));
}

#[tokio::test]
async fn a_kind_is_described_with_its_own_schema() {
    let server = Server::start().await;
    server.declare(&clusters()).await;
    let index = || async { server.get("/openapi/v3").await.good()["paths"].clone() };
    let before = index().await["apis/resources.muster.dev/v1alpha1"]["serverRelativeURL"].clone();
    let document = server.get(before.as_str().unwrap()).await.good();
    let schema = &document["components"]["schemas"]["dev.muster.resources.v1alpha1.Cluster"];
    let spec = &schema["properties"]["spec"];
    assert_eq!(spec["properties"]["region"]["description"], "Where it runs.");
    assert_eq!(spec["properties"]["nodes"]["default"], 3);
    assert!(schema["properties"]["status"]["properties"]["adapters"].is_object());
    let change = json!({"spec": {"schema": {"properties": {"zone": {"type": "string"}}}}});
    server.patch(&format!("{TYPES}/clusters"), MERGE_PATCH, &change).await.good();
    let after = index().await["apis/resources.muster.dev/v1alpha1"]["serverRelativeURL"].clone();
    assert_ne!(before, after, "clients keep documents by their address");
    assert!(server.get(after.as_str().unwrap()).await.good().to_string().contains("zone"));
}

#[tokio::test]
async fn kinds_are_there_at_once_for_a_server_that_starts_on_the_same_store() {
    let server = Server::start().await;
    server.declare(&clusters()).await;
    let again = server.restarted();
    assert_eq!(again.get(&format!("{GROUP}/clusters")).await.good()["kind"], "ClusterList");
}

#[tokio::test]
async fn a_type_that_cannot_be_is_refused_with_the_field() {
    let server = Server::start().await;
    let many: Vec<String> = (0..65).map(|number| format!("a{number}")).collect();
    for (change, field, why) in [
        (json!({"names": {"kind": null}}), "spec.names.kind", "CamelCase"),
        (json!({"names": {"kind": "cluster"}}), "spec.names.kind", "CamelCase"),
        (json!({"names": {"kind": "My-Cluster"}}), "spec.names.kind", "CamelCase"),
        (json!({"names": {"singular": "Cluster"}}), "spec.names.singular", "lower case"),
        (json!({"names": {"shortNames": ["c l"]}}), "spec.names.shortNames[0]", "lower case"),
        (json!({"names": {"shortNames": ["cl", "cl"]}}), "spec.names.shortNames[1]", "given twice"),
        (json!({"names": {"shortNames": ["mtask"]}}), "spec.names.shortNames[0]", "another kind"),
        (json!({"names": {"shortNames": ["ns"]}}), "spec.names.shortNames[0]", "another kind"),
        (json!({"names": {"singular": "job"}}), "spec.names.singular", "another kind"),
        (json!({"adapters": ["Not A Name"]}), "spec.adapters[0]", "lower case"),
        (json!({"adapters": ["dns", "dns"]}), "spec.adapters[1]", "given twice"),
        (json!({"adapters": many}), "spec.adapters", "64"),
        (
            json!({"schema": {"properties": {"nodes": {"minimum": "x"}}}}),
            "spec.schema.properties.nodes.minimum",
            "number",
        ),
        (json!({"schema": {"type": "array"}}), "spec.schema.type", "must be object"),
        (json!({"schema": {"$ref": "#"}}), "spec.schema.$ref", "not followed"),
        (json!({"pulse": {"when": "age >"}}), "spec.pulse.when", "column"),
        (json!({"pulse": {"when": "1"}}), "spec.pulse.when", "bool"),
        (
            json!({"conditions": [{"type": "Small", "status": "self.items.all(i,"}]}),
            "spec.conditions[0].status",
            "column",
        ),
        (
            json!({"conditions": [{"type": "Ready", "status": "true"}]}),
            "spec.conditions[0].type",
            "always means the same",
        ),
        (
            json!({"conditions": [{"type": "Available", "status": "true"}]}),
            "spec.conditions[0].type",
            "always means the same",
        ),
        (json!({"pulse": {"ready": "0s"}}), "spec.pulse.ready", "at least 1s"),
        (
            json!({"columns": [{"name": "Zone", "path": "spec.zone"}]}),
            "spec.columns[0].path",
            "start with a dot",
        ),
        (json!({"columns": [{"name": "Ready", "path": ".spec.a"}]}), "spec.columns[0].name", "already"),
        (
            json!({"parent": {"resourceType": "regions", "field": "region"}}),
            "spec.parent.resourceType",
            "make it first",
        ),
        (
            json!({"parent": {"resourceType": "clusters", "field": "region"}}),
            "spec.parent.resourceType",
            "its own parent",
        ),
        (json!({"parent": {"field": "region"}}), "spec.parent.resourceType", "name the type"),
        (json!({"parent": {"resourceType": "regions"}}), "spec.parent.field", "name the field"),
        (
            json!({"parent": {"resourceType": "regions", "field": "nodes"}}),
            "spec.parent.field",
            "type string",
        ),
        (json!({"parent": {"resourceType": "regions", "field": "nope"}}), "spec.parent.field", "type string"),
    ] {
        let found = blamed(&server, &with(&change)).await;
        let told = found.iter().any(|(at, said)| at == field && said.contains(why));
        assert!(told, "{change}: {field} {why}: {found:?}");
        assert_eq!(server.get(GROUP).await.good()["resources"], json!([]));
    }
    let mut other = clusters();
    other["metadata"]["name"] = json!("others");
    let found = blamed(&server, &other).await;
    assert!(found[0].1.contains("must be the name of the ResourceType, \"others\""), "{found:?}");
    let taken = resource_type(&json!({"names": {"kind": "Thing", "plural": "tasks"}}));
    assert_eq!(blamed(&server, &taken).await[0].0, "spec.names.plural");
}

#[tokio::test]
async fn two_types_share_no_name() {
    let server = Server::start().await;
    server.declare(&clusters()).await;
    for (names, field) in [
        (json!({"kind": "Cluster", "plural": "others"}), "spec.names.kind"),
        (json!({"kind": "Other", "plural": "others", "singular": "cluster"}), "spec.names.singular"),
        (json!({"kind": "Other", "plural": "others", "shortNames": ["cl"]}), "spec.names.shortNames[0]"),
        (
            json!({"kind": "Other", "plural": "others", "shortNames": ["clusters"]}),
            "spec.names.shortNames[0]",
        ),
        (json!({"kind": "Cl", "plural": "cls"}), "spec.names.kind"),
    ] {
        let found = blamed(&server, &resource_type(&json!({ "names": names }))).await;
        let told = found.iter().any(|(at, said)| at == field && said.contains("resource type clusters"));
        assert!(told, "{names}: {found:?}");
    }
    server.post(TYPES, &clusters()).await.refused(409);
}

#[tokio::test]
async fn names_scope_and_place_in_the_family_stay() {
    let server = Server::start().await;
    server.declare(&clusters()).await;
    server.declare(&node_pools()).await;
    for (name, change, field) in [
        ("clusters", json!({"names": {"kind": "Other"}}), "spec.names"),
        ("clusters", json!({"names": {"shortNames": []}}), "spec.names"),
        ("clusters", json!({"scope": "Cluster"}), "spec.scope"),
        ("nodepools", json!({"parent": null}), "spec.parent"),
        ("nodepools", json!({"parent": {"field": "size"}}), "spec.parent"),
    ] {
        let answer = server.patch(&format!("{TYPES}/{name}"), MERGE_PATCH, &json!({ "spec": change })).await;
        let said = answer.refused(422);
        assert!(said.contains(field) && said.contains("cannot change"), "{change}: {said}");
    }
    let change = json!({"spec": {"parent": {"onDelete": "Restrict"}, "adapters": ["other"]}});
    server.patch(&format!("{TYPES}/nodepools"), MERGE_PATCH, &change).await.good();
}

#[tokio::test]
async fn families_have_an_end() {
    let server = Server::start().await;
    let above = |number: usize| {
        let spec = json!({"names": {"kind": format!("K{number}"), "plural": format!("k{number}s")}});
        let mut declared = resource_type(&spec);
        if number > 0 {
            let parent = format!("k{}s", number - 1);
            declared["spec"]["parent"] = json!({"resourceType": parent, "field": "above"});
        }
        declared
    };
    for number in 0..8 {
        server.declare(&above(number)).await;
    }
    assert!(server.post(TYPES, &above(8)).await.refused(422).contains("at most 8 types"));
    let mut wide = above(9);
    wide["spec"]["scope"] = json!("Cluster");
    wide["spec"]["parent"]["resourceType"] = json!("k0s");
    assert!(server.post(TYPES, &wide).await.refused(422).contains("live in namespaces"));
}

#[tokio::test]
async fn a_type_stays_while_something_is_of_it_or_below_it() {
    let server = Server::start().await;
    server.declare(&clusters()).await;
    server.declare(&node_pools()).await;
    let path = "/apis/resources.muster.dev/v1alpha1/namespaces/default/clusters";
    for name in ["a", "b"] {
        server.post(path, &crate::managed::cluster(name)).await.good();
    }
    let target = format!("{TYPES}/clusters");
    assert!(
        server
            .delete(&target)
            .await
            .refused(409)
            .contains("clusters of this type are left: 2; delete them first")
    );
    for name in ["a", "b"] {
        server.finalize(&format!("{path}/{name}")).await;
    }
    assert!(server.delete(&target).await.refused(409).contains("parent of the resource type nodepools"));
    server.delete(&format!("{TYPES}/nodepools")).await.good();
    server.delete(&target).await.good();
    server.get(&target).await.refused(404);
}

#[tokio::test]
async fn types_are_shown_with_what_they_declare() {
    let server = Server::start().await;
    server.declare(&clusters()).await;
    server.declare(&node_pools()).await;
    let table = server.send(Ask::new("GET", TYPES).header(ACCEPT, TABLE)).await.good();
    let cells: Vec<_> = table["rows"].as_array().unwrap().iter().map(|row| row["cells"].clone()).collect();
    let first = |row: &Value| row.as_array().unwrap()[..5].to_vec();
    assert_eq!(first(&cells[0]), ["clusters", "Cluster", "Namespaced", "<none>", "validation,dns"]);
    assert_eq!(first(&cells[1]), ["nodepools", "NodePool", "Namespaced", "clusters", "validation"]);
}

#[tokio::test]
async fn an_adapter_that_cannot_be_is_refused_with_the_field() {
    let server = Server::start().await;
    let path = "/apis/muster.dev/v1alpha1/namespaces/default/adapters";
    let adapter = |name: &str, spec: Value| json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Adapter", "metadata": {"name": name}, "spec": spec});
    let task = json!({"spec": {"container": {"command": ["true"]}}});
    let http = json!({"url": "http://a"});
    for (name, spec, field) in [
        ("dns", json!({"task": task}), "spec.resourceType"),
        ("dns", json!({"resourceType": "clusters"}), "spec"),
        ("dns", json!({"resourceType": "clusters", "task": task, "http": http}), "spec"),
        ("dns", json!({"resourceType": "clusters", "task": {"spec": {}}}), "spec.task.spec"),
        (
            "dns",
            json!({"resourceType": "clusters", "task": {"spec": {"container": {"command": ["{{ params. }}"]}}}}),
            "spec.task.spec.container.command[0]",
        ),
        (
            "dns",
            json!({"resourceType": "clusters", "task": task, "preconditions": [{"expression": "1 + 1"}]}),
            "spec.preconditions[0].expression",
        ),
        ("a.b", json!({"resourceType": "clusters", "task": task}), "metadata.name"),
        (
            "dns",
            json!({"resourceType": "clusters", "task": task, "delete": {"task": task, "http": http}}),
            "spec.delete",
        ),
    ] {
        let answer = server.post(path, &adapter(name, spec.clone())).await;
        assert_eq!(answer.code, 422, "{spec}: {answer:?}");
        assert_eq!(answer.json()["details"]["causes"][0]["field"], field, "{spec}");
    }
    let spec = json!({"resourceType": "clusters", "task": task});
    server.post(path, &adapter("dns", spec)).await.good();
    let list = server.get(&format!("{path}?fieldSelector=spec.resourceType%3Dclusters")).await.good();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
}
