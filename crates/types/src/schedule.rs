//! The Schedule: when Tasks or Jobs are made. What may be asked for is here; what is reported is in
//! [`crate::schedule_status`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::Duration;
use crate::job::JobSpec;
use crate::metadata::{StringMap, is_default, null_is_default};
use crate::names::Names;
use crate::object::{Object, Resource};
use crate::schedule_status::ScheduleStatus;
use crate::task_template::{EmbeddedMetadata, EmbeddedTask};
use crate::timestamp::Timestamp;

/// When work is made.
pub type Schedule = Object<ScheduleSpec>;

impl Resource for ScheduleSpec {
    type Status = ScheduleStatus;
    const NAMES: Names = Names::muster("Schedule", "schedules", "schedule", &["msched"]);
    const ABOUT: &'static str = "Schedule makes a Task or a Job at given times, or when other work ends. Each \
        occurrence is made at most once, under a name derived from its time.";

    object_text!();
}

/// What is made, and when.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ScheduleSpec {
    /// The times, and what happens when runs are late or overlap.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub schedule_policy: SchedulePolicy,
    /// Labels of the tasks or jobs that are made; must be among the labels of the template. Default: all of them.
    #[serde(skip_serializing_if = "StringMap::is_empty", deserialize_with = "null_is_default")]
    pub selector: StringMap,
    /// The task to make. Exactly one of template, templateRef and jobTemplate is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<EmbeddedTask>,
    /// The TaskTemplate, in the namespace of the schedule, of the task to make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<TemplateRef>,
    /// The job to make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_template: Option<EmbeddedJob>,
    /// True makes nothing until it is set to false; what falls into that time is never made. Default: false.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub suspend: bool,
    /// Other work whose end makes a run, too; with it, timeSpec may be left out.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub triggers: Vec<Trigger>,
    /// Times in the past whose runs are to be made, one backfill after the other, behind the regular runs and as the
    /// concurrency allows.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub backfills: Vec<Backfill>,
    /// How many runs that succeeded are kept. Default: all, until their ttl is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub successful_history_limit: Option<u32>,
    /// How many runs that failed or were canceled are kept. Default: all, until their ttl is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_history_limit: Option<u32>,
}

/// The times of a schedule, and what happens when runs are late or overlap.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulePolicy {
    /// When to run: an ISO 8601 repeating interval such as R5/2026-11-15T01:00:00Z/PT1H (R5 is five runs in all), or
    /// five or six fields of cron such as 30 2 * * MON-FRI, or @daily.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub time_spec: String,
    /// IANA name of the zone the times are read in, such as Europe/Berlin. Default: UTC.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub time_zone: String,
    /// True if a run may start while another of this schedule has not ended. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_concurrent: Option<bool>,
    /// How long each attempt of a run may take, in seconds or as a duration; an attempt that took longer is not tried
    /// again. Default, and 0: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec_timeout: Option<Duration>,
    /// How often a run that fails is started again, whatever the reason but its timeout. Default: as the template says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_restart: Option<u32>,
    /// True if of several times that could not be kept only the latest is made up for; false makes up for all of them,
    /// one after the other. Default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_outdated: Option<bool>,
    /// What happens when a run is due while another has not ended; cannot be set together with allowConcurrent.
    /// Default: Forbid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// Times further in the past than this are not made up for. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catch_up_window: Option<Duration>,
    /// Each run is made up to this much later than its time, always by the same amount for the same time; never later
    /// than the next time. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Duration>,
    /// A run that could not be made this long after its time is left out. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starting_deadline: Option<Duration>,
}

words! {
    /// What happens when a run is due while another has not ended.
    pub enum Concurrency {
        /// Both run.
        Allow = "Allow",
        /// The new one waits; skipOutdated says which of those that wait is made.
        Forbid = "Forbid",
        /// The old one is canceled, and the new one is made at once: what takes its killTimeout to end runs beside it.
        Replace = "Replace",
        /// The new one waits, and each is made, one after the other.
        Queue = "Queue",
    }
}

/// Points at a TaskTemplate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateRef {
    /// Name of the TaskTemplate.
    pub name: String,
}

/// A job as it stands inside another kind: without a name, which it gets when it is made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EmbeddedJob {
    /// Labels and annotations the job gets.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub metadata: EmbeddedMetadata,
    /// What the job does.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub spec: JobSpec,
}

