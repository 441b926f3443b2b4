//! The next member of a pipeline, submitted in the very commit that says the one before it succeeded.
//!
//! The loop of groups would do the same after that commit, and the queue start it after one more. Nothing here decides what
//! that loop would not: a group that is suspended, canceled or on its way out submits nothing.

use std::borrow::Cow;
use std::sync::Arc;

use muster_ports::clock::Millis;
use muster_ports::store::Key;
use muster_tasks::view::TaskView;
use muster_types::Timestamp;
use muster_types::task_group::GroupMode;
use muster_workflows::succession::Succession;
use serde::Deserialize;

use super::Engine;
use crate::edits::Edits;
use crate::workflows::edits::submit_member;

impl Engine {
    /// A task succeeded: what comes after it in its pipeline is submitted with that news.
    pub(super) fn submit_next(&mut self, former: &Arc<str>, edits: &mut Edits, now: Millis) {
        let Some(edit) = edits.edit(former) else { return };
        let Some(succession) = Succession::of(&edit.task) else { return };
        let namespace = edit.task.metadata.namespace.clone();
        if !self.pipeline_goes_on(&namespace, &succession) {
            return;
        }
        let path = Key::new(&self.tasks, &namespace, &succession.next).path;
        let Some(edit) = edits.edit(&path).filter(|edit| succession.leads_to(&edit.task)) else { return };
        let is_wanted = !edit.task.spec.cancel && edit.task.metadata.deletion_timestamp.is_none();
        if is_wanted && submit_member(&mut edit.task, now).is_some() {
            edit.with = Some(former.clone());
            edit.mark();
            if let Some(view) = TaskView::of(&edit.task, path) {
                self.show(&view);
            }
        }
    }

    fn pipeline_goes_on(&mut self, namespace: &str, succession: &Succession) -> bool {
        let key = Key::new(&self.groups, namespace, &succession.group);
        let Some(stored) = self.outside.store.get(&key) else { return false };
        if let Some((revision, goes_on)) = self.pipelines.get(&key.path)
            && *revision == stored.revision
        {
            return *goes_on;
        }
        let group = serde_json::from_slice::<Group<'_>>(stored.json());
        let goes_on = group.is_ok_and(|group| group.goes_on(&succession.uid));
        self.pipelines.insert(key.path, (stored.revision, goes_on));
        goes_on
    }
}

/// What of a stored group says whether its pipeline goes on; a group may be large.
#[derive(Deserialize)]
struct Group<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    spec: Spec,
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

impl Group<'_> {
    fn goes_on(&self, uid: &str) -> bool {
        let (metadata, spec) = (&self.metadata, &self.spec);
        let is_pipeline = spec.mode == Some(GroupMode::Pipeline);
        is_pipeline
            && metadata.uid == uid
            && metadata.deletion_timestamp.is_none()
            && !spec.suspend
            && !spec.cancel
    }
}
