//! Jobs of a Kubernetes cluster: what is told of one, given what was told before.
//!
//! Implements seed 004 with what it means: `running` when a container really ran for the first time, `retry` when one runs after
//! another failed, `success` and `failed` by the conditions Complete and Failed alone, each once. A suspended job is not
//! starting. What was told is remembered outside, so that a list after a gap gives exactly what was missed.

use std::sync::Arc;

use muster_types::Message;
use serde::{Deserialize, Serialize};

use crate::cds;
use crate::step::{Cds, Subject, Unique};

/// A job as the cluster shows it, with what its pods show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenJob {
    /// Its uid.
    pub uid: String,
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// It was told not to run.
    pub suspended: bool,
    /// Pods that failed.
    pub failed: u32,
    /// Pods that succeeded.
    pub succeeded: u32,
    /// A container of one of its pods runs, or has run.
    pub has_run: bool,
    /// A container of one of its pods runs now.
    pub runs: bool,
    /// How it ended.
    pub end: Option<JobEnd>,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEnd {
    /// Its condition Complete is true.
    Complete,
    /// Its condition Failed is true, for this reason.
    Failed(String),
}

/// What was told of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Told {
    /// That it starts.
    pub starting: bool,
    /// That it runs.
    pub running: bool,
    /// That it runs again, after this many pods failed.
    pub retry: u32,
    /// That it ended.
    pub ended: bool,
}

/// The messages that are due, in order, and what was told when they were.
pub fn tell(told: &Told, job: &SeenJob) -> (Vec<Message>, Told) {
    let mut now = told.clone();
    let mut due = Vec::new();
    let mut push = |word, unique, retry_count, failure_reason| {
        due.push(Cds { word, unique, retry_count, failure_reason });
    };
    if told.ended {
        return (Vec::new(), now);
    }
    let begun = !job.suspended || job.has_run || job.end.is_some();
    if begun && !told.starting {
        push("starting", Unique::Once, 0, None);
        now.starting = true;
    }
    if (job.has_run || job.succeeded > 0) && !told.running {
        push("running", Unique::Once, 0, None);
        now.running = true;
    }
    if job.runs && job.failed > told.retry && job.end.is_none() {
        push("retry", Unique::Count(job.failed.into()), job.failed, None);
        now.retry = job.failed;
    }
    match &job.end {
        Some(JobEnd::Complete) => push("success", Unique::Once, job.failed, None),
        Some(JobEnd::Failed(reason)) => push("failed", Unique::Once, job.failed, Some(reason.clone())),
        None => {}
    }
    now.ended = job.end.is_some();
    let subject = Subject {
        api_version: "batch/v1".to_owned(),
        kind: "Job".to_owned(),
        plural: "jobs".to_owned(),
        namespace: job.namespace.clone(),
        name: job.name.clone(),
        uid: Arc::from(job.uid.as_str()),
    };
    (due.iter().filter_map(|cds| cds::render(&subject, cds, 0)).collect(), now)
}
