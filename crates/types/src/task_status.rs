//! What is reported about a Task: its state, its attempts, and what happened to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::Condition;
use crate::metadata::{is_default, null_is_default};
use crate::task::Runtime;
use crate::timestamp::{MilliTimestamp, Timestamp};

words! {
    /// Where a task is in its life. Succeeded, Failed and Canceled are final.
    #[derive(Default)]
    pub enum State {
        /// Made but not submitted.
        #[default]
        Created = "Created",
        /// Submitted; may be started.
        Ready = "Ready",
        /// A rule holds it back.
        Postponed = "Postponed",
        /// A quota refused it; it is tried again.
        QuotaBlocked = "QuotaBlocked",
        /// An attempt was created and does not run yet.
        Pending = "Pending",
        /// An attempt runs.
        Running = "Running",
        /// It ended well.
        Succeeded = "Succeeded",
        /// It ended badly.
        Failed = "Failed",
        /// It was ended on request.
        Canceled = "Canceled",
    }
}

impl State {
    /// The state in which a task begins: Created if it is suspended, else Ready.
    pub const fn initial(suspend: bool) -> Self {
        if suspend { Self::Created } else { Self::Ready }
    }

    /// The state of a task of which `recorded` is stored. New tasks are stored with their state; tasks that an older version
    /// stored have none before their first change, and are where they begin.
    pub const fn of(recorded: Option<Self>, suspend: bool) -> Self {
        match recorded {
            Some(state) => state,
            None => Self::initial(suspend),
        }
    }

    /// True for states that never change again.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed | Self::Canceled => true,
            Self::Created
            | Self::Ready
            | Self::Postponed
            | Self::QuotaBlocked
            | Self::Pending
            | Self::Running => false,
        }
    }
}

/// Number of the first attempt, the only one that is handed to an executor ahead of a free slot.
pub const FIRST_ATTEMPT: u32 = 1;

impl TaskStatus {
    /// Number of the attempt that is the task's, also while it waits at its executor; 0 before there is one.
    pub fn current_attempt(&self) -> u32 {
        if self.prefetched { FIRST_ATTEMPT } else { self.attempt }
    }
}

/// What was observed of the task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskStatus {
    /// Where the task is in its life.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Since when it is in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_since: Option<Timestamp>,
    /// Since when a quota of the executor refuses it, however often it was tried since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_since: Option<Timestamp>,
    /// It is not started before this time: it was preempted, or is to be tried again later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest_until: Option<Timestamp>,
    /// Why the attempt was told to end; the task keeps its place until it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopping: Option<Stopping>,
    /// Number of the latest attempt; absent before the first.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub attempt: u32,
    /// True while the first attempt waits at its executor ahead of a free slot: it may be taken back until its program runs, and
    /// the task keeps its state until then.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub prefetched: bool,
    /// How often that was so, until the attempt begins: what is heard of an earlier time is too late.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub prefetches: u32,
    /// The latest attempts, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub attempts: Vec<Attempt>,
    /// What happens now, in a sentence.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub message: String,
    /// When the program of the latest attempt was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<MilliTimestamp>,
    /// When the task ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminated: Option<MilliTimestamp>,
    /// When a task that was made suspended was submitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted: Option<Timestamp>,
    /// When the files of the task were let go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub released: Option<Timestamp>,
    /// True if the task was in its state for longer than its ttl allows; it is deleted next.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub expired: bool,
    /// Namespace and name of the latest attempt's pod.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub pod: String,
    /// How often an attempt had to be made again; waiting for quota does not count.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub retries: u32,
    /// How often the executor of an attempt was lost.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub lost: u32,
    /// What the restart and reschedule policies have counted; absent if there are none or nothing failed yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveryCount>,
    /// How often a quota refused an attempt that is still to be made; it keeps its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusals: Option<QuotaRefusals>,
    /// Number of an attempt that counted as lost and is the task's again if its robot comes back before the next one has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original: Option<u32>,
    /// Number of an attempt that was told to end because the one it replaced came back, until it has: the task does not end before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaving: Option<u32>,
    /// Who made the task.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub create_user: String,
    /// Who last changed what is asked for.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub update_user: String,
    /// What went wrong. A task can succeed and still have errors.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub errors: Vec<TaskError>,
    /// What happened to the task, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub events: Vec<Record>,
    /// What the addon says it does, line by line.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub activity: Vec<String>,
    /// How many steps the addon expects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// How many steps the addon has done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<u64>,
    /// Any document the addon reports as its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Place of the last report that was taken, so that older ones change nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report_sequence: Option<ReportSequence>,
    /// Files kept with the task, such as logs.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub attached: Vec<Attachment>,
    /// What the task waits for; absent if nothing holds it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
    /// Aspects of the task's state, each type once.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

