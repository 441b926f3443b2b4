//! Task: what may be asked for, and how it is shown.

use std::borrow::Cow;
use std::collections::BTreeSet;

use muster_ports::store::{Key, ResourceName, Store};
use muster_tasks::brief::hold_deleted;
use muster_tasks::progress::submit;
use muster_types::name_rules;
use muster_types::task::{Runtime, TaskSpec};
use muster_types::task_group::TaskGroupSpec;
use muster_types::{Resource, State, Task};
use muster_workflows::departure;
use muster_workflows::group_brief::{GroupBrief, group_name_of};
use serde_json::{Value, json};

use super::{container, robots, task_update};
use crate::kind::{Column, FieldOf, Strategy, Writing};
use crate::refusal::Causes;
use crate::status_rules::StatusRule;

/// Conditions of a task are for others than the engine, which neither writes them nor decides by them.
const STATUS_FIELDS: &[&str] = &["conditions"];

/// Where the group is stored that a task is a member of.
pub(crate) fn group_key(task: &Task) -> Option<Key> {
    let groups =
        ResourceName::new(&format!("{}.{}", TaskGroupSpec::NAMES.plural, TaskGroupSpec::NAMES.group));
    Some(Key::new(&groups, &task.metadata.namespace, group_name_of(task)?))
}

impl Strategy for TaskSpec {
    const STATUS: StatusRule = StatusRule::Only(
        STATUS_FIELDS,
        "only the engine writes it; submit a task with spec.suspend=false, cancel it with spec.cancel=true, repeat it with \
         `muster retry`, and report its progress with `muster report` (the subresource report)",
    );

    fn prepare(task: &mut Task, user: &str) {
        user.clone_into(&mut task.status.create_user);
        task.record_initial_state();
    }

    fn prepare_change(old: &Task, new: &mut Task, by: Writing<'_>) {
        if old.spec != new.spec {
            by.user.clone_into(&mut new.status.update_user);
        }
        if old.state() == State::Created && !new.spec.suspend {
            submit(new, by.now.into()).expect("a task that is Created can be submitted");
        }
    }

    fn validate(task: &Task, causes: &mut Causes) {
        validate_spec("spec", &task.spec, causes);
    }

    /// Whatever is wrong with it, it can be canceled.
    fn is_checked_again(old: &Task, new: &Task) -> bool {
        let canceled = TaskSpec { cancel: new.spec.cancel, ..old.spec.clone() };
        new.spec != canceled
    }

    fn validate_update(old: &Task, new: &Task, causes: &mut Causes) {
        task_update::validate(old, new, causes);
    }

    /// What runs is there until it has ended. A member that has ended is deleted by its group, with the note of how it ended.
    fn mark_deleted(task: &mut Task, store: &Store) {
        hold_deleted(task);
        let Some(key) = group_key(task).filter(|_| task.state().is_terminal()) else { return };
        let group = store.get(&key).and_then(|stored| GroupBrief::read(stored.json()));
        if group.is_some_and(|group| group.counts(task)) {
            departure::hold(task);
        }
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::<Self>::text("State", "Where in its life the task is.", |task| {
                json!(task.state().to_string())
            }),
            Column::<Self>::text("Kind", "Its TaskKind.", |task| or_none(&task.spec.kind)),
            Column::<Self>::number("Priority", "What was asked for; the kind's if empty.", |task| {
                json!(task.spec.priority)
            }),
            Column::<Self>::number("Attempt", "The attempt that runs or ran last.", |task| {
                json!(task.status.attempt)
            }),
            Column::<Self>::text("Progress", "Completed of total, as the addon reports.", progress),
            Column::<Self>::text("Waiting", "What it waits for.", |task| {
                json!(task.status.waiting_for.as_ref().map(|waiting| waiting.reason.clone()))
            })
            .wide(),
            Column::<Self>::text("Addon", "The addon it runs.", |task| or_none(&task.spec.addon)).wide(),
            Column::<Self>::text("Subject", "What it is about.", |task| {
                json!(task.spec.subject.as_ref().map(|subject| format!("{}/{}", subject.kind, subject.name)))
            })
            .wide(),
            Column::<Self>::text("Runtime", "Where it runs.", |task| {
                json!(task.spec.runtime.map(|runtime| runtime.to_string()))
            })
            .wide(),
            Column::<Self>::text("Robot", "The robot of its latest attempt.", |task| {
                json!(task.status.attempts.last().map(|attempt| attempt.robot.clone()))
            })
            .wide(),
            Column::<Self>::text("Message", "The latest news.", |task| json!(task.status.message)).wide(),
        ]
    }

    fn fields() -> &'static [(&'static str, FieldOf<Self>)] {
        &[
            ("spec.kind", |task| Cow::Borrowed(&task.spec.kind)),
            ("spec.addon", |task| Cow::Borrowed(&task.spec.addon)),
            ("spec.name", |task| Cow::Borrowed(&task.spec.name)),
            ("spec.locator", |task| Cow::Borrowed(&task.spec.locator)),
            ("spec.subject.kind", |task| {
                Cow::Borrowed(task.spec.subject.as_ref().map_or("", |subject| &subject.kind))
            }),
            ("spec.subject.name", |task| {
                Cow::Borrowed(task.spec.subject.as_ref().map_or("", |subject| &subject.name))
            }),
            ("status.state", |task| Cow::Owned(task.state().to_string())),
        ]
    }
}

