//! The KubeJob: what is kept of a Kubernetes Job after it ended and was deleted from its cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::metadata::null_is_default;
use crate::names::Names;
use crate::object::{Object, Resource};
use crate::timestamp::Timestamp;

/// What is kept of a Kubernetes Job.
pub type KubeJob = Object<KubeJobSpec>;

/// The label with the name that the job had in its cluster.
pub const JOB_NAME: &str = "muster.dev/job-name";

impl Resource for KubeJobSpec {
    type Status = KubeJobStatus;
    const NAMES: Names = Names::muster("KubeJob", "kubejobs", "kubejob", &["mkj"]);
    const ABOUT: &'static str = "KubeJob is what is kept of a Kubernetes Job that ended: the job as it was, and the logs of all \
        its pods. It is made by the responder before the job is deleted from its cluster.";

    object_text!();
}

/// The job as it was.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeJobSpec {
    /// Its name in the cluster.
    #[serde(deserialize_with = "null_is_default")]
    pub job_name: String,
    /// Its uid in the cluster.
    #[serde(deserialize_with = "null_is_default")]
    pub job_uid: String,
    /// The last word of the message that told of its end: success or failed.
    #[serde(deserialize_with = "null_is_default")]
    pub outcome: String,
    /// Why it failed.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub failure_reason: String,
    /// The whole job as the cluster last showed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<Value>,
}

/// What of it is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeJobStatus {
    /// When all its logs were kept; it is deleted from the cluster only after that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved: Option<Timestamp>,
    /// The logs, by pod and container.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub logs: Vec<KeptLog>,
}

/// A log that is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KeptLog {
    /// Name of the pod.
    #[serde(deserialize_with = "null_is_default")]
    pub pod: String,
    /// Name of the container; with .previous behind it for the run before the last one, and .part2 and so on for the rest of
    /// a long log.
    #[serde(deserialize_with = "null_is_default")]
    pub container: String,
    /// Bytes.
    #[serde(deserialize_with = "null_is_default")]
    pub size: u64,
}

impl KubeJobSpec {
    /// The name of the object for a job: one for each job there ever was.
    pub fn object_name(job_name: &str, job_uid: &str) -> String {
        let part: String = job_uid.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
        format!("{job_name}-{}", part.to_ascii_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_reads_and_writes_back() {
        let example = json!({
            "apiVersion": "muster.dev/v1alpha1",
            "kind": "KubeJob",
            "metadata": {"name": "cds-a-1b2c3d4e", "resourceVersion": ""},
            "spec": {
                "jobName": "cds-a", "jobUid": "1b2c3d4e-0000", "outcome": "failed", "failureReason": "late",
                "document": {"kind": "Job"},
            },
            "status": {
                "saved": "2026-11-15T01:00:00Z",
                "logs": [{"pod": "cds-a-x", "container": "main.previous", "size": 5}],
            },
        });
        let job: KubeJob = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&job).unwrap(), example);
    }

    #[test]
    fn two_jobs_of_one_name_are_kept_beside_each_other() {
        assert_eq!(KubeJobSpec::object_name("cds-a", "1b2c3d4e-5f"), "cds-a-1b2c3d4e");
        assert_ne!(KubeJobSpec::object_name("a", "11111111"), KubeJobSpec::object_name("a", "22222222"));
    }
}
