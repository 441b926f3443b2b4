//! Namespaces: they need not be made, so every name that could be one is one; those with objects are listed.
//!
//! kubectl looks a namespace up to say whether it or the object in it is missing, and keeps what it discovered only
//! of groups that hold something: without this kind it would discover everything anew for each command.

use std::collections::BTreeSet;

use muster_types::name_rules::dns1123_label;
use serde_json::{Value, json};

use crate::api::Api;
use crate::options::Options;
use crate::refusal::Refusal;
use crate::target::ResourcePath;

/// Verbs that there are.
pub const VERBS: [&str; 2] = ["get", "list"];
/// The namespace of clients that name none.
const DEFAULT: &str = "default";
/// Behind every name that an object can have.
const LAST_NAME: char = '~';

/// True if the path is about namespaces themselves.
pub fn are_meant(path: &ResourcePath) -> bool {
    path.group.is_empty() && path.version == "v1" && path.plural == "namespaces" && path.subresource.is_none()
}

/// Answers a question about namespaces.
pub fn answer(api: &Api, verb: &str, name: Option<&str>, options: &Options) -> Result<Value, Refusal> {
    match (verb, name) {
        ("get", Some(name)) => {
            dns1123_label(name).map_err(|why| {
                Refusal::bad_request(format!("the namespace \"{name}\" is not valid: {why}"))
            })?;
            Ok(show(name))
        }
        ("list", None) => Ok(list(api, options)),
        _ => Err(Refusal::method_not_allowed()),
    }
}

fn show(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": name },
        "spec": {},
        "status": { "phase": "Active" },
    })
}

fn list(api: &Api, options: &Options) -> Value {
    let selected = |name: &String| {
        options.labels.matches_with(|_| None)
            && options.fields.matches_with(|field| (field == "metadata.name").then_some(name))
    };
    let items: Vec<_> = in_use(api).iter().filter(|name| selected(name)).map(|name| show(name)).collect();
    let revision = api.store.revision().to_string();
    json!({
        "apiVersion": "v1", "kind": "NamespaceList", "metadata": { "resourceVersion": revision }, "items": items,
    })
}

/// Namespaces that hold objects. Each is found by one look behind the one before, however many objects it holds.
fn in_use(api: &Api) -> BTreeSet<String> {
    let mut names = BTreeSet::from([DEFAULT.to_owned()]);
    for kind in api.registry.kinds().iter().filter(|kind| kind.info().namespaced) {
        let snapshot = api.store.snapshot(&kind.info().resource);
        let namespace_behind = |after: Option<&str>| {
            let stored = snapshot.range(None, after).next()?;
            Some(stored.namespace().to_owned())
        };
        let mut next = namespace_behind(None);
        while let Some(name) = next {
            next = namespace_behind(Some(&format!("{name}/{LAST_NAME}")));
            names.insert(name);
        }
    }
    names
}
