//! KubeJob: what is kept of a Kubernetes Job, and how it is shown.

use muster_types::KubeJob;
use muster_types::kube_job::KubeJobSpec;
use serde_json::json;

use crate::kind::{Column, Strategy};
use crate::refusal::Causes;
use crate::status_rules::StatusRule;

impl Strategy for KubeJobSpec {
    /// The responder keeps it, as a client of this API.
    const STATUS: StatusRule = StatusRule::Open;

    fn validate(job: &KubeJob, causes: &mut Causes) {
        let spec = &job.spec;
        for (field, value) in [("jobName", &spec.job_name), ("jobUid", &spec.job_uid)] {
            if value.is_empty() {
                causes.required(format!("spec.{field}"), "must not be empty");
            }
        }
        if !["success", "failed"].contains(&spec.outcome.as_str()) {
            causes.invalid("spec.outcome", &spec.outcome, "must be success or failed");
        }
    }

    fn validate_update(old: &KubeJob, new: &KubeJob, causes: &mut Causes) {
        if old.spec.job_uid != new.spec.job_uid {
            causes.forbidden("spec.jobUid", "cannot be changed: the logs are those of one job");
        }
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::<Self>::text("Job", "Its name in the cluster.", |it| json!(it.spec.job_name)),
            Column::<Self>::text("Outcome", "How it ended.", |it| json!(it.spec.outcome)),
            Column::<Self>::text("Saved", "Whether all its logs are kept.", |it| {
                json!(if it.status.saved.is_some() { "True" } else { "False" })
            }),
            Column::<Self>::number("Logs", "Logs that are kept.", |it| json!(it.status.logs.len())),
            Column::<Self>::text("Reason", "Why it failed.", |it| json!(it.spec.failure_reason)).wide(),
        ]
    }
}
