//! A KubeJob as a cluster shows it: what of a Kubernetes Job matters to those who tell of it.

use serde::{Deserialize, Serialize};

use crate::metadata::StringMap;

/// A KubeJob at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeJobView {
    /// Its uid.
    pub uid: String,
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its labels.
    pub labels: StringMap,
    /// It was told not to run.
    pub suspended: bool,
    /// Pods that failed.
    pub failed: u32,
    /// Pods that succeeded.
    pub succeeded: u32,
    /// How it ended.
    pub end: Option<KubeJobEnd>,
}

/// How a KubeJob ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum KubeJobEnd {
    /// Its condition Complete is true.
    Complete,
    /// Its condition Failed is true, for this reason.
    Failed(String),
}
