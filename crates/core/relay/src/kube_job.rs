//! Jobs of a Kubernetes cluster: which transitions a change of one holds.
//!
//! Implements seed 004 with what it means: `running` when a container really ran for the first time, `retry` when one began to
//! run after another failed, `success` and `failed` by the conditions Complete and Failed alone, each once. A suspended job is
//! not starting. What was seen of a job is kept in the store, version by version, so that the same change gives the same
//! transitions, and a list after a gap gives exactly what was missed.

use muster_types::event_sink::OnExpired;
use muster_types::metadata::StringMap;
use muster_types::{KubeJobEnd, KubeJobView};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::step::{Cds, Step, Unique};

/// Where what was seen of jobs is kept, by the uid of the sink it was seen for and the uid of the job.
pub const KUBE_JOBS: &str = "kubejobs.internal";

/// What is kept of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptJob {
    api_version: String,
    kind: String,
    metadata: KeptMetadata,
    /// What was seen of it.
    pub seen: SeenJob,
    /// How it came to be seen.
    pub how: Sight,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeptMetadata {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
    #[serde(default)]
    labels: StringMap,
}

/// What was seen of a job and its pods so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SeenJob {
    /// As the cluster last showed it.
    pub job: KubeJobView,
    /// It was to run at some time.
    pub begun: bool,
    /// A container of one of its pods has run.
    pub has_run: bool,
    /// Pods and containers that failed before another one began to run.
    pub retried: u32,
    /// Pods and containers that failed.
    pub failed: u32,
}

/// How a version of a job came to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Sight {
    /// It was there when the first look was taken: nothing is told of what was before.
    Before,
    /// As it happened.
    Live,
    /// From a list, after the cluster had forgotten changes.
    AfterGap,
}

impl KeptJob {
    /// What is kept of what was seen.
    pub fn new(seen: SeenJob, how: Sight) -> Self {
        let KubeJobView { uid, name, namespace, labels, .. } = seen.job.clone();
        let resource_version = String::new();
        Self {
            api_version: "batch/v1".to_owned(),
            kind: "Job".to_owned(),
            metadata: KeptMetadata { name, namespace, uid, resource_version, labels },
            seen,
            how,
        }
    }

    /// Namespace of the job.
    pub fn namespace(&self) -> &str {
        &self.metadata.namespace
    }
}

/// The transitions between two versions, in order.
pub fn steps(before: Option<&KeptJob>, after: &KeptJob, on_expired: OnExpired) -> Vec<Step> {
    let is_told = match after.how {
        Sight::Before => false,
        Sight::Live => true,
        Sight::AfterGap => on_expired == OnExpired::Resync,
    };
    let none = SeenJob::default();
    let (before, now) = (before.map_or(&none, |before| &before.seen), &after.seen);
    if !is_told || before.job.end.is_some() {
        return Vec::new();
    }
    let mut steps = Vec::new();
    if now.begun && !before.begun {
        steps.push(step("starting", Unique::Once, 0, Vec::new()));
    }
    if now.has_run && !before.has_run {
        steps.push(step("running", Unique::Once, 0, Vec::new()));
    }
    if now.retried > before.retried {
        steps.push(step("retry", Unique::Count(now.retried.into()), now.retried, Vec::new()));
    }
    match &now.job.end {
        Some(KubeJobEnd::Complete) => steps.push(step("success", Unique::Once, now.failed, Vec::new())),
        Some(KubeJobEnd::Failed(reason)) => {
            let mut failed = step("failed", Unique::Once, now.failed, vec![("failureReason", json!(reason))]);
            if let Some(cds) = &mut failed.cds {
                cds.failure_reason = Some(reason.clone());
            }
            steps.push(failed);
        }
        None => {}
    }
    steps
}

fn step(word: &'static str, unique: Unique, retry_count: u32, mut data: Vec<(&'static str, Value)>) -> Step {
    data.push(("retries", json!(retry_count)));
    let cds = Cds { word, unique: unique.clone(), retry_count, failure_reason: None };
    Step { cds: Some(cds), data, ..Step::new(word, unique) }
}