words! {
    /// Why an attempt was told to end.
    pub enum Stopping {
        /// The user no longer wants the task.
        Canceled = "Canceled",
        /// A task of higher priority takes its place.
        Preempted = "Preempted",
        /// It is isolated, no node takes its pod, and other tasks wait.
        Unschedulable = "Unschedulable",
        /// The task was in its state for longer than its ttl allows.
        Expired = "Expired",
        /// The task is being deleted.
        Deleted = "Deleted",
    }
}

impl Stopping {
    /// True if the task ends with its attempt; one that was preempted or found no node goes back to the queue.
    pub fn ends_task(self) -> bool {
        match self {
            Self::Canceled | Self::Expired | Self::Deleted => true,
            Self::Preempted | Self::Unschedulable => false,
        }
    }
}

/// One try at the task on one executor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Attempt {
    /// Number of the attempt, counted from 1.
    #[serde(deserialize_with = "null_is_default")]
    pub number: u32,
    /// Where it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
    /// Name of the pod, process or dispatch.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub handle: String,
    /// Name of the robot it ran on.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub robot: String,
    /// When its program was started; absent if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<MilliTimestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<MilliTimestamp>,
    /// Exit code of the leading container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Number of the signal that ended the leading container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why it ended, in one CamelCase word.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub reason: String,
}

/// What the restart and reschedule policies have counted, over all attempts and not only those that the status shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RecoveryCount {
    /// Attempts that failed since the task was last rescheduled.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub failures: u32,
    /// When the latest of them failed, oldest first; kept if the restart policy has an interval.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub failed_at: Vec<Timestamp>,
    /// How often the task was rescheduled.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub reschedules: u32,
    /// When it was rescheduled lately, oldest first; kept if the reschedule policy has an interval.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub rescheduled_at: Vec<Timestamp>,
}

/// How often a quota of the executor refused an attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct QuotaRefusals {
    /// Number of the attempt.
    pub attempt: u32,
    /// How often it was refused.
    pub count: u32,
}

/// Something that went wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TaskError {
    /// How bad it is, for example Error or Warning.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub severity: String,
    /// Who reports it, in parentheses, and what went wrong.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub description: String,
}

/// Something that happened to a task, once or several times in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// What happened.
    pub kind: RecordKind,
    /// How often it happened for the same reason.
    pub count: u32,
    /// Why it happened.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub reason: String,
    /// When it last happened.
    pub last: Timestamp,
}

words! {
    /// What can happen to a task. Attempts on processes and robots use the same words as pods.
    pub enum RecordKind {
        /// An addon was chosen.
        AddonSelected = "AddonSelected",
        /// An extension was chosen.
        ExtensionSelected = "ExtensionSelected",
        /// The image cannot be used.
        ImageError = "ImageError",
        /// The attempt vanished.
        PodNotFound = "PodNotFound",
        /// The attempt was created.
        PodCreated = "PodCreated",
        /// The attempt waits to run.
        PodPending = "PodPending",
        /// The attempt runs.
        PodRunning = "PodRunning",
        /// The attempt was stopped for a task of higher priority.
        Preempted = "Preempted",
        /// The attempt ended well.
        PodSucceeded = "PodSucceeded",
        /// The attempt ended badly.
        PodFailed = "PodFailed",
        /// The attempt was deleted.
        PodDeleted = "PodDeleted",
        /// The priority was raised because another task depends on this one.
        Escalated = "Escalated",
        /// The files of the task were let go.
        Released = "Released",
        /// A container that outlived the leading one was stopped.
        ContainerKilled = "ContainerKilled",
        /// A rule held the task back.
        Postponed = "Postponed",
        /// A quota refused the task.
        QuotaBlocked = "QuotaBlocked",
        /// The task was canceled.
        Canceled = "Canceled",
        /// The attempt ran longer than its timeout.
        Timeout = "Timeout",
    }
}