/// Times in the past whose runs are to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backfill {
    /// What tells it from other backfills of the schedule.
    pub name: String,
    /// The first time.
    pub from: Timestamp,
    /// The time before which to end. Times that have not passed when the backfill begins are left to the schedule.
    pub to: Timestamp,
    /// How many of its runs may be active at once; more than 1 needs the concurrency Allow. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_active: Option<u32>,
}

/// Other work whose end makes a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Trigger {
    /// Which work, and how it must have ended.
    // kubectl reads YAML as version 1.1 says, where the key `on` is the boolean true.
    #[serde(alias = "true", deserialize_with = "null_is_default")]
    pub on: TriggerOn,
}

/// Which work, and how it must have ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TriggerOn {
    /// Task or Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<TriggerKind>,
    /// Name of the one object. Exactly one of name and selector is needed.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub name: String,
    /// Labels the object must have.
    #[serde(skip_serializing_if = "StringMap::is_empty", deserialize_with = "null_is_default")]
    pub selector: StringMap,
    /// How it must have ended. Default: Completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

words! {
    /// Kinds of work whose end can be waited for.
    pub enum TriggerKind {
        /// A Task.
        Task = "Task",
        /// A Job.
        Job = "Job",
    }
}

words! {
    /// How work ended.
    pub enum Outcome {
        /// It succeeded.
        Succeeded = "Succeeded",
        /// It failed.
        Failed = "Failed",
        /// It ended, in whatever way.
        Completed = "Completed",
    }
}

impl SchedulePolicy {
    /// What happens when a run is due while another has not ended.
    pub fn concurrency(&self) -> Concurrency {
        match (self.concurrency, self.allow_concurrent) {
            (Some(concurrency), _) => concurrency,
            (None, Some(true)) => Concurrency::Allow,
            (None, _) => Concurrency::Forbid,
        }
    }

    /// True if only the latest of the times that could not be kept is made up for.
    pub fn skips_outdated(&self) -> bool {
        self.skip_outdated.unwrap_or(self.concurrency() != Concurrency::Queue)
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
            "kind": "Schedule",
            "metadata": {"name": "nightly", "resourceVersion": ""},
            "spec": {
                "schedulePolicy": {
                    "timeSpec": "R5/T01:00:00/PT01", "timeZone": "Europe/Berlin", "allowConcurrent": false,
                    "execTimeout": "1m40s", "maxRestart": 2, "skipOutdated": true, "concurrency": "Replace",
                    "catchUpWindow": "1h", "jitter": "30s", "startingDeadline": "10m",
                },
                "selector": {"name": "myjob"},
                "template": {"metadata": {"labels": {"name": "myjob"}}, "spec": {"container": {"command": ["true"]}}},
                "templateRef": {"name": "t"},
                "jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"priority": 1}},
                "suspend": true,
                "triggers": [
                    {"on": {"kind": "Job", "name": "build", "outcome": "Failed"}},
                    {"on": {"kind": "Task", "selector": {"a": "b"}, "outcome": "Completed"}},
                ],
                "backfills": [
                    {"name": "b", "from": "2026-01-01T00:00:00Z", "to": "2026-02-01T00:00:00Z", "maxActive": 2},
                ],
                "successfulHistoryLimit": 3,
                "failedHistoryLimit": 1,
            },
        });
        let schedule: Schedule = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&schedule).unwrap(), example);
    }

    #[test]
    fn a_trigger_of_kubectl_is_read_though_its_key_became_true() {
        let trigger: Trigger =
            serde_json::from_value(json!({"true": {"kind": "Task", "name": "a"}})).unwrap();
        assert_eq!(trigger.on.name, "a");
    }

    #[test]
    fn runs_do_not_overlap_and_only_the_latest_is_made_up_for_unless_told_otherwise() {
        let read = |json| {
            let policy = serde_json::from_value::<SchedulePolicy>(json).unwrap();
            (policy.concurrency(), policy.skips_outdated())
        };
        assert_eq!(read(json!({})), (Concurrency::Forbid, true));
        assert_eq!(read(json!({"allowConcurrent": true})), (Concurrency::Allow, true));
        assert_eq!(read(json!({"skipOutdated": false})), (Concurrency::Forbid, false));
        assert_eq!(read(json!({"concurrency": "Queue"})), (Concurrency::Queue, false));
    }
}
