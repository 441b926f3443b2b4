//! TaskGroup: tasks made together.

use std::borrow::Cow;
use std::collections::BTreeSet;

use muster_types::TaskGroup;
use muster_types::metadata::StringMap;
use muster_types::name_rules;
use muster_types::task_group::{GroupMode, MOST_MEMBERS, TaskGroupSpec};
use muster_workflows::group_render::member_name;
use serde_json::json;

use super::robots;
use super::task::validate_spec;
use crate::kind::{Column, FieldOf, Strategy};
use crate::refusal::Causes;

/// The longest name of an object.
const MOST_LETTERS: usize = 253;

impl Strategy for TaskGroupSpec {
    fn validate(group: &TaskGroup, causes: &mut Causes) {
        let name = &group.metadata.name;
        if let Err(why) = name_rules::label_value(name) {
            causes.invalid("metadata.name", name, format!("its tasks are labelled with it: {why}"));
        }
        validate_group("spec", name, &group.spec, causes);
    }

    fn validate_update(old: &TaskGroup, new: &TaskGroup, causes: &mut Causes) {
        let kept = TaskGroupSpec {
            suspend: new.spec.suspend,
            cancel: new.spec.cancel,
            parallelism: new.spec.parallelism,
            ..old.spec.clone()
        };
        if kept != new.spec {
            causes.forbidden(
                "spec",
                "only suspend, cancel and parallelism of a group can change; make a new one",
            );
        }
        if old.spec.cancel && !new.spec.cancel {
            causes.forbidden("spec.cancel", "the group is being canceled; make a new one");
        }
    }

    fn goes_last(group: &TaskGroup) -> bool {
        // Before its members are made there is nothing to wait for.
        group.status.counts.all() > 0 && !group.status.current_state().is_terminal()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::<Self>::text("State", "Where in its life the group is.", |group| {
                json!(group.status.current_state().to_string())
            }),
            Column::<Self>::text("Mode", "How its tasks follow each other.", |group| {
                json!(group.spec.mode().to_string())
            }),
            Column::<Self>::text("Progress", "Tasks that ended, of all.", |group| {
                json!(format!("{}/{}", group.status.counts.ended(), group.spec.total()))
            }),
            Column::<Self>::number("Running", "Tasks with an attempt.", |group| {
                json!(group.status.counts.running + group.status.counts.pending)
            }),
            Column::<Self>::number("Failed", "Tasks that failed.", |group| json!(group.status.counts.failed)),
            Column::<Self>::text("Message", "How it stands.", |group| json!(group.status.message)).wide(),
        ]
    }

    fn fields() -> &'static [(&'static str, FieldOf<Self>)] {
        &[("status.state", |group| Cow::Owned(group.status.current_state().to_string()))]
    }
}

/// Rules on a group, also where it stands in a job; `name` is what the TaskGroup is or will be called.
pub fn validate_group(at: &str, name: &str, spec: &TaskGroupSpec, causes: &mut Causes) {
    let field = |name: &str| format!("{at}.{name}");
    if spec.tasks.is_empty() {
        causes.required(field("tasks"), "a group needs at least one task");
    }
    for (name, number) in [("count", spec.count), ("parallelism", spec.parallelism)] {
        if number == Some(0) {
            causes.invalid(field(name), 0, "must be at least 1");
        }
    }
    if spec.count.is_some() && spec.mode() != GroupMode::Replicas {
        causes.forbidden(field("count"), format!("a group of mode {} has each task once", spec.mode()));
    }
    if spec.parallelism.is_some() && spec.mode() == GroupMode::Pipeline {
        causes.forbidden(field("parallelism"), "the tasks of a pipeline run one after the other");
    }
    let total = spec.total();
    if total > MOST_MEMBERS {
        let why =
            format!("{total} tasks are more than the {MOST_MEMBERS} a group can have; use several groups");
        causes.invalid(field(if spec.count.is_some() { "count" } else { "tasks" }), total, why);
    }
    validate_defaults(at, spec, causes);
    robots::validate(at, &spec.constraints, spec.restart, spec.reschedule, causes);
    validate_tasks(at, name, spec, causes);
}

fn validate_defaults(at: &str, spec: &TaskGroupSpec, causes: &mut Causes) {
    for (name, value) in [("kind", &spec.kind), ("addon", &spec.addon)] {
        if !value.is_empty()
            && let Err(why) = name_rules::dns1123_subdomain(value)
        {
            causes.invalid(format!("{at}.{name}"), value, why);
        }
    }
    for (index, name) in spec.extensions.iter().flatten().enumerate() {
        if let Err(why) = name_rules::dns1123_subdomain(name) {
            causes.invalid(format!("{at}.extensions[{index}]"), name, why);
        }
    }
    if let Some(priority) = spec.priority.filter(|priority| *priority < 0) {
        causes.invalid(format!("{at}.priority"), priority, "must be at least 0, which is the lowest");
    }
}

fn validate_tasks(at: &str, group: &str, spec: &TaskGroupSpec, causes: &mut Causes) {
    let mut names = BTreeSet::new();
    for (place, task) in spec.tasks.iter().enumerate() {
        let field = format!("{at}.tasks[{place}]");
        let name = spec.task_name(place);
        if let Err(why) = name_rules::dns1123_label(&name) {
            causes.invalid(format!("{field}.name"), &name, why);
        } else if !names.insert(name.clone()) {
            causes.invalid(format!("{field}.name"), &name, "is given twice");
        }
        validate_labels(&field, &task.metadata.labels, &task.metadata.annotations, causes);
        for (switch, on) in [("suspend", task.spec.suspend), ("cancel", task.spec.cancel)] {
            if on {
                causes.forbidden(
                    format!("{field}.spec.{switch}"),
                    format!("the group decides on its tasks; set {switch} on the group"),
                );
            }
        }
        // The defaults of the group count, as they will when the task is made.
        let mut made = task.spec.clone();
        if made.kind.is_empty() {
            made.kind.clone_from(&spec.kind);
        }
        if made.addon.is_empty() && made.container.is_none() && made.containers.is_empty() {
            made.addon.clone_from(&spec.addon);
        }
        validate_spec(&format!("{field}.spec"), &made, causes);
    }
    let last = member_name(group, spec, spec.total().saturating_sub(1));
    if !spec.tasks.is_empty() && last.len() > MOST_LETTERS {
        let why = format!("its tasks would be called so, and a name can have {MOST_LETTERS} letters");
        causes.invalid(format!("{at}.tasks"), &last, why);
    }
}

fn validate_labels(at: &str, labels: &StringMap, annotations: &StringMap, causes: &mut Causes) {
    for (key, value) in labels {
        if let Err(why) = name_rules::qualified_name(key).and_then(|()| name_rules::label_value(value)) {
            causes.invalid(format!("{at}.metadata.labels"), format!("{key}={value}"), why);
        }
    }
    for key in annotations.keys() {
        if let Err(why) = name_rules::annotation_key(key) {
            causes.invalid(format!("{at}.metadata.annotations"), key, why);
        }
    }
}