/// Place of a report among those of its attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReportSequence {
    /// The attempt that reported.
    pub attempt: u32,
    /// The number it gave the report.
    pub sequence: u64,
}

/// A file kept with the task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// Name of the file.
    pub name: String,
    /// Size in bytes.
    #[serde(default, deserialize_with = "null_is_default")]
    pub size: u64,
    /// Line of the activity the file belongs to, counted from 1; absent if to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<u32>,
}

/// What a task waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WaitingFor {
    /// The rule that holds the task back, in one CamelCase word such as Dependency.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub reason: String,
    /// What must happen first, in a sentence.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub message: String,
    /// `namespace/name` of the task that must end first, if it is one.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub task: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn states_and_records_are_the_words_of_the_design() {
        let words: Vec<_> = State::ALL.iter().map(|state| state.as_str()).collect();
        assert_eq!(
            words.join(" "),
            "Created Ready Postponed QuotaBlocked Pending Running Succeeded Failed Canceled"
        );
        let words: Vec<_> = RecordKind::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(
            words.join(" "),
            "AddonSelected ExtensionSelected ImageError PodNotFound PodCreated PodPending PodRunning Preempted \
             PodSucceeded PodFailed PodDeleted Escalated Released ContainerKilled Postponed QuotaBlocked Canceled Timeout"
        );
    }

    #[test]
    fn three_states_are_final() {
        let terminal: Vec<_> = State::ALL.iter().filter(|state| state.is_terminal()).collect();
        assert_eq!(terminal, [&State::Succeeded, &State::Failed, &State::Canceled]);
    }

    #[test]
    fn every_field_reads_and_writes_back() {
        let example = json!({
            "state": "Running",
            "attempt": 2,
            "attempts": [{
                "number": 1, "runtime": "robot", "handle": "a-1", "robot": "r1", "startedAt": "2026-11-15T14:00:00.000Z",
                "finishedAt": "2026-11-15T14:01:00.123Z", "exitCode": 137, "signal": 9, "reason": "Killed",
            }],
            "message": "Dispatching to r1",
            "started": "2026-11-15T14:00:00.000Z",
            "terminated": "2026-11-15T14:01:00.123Z",
            "pod": "default/a-1",
            "retries": 1,
            "recovery": {
                "failures": 2, "failedAt": ["2026-11-15T14:00:00Z"],
                "reschedules": 1, "rescheduledAt": ["2026-11-15T14:00:00Z"],
            },
            "refusals": {"attempt": 2, "count": 3},
            "createUser": "ada",
            "updateUser": "bob",
            "errors": [{"severity": "Error", "description": "(addon) no such file"}],
            "events": [{"kind": "PodCreated", "count": 1, "reason": "a-1", "last": "2026-11-15T14:00:00Z"}],
            "activity": ["reading"],
            "total": 100,
            "completed": 42,
            "result": {"any": "document"},
            "reportSequence": {"attempt": 2, "sequence": 7},
            "attached": [{"name": "addon.log", "size": 12, "activity": 1}],
            "waitingFor": {"reason": "Dependency", "message": "task analyze-7 must complete first"},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-15T14:00:00Z"}],
        });
        let status: TaskStatus = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(status.state, Some(State::Running));
        assert_eq!(serde_json::to_value(&status).unwrap(), example);
    }

    #[test]
    fn nothing_reported_is_nothing_stored() {
        assert_eq!(serde_json::to_string(&TaskStatus::default()).unwrap(), "{}");
        assert_eq!(TaskStatus::default().state, None);
    }
}
