//! Questions of a client about itself: `kubectl auth can-i` and `kubectl auth whoami`.

use hyper::HeaderMap;
use muster_types::names::{GROUP, RESOURCES_GROUP, VERSION};
use serde_json::{Value, json};

use crate::access::{ADDON_PARTS, Ask, Bound, BoundAttempt, REPORTER_PART, Role, User, authorize};
use crate::api::Api;
use crate::discovery;
use crate::negotiate::{media_type, parse_yaml};
use crate::protobuf::Envelope;
use crate::refusal::Refusal;

/// Reads a question. Current kubectl asks in protobuf and in nothing else.
pub fn read(headers: &HeaderMap, body: &[u8]) -> Result<Value, Refusal> {
    if media_type(headers) != "application/vnd.kubernetes.protobuf" {
        let question = parse_yaml(body)?;
        return if question.is_object() {
            Ok(question)
        } else {
            Err(Refusal::bad_request("the body is not a review: an object is expected"))
        };
    }
    from_protobuf(body).ok_or_else(|| Refusal::bad_request("the body is not a review in protobuf"))
}

fn from_protobuf(body: &[u8]) -> Option<Value> {
    let Envelope { api_version, kind, object } = Envelope::open(body)?;
    let spec = object.message(2)?;
    let spec = match kind {
        "SelfSubjectAccessReview" if spec.has(1) => {
            let asked = spec.message(1)?;
            json!({ "resourceAttributes": {
                "namespace": asked.text(1)?, "verb": asked.text(2)?, "group": asked.text(3)?,
                "version": asked.text(4)?, "resource": asked.text(5)?, "subresource": asked.text(6)?,
                "name": asked.text(7)?,
            }})
        }
        "SelfSubjectAccessReview" if spec.has(2) => {
            let asked = spec.message(2)?;
            json!({ "nonResourceAttributes": { "path": asked.text(1)?, "verb": asked.text(2)? } })
        }
        "SelfSubjectRulesReview" => json!({ "namespace": spec.text(1)? }),
        _ => json!({}),
    };
    Some(json!({ "apiVersion": api_version, "kind": kind, "metadata": {}, "spec": spec }))
}

/// The answer to a review, or `None` if the path names none.
pub fn answer(
    api: &Api,
    user: &User,
    group: &str,
    plural: &str,
    body: &Value,
) -> Option<Result<Value, Refusal>> {
    match (group, plural) {
        ("authorization.k8s.io", "selfsubjectaccessreviews") => Some(access(api, user, body)),
        ("authorization.k8s.io", "selfsubjectrulesreviews") => Some(Ok(rules(api, user, body))),
        ("authentication.k8s.io", "selfsubjectreviews") => Some(Ok(whoami(user, body))),
        _ => None,
    }
}

fn access(api: &Api, user: &User, body: &Value) -> Result<Value, Refusal> {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (allowed, reason) = if body.pointer("/spec/resourceAttributes").is_some_and(Value::is_object) {
        let attribute = |name: &str| text(&format!("/spec/resourceAttributes/{name}"));
        let (group, resource, subresource) =
            (attribute("group"), attribute("resource"), attribute("subresource"));
        let whole =
            if subresource.is_empty() { resource.to_owned() } else { format!("{resource}/{subresource}") };
        let ask = Ask {
            verb: attribute("verb"),
            group,
            resource: &whole,
            namespace: attribute("namespace"),
            name: attribute("name"),
        };
        if discovery::serves(&api.registry, group, resource, subresource) {
            let decided = authorize(user, &ask);
            (
                decided.is_ok(),
                decided.map_or_else(|refusal| refusal.to_string(), |()| format!("role {}", user.role)),
            )
        } else {
            (user.role == Role::Admin, "this server does not serve that resource".to_owned())
        }
    } else if body.pointer("/spec/nonResourceAttributes").is_some_and(Value::is_object) {
        (
            may_reach(
                user,
                text("/spec/nonResourceAttributes/verb"),
                text("/spec/nonResourceAttributes/path"),
            ),
            format!("role {}", user.role),
        )
    } else {
        return Err(Refusal::bad_request(
            "spec: one of resourceAttributes and nonResourceAttributes is required",
        ));
    };
    let mut answer = body.clone();
    answer["status"] = json!({ "allowed": allowed, "reason": reason });
    Ok(answer)
}

