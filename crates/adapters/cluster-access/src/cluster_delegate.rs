//! Asks the cluster who somebody is and what they may do.

use std::time::{Duration, Instant};

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::{Api, PostParams};
use kube::{Client, Resource};
use muster_ports::delegate::{Decision, Delegate, DelegateError, Identity, Later, Wish};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use crate::memory::Memory;

/// How long an answer of the cluster counts, as with its own servers.
const LASTS: Duration = Duration::from_secs(10);
/// How long the cluster may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Questions that are open at a time.
const MOST_OPEN: usize = 64;

/// A cluster that is asked about its users.
pub struct ClusterDelegate {
    client: Client,
    open: Semaphore,
    /// By the hash of the token: no secret is remembered.
    tokens: Memory<[u8; 32], Option<Identity>>,
    decisions: Memory<(Identity, Wish), Decision>,
}

impl ClusterDelegate {
    /// Asks through this client.
    pub fn new(client: Client) -> Self {
        let open = Semaphore::new(MOST_OPEN);
        Self { client, open, tokens: Memory::new(LASTS), decisions: Memory::new(LASTS) }
    }

    async fn ask<K>(&self, review: &K) -> Result<K, DelegateError>
    where
        K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let asked = async {
            // It is never closed.
            let _open = self.open.acquire().await;
            api.create(&PostParams::default(), review).await
        };
        match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(DelegateError(error.to_string())),
            Err(_) => Err(DelegateError(format!("no answer within {PATIENCE:?}"))),
        }
    }
}

impl Delegate for ClusterDelegate {
    fn identify<'a>(&'a self, token: &'a str) -> Later<'a, Option<Identity>> {
        Box::pin(async move {
            let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
            if let Some(known) = self.tokens.recall(&hash, Instant::now()) {
                return Ok(known);
            }
            let spec = TokenReviewSpec { token: token.to_owned(), audiences: None };
            let answer = self.ask(&TokenReview { spec, ..TokenReview::default() }).await?;
            let found = read_user(answer);
            self.tokens.keep(hash, found.clone(), Instant::now());
            Ok(found)
        })
    }

    fn decide<'a>(&'a self, who: &'a Identity, wish: Wish) -> Later<'a, Decision> {
        Box::pin(async move {
            let question = (who.clone(), wish);
            if let Some(known) = self.decisions.recall(&question, Instant::now()) {
                return Ok(known);
            }
            let spec = render_question(who, &question.1);
            let answer = self.ask(&SubjectAccessReview { spec, ..SubjectAccessReview::default() }).await?;
            let status = answer.status.unwrap_or_default();
            let decision = if status.allowed && !status.denied.unwrap_or_default() {
                Decision::Allowed
            } else {
                Decision::Denied(status.reason.or(status.evaluation_error).unwrap_or_default())
            };
            self.decisions.keep(question, decision.clone(), Instant::now());
            Ok(decision)
        })
    }
}

fn read_user(review: TokenReview) -> Option<Identity> {
    let status = review.status?;
    let user = status.user.filter(|_| status.authenticated == Some(true))?;
    Some(Identity {
        name: user.username.filter(|name| !name.is_empty())?,
        uid: user.uid.unwrap_or_default(),
        groups: user.groups.unwrap_or_default(),
        extra: user.extra.unwrap_or_default(),
    })
}

fn render_question(who: &Identity, wish: &Wish) -> SubjectAccessReviewSpec {
    let given = |text: &String| (!text.is_empty()).then(|| text.clone());
    let mut spec = SubjectAccessReviewSpec {
        user: Some(who.name.clone()),
        uid: given(&who.uid),
        groups: Some(who.groups.clone()),
        extra: Some(who.extra.clone()),
        ..SubjectAccessReviewSpec::default()
    };
    match wish {
        Wish::Resource { verb, group, resource, subresource, namespace, name } => {
            spec.resource_attributes = Some(ResourceAttributes {
                verb: given(verb),
                group: given(group),
                resource: given(resource),
                subresource: given(subresource),
                namespace: given(namespace),
                name: given(name),
                version: Some("*".to_owned()),
                ..ResourceAttributes::default()
            });
        }
        Wish::Path { verb, path } => {
            spec.non_resource_attributes =
                Some(NonResourceAttributes { verb: given(verb), path: given(path) });
        }
    }
    spec
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn user(status: &Value) -> Option<Identity> {
        read_user(serde_json::from_value(json!({ "spec": {}, "status": status })).unwrap())
    }

    #[test]
    fn only_a_token_that_the_cluster_takes_names_a_user() {
        let jane = json!({ "username": "jane", "groups": ["dev"] });
        let found = user(&json!({ "authenticated": true, "user": jane })).unwrap();
        assert_eq!((found.name.as_str(), found.groups), ("jane", vec!["dev".to_owned()]));
        assert_eq!(user(&json!({ "authenticated": false, "user": jane })), None);
        assert_eq!(user(&json!({ "user": jane })), None);
        assert_eq!(user(&json!({ "authenticated": true, "user": { "username": "" } })), None);
        assert_eq!(user(&json!({ "authenticated": true })), None);
    }

    #[test]
    fn a_wish_is_asked_about_as_it_is() {
        let who = Identity { name: "jane".into(), groups: vec!["dev".into()], ..Identity::default() };
        let wish = Wish::Resource {
            verb: "get".into(),
            group: "muster.dev".into(),
            resource: "tasks".into(),
            subresource: "log".into(),
            namespace: "team".into(),
            name: "a".into(),
        };
        let spec = serde_json::to_value(render_question(&who, &wish)).unwrap();
        assert_eq!(
            spec["resourceAttributes"],
            json!({
                "verb": "get", "group": "muster.dev", "resource": "tasks", "subresource": "log", "namespace": "team",
                "name": "a", "version": "*",
            })
        );
        assert_eq!((&spec["user"], &spec["groups"]), (&json!("jane"), &json!(["dev"])));
        let path = Wish::Path { verb: "get".into(), path: "/metrics".into() };
        let spec = serde_json::to_value(render_question(&who, &path)).unwrap();
        assert_eq!(spec["nonResourceAttributes"], json!({ "verb": "get", "path": "/metrics" }));
    }
}
