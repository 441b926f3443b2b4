//! Questions of a client about itself: `kubectl auth can-i` and `kubectl auth whoami`.

use hyper::HeaderMap;
use serde_json::{Value, json};

use crate::access::{Ask, Role, User, allows};
use crate::api::Api;
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
        ("authorization.k8s.io", "selfsubjectrulesreviews") => Some(Ok(rules(user, body))),
        ("authentication.k8s.io", "selfsubjectreviews") => Some(Ok(whoami(user, body))),
        _ => None,
    }
}

fn access(api: &Api, user: &User, body: &Value) -> Result<Value, Refusal> {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (allowed, reason) = if body.pointer("/spec/resourceAttributes").is_some_and(Value::is_object) {
        let (verb, group, resource) = (
            text("/spec/resourceAttributes/verb"),
            text("/spec/resourceAttributes/group"),
            text("/spec/resourceAttributes/resource"),
        );
        let served = resource == "*"
            || api
                .registry
                .kinds()
                .any(|kind| kind.info().plural == resource && (group == "*" || kind.info().group == group));
        let ask = Ask { verb, group, resource };
        if served || group == "auth.muster.dev" {
            (allows(user.role, &ask), format!("role {}", user.role))
        } else {
            (user.role == Role::Admin, "this server does not serve that resource".to_owned())
        }
    } else if body.pointer("/spec/nonResourceAttributes").is_some_and(Value::is_object) {
        (
            text("/spec/nonResourceAttributes/verb") == "get" || user.role == Role::Admin,
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

fn rules(user: &User, body: &Value) -> Value {
    let verbs: &[&str] = match user.role {
        Role::Admin => &["*"],
        Role::Editor => &["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"],
        Role::Viewer => &["get", "list", "watch"],
    };
    let mut answer = body.clone();
    answer["status"] = json!({
        "resourceRules": [{ "verbs": verbs, "apiGroups": ["*"], "resources": ["*"] }],
        "nonResourceRules": [{ "verbs": ["get"], "nonResourceURLs": ["*"] }],
        "incomplete": false,
    });
    answer
}

fn whoami(user: &User, body: &Value) -> Value {
    let mut answer = body.clone();
    answer["status"] =
        json!({ "userInfo": { "username": user.name, "groups": [user.role, "system:authenticated"] } });
    answer
}
