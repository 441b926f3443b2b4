//! What the engine must know of every stored task, read from its JSON without the rest: there may be a million of them.

use std::borrow::Cow;
use std::sync::Arc;

use muster_types::container::Resources;
use muster_types::metadata::StringMap;
use muster_types::task::{Policy, Runtime, Ttl};
use muster_types::task_status::{FIRST_ATTEMPT, Stopping};
use muster_types::{Duration, JsonText, MilliTimestamp, State, Task, Timestamp};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::progress::highest_attempt;
use crate::reap::{Life, Times};
use crate::view::{TaskView, describe_placement, need_of, parse_uid, state_of};

/// A task in brief.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brief {
    /// As the board sees it.
    pub view: TaskView,
    /// Its times.
    pub life: Life,
    /// Number of its attempt.
    pub attempt: u32,
    /// Number of the attempt that began last.
    pub attempts: u32,
    /// The user asked for it to be canceled.
    pub cancel: bool,
    /// It is being deleted.
    pub deleting: bool,
    /// Its attempt was told to end, and it ends with it.
    pub ending: bool,
    /// It waits for the user, or did so when it was made.
    pub suspended: bool,
    /// Time its attempts have to end.
    pub kill_timeout: Option<Duration>,
    /// It cannot be deleted before its attempt has ended.
    pub held: bool,
}

impl Brief {
    /// Reads a stored task. `None` if it cannot be read.
    pub fn read(json: &[u8], path: Arc<str>) -> Option<Self> {
        let task: Stored<'_> = serde_json::from_slice(json).ok()?;
        let (metadata, spec, status) = (task.metadata, task.spec, task.status);
        if spec.names_robots() {
            // What is asked of a robot is in many fields, and there are never a million of those.
            return Self::of(&Task::from_json(json).ok()?, path);
        }
        let state = State::of(status.state, spec.suspend);
        let second = |time: Option<Timestamp>| time.map(Timestamp::as_second);
        let created = second(metadata.creation_timestamp).unwrap_or(0);
        let times = Times {
            created: metadata.creation_timestamp,
            submitted: status.submitted,
            back: status.attempts.last().and_then(|attempt| attempt.finished_at),
            started: status.started,
            terminated: status.terminated,
        };
        let subject = spec.subject.map_or_else(String::new, |it| format!("{}/{}", it.kind, it.name));
        let view = TaskView {
            uid: parse_uid(&metadata.uid)?,
            path,
            state,
            since: second(status.state_since).unwrap_or(created),
            priority: spec.priority,
            kind: spec.kind.into_owned(),
            addon: spec.addon.into_owned(),
            subject,
            runtime: spec.runtime,
            need: need_of(&spec.resources),
            isolated: spec.policy.isolated,
            preempt_enabled: spec.policy.preempt_enabled,
            preempt_exempt: spec.policy.preempt_exempt,
            stopping: status.stopping.is_some(),
            deleted: metadata.deletion_timestamp.is_some(),
            prefetched: status.prefetched,
            is_first: status.attempt == 0,
            rest_until: second(status.rest_until).unwrap_or(0),
            demand: None,
            placement: describe_placement(
                spec.runtime,
                spec.pod.as_ref(),
                spec.container.iter().chain(&spec.containers).map(|container| &container.resources),
            ),
            robot: None,
            awaited: None,
        };
        let life = Life::new(state, &times, spec.ttl, status.released.is_some(), status.expired);
        Some(Self {
            view,
            life,
            attempt: if status.prefetched { FIRST_ATTEMPT } else { status.attempt },
            // Only attempts on robots can come back.
            attempts: if status.prefetched { FIRST_ATTEMPT } else { status.attempt },
            cancel: spec.cancel,
            deleting: metadata.deletion_timestamp.is_some(),
            ending: status.stopping.is_some_and(Stopping::ends_task),
            suspended: spec.suspend,
            kill_timeout: spec.kill_timeout,
            held: metadata.finalizers.iter().any(|name| is_attempt_finalizer(name)),
        })
    }

