//! One version of an object of the load, as the server showed it.
//!
//! A write puts one token into several places of the object. Where they differ, half of a write was seen.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

/// One version of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// `namespace/name`.
    pub key: String,
    /// `resourceVersion`.
    pub revision: u64,
    /// `uid`.
    pub uid: String,
    /// `creationTimestamp`.
    pub created: String,
    /// Which write made it.
    pub token: String,
    /// The label that watchers select by.
    pub team: String,
    /// Its deletion was asked for.
    pub deleting: bool,
    /// The object, as it was sent.
    pub text: Arc<str>,
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
    creation_timestamp: String,
    deletion_timestamp: Option<String>,
    labels: Labels,
    annotations: Annotations,
}

#[derive(Deserialize)]
struct Labels {
    team: String,
    token: String,
}

#[derive(Deserialize)]
struct Annotations {
    token: String,
}

#[derive(Deserialize)]
struct Spec {
    properties: Properties,
}

#[derive(Deserialize)]
struct Properties {
    first: String,
    last: String,
}

impl Version {
    /// Reads an object; says what is wrong with one that no write can have made.
    pub fn parse(text: &str) -> Result<Self, String> {
        let object: Object = serde_json::from_str(text).map_err(|error| format!("{error} in {text}"))?;
        let Object { metadata, spec: Spec { properties } } = object;
        let revision = metadata.resource_version.parse().map_err(|_| format!("no revision in {text}"))?;
        let token = properties.first;
        if [&properties.last, &metadata.labels.token, &metadata.annotations.token]
            .iter()
            .any(|part| **part != token)
        {
            return Err(format!("half of a write: {text}"));
        }
        Ok(Self {
            key: format!("{}/{}", metadata.namespace, metadata.name),
            revision,
            uid: metadata.uid,
            created: metadata.creation_timestamp,
            token,
            team: metadata.labels.team,
            deleting: metadata.deletion_timestamp.is_some(),
            text: text.into(),
        })
    }

    /// The object as a document.
    pub fn document(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// The namespace part of the key.
    pub fn namespace(&self) -> &str {
        self.key.split_once('/').map_or("", |(namespace, _)| namespace)
    }
}

/// The part of an object that a write with this token sets, as a merge patch.
pub fn content(token: &str, team: &str, filler: usize) -> Value {
    json!({
        "metadata": { "labels": { "team": team, "token": token }, "annotations": { "token": token } },
        "spec": { "properties": { "first": token, "filler": "x".repeat(filler), "last": token } },
    })
}
