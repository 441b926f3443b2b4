//! What the board needs to know of a task, and nothing more: there may be a million of them.

use std::sync::Arc;

use muster_types::container::Resources;
use muster_types::placement::Demand;
use muster_types::task::Runtime;
use muster_types::{State, Task, TaskSpec, TaskStatus, Timestamp};
use serde_json::Value;

use crate::progress::highest_attempt;

/// A task as the board sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskView {
    /// Unique over all time; grows with time of creation, so it is also the age.
    pub uid: u128,
    /// `namespace/name`.
    pub path: Arc<str>,
    /// Where in its life it is.
    pub state: State,
    /// Since when, in seconds.
    pub since: i64,
    /// The priority that was asked for.
    pub priority: Option<i32>,
    /// Its TaskKind; empty if it has none.
    pub kind: String,
    /// Its addon, if it names one.
    pub addon: String,
    /// `kind/name` of what it is about; empty if it is about nothing.
    pub subject: String,
    /// Where it runs; `None` is the server's default.
    pub runtime: Option<Runtime>,
    /// What it needs while it runs.
    pub need: Need,
    /// Runs alone.
    pub isolated: bool,
    /// May take the place of others.
    pub preempt_enabled: bool,
    /// Gives its place to nobody.
    pub preempt_exempt: bool,
    /// Its attempt was told to end.
    pub stopping: bool,
    /// It is deleted, and its attempt may not have ended.
    pub deleted: bool,
    /// Its first attempt waits at the executor ahead of a free slot.
    pub prefetched: bool,
    /// It has had no attempt yet.
    pub is_first: bool,
    /// It rests until then, in seconds, because it was preempted or must be tried again later.
    pub rest_until: i64,
    /// What it asks of a robot, if it runs on one.
    pub demand: Option<Arc<Demand>>,
    /// What it asks of a node besides its resources, if it may run as a pod; empty if nothing.
    pub placement: String,
    /// The robot of its attempt, if it has one that has not ended.
    pub robot: Option<Arc<str>>,
    /// The robot of an attempt that counted as lost and may come back.
    pub awaited: Option<Arc<str>>,
}

/// What a task needs while it runs, besides a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Need {
    /// Thousandths of a core.
    pub cpu_millis: u64,
    /// Bytes.
    pub memory: u64,
}

impl TaskView {
    /// Reads a task. `None` if its uid is not one of ours.
    pub fn of(task: &Task, path: Arc<str>) -> Option<Self> {
        let spec = &task.spec;
        Some(Self {
            uid: parse_uid(&task.metadata.uid)?,
            path,
            state: state_of(task),
            since: since(&task.status, task.metadata.creation_timestamp),
            priority: spec.priority,
            kind: spec.kind.clone(),
            addon: spec.addon.clone(),
            subject: spec.subject.as_ref().map_or_else(String::new, |it| format!("{}/{}", it.kind, it.name)),
            runtime: spec.stated_runtime(),
            need: need_of(&spec.resources),
            isolated: spec.policy.isolated,
            preempt_enabled: spec.policy.preempt_enabled,
            preempt_exempt: spec.policy.preempt_exempt,
            stopping: task.status.stopping.is_some(),
            deleted: task.metadata.deletion_timestamp.is_some(),
            prefetched: task.status.prefetched,
            is_first: highest_attempt(&task.status) == 0,
            rest_until: task.status.rest_until.map_or(0, Timestamp::as_second),
            demand: demand_of(task),
            placement: placement_of(spec),
            robot: robot_of(task),
            awaited: awaited_robot(task),
        })
    }

    /// The task as it counts if it was written by a clock that was ahead and was set right since: from now on, resting for as
    /// long as it was to rest. `None` if nothing of it lies ahead.
    pub fn not_ahead_of(&self, now: i64) -> Option<Self> {
        let rest = (self.rest_until - self.since).max(0);
        let rest_until = if self.rest_until > 0 { now + rest } else { 0 };
        (self.since > now).then(|| Self { since: now, rest_until, ..self.clone() })
    }
}

