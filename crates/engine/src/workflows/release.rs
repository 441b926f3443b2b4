//! Groups and jobs that failed long ago: their files are let go, they and their tasks stay.
//!
//! The note that something is released is written last: after a crash in between, what is missing is released then. The engine
//! lets go of files when it sees the note of a task or a group.

use std::sync::Arc;

use muster_ports::clock::Millis;
use muster_ports::store::{Batch, Key, Precondition, Store, Write};
use muster_tasks::progress;
use muster_tasks::view::state_of;
use muster_types::{Job, JsonText, Task, TaskGroup};
use muster_workflows::group_render::member_name;
use muster_workflows::job_render::group_name;
use muster_workflows::lifetime::EndOfLife;

use super::{Due, SLICE, Workflows};
use crate::writes::put;

impl Workflows {
    /// Releases some members of a group from a place on, and the group after the last.
    pub(super) async fn release_group(&mut self, uid: &str, from: u32, now: Millis) {
        let Some(key) = self.groups.get(uid).map(|entry| entry.key.clone()) else { return };
        let Some(stored) = self.store.get(&key) else { return };
        let Ok(mut group) = TaskGroup::from_json(stored.json()) else { return };
        if group.status.released.is_some() || !group.status.current_state().is_terminal() {
            return;
        }
        let end = group.status.made.min(from.saturating_add(SLICE));
        let (namespace, name) = (&group.metadata.namespace, &group.metadata.name);
        let members = (from..end).filter_map(|place| {
            let key = Key::new(&self.names.tasks, namespace, &member_name(name, &group.spec, place));
            release_task(&self.store, key, uid, now)
        });
        let mut writes: Vec<Write> = members.collect();
        let is_last = end >= group.status.made;
        if is_last {
            group.status.released = Some(now.to_timestamp());
            writes.extend(put(key, Precondition::At(stored.revision), &mut group));
        }
        let outcome = self.store.commit(Batch { writes, ..Batch::default() }).await;
        match outcome {
            Err(error) => self.try_again(&error, Due::ReleaseGroup(uid.to_owned(), from), now),
            // Others have their turn in between.
            Ok(_) if !is_last => {
                self.due.insert((Millis(now.0 + 1), Due::ReleaseGroup(uid.to_owned(), end)));
            }
            Ok(_) => {}
        }
    }

    /// Releases the groups of a job, and the job after the last.
    pub(super) async fn release_job(&mut self, uid: &str, now: Millis) {
        let Some(key) = self.jobs.get(uid).map(|entry| entry.key.clone()) else { return };
        let Some(stored) = self.store.get(&key) else { return };
        let Ok(mut job) = Job::from_json(stored.json()) else { return };
        if job.status.released.is_some() || !job.status.current_state().is_terminal() {
            return;
        }
        let again = Due::JobEndOfLife(uid.to_owned(), EndOfLife::Release);
        let groups: Vec<Arc<str>> = self.unreleased_groups(&job);
        if !groups.is_empty() {
            let uids = groups.iter().filter_map(|path| self.group_uids.get(path));
            let asked = uids.map(|uid| (now, Due::ReleaseGroup(uid.clone(), 0)));
            let asked: Vec<_> = asked.collect();
            self.due.extend(asked);
            self.due.insert((Millis(now.0 + super::REFUSED_PAUSE), again));
            return;
        }
        job.status.released = Some(now.to_timestamp());
        let Some(write) = put(key, Precondition::At(stored.revision), &mut job) else { return };
        if let Err(error) = self.store.commit(Batch::of(write)).await {
            self.try_again(&error, again, now);
        }
    }

    /// Where the groups of a job are stored that are there and are not released.
    fn unreleased_groups(&self, job: &Job) -> Vec<Arc<str>> {
        let (namespace, name) = (&job.metadata.namespace, &job.metadata.name);
        let keys = job
            .spec
            .task_groups
            .iter()
            .map(|group| Key::new(&self.names.groups, namespace, &group_name(name, &group.name)));
        let is_open = |key: &Key| {
            let stored = self.store.get(key)?;
            let group = TaskGroup::from_json(stored.json()).ok()?;
            let ours = group.metadata.owner_references.iter().any(|owner| owner.uid == job.metadata.uid);
            Some(ours && group.status.released.is_none() && group.status.current_state().is_terminal())
        };
        keys.filter(|key| is_open(key) == Some(true)).map(|key| key.path).collect()
    }
}

/// Releases a member that has ended; `None` if there is nothing to release.
fn release_task(store: &Store, key: Key, group: &str, now: Millis) -> Option<Write> {
    let stored = store.get(&key)?;
    let mut task = Task::from_json(stored.json()).ok()?;
    let ours = task.metadata.owner_references.iter().any(|owner| owner.uid == group);
    if !ours || !state_of(&task).is_terminal() || task.status.released.is_some() {
        return None;
    }
    progress::release(&mut task, now);
    put(key, Precondition::At(stored.revision), &mut task)
}
