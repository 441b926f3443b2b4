//! What the server serves, in the old form (a document per group) and the aggregated one.

use muster_types::names::{CATEGORY, RESOURCES_GROUP, VERSION};
use serde_json::{Value, json};

use crate::access::{TOKENS, TOKENS_GROUP};
use crate::events;
use crate::kind::KindInfo;
use crate::namespaces;
use crate::registry::Registry;
use crate::subresources;

const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// Groups that hold no kinds, only questions: group, plural, kind.
const REVIEWS: [(&str, &str, &str); 3] = [
    ("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    ("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    ("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview"),
];

/// `/api`.
pub fn core_versions() -> Value {
    json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] })
}

/// `/apis`.
pub fn groups(registry: &Registry) -> Value {
    let groups: Vec<_> =
        group_versions(registry).iter().map(|(group, version)| group_entry(group, version)).collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

/// `/apis/{group}`.
pub fn group(registry: &Registry, name: &str) -> Option<Value> {
    let (group, version) = group_versions(registry).into_iter().find(|(group, _)| group == name)?;
    let mut entry = group_entry(&group, &version);
    entry["kind"] = json!("APIGroup");
    entry["apiVersion"] = json!("v1");
    Some(entry)
}

/// `/apis/{group}/{version}` and `/api/v1`.
pub fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut list = Vec::new();
    let kinds = registry.kinds();
    for kind in
        kinds.iter().map(|kind| kind.info()).filter(|info| info.group == group && info.version == version)
    {
        list.push(resource_entry(kind));
        if kind.has_status {
            list.push(json!({
                "name": format!("{}/status", kind.plural), "singularName": "", "namespaced": kind.namespaced,
                "kind": kind.kind, "verbs": ["get", "patch", "update"],
            }));
        }
        list.extend(subresources::of(kind).map(|subresource| {
            json!({
                "name": format!("{}/{}", kind.plural, subresource.name), "singularName": "",
                "namespaced": kind.namespaced, "kind": subresource.kind, "verbs": subresource.verbs,
            })
        }));
    }
    if group.is_empty() && version == "v1" {
        list.push(json!({
            "name": "namespaces", "singularName": "namespace", "namespaced": false, "kind": "Namespace",
            "verbs": namespaces::VERBS, "shortNames": ["ns"],
        }));
    }
    if version == "v1" && has_events(group) {
        list.push(json!({
            "name": "events", "singularName": "event", "namespaced": true, "kind": "Event",
            "verbs": events::VERBS, "shortNames": ["ev"],
        }));
    }
    if version == "v1" {
        list.extend(REVIEWS.iter().filter(|(of, _, _)| *of == group).map(|(_, plural, kind)| {
            json!({ "name": plural, "singularName": kind.to_lowercase(), "namespaced": false, "kind": kind, "verbs": ["create"] })
        }));
    }
    // The group of declared kinds is there before any is: in a cluster, an APIService says so.
    let is_declared = group == RESOURCES_GROUP && version == VERSION;
    if list.is_empty() && !is_declared {
        return None;
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Some(
        json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": list }),
    )
}

/// `/apis` and `/api` for clients that take everything at once.
pub fn aggregated(registry: &Registry, version: &str, core: bool) -> Value {
    let items: Vec<_> = if core {
        vec![aggregated_group(registry, "", "v1")]
    } else {
        group_versions(registry)
            .iter()
            .map(|(group, version)| aggregated_group(registry, group, version))
            .collect()
    };
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {}, "items": items,
    })
}

fn group_versions(registry: &Registry) -> Vec<(String, String)> {
    let mut all = registry.group_versions();
    all.retain(|(group, _)| !group.is_empty());
    for (group, _, _) in REVIEWS {
        if !all.iter().any(|(known, _)| known == group) {
            all.push((group.to_owned(), "v1".to_owned()));
        }
    }
    all.push((events::GROUP.to_owned(), "v1".to_owned()));
    all
}