/// What of `spec.pod` a cluster's scheduler goes by.
const PLACING: [&str; 11] = [
    "nodeSelector",
    "nodeName",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "schedulerName",
    "runtimeClassName",
    "priorityClassName",
    "resourceClaims",
    "hostNetwork",
    "volumes",
];

fn placement_of(spec: &TaskSpec) -> String {
    let containers = spec.container.iter().chain(&spec.containers).map(|container| &container.resources);
    describe_placement(spec.stated_runtime(), spec.pod.as_ref(), containers)
}

/// What a task asks of a node besides its resources, as a text that is the same for what is alike.
pub(crate) fn describe_placement<'a>(
    runtime: Option<Runtime>,
    pod: Option<&Value>,
    containers: impl Iterator<Item = &'a Resources>,
) -> String {
    let mut text = String::new();
    if runtime.is_some_and(|runtime| runtime != Runtime::Pod) {
        return text;
    }
    for (field, value) in PLACING.iter().filter_map(|field| Some((field, pod?.get(field)?))) {
        text += &format!("{field}={value};");
    }
    for (index, resources) in containers.enumerate().filter(|(_, it)| **it != Resources::default()) {
        let need = need_of(resources);
        text += &format!("{index}:{}m/{};", need.cpu_millis, need.memory);
    }
    text
}

/// What a task asks of a robot; nothing if it does not run on one.
fn demand_of(task: &Task) -> Option<Arc<Demand>> {
    let group = task.metadata.labels.get(GROUP_LABEL).cloned().unwrap_or_default();
    demand(&task.spec, &task.metadata.namespace, group)
}

/// The label that names the group of a task.
const GROUP_LABEL: &str = "muster.dev/group";

fn demand(spec: &TaskSpec, namespace: &str, group: String) -> Option<Arc<Demand>> {
    if spec.stated_runtime() != Some(Runtime::Robot) {
        return None;
    }
    let need = need_of(&spec.resources);
    Some(Arc::new(Demand {
        namespace: namespace.to_owned(),
        selector: spec.robot_selector.clone(),
        target: spec.target_robot.clone(),
        constraints: spec.constraints.clone(),
        affinity: spec.affinity.clone().unwrap_or_default(),
        group,
        cpu_millis: need.cpu_millis,
        memory: need.memory,
    }))
}

/// The robot of the attempt of a task.
pub fn robot_of(task: &Task) -> Option<Arc<str>> {
    let active = matches!(state_of(task), State::Pending | State::Running);
    let attempt = task.status.attempts.last().filter(|attempt| active && !attempt.robot.is_empty())?;
    Some(attempt.robot.as_str().into())
}

/// The attempt of a task besides its own: one that counted as lost and may come back, or one that is leaving.
pub fn other_attempt(task: &Task) -> Option<u32> {
    task.status.original.or(task.status.leaving).filter(|_| !state_of(task).is_terminal())
}

/// The robot of the other attempt of a task.
pub fn awaited_robot(task: &Task) -> Option<Arc<str>> {
    let other = other_attempt(task)?;
    let attempt = task.status.attempts.iter().find(|attempt| attempt.number == other)?;
    Some(attempt.robot.as_str().into())
}

/// The state of a task.
pub fn state_of(task: &Task) -> State {
    task.state()
}

fn since(status: &TaskStatus, created: Option<Timestamp>) -> i64 {
    let changed = status.state_since.or(created);
    changed.map_or(0, Timestamp::as_second)
}

pub(crate) fn need_of(resources: &Resources) -> Need {
    let cpu = resources.cpu.as_ref().map_or(0, |cpu| u64::try_from(cpu.milli()).unwrap_or(u64::MAX));
    let memory = resources.memory.as_ref().map_or(0, muster_types::Quantity::value);
    Need { cpu_millis: cpu, memory }
}

/// A uuid as a number.
pub fn parse_uid(text: &str) -> Option<u128> {
    let mut value: u128 = 0;
    let mut digits = 0;
    for character in text.chars().filter(|character| *character != '-') {
        value = value.checked_mul(16)?.checked_add(u128::from(character.to_digit(16)?))?;
        digits += 1;
    }
    (digits == 32).then_some(value)
}
