//! What the judge reads of a task. It has its own idea of the JSON, so that a mistake of the types is no mistake of both.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A task as it was committed, and when the judge saw what of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Task {
    pub metadata: Metadata,
    pub spec: Spec,
    pub status: Status,
    /// When it came to the queue, or back to it, by the steady clock.
    #[serde(skip)]
    pub queued_at: i64,
    /// When it was submitted.
    #[serde(skip)]
    pub submitted_at: i64,
    /// When its attempt was committed.
    #[serde(skip)]
    pub attempt_at: i64,
    /// How long before that it was decided at most.
    #[serde(skip)]
    pub attempt_late: i64,
    /// Its attempt was handed over ahead of a free slot: it has a slot of its own only when its program starts.
    #[serde(skip)]
    pub attempt_ahead: bool,
    /// When its own priority was last changed.
    #[serde(skip)]
    pub ranked_at: i64,
    /// The highest effective priority it had when its attempt was committed.
    #[serde(skip)]
    pub attempt_rank: i64,
    /// When its rest is over, by the steady clock.
    #[serde(skip)]
    pub rest_over_at: i64,
    /// When somebody asked for its end: canceled, deleted, or its time was over.
    #[serde(skip)]
    pub unwanted_at: Option<i64>,
    /// It is gone; its programs may still run.
    #[serde(skip)]
    pub gone: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    pub generation: i64,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub owner_references: Vec<Owner>,
    pub deletion_timestamp: Option<String>,
    pub finalizers: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Owner {
    pub kind: String,
    pub name: String,
    pub uid: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Spec {
    pub kind: String,
    pub addon: String,
    pub subject: Option<Subject>,
    pub priority: Option<i64>,
    pub policy: Policy,
    pub suspend: bool,
    pub cancel: bool,
    pub runtime: Option<String>,
    /// What it asks of its pod.
    pub pod: serde_json::Value,
    pub robot_selector: BTreeMap<String, String>,
    pub target_robot: String,
    pub resources: Resources,
    pub retry: Retry,
    pub restart: Option<Tries>,
    pub reschedule: Option<Tries>,
    pub affinity: Option<serde::de::IgnoredAny>,
    pub constraints: Vec<serde::de::IgnoredAny>,
    pub ttl: BTreeMap<String, serde_json::Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub struct Subject {
    pub kind: String,
    pub name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Policy {
    pub isolated: bool,
    pub preempt_enabled: bool,
    pub preempt_exempt: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Resources {
    pub memory: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Retry {
    pub limit: Option<u64>,
}

/// How often something is done again, `restart` or `reschedule`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Tries {
    pub attempts: u64,
    pub interval: Option<serde::de::IgnoredAny>,
    pub unlimited: bool,
    pub mode: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Status {
    pub state: Option<String>,
    pub attempt: u32,
    pub attempts: Vec<Attempt>,
    pub state_since: Option<String>,
    pub rest_until: Option<String>,
    pub stopping: Option<String>,
    pub prefetched: bool,
    pub waiting_for: WaitingFor,
    pub original: Option<u32>,
    pub refusals: Refusals,
    pub expired: bool,
    pub released: Option<String>,
}

/// What a task waits for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct WaitingFor {
    pub reason: String,
}

/// Which attempt a quota refused last.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct Refusals {
    pub attempt: u32,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Attempt {
    pub number: u32,
    pub robot: String,
    pub finished_at: Option<String>,
    pub exit_code: Option<i32>,
    pub reason: String,
}

/// States in which a task waits for its turn.
const QUEUED: [&str; 3] = ["Ready", "Postponed", "QuotaBlocked"];

impl Task {
    /// Where it is in its life.
    pub fn state(&self) -> &str {
        match &self.status.state {
            Some(state) => state,
            None if self.spec.suspend => "Created",
            None => "Ready",
        }
    }

    /// It never changes again.
    pub fn is_over(&self) -> bool {
        matches!(self.state(), "Succeeded" | "Failed" | "Canceled")
    }

    /// It waits for its turn.
    pub fn is_queued(&self) -> bool {
        QUEUED.contains(&self.state()) && !self.gone
    }

    /// It has an attempt.
    pub fn is_active(&self) -> bool {
        matches!(self.state(), "Pending" | "Running") && !self.gone
    }

    /// It was submitted and has not ended.
    pub fn is_submitted(&self) -> bool {
        self.is_queued() || self.is_active()
    }

    /// Somebody asked for its end.
    pub fn is_unwanted(&self) -> bool {
        self.gone || self.spec.cancel || self.status.expired || self.metadata.deletion_timestamp.is_some()
    }

    /// Where its attempts run.
    pub fn runtime(&self) -> &str {
        let names_robots = !self.spec.robot_selector.is_empty() || !self.spec.target_robot.is_empty();
        match &self.spec.runtime {
            Some(runtime) => runtime,
            None if names_robots => "robot",
            None => "process",
        }
    }

    /// Memory it is given.
    pub fn memory(&self) -> u64 {
        self.spec.resources.memory.as_deref().map_or(0, bytes)
    }

    /// What at most one runs of at a time; `None` if it is free.
    pub fn unique_key(&self) -> Option<(&str, &Subject, &str)> {
        let sort = if self.spec.kind.is_empty() { &self.spec.addon } else { &self.spec.kind };
        let subject = self.spec.subject.as_ref()?;
        (!sort.is_empty()).then_some((self.metadata.namespace.as_str(), subject, sort.as_str()))
    }

    /// How long it is to rest, in milliseconds.
    pub fn rest(&self) -> i64 {
        let time = |time: &Option<String>| time.as_deref().and_then(millis);
        match (time(&self.status.state_since), time(&self.status.rest_until)) {
            (Some(since), Some(until)) => until - since,
            _ => 0,
        }
    }

    /// The attempt with a number, if it is still listed.
    pub fn attempt(&self, number: u32) -> Option<&Attempt> {
        self.status.attempts.iter().find(|attempt| attempt.number == number)
    }
}

/// A quantity in bytes.
fn bytes(quantity: &str) -> u64 {
    let digits = quantity.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().unwrap_or(0);
    let factor = match &quantity[digits.len()..] {
        "k" => 1000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => 1,
    };
    number.saturating_mul(factor)
}

/// A time of an object, in milliseconds since 1970.
pub fn millis(time: &str) -> Option<i64> {
    time.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}