fn group_entry(group: &str, version: &str) -> Value {
    let entry = json!({ "groupVersion": format!("{group}/{version}"), "version": version });
    json!({ "name": group, "versions": [entry], "preferredVersion": entry })
}

fn resource_entry(info: &KindInfo) -> Value {
    json!({
        "name": info.plural, "singularName": info.singular, "namespaced": info.namespaced, "kind": info.kind,
        "verbs": VERBS, "shortNames": info.short_names, "categories": [CATEGORY],
        "storageVersionHash": storage_hash(info),
    })
}

fn storage_hash(info: &KindInfo) -> String {
    use base64::Engine as _;
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(format!("{}/{}/{}", info.group, info.version, info.kind));
    base64::engine::general_purpose::STANDARD.encode(&digest[..8])
}

fn aggregated_group(registry: &Registry, group: &str, version: &str) -> Value {
    let mut resources: Vec<Value> = registry
        .kinds()
        .iter()
        .map(|kind| kind.info())
        .filter(|info| info.group == group && info.version == version)
        .map(|info| {
            let response = response_kind(group, version, &info.kind);
            let mut parts = Vec::new();
            if info.has_status {
                parts.push(json!({
                    "subresource": "status", "responseKind": response, "verbs": ["get", "patch", "update"],
                }));
            }
            parts.extend(subresources::of(info).map(|subresource| {
                json!({
                    "subresource": subresource.name, "verbs": subresource.verbs,
                    "responseKind": response_kind(group, version, subresource.kind),
                })
            }));
            json!({
                "resource": info.plural, "responseKind": response,
                "scope": if info.namespaced { "Namespaced" } else { "Cluster" },
                "singularResource": info.singular, "verbs": VERBS, "shortNames": info.short_names,
                "categories": [CATEGORY], "subresources": parts,
            })
        })
        .collect();
    if group.is_empty() {
        resources.push(json!({
            "resource": "namespaces", "responseKind": response_kind(group, version, "Namespace"),
            "scope": "Cluster", "singularResource": "namespace", "verbs": namespaces::VERBS, "shortNames": ["ns"],
        }));
    }
    if has_events(group) {
        resources.push(json!({
            "resource": "events", "responseKind": response_kind(group, version, "Event"), "scope": "Namespaced",
            "singularResource": "event", "verbs": events::VERBS, "shortNames": ["ev"],
        }));
    }
    resources.extend(REVIEWS.iter().filter(|(of, _, _)| *of == group).map(|(_, plural, kind)| {
        json!({
            "resource": plural, "responseKind": response_kind(group, version, kind), "scope": "Cluster",
            "singularResource": kind.to_lowercase(), "verbs": ["create"],
        })
    }));
    let versions = json!([{ "version": version, "resources": resources, "freshness": "Current" }]);
    json!({ "metadata": { "name": group, "creationTimestamp": null }, "versions": versions })
}

fn has_events(group: &str) -> bool {
    group.is_empty() || group == events::GROUP
}

fn response_kind(group: &str, version: &str, kind: &str) -> Value {
    json!({ "group": group, "version": version, "kind": kind })
}

/// True if the path is a question, not a kind.
pub fn is_review(group: &str, plural: &str) -> bool {
    REVIEWS.iter().any(|(of, name, _)| *of == group && *name == plural)
}

/// True if there is such a resource, or such a subresource of one.
pub fn serves(registry: &Registry, group: &str, resource: &str, subresource: &str) -> bool {
    let is_group = |of: &str| group == "*" || group == of;
    let part_is_served = |info: &KindInfo| match subresource {
        "" | "*" => true,
        "status" => info.has_status,
        name => subresources::of(info).any(|subresource| subresource.name == name),
    };
    resource == "*"
        || (resource == "namespaces" && is_group("") && subresource.is_empty())
        || (resource == "events" && (group == "*" || has_events(group)) && subresource.is_empty())
        || (resource == TOKENS && group == TOKENS_GROUP)
        || registry
            .kinds()
            .iter()
            .map(|kind| kind.info())
            .any(|info| info.plural == resource && is_group(&info.group) && part_is_served(info))
}
