//! One run of a schedule: its name, which follows from what caused it, and the Task or Job it is.

use muster_types::metadata::{Metadata, OwnerReference, StringMap};
use muster_types::schedule::{EmbeddedJob, ScheduleSpec};
use muster_types::task::{Retry, RetryOn};
use muster_types::task_template::{EmbeddedMetadata, EmbeddedTask};
use muster_types::{Duration, Job, Millis, Resource as _, Schedule, Task, Timestamp};

use crate::derived_uid::derived_uid;
use crate::mix::mix;
use crate::trigger::EndedWork;

/// Label with the name of the schedule, if it fits.
pub const SCHEDULE_LABEL: &str = "muster.dev/schedule";
/// Annotation with the time a run was made for.
pub const SCHEDULED_AT: &str = "muster.dev/scheduled-at";
/// Annotation with the name of the backfill that a run was made for.
pub const BACKFILL: &str = "muster.dev/backfill";
/// Annotation of a run of a backfill that was canceled for another run, with the name of that: its time is made again.
pub const REPLACED_BY: &str = "muster.dev/replaced-by";
/// Annotation with the work that triggered a run.
pub const TRIGGERED_BY: &str = "muster.dev/triggered-by";
/// Annotation with how many runs triggered each other until this one.
pub const TRIGGER_DEPTH: &str = "muster.dev/trigger-depth";
/// Who makes runs.
const MAKER: &str = "system:muster:schedules";
/// Longest name.
const MAX_NAME: usize = 253;

/// Why a run is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// An occurrence.
    Time(Timestamp),
    /// An occurrence that has passed.
    Backfill {
        /// The occurrence.
        time: Timestamp,
        /// Name of the backfill that asks for it.
        backfill: String,
    },
    /// Other work ended.
    Trigger {
        /// That work.
        work: EndedWork,
    },
}

impl Cause {
    /// Name of the backfill that a run is made for; empty if it is made for none.
    pub fn backfill(&self) -> &str {
        if let Self::Backfill { backfill, .. } = self { backfill } else { "" }
    }

    /// The time that a run is made for; `None` if the end of other work makes it.
    pub fn time(&self) -> Option<Timestamp> {
        match self {
            Self::Time(time) | Self::Backfill { time, .. } => Some(*time),
            Self::Trigger { .. } => None,
        }
    }

    /// The name of the run. `taken` counts the tries that found it taken by something else.
    pub fn run_name(&self, schedule: &Schedule, taken: u32) -> String {
        let suffix = match self {
            Self::Time(time) | Self::Backfill { time, .. } => {
                time.to_string().replace(['-', ':', 'Z'], "").to_lowercase()
            }
            Self::Trigger { work } => format!("after-{:012x}", mix(&work.uid, 0) >> 16),
        };
        let unlike = if taken == 0 {
            String::new()
        } else {
            format!("-{:05x}", mix(&schedule.metadata.uid, i64::from(taken)) >> 44)
        };
        let room = MAX_NAME - suffix.len() - unlike.len() - 1;
        let name: String = schedule.metadata.name.chars().take(room).collect();
        format!("{}-{suffix}{unlike}", name.trim_end_matches(['-', '.']))
    }

    fn note(&self, annotations: &mut StringMap) {
        match self {
            Self::Time(time) => drop(annotations.insert(SCHEDULED_AT.to_owned(), time.to_string())),
            Self::Backfill { time, backfill } => {
                annotations.insert(SCHEDULED_AT.to_owned(), time.to_string());
                annotations.insert(BACKFILL.to_owned(), backfill.clone());
            }
            Self::Trigger { work } => {
                annotations.insert(TRIGGERED_BY.to_owned(), format!("{} {}", work.kind, work.name));
                annotations.insert(TRIGGER_DEPTH.to_owned(), (work.depth + 1).to_string());
            }
        }
    }
}

/// How many runs triggered each other until this one, as its annotations say.
pub fn depth_of(annotations: &StringMap) -> u32 {
    annotations.get(TRIGGER_DEPTH).and_then(|depth| depth.parse().ok()).unwrap_or(0)
}

/// The task of a run, without what only a server gives it.
pub fn render_task(schedule: &Schedule, template: &EmbeddedTask, cause: Option<&Cause>) -> Task {
    let policy = &schedule.spec.schedule_policy;
    let mut task = Task::default();
    task.metadata = render_metadata(schedule, &template.metadata, cause);
    task.spec.clone_from(&template.spec);
    let spec = &mut task.spec;
    // The outcome is kept with the task; what an attempt leaves is not.
    spec.retention.succeeded.get_or_insert(Duration::from_secs(0));
    spec.retention.failed.get_or_insert(Duration::from_secs(0));
    if let Some(timeout) = policy.exec_timeout.filter(|timeout| !timeout.is_zero()) {
        spec.timeout = Some(timeout);
        if let Some(on) = &mut spec.retry.on {
            on.retain(|on| *on != RetryOn::Timeout);
        }
    }
    if let Some(limit) = policy.max_restart {
        let on = [RetryOn::NonZeroExit, RetryOn::Killed, RetryOn::ExecutorLost, RetryOn::StartFailed];
        let backoff = spec.retry.backoff;
        spec.retry = Retry { limit: Some(limit), on: Some(on.to_vec()), lost_limit: None, backoff };
    }
    task.record_initial_state();
    task
}

/// The job of a run, without what only a server gives it.
pub fn render_job(schedule: &Schedule, template: &EmbeddedJob, cause: Option<&Cause>) -> Job {
    let mut job = Job::default();
    job.metadata = render_metadata(schedule, &template.metadata, cause);
    job.spec.clone_from(&template.spec);
    job
}

/// Gives an object what the server gives to those that users make.
pub fn complete(metadata: &mut Metadata, schedule: &Schedule, now: Millis) {
    metadata.uid = derived_uid(now, &format!("{}/{}", schedule.metadata.uid, metadata.name), 0);
    metadata.creation_timestamp = Some(now.to_timestamp());
    metadata.generation = 1;
}

/// Who made a task of a schedule.
pub fn sign(task: &mut Task) {
    MAKER.clone_into(&mut task.status.create_user);
}

fn render_metadata(schedule: &Schedule, template: &EmbeddedMetadata, cause: Option<&Cause>) -> Metadata {
    let owner = &schedule.metadata;
    let mut labels = template.labels.clone();
    labels.extend(schedule.spec.selector.clone());
    if owner.name.len() <= 63 {
        labels.insert(SCHEDULE_LABEL.to_owned(), owner.name.clone());
    }
    let mut annotations = template.annotations.clone();
    if let Some(cause) = cause {
        cause.note(&mut annotations);
    }
    let reference = OwnerReference {
        api_version: ScheduleSpec::NAMES.api_version(),
        kind: ScheduleSpec::NAMES.kind.to_owned(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    Metadata {
        name: cause.map_or_else(String::new, |cause| cause.run_name(schedule, 0)),
        namespace: owner.namespace.clone(),
        labels,
        annotations,
        owner_references: vec![reference],
        ..Metadata::default()
    }
}
