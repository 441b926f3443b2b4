//! The next member of a pipeline, submitted in the very commit that says the one before it succeeded.
//!
//! The loop of groups would do the same after that commit, and the queue start it after one more. Nothing here decides what
//! that loop would not: a group that is suspended, canceled or on its way out submits nothing.

use std::sync::Arc;

use muster_ports::clock::Millis;
use muster_ports::store::Key;
use muster_tasks::view::TaskView;
use muster_types::Task;
use muster_workflows::group_brief::{GroupBrief, group_name_of};
use muster_workflows::succession::Succession;

use super::Engine;
use crate::edits::{Edits, is_bound};
use crate::workflows::edits::submit_member;

impl Engine {
    /// A task succeeded: what comes after it in its pipeline is submitted with that news.
    pub(super) fn submit_next(&mut self, former: &Arc<str>, edits: &mut Edits, now: Millis) {
        let Some(edit) = edits.edit(former) else { return };
        let Some(succession) = Succession::of(&edit.task) else { return };
        let namespace = edit.task.metadata.namespace.clone();
        let group = self.group_brief(&namespace, &succession.group);
        if !group.is_some_and(|group| group.uid == succession.uid && group.submits_next()) {
            return;
        }
        let path = Key::new(&self.tasks, &namespace, &succession.next).path;
        let Some(edit) = edits.edit(&path).filter(|edit| succession.leads_to(&edit.task)) else { return };
        let is_wanted = !edit.task.spec.cancel && edit.task.metadata.deletion_timestamp.is_none();
        // One that waits for others by rule could start in this commit because of what another commit says.
        if is_wanted && !is_bound(&edit.task) && submit_member(&mut edit.task, now).is_some() {
            edit.with = Some(former.clone());
            edit.mark();
            if let Some(view) = TaskView::of(&edit.task, path) {
                self.show(&view);
            }
        }
    }

    /// A group in brief, if it is there. It is read again only when it changed.
    pub(super) fn group_brief(&mut self, namespace: &str, name: &str) -> Option<&GroupBrief> {
        let key = Key::new(&self.groups, namespace, name);
        let stored = self.outside.store.get(&key)?;
        let known =
            self.group_briefs.get(&key.path).is_some_and(|(revision, _)| *revision == stored.revision);
        if !known {
            let brief = GroupBrief::read(stored.json())?;
            self.group_briefs.insert(key.path.clone(), (stored.revision, brief));
        }
        self.group_briefs.get(&key.path).map(|(_, brief)| brief)
    }

    /// True if a task is a member of a group that goes on and counts it.
    pub(super) fn is_counted_by_group(&mut self, task: &Task) -> bool {
        let Some(name) = group_name_of(task) else { return false };
        self.group_brief(&task.metadata.namespace, name).is_some_and(|group| group.counts(task))
    }
}