/// Rules on a task, also where it stands in a template.
pub fn validate_spec(at: &str, spec: &TaskSpec, causes: &mut Causes) {
    let field = |name: &str| format!("{at}.{name}");
    for (name, value) in [("kind", &spec.kind), ("addon", &spec.addon), ("targetRobot", &spec.target_robot)] {
        if !value.is_empty()
            && let Err(why) = name_rules::dns1123_subdomain(value)
        {
            causes.invalid(field(name), value, why);
        }
    }
    let inline = usize::from(spec.container.is_some()) + usize::from(!spec.containers.is_empty());
    if inline == 2 {
        causes.forbidden(field("containers"), "container and containers cannot both be set");
    }
    if inline > 0 && !spec.addon.is_empty() {
        causes.forbidden(field("addon"), "a task runs either an addon or containers of its own");
    }
    if inline == 0 && spec.kind.is_empty() && spec.addon.is_empty() {
        causes.required(
            field("kind"),
            "one of kind, addon, container and containers is needed to know what to run",
        );
    }
    validate_containers(at, spec, causes);
    container::validate_resources(&field("resources"), &spec.resources, causes);
    validate_placement(at, spec, causes);
    for (index, name) in spec.extensions.iter().flatten().enumerate() {
        if let Err(why) = name_rules::dns1123_subdomain(name) {
            causes.invalid(field(&format!("extensions[{index}]")), name, why);
        }
    }
    if let Some(subject) = &spec.subject {
        for (name, value) in [("kind", &subject.kind), ("name", &subject.name)] {
            if value.is_empty() {
                causes.required(field(&format!("subject.{name}")), "must not be empty");
            }
        }
    }
    if let Some(priority) = spec.priority.filter(|priority| *priority < 0) {
        causes.invalid(field("priority"), priority, "must be at least 0, which is the lowest");
    }
    if let Some(factor) = spec.retry.backoff.factor.filter(|factor| !(1.0..=1000.0).contains(factor)) {
        causes.invalid(field("retry.backoff.factor"), factor, "must be between 1 and 1000");
    }
}

fn validate_placement(at: &str, spec: &TaskSpec, causes: &mut Causes) {
    robots::validate(at, &spec.constraints, spec.restart, spec.reschedule, causes);
    let asks =
        !spec.robot_selector.is_empty() || !spec.target_robot.is_empty() || !spec.constraints.is_empty();
    if let Some(runtime) = spec.runtime.filter(|runtime| asks && *runtime != Runtime::Robot) {
        let why = "must be robot, or absent, if robotSelector, targetRobot or constraints are set";
        causes.invalid(format!("{at}.runtime"), runtime, why);
    }
}

fn validate_containers(at: &str, spec: &TaskSpec, causes: &mut Causes) {
    if let Some(only) = &spec.container {
        container::validate(&format!("{at}.container"), only, causes);
    }
    let mut names = BTreeSet::new();
    for (index, each) in spec.containers.iter().enumerate() {
        let place = format!("{at}.containers[{index}]");
        container::validate(&place, each, causes);
        if each.name.is_empty() {
            causes.required(format!("{place}.name"), "each of several containers needs a name");
        } else if !names.insert(&each.name) {
            causes.invalid(format!("{place}.name"), &each.name, "is given twice");
        }
    }
    if spec.containers.iter().filter(|each| each.leading).count() > 1 {
        causes.invalid(format!("{at}.containers"), "leading", "at most one container leads");
    }
}

fn progress(task: &Task) -> Value {
    match (task.status.completed, task.status.total) {
        (Some(completed), Some(total)) => json!(format!("{completed}/{total}")),
        (Some(completed), None) => json!(completed.to_string()),
        (None, _) => json!(""),
    }
}

/// A cell that is empty if there is nothing to show.
pub fn or_none(text: &str) -> Value {
    if text.is_empty() { json!("<none>") } else { json!(text) }
}
