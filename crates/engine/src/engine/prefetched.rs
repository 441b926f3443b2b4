//! Attempts that were handed to their executor ahead of a free slot: when they are taken back, and what becomes of them.

use muster_ports::clock::Millis;
use muster_ports::runtime::{Fact, Handle, Observation};
use muster_tasks::lifecycle::Refused;
use muster_tasks::progress;
use muster_types::task::Runtime as RuntimeName;
use muster_types::task_status::FIRST_ATTEMPT;

use super::Engine;
use super::leaving::uid_text;
use crate::edits::{Action, Edit};
use crate::prefetch::PATIENCE;
use crate::start::runtime_of;

impl Engine {
    /// Takes back what has waited for too long, and with it all that wait: what was handed over last may rank lower, and would start first.
    pub(super) fn recall_late(&mut self, now: Millis) {
        while let Some((since, uid)) = self.prefetched.front().copied()
            && since.0.saturating_add(PATIENCE) <= now.0
        {
            self.prefetched.pop_front();
            // What is known to run waits for nothing any more.
            if self.pace.begun(&first_handle(uid)).is_none() && self.board.is_prefetched(uid) {
                let all = self.board.prefetched_lowest_first();
                tracing::debug!(count = all.len(), "attempts that waited for too long are taken back");
                for other in all {
                    self.recall(other);
                }
                self.pace.observe_wait();
            }
        }
    }

    /// Nothing is started from now on, and what waits at the runtime is taken back.
    pub fn leave(&mut self) {
        self.leaves = true;
        self.board.close();
        for uid in self.board.prefetched_lowest_first() {
            self.recall(uid);
        }
    }

    /// True if all that was reported is committed and nothing waits at the runtime; where the processes have ended, also nothing runs there.
    pub fn has_left(&mut self, ended: bool) -> bool {
        let (waiting, running) =
            (self.board.prefetched(RuntimeName::Process), self.board.taken(RuntimeName::Process));
        self.facts.is_empty() && waiting == 0 && (running == 0 || !ended)
    }

    /// When something will have waited for too long.
    pub(super) fn next_late(&self) -> Option<Millis> {
        self.prefetched.front().map(|(since, _)| Millis(since.0.saturating_add(PATIENCE)))
    }

    /// Takes back the prefetched attempt of a task, if it has one. True if it was not asked for before.
    pub(super) fn recall(&mut self, uid: u128) -> bool {
        let is_new = self.board.recall(uid);
        if is_new {
            self.outside.runtime.recall(&first_handle(uid));
        }
        is_new
    }

    /// A prefetched attempt of which something else is heard than that nothing of it ran has begun.
    pub(super) fn begin_prefetched(&self, edit: &mut Edit, fact: &Fact) -> Result<(), Refused> {
        if !progress::is_prefetched(&edit.task, &fact.handle) || never_ran(&fact.what) {
            return Ok(());
        }
        let selection = self.catalogs.select(&edit.task).ok();
        let addon = selection.as_ref().and_then(|it| it.addon).map(|addon| addon.metadata.name.clone());
        let extensions = selection.map(|it| it.extensions).unwrap_or_default();
        let extensions: Vec<_> = extensions.iter().map(|it| it.metadata.name.clone()).collect();
        let task = &mut edit.task;
        progress::begin_attempt(task, None, addon.as_deref(), &extensions, fact.at)?;
        let runtime = runtime_of(&self.settings, task.spec.stated_runtime());
        if let Some(attempt) = task.status.attempts.last_mut() {
            attempt.runtime = Some(runtime);
        }
        edit.actions.push(Action::Begun);
        Ok(())
    }
}

/// True if nothing of an attempt ever ran.
pub(super) fn never_ran(what: &Observation) -> bool {
    match what {
        Observation::Returned { .. } => true,
        Observation::Ended(ending) => ending.containers.is_empty(),
        Observation::Created
        | Observation::Waiting { .. }
        | Observation::Blocked { .. }
        | Observation::Started
        | Observation::StartFailed { .. }
        | Observation::Removed
        | Observation::Lost { .. } => false,
    }
}

/// The first attempt of a task.
pub(super) fn first_handle(uid: u128) -> Handle {
    Handle { task: uid_text(uid), attempt: FIRST_ATTEMPT }
}