    /// The same of a task that is at hand.
    pub fn of(task: &Task, path: Arc<str>) -> Option<Self> {
        Some(Self {
            view: TaskView::of(task, path)?,
            life: Life::of(task),
            attempt: task.status.current_attempt(),
            attempts: highest_attempt(&task.status).max(task.status.current_attempt()),
            cancel: task.spec.cancel,
            deleting: task.metadata.deletion_timestamp.is_some(),
            ending: task.status.stopping.is_some_and(Stopping::ends_task),
            suspended: task.spec.suspend,
            kill_timeout: task.spec.kill_timeout,
            held: is_held(task),
        })
    }

    /// True if it has an attempt that has not ended, or one that waits at its executor.
    pub fn has_attempt(&self) -> bool {
        self.view.prefetched || matches!(self.view.state, State::Pending | State::Running)
    }
}

/// The finalizer of a task that is not deleted before its attempt has ended: what waits for the task waits for its programs.
pub fn attempt_finalizer(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Process => "muster.dev/process",
        Runtime::Pod => "muster.dev/pod",
        Runtime::Robot => "muster.dev/robot",
    }
}

fn is_attempt_finalizer(name: &str) -> bool {
    Runtime::ALL.iter().any(|runtime| attempt_finalizer(*runtime) == name)
}

/// Keeps a task whose attempt begins from being deleted before that has ended, if it outlives the server: the next server must know
/// of it.
pub fn hold_for_attempt(task: &mut Task, runtime: Runtime) {
    if runtime != Runtime::Process {
        hold(task, runtime);
    }
}

/// Keeps a task that is to be deleted until its attempt has ended. One that waits at its executor may run already.
pub fn hold_deleted(task: &mut Task) {
    if has_attempt(task) && !is_held(task) {
        hold(task, Runtime::Process);
    }
}

fn hold(task: &mut Task, runtime: Runtime) {
    let name = attempt_finalizer(runtime);
    if task.metadata.finalizers.iter().all(|it| it != name) {
        task.metadata.finalizers.push(name.to_owned());
    }
}

/// Lets a task be deleted whose attempt has ended.
pub fn let_go_of_attempt(task: &mut Task) {
    task.metadata.finalizers.retain(|name| !is_attempt_finalizer(name));
}

/// True if a task cannot be deleted before its attempt has ended.
pub fn is_held(task: &Task) -> bool {
    task.metadata.finalizers.iter().any(|name| is_attempt_finalizer(name))
}

/// True if a task has an attempt that has not ended, or one that waits at its executor.
pub fn has_attempt(task: &Task) -> bool {
    task.status.prefetched || matches!(state_of(task), State::Pending | State::Running)
}

#[derive(Deserialize)]
struct Stored<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow, default)]
    spec: Spec<'a>,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<Timestamp>,
    #[serde(borrow, default)]
    finalizers: Vec<Cow<'a, str>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    addon: Cow<'a, str>,
    #[serde(borrow)]
    subject: Option<Subject<'a>>,
    priority: Option<i32>,
    policy: Policy,
    ttl: Ttl,
    suspend: bool,
    cancel: bool,
    kill_timeout: Option<Duration>,
    runtime: Option<Runtime>,
    robot_selector: StringMap,
    #[serde(borrow)]
    target_robot: Cow<'a, str>,
    constraints: Vec<IgnoredAny>,
    resources: Resources,
    container: Option<ContainerSize>,
    containers: Vec<ContainerSize>,
    pod: Option<Value>,
}

/// What a container is given.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ContainerSize {
    resources: Resources,
}

impl Spec<'_> {
    fn names_robots(&self) -> bool {
        let names = !self.robot_selector.is_empty() || !self.target_robot.is_empty();
        self.runtime.map_or(names || !self.constraints.is_empty(), |runtime| runtime == Runtime::Robot)
    }
}

#[derive(Deserialize)]
struct Subject<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    state: Option<State>,
    state_since: Option<Timestamp>,
    rest_until: Option<Timestamp>,
    stopping: Option<Stopping>,
    attempt: u32,
    prefetched: bool,
    attempts: Vec<Attempt>,
    started: Option<MilliTimestamp>,
    terminated: Option<MilliTimestamp>,
    submitted: Option<Timestamp>,
    released: Option<Timestamp>,
    expired: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attempt {
    finished_at: Option<MilliTimestamp>,
}