/// Paths that are no resources are for reading; metrics are not for addons and reporters.
fn may_reach(user: &User, verb: &str, path: &str) -> bool {
    match user.role {
        Role::Admin => true,
        Role::Editor | Role::Viewer => verb == "get",
        Role::Addon | Role::Reporter | Role::Robot => verb == "get" && !path.starts_with("/metrics"),
        Role::Cluster => false,
    }
}

fn rules(api: &Api, user: &User, body: &Value) -> Value {
    let everything = |verbs: &[&str]| json!([{ "verbs": verbs, "apiGroups": ["*"], "resources": ["*"] }]);
    let resources = match (user.role, &user.bound) {
        (Role::Admin, _) => everything(&["*"]),
        (Role::Editor, _) => rules_of_editor(api, user),
        (Role::Viewer, _) => everything(&["get", "list", "watch"]),
        (Role::Addon, Some(Bound::Attempt(bound))) => rules_of_addon(bound, body),
        (Role::Reporter, Some(Bound::Adapter(_))) => rules_of_reporter(),
        (Role::Addon | Role::Reporter | Role::Cluster | Role::Robot, _) => json!([]),
    };
    let mut answer = body.clone();
    answer["status"] = json!({
        "resourceRules": resources,
        "nonResourceRules": [{ "verbs": ["get"], "nonResourceURLs": ["*"] }],
        "incomplete": false,
    });
    answer
}

/// What an editor may write is asked of each resource.
fn rules_of_editor(api: &Api, user: &User) -> Value {
    const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
    let served = discovery::resources(&api.registry, GROUP, VERSION).unwrap_or_default();
    let served = served["resources"].as_array().cloned().unwrap_or_default();
    let may_write = |resource: &&str| {
        authorize(user, &Ask { verb: "patch", group: GROUP, resource, ..Ask::default() }).is_ok()
    };
    let written: Vec<_> =
        served.iter().filter_map(|resource| resource["name"].as_str()).filter(may_write).collect();
    json!([
        { "verbs": ["get", "list", "watch"], "apiGroups": ["*"], "resources": ["*"] },
        { "verbs": WRITES, "apiGroups": [GROUP], "resources": written },
        { "verbs": WRITES, "apiGroups": [RESOURCES_GROUP], "resources": ["*"] },
    ])
}

fn rules_of_reporter() -> Value {
    json!([
        { "verbs": ["get", "list", "watch"], "apiGroups": [RESOURCES_GROUP], "resources": ["*"] },
        { "verbs": ["get", "update"], "apiGroups": [RESOURCES_GROUP], "resources": [format!("*{REPORTER_PART}")] },
    ])
}

fn rules_of_addon(bound: &BoundAttempt, body: &Value) -> Value {
    if body.pointer("/spec/namespace").and_then(Value::as_str) != Some(&bound.namespace) {
        return json!([]);
    }
    let rule = |verbs: &[&str], resources: &[&str], name: &str| {
        json!({
            "verbs": verbs, "apiGroups": ["muster.dev"], "resources": resources, "resourceNames": [name],
        })
    };
    let mut rules = vec![
        rule(&["get"], &["tasks"], &bound.task),
        rule(&["get", "create", "update", "delete"], &ADDON_PARTS, &bound.task),
    ];
    if let Some(subject) = bound.subject.as_ref().filter(|subject| subject.kind == "Application") {
        let verbs = if bound.writes_tags() { &["get", "patch", "update"][..] } else { &["get"] };
        rules.push(rule(verbs, &["applications"], &subject.name));
    }
    Value::Array(rules)
}

fn whoami(user: &User, body: &Value) -> Value {
    let mut answer = body.clone();
    answer["status"] =
        json!({ "userInfo": { "username": user.name, "groups": [user.role, "system:authenticated"] } });
    answer
}
