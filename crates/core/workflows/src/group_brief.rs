//! A stored TaskGroup in brief: what others than its own loop must know of it. A group may be large, so the rest is not read.

use std::borrow::Cow;

use muster_types::task_group::GroupMode;
use muster_types::{Task, Timestamp, WorkState};
use serde::Deserialize;

use crate::succession::group_of;

/// A group in brief.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupBrief {
    /// Its uid.
    pub uid: String,
    is_pipeline: bool,
    suspend: bool,
    cancel: bool,
    is_open: bool,
}

impl GroupBrief {
    /// Reads a stored group; `None` if it cannot be read.
    pub fn read(json: &[u8]) -> Option<Self> {
        let Stored { metadata, spec, status } = serde_json::from_slice(json).ok()?;
        let ended = status.state.unwrap_or_default().is_terminal();
        Some(Self {
            uid: metadata.uid.into_owned(),
            is_pipeline: spec.mode == Some(GroupMode::Pipeline),
            suspend: spec.suspend,
            cancel: spec.cancel,
            is_open: !ended && metadata.deletion_timestamp.is_none(),
        })
    }

    /// True if a task is its member and it still counts its members: it has not ended and is not being deleted.
    pub fn counts(&self, task: &Task) -> bool {
        self.is_open && group_of(task).is_some_and(|owner| owner.uid == self.uid)
    }

    /// True if the end of a member submits the one after it.
    pub fn submits_next(&self) -> bool {
        self.is_pipeline && self.is_open && !self.suspend && !self.cancel
    }
}

/// The name of the group that a task says it is of.
pub fn group_name_of(task: &Task) -> Option<&str> {
    group_of(task).map(|owner| owner.name.as_str())
}

#[derive(Deserialize)]
struct Stored<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
    deletion_timestamp: Option<Timestamp>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Spec {
    mode: Option<GroupMode>,
    suspend: bool,
    cancel: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    state: Option<WorkState>,
}

#[cfg(test)]
mod tests {
    use muster_types::task_group::{GroupTask, TaskGroupSpec};
    use muster_types::{Millis, TaskGroup};
    use serde_json::json;

    use super::*;
    use crate::group_render::render_member;

    fn brief(spec: &serde_json::Value, state: &str) -> GroupBrief {
        let group = json!({"metadata": {"uid": "u", "name": "g"}, "spec": spec, "status": {"state": state}});
        GroupBrief::read(group.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_group_counts_its_own_members_until_it_has_ended_or_is_being_deleted() {
        let mut group = TaskGroup::new("n", "g", TaskGroupSpec::default());
        group.spec.tasks.push(GroupTask::default());
        "u".clone_into(&mut group.metadata.uid);
        let member = render_member(&group, 0, true, Millis(0));
        for (state, open) in [("Created", true), ("Running", true), ("Succeeded", false), ("Failed", false)] {
            assert_eq!(brief(&json!({}), state).counts(&member), open, "{state}");
        }
        let going = json!({"metadata": {"uid": "u", "deletionTimestamp": "2026-11-15T14:00:00Z"}});
        assert!(!GroupBrief::read(going.to_string().as_bytes()).unwrap().counts(&member));
        "other".clone_into(&mut group.metadata.uid);
        let other = render_member(&group, 0, true, Millis(0));
        assert!(!brief(&json!({}), "Running").counts(&other));
    }

    #[test]
    fn only_a_pipeline_that_goes_on_submits_the_next_member() {
        assert!(brief(&json!({"mode": "pipeline"}), "Running").submits_next());
        for spec in [
            json!({"mode": "batch"}),
            json!({}),
            json!({"mode": "pipeline", "suspend": true}),
            json!({"mode": "pipeline", "cancel": true}),
        ] {
            assert!(!brief(&spec, "Running").submits_next(), "{spec}");
        }
    }
}
