//! Object metadata as Kubernetes writes it, in the order it is written.
//!
//! The order of the first fields matters: names are validated before anything is stored, so nothing before
//! `resourceVersion` can contain the text the encoder looks for when it marks where the revision goes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;

/// Labels and annotations.
pub type StringMap = BTreeMap<String, String>;

/// Annotation with the trace and span of whoever submitted a task, or what makes tasks.
pub const TRACEPARENT: &str = "muster.dev/traceparent";

/// What every object carries beside its spec and status.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Unique within the namespace; set once.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub name: String,
    /// Prefix from which the server makes a name when `name` is empty.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub generate_name: String,
    /// The namespace; empty for cluster-wide kinds.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub namespace: String,
    /// Unique over all time; set by the server.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub uid: String,
    /// The revision of the last change; opaque to clients.
    #[serde(deserialize_with = "null_is_default")]
    pub resource_version: String,
    /// Counts changes of what the user asked for (the spec).
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub generation: i64,
    /// When the server first stored the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Timestamp>,
    /// When deletion was asked for; the object goes when its finalizers are gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Timestamp>,
    /// Seconds of grace that were asked for at deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_grace_period_seconds: Option<i64>,
    /// Selectable key-value pairs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub labels: StringMap,
    /// Free key-value pairs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub annotations: StringMap,
    /// Objects this one belongs to; it goes when all of them are gone.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["uid"]))]
    pub owner_references: Vec<OwnerReference>,
    /// Names of parties that must agree before the object goes.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub finalizers: Vec<String>,
    /// Who set which field; kept from the first server-side apply on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_fields: Option<serde_json::Value>,
    /// Accepted from old clients, never stored.
    #[serde(skip_serializing)]
    pub self_link: Option<String>,
}

/// A pointer from a dependent to its owner.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// `group/version` of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// Uid of the owner.
    pub uid: String,
    /// True for the one owner that controls this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// True if a foreground deletion of the owner must wait for this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

/// True for what need not be written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads an explicit `null` as the default, as Kubernetes does.
pub fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
