//! What an adapter does besides making tasks: manifests it applies to a cluster, and URLs it calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::duration::Duration;
use crate::metadata::{StringMap, null_is_default};

/// A manifest applied to the Kubernetes cluster.
///
/// It is in progress while `status.observedGeneration` is less than `metadata.generation`, unless the report says
/// otherwise.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ManifestAction {
    /// The object to apply; its texts may contain `{{ expression }}`.
    pub template: Value,
}

/// A call of a URL.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpAction {
    /// Where to; may contain `{{ expression }}`.
    #[serde(deserialize_with = "null_is_default")]
    pub url: String,
    /// How. Default: GET, or POST if there is a body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<HttpMethod>,
    /// Headers to send; values may contain `{{ expression }}`.
    #[serde(skip_serializing_if = "StringMap::is_empty", deserialize_with = "null_is_default")]
    pub headers: StringMap,
    /// The JSON document to send; its texts may contain `{{ expression }}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// How long the answer may take. Default: 10s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// CEL over `response` (status, headers, body) that is true while the work goes on. Default: the status is 202.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub in_progress: String,
    /// CEL over `response` that is true when the work is done. Default: the status is 2xx, but not 202.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub succeeded: String,
    /// CEL over `response` that is true when the work failed. Default: anything else.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub failed: String,
}

words! {
    /// How a URL is called.
    pub enum HttpMethod {
        /// Reads.
        Get = "GET",
        /// Hands in.
        Post = "POST",
        /// Replaces.
        Put = "PUT",
        /// Changes.
        Patch = "PATCH",
        /// Removes.
        Delete = "DELETE",
    }
}
