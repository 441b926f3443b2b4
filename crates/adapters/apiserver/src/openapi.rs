//! OpenAPI v3 documents: what `kubectl explain` shows and what tells it that the server validates.

use muster_types::names::RESOURCES_GROUP;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::ids::hex;
use crate::kind::KindInfo;
use crate::registry::Registry;

/// `/openapi/v3`, from the entries of our kinds, which never change, and those of declared ones, which do.
pub fn index(registry: &Registry, ours: &Map<String, Value>) -> Value {
    let mut paths = ours.clone();
    paths.extend(entries(registry, |group| group == RESOURCES_GROUP));
    json!({ "paths": paths })
}

/// Entries of our kinds.
pub fn entries_of_ours(registry: &Registry) -> Map<String, Value> {
    entries(registry, |group| group != RESOURCES_GROUP)
}

/// Where the documents of some groups are; the address changes with the document, so that clients can keep it.
fn entries(registry: &Registry, is_meant: impl Fn(&str) -> bool) -> Map<String, Value> {
    let mut entries = Map::new();
    for (group, version) in registry.group_versions().into_iter().filter(|(group, _)| is_meant(group)) {
        if let Some(document) = document(registry, &group, &version) {
            let path =
                if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
            let hash = hex(&Sha256::digest(document.to_string()));
            let url = format!("/openapi/v3/{path}?hash={hash}");
            entries.insert(path, json!({ "serverRelativeURL": url }));
        }
    }
    entries
}

/// The document of one group version.
pub fn document(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut schemas = Map::new();
    let mut paths = Map::new();
    for kind in &registry.kinds() {
        let info = kind.info();
        if info.group != group || info.version != version {
            continue;
        }
        let mut schema = kind.openapi().clone();
        schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(info)]);
        let name = schema_name(info);
        schemas.insert(format!("{name}List"), list_schema(info, &name));
        schemas.insert(name, schema);
        add_paths(info, &mut paths);
    }
    if schemas.is_empty() {
        return None;
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": { "title": "Muster", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "components": { "schemas": schemas },
    }))
}

fn schema_name(info: &KindInfo) -> String {
    let mut parts: Vec<_> = info.group.split('.').collect();
    parts.reverse();
    format!("{}.{}.{}", parts.join("."), info.version, info.kind)
}

fn group_version_kind(info: &KindInfo) -> Value {
    json!({ "group": info.group, "version": info.version, "kind": info.kind })
}

fn list_schema(info: &KindInfo, name: &str) -> Value {
    json!({
        "type": "object",
        "description": format!("{}List is a list of {}.", info.kind, info.kind),
        "required": ["items"],
        "properties": {
            "apiVersion": { "type": "string", "description": "Version of the schema of this list." },
            "kind": { "type": "string", "description": "The kind of this list." },
            "metadata": { "type": "object", "description": "Revision and position of the list." },
            "items": { "type": "array", "description": "The objects.", "items": reference(name) },
        },
        "x-kubernetes-group-version-kind":
            [{ "group": info.group, "version": info.version, "kind": format!("{}List", info.kind) }],
    })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn add_paths(info: &KindInfo, paths: &mut Map<String, Value>) {
    let root = format!("/apis/{}", info.api_version());
    let scope = if info.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{root}{scope}/{}", info.plural);
    let (list_params, write_params, patch_params) = (
        ["labelSelector", "fieldSelector", "limit", "continue", "watch", "resourceVersion", "timeoutSeconds"],
        ["dryRun", "fieldManager", "fieldValidation"],
        ["dryRun", "fieldManager", "fieldValidation", "force"],
    );
    let operation = |action: &str, params: &[&str], body: Option<&str>| operation(info, action, params, body);
    paths.insert(
        collection.clone(),
        json!({
            "get": operation("list", &list_params, None),
            "post": operation("post", &write_params, Some("application/json")),
            "delete": operation("deletecollection", &["labelSelector", "fieldSelector", "dryRun"], None),
            "parameters": path_parameters(info, false),
        }),
    );
    let mut objects = vec![format!("{collection}/{{name}}")];
    if info.has_status {
        objects.push(format!("{collection}/{{name}}/status"));
    }
    for path in objects {
        let mut item = json!({
            "get": operation("get", &[], None),
            "put": operation("put", &write_params, Some("application/json")),
            "patch": operation("patch", &patch_params, Some("application/apply-patch+yaml")),
            "parameters": path_parameters(info, true),
        });
        if !path.ends_with("/status") {
            item["delete"] =
                operation("delete", &["dryRun", "propagationPolicy", "gracePeriodSeconds"], None);
        }
        paths.insert(path, item);
    }
}

fn path_parameters(info: &KindInfo, of_object: bool) -> Value {
    let mut names = Vec::new();
    names.extend(info.namespaced.then_some("namespace"));
    names.extend(of_object.then_some("name"));
    let parameter =
        |name: &&str| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } });
    names.iter().map(parameter).collect()
}

fn operation(info: &KindInfo, action: &str, params: &[&str], body: Option<&str>) -> Value {
    let parameters: Vec<_> = params
        .iter()
        .map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string", "uniqueItems": true } }))
        .collect();
    let content = json!({ "application/json": { "schema": reference(&schema_name(info)) } });
    let mut operation = json!({
        "operationId": format!("{action}{}", info.kind),
        "parameters": parameters,
        "responses": { "200": { "description": "OK", "content": content } },
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": group_version_kind(info),
    });
    if let Some(media) = body {
        operation["requestBody"] =
            json!({ "content": { media: { "schema": reference(&schema_name(info)) } } });
    }
    operation
}
