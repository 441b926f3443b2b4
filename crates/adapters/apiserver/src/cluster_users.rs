//! Users of the cluster that this server stands in: the cluster says who they are, and its roles say what they may do.

use std::sync::Arc;

use muster_ports::delegate::{Decision, Delegate, DelegateError, Identity, Wish};
use serde_json::{Value, json};

use crate::access::{self, Ask, Bound, Role, User};
use crate::api::Api;
use crate::refusal::Refusal;
use crate::tls::KnownProxy;

/// Those who may do everything, whatever roles say, as everywhere in the cluster.
const MASTERS: &str = "system:masters";

/// The cluster as the API server knows it.
#[derive(Clone)]
pub struct ClusterUsers {
    /// Whom to ask.
    pub delegate: Arc<dyn Delegate>,
    /// How the cluster's own API server is known.
    pub proxy: KnownProxy,
}

/// A user of the cluster.
pub(crate) fn user_of(identity: Identity) -> User {
    User { name: identity.name.clone(), role: Role::Cluster, bound: Some(Bound::Cluster(identity)) }
}

impl Api {
    /// Who holds a token that is not one of this server.
    pub(crate) async fn identify(&self, token: &str) -> Result<Option<User>, Refusal> {
        let Some(cluster) = &self.parts.cluster else { return Ok(None) };
        let found = cluster.delegate.identify(token).await.map_err(|error| away(&error))?;
        Ok(found.map(user_of))
    }

    /// Decides whether a user may do something: by the role of its token, or as the cluster says.
    pub(crate) async fn authorize(&self, user: &User, ask: &Ask<'_>) -> Result<(), Refusal> {
        let Some(Bound::Cluster(identity)) = &user.bound else { return access::authorize(user, ask) };
        let (resource, subresource) = ask.resource.split_once('/').unwrap_or((ask.resource, ""));
        let wish = Wish::Resource {
            verb: ask.verb.to_owned(),
            group: ask.group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: ask.namespace.to_owned(),
            name: ask.name.to_owned(),
        };
        match self.decide(identity, wish).await? {
            Decision::Allowed => Ok(()),
            Decision::Denied(reason) => Err(Refusal::forbidden(words(&identity.name, ask, &reason))),
        }
    }

    /// Decides whether a user may read a path that is no resource.
    pub(crate) async fn authorize_path(&self, user: &User, path: &str) -> Result<(), Refusal> {
        let Some(Bound::Cluster(identity)) = &user.bound else {
            let resource = path.trim_start_matches('/');
            return access::authorize(user, &Ask { verb: "get", resource, ..Ask::default() });
        };
        let wish = Wish::Path { verb: "get".to_owned(), path: path.to_owned() };
        match self.decide(identity, wish).await? {
            Decision::Allowed => Ok(()),
            Decision::Denied(reason) => Err(Refusal::forbidden(format!(
                "forbidden: User \"{}\" cannot get path \"{path}\"{}",
                identity.name,
                because(&reason)
            ))),
        }
    }

    /// What the cluster says to a question that one of its users asks about itself.
    pub(crate) async fn review(
        &self,
        identity: &Identity,
        plural: &str,
        question: &Value,
    ) -> Result<Value, Refusal> {
        let mut answer = question.clone();
        answer["status"] = match plural {
            "selfsubjectreviews" => json!({ "userInfo": {
                "username": identity.name, "uid": identity.uid, "groups": identity.groups, "extra": identity.extra,
            }}),
            "selfsubjectrulesreviews" => json!({
                "resourceRules": [], "nonResourceRules": [], "incomplete": true,
                "evaluationError": "the roles of the cluster decide; ask the API server of the cluster",
            }),
            _ => match self.decide(identity, read_wish(question)?).await? {
                Decision::Allowed => json!({ "allowed": true }),
                Decision::Denied(reason) => json!({ "allowed": false, "reason": reason }),
            },
        };
        Ok(answer)
    }

    async fn decide(&self, identity: &Identity, wish: Wish) -> Result<Decision, Refusal> {
        if identity.groups.iter().any(|group| group == MASTERS) {
            return Ok(Decision::Allowed);
        }
        let Some(cluster) = &self.parts.cluster else {
            return Ok(Decision::Denied("this server knows no cluster".to_owned()));
        };
        cluster.delegate.decide(identity, wish).await.map_err(|error| {
            self.metrics.turned_away("cluster away");
            away(&error)
        })
    }
}

fn away(error: &DelegateError) -> Refusal {
    tracing::warn!(%error, "a request is turned away");
    Refusal::unavailable(format!("{error}; try again"))
}

/// In the words of the cluster, which people know.
fn words(user: &str, ask: &Ask<'_>, reason: &str) -> String {
    let Ask { verb, group, resource, namespace, name } = ask;
    let plural = resource.split('/').next().unwrap_or_default();
    let object = if name.is_empty() { String::new() } else { format!(" \"{name}\"") };
    let place = if namespace.is_empty() {
        " at the cluster scope".to_owned()
    } else {
        format!(" in the namespace \"{namespace}\"")
    };
    format!(
        "{plural}.{group}{object} is forbidden: User \"{user}\" cannot {verb} resource \"{resource}\" in API group \
         \"{group}\"{place}{}",
        because(reason)
    )
}

fn because(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

fn read_wish(question: &Value) -> Result<Wish, Refusal> {
    let text = |part: &str, name: &str| -> String {
        let found = question.pointer(&format!("/spec/{part}/{name}")).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let has = |part: &str| question.pointer(&format!("/spec/{part}")).is_some_and(Value::is_object);
    if has("resourceAttributes") {
        let text = |name: &str| text("resourceAttributes", name);
        return Ok(Wish::Resource {
            verb: text("verb"),
            group: text("group"),
            resource: text("resource"),
            subresource: text("subresource"),
            namespace: text("namespace"),
            name: text("name"),
        });
    }
    if has("nonResourceAttributes") {
        let text = |name: &str| text("nonResourceAttributes", name);
        return Ok(Wish::Path { verb: text("verb"), path: text("path") });
    }
    Err(Refusal::bad_request("spec: one of resourceAttributes and nonResourceAttributes is required"))
}
