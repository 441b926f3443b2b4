//! What a member of a TaskGroup looks like: its own template over the defaults of the group (seed 000 H74).

use muster_types::metadata::{OwnerReference, StringMap, TRACEPARENT};
use muster_types::task::{Policy, Ttl};
use muster_types::task_group::{GroupMode, TaskGroupSpec};
use muster_types::{Duration, Metadata, Millis, Object, Resource, Task, TaskGroup};
use serde_json::Value;

use crate::derived_uid::derived_uid;
use crate::succession::NEXT;

/// Label that names the group of a task.
pub const GROUP: &str = "muster.dev/group";
/// Label that names the job of a group or task.
pub const JOB: &str = "muster.dev/job";
/// Label with the number of a copy, which its program finds in `MUSTER_INDEX`.
pub const INDEX: &str = "muster.dev/index";
/// Annotation with the place of a task in its group.
pub const PLACE: &str = "muster.dev/place";

/// The place of a member: which template and which copy of it.
fn parts(spec: &TaskGroupSpec, place: u32) -> (usize, u32) {
    let tasks = u32::try_from(spec.tasks.len()).unwrap_or(u32::MAX).max(1);
    ((place % tasks) as usize, place / tasks)
}

/// The name of a member.
pub fn member_name(group: &str, spec: &TaskGroupSpec, place: u32) -> String {
    let (template, copy) = parts(spec, place);
    let name = spec.task_name(template);
    if spec.mode() == GroupMode::Replicas {
        format!("{group}-{name}-{copy}")
    } else {
        format!("{group}-{name}")
    }
}

/// The task to make at a place of a group.
pub fn render_member(group: &TaskGroup, place: u32, submitted: bool, now: Millis) -> Task {
    let spec = &group.spec;
    let (template, copy) = parts(spec, place);
    let mut task = Task::default();
    let own = spec.tasks.get(template).cloned().unwrap_or_default();
    let index = if spec.mode() == GroupMode::Replicas { copy } else { place };
    task.metadata = made_by(group, &member_name(&group.metadata.name, spec, place), place, now);
    task.metadata.labels = own.metadata.labels;
    task.metadata.labels.entry(INDEX.to_owned()).or_insert_with(|| index.to_string());
    task.metadata.labels.insert(GROUP.to_owned(), group.metadata.name.clone());
    if let Some(job) = group.metadata.labels.get(JOB) {
        task.metadata.labels.insert(JOB.to_owned(), job.clone());
    }
    task.metadata.annotations.extend(own.metadata.annotations);
    task.metadata.annotations.insert(PLACE.to_owned(), place.to_string());
    task.metadata.annotations.remove(NEXT);
    if spec.mode() == GroupMode::Pipeline && place.saturating_add(1) < spec.total() {
        let next = member_name(&group.metadata.name, spec, place + 1);
        task.metadata.annotations.insert(NEXT.to_owned(), next);
    }
    task.spec = own.spec;
    let made = &mut task.spec;
    let brings_program = made.container.is_some() || !made.containers.is_empty();
    if made.kind.is_empty() {
        made.kind.clone_from(&spec.kind);
    }
    if made.addon.is_empty() && !brings_program {
        made.addon.clone_from(&spec.addon);
    }
    if made.extensions.is_none() {
        made.extensions.clone_from(&spec.extensions);
    }
    made.priority = made.priority.or(spec.priority);
    if made.policy == Policy::default() {
        made.policy = spec.policy;
    }
    made.data = merge_data(spec.data.as_ref(), made.data.take());
    made.robot_selector = merge_labels(&spec.robot_selector, &made.robot_selector);
    if made.constraints.is_empty() {
        made.constraints.clone_from(&spec.constraints);
    }
    if made.affinity.is_none() {
        made.affinity.clone_from(&spec.affinity);
    }
    made.restart = made.restart.or(spec.restart);
    made.reschedule = made.reschedule.or(spec.reschedule);
    made.disconnect = made.disconnect.or(spec.disconnect);
    made.ttl = kept_with_group(made.ttl);
    made.suspend = !submitted;
    task.record_initial_state();
    task
}

/// Metadata of something made for an owner.
pub(crate) fn made_by<S: Resource>(owner: &Object<S>, name: &str, place: u32, now: Millis) -> Metadata {
    let given = owner.metadata.annotations.get(TRACEPARENT);
    Metadata {
        name: name.to_owned(),
        namespace: owner.metadata.namespace.clone(),
        uid: derived_uid(now, &owner.metadata.uid, place),
        generation: 1,
        creation_timestamp: Some(now.to_timestamp()),
        owner_references: vec![OwnerReference {
            api_version: S::NAMES.api_version(),
            kind: S::NAMES.kind.to_owned(),
            name: owner.metadata.name.clone(),
            uid: owner.metadata.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }],
        annotations: given.map(|it| (TRACEPARENT.to_owned(), it.clone())).into_iter().collect(),
        ..Metadata::default()
    }
}

/// Members are kept as long as their group, unless the user says otherwise. A member that was made and not submitted waits for
/// its turn, and nobody forgot it: it has no limit at all.
fn kept_with_group(ttl: Ttl) -> Ttl {
    let no_limit = Some(Duration::default());
    Ttl {
        created: no_limit,
        succeeded: ttl.succeeded.or(no_limit),
        failed: ttl.failed.or(no_limit),
        canceled: ttl.canceled.or(no_limit),
        ..ttl
    }
}

/// Own labels over the others, label by label.
pub(crate) fn merge_labels(under: &StringMap, own: &StringMap) -> StringMap {
    under.iter().chain(own).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Own data over the other: maps at every depth, anything else is replaced.
fn merge_data(under: Option<&Value>, own: Option<Value>) -> Option<Value> {
    match (under, own) {
        (Some(Value::Object(under)), Some(Value::Object(own))) => {
            let mut merged = under.clone();
            for (key, value) in own {
                let value = merge_data(under.get(&key), Some(value)).unwrap_or(Value::Null);
                merged.insert(key, value);
            }
            Some(Value::Object(merged))
        }
        (_, Some(own)) => Some(own),
        (under, None) => under.cloned(),
    }
}
