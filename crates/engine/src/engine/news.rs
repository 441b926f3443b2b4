//! News from runtimes, taken in.

use std::collections::BTreeSet;
use std::sync::Arc;

use muster_ports::clock::Millis;
use muster_ports::runtime::{Fact, Handle, Observation};
use muster_tasks::progress;
use muster_tasks::reap::retention;
use muster_tasks::view::{TaskView, parse_uid, state_of};
use muster_types::State;

use super::{Engine, STARTED_PATIENCE};
use crate::edits::{Action, Edits};
use crate::files::Order;

impl Engine {
    /// News that is to be dealt with now: what is not worth a write of its own yet stays.
    pub(super) fn ripe_facts(&mut self, now: Millis) -> Vec<Fact> {
        let ended: BTreeSet<Handle> = self
            .facts
            .iter()
            .filter(|fact| !matches!(fact.what, Observation::Started))
            .map(|fact| fact.handle.clone())
            .collect();
        let is_ripe = |fact: &Fact| {
            !matches!(fact.what, Observation::Started)
                || fact.at.0 + STARTED_PATIENCE <= now.0
                // The clock was set back.
                || fact.at > now
                || ended.contains(&fact.handle)
        };
        let (ripe, rest) = std::mem::take(&mut self.facts).into_iter().partition(is_ripe);
        self.facts = rest;
        ripe
    }

    /// The tasks that the news was about, in its order, and how much of it was of no consequence.
    pub(super) fn apply_facts(
        &mut self,
        facts: &[Fact],
        edits: &mut Edits,
        now: Millis,
    ) -> (Vec<Option<Arc<str>>>, usize) {
        let mut concerned = Vec::with_capacity(facts.len());
        let mut ignored = 0;
        for fact in facts {
            let handle = &fact.handle;
            let path = parse_uid(&handle.task).and_then(|uid| self.board.path_of(uid)).cloned();
            concerned.push(path.clone());
            let is_end = !matches!(fact.what, Observation::Started);
            if let Some(attempts) = self.orphans.get(&handle.task).copied().filter(|_| is_end) {
                self.orphans.remove(&handle.task);
                self.files.order(Order::Forget { task: handle.task.clone(), attempts });
            }
            let Some(edit) = path.as_ref().and_then(|path| edits.edit(path)) else { continue };
            let task = &mut edit.task;
            let rules = &self.settings.queue;
            let outcome = match &fact.what {
                Observation::Started => progress::observe_started(task, handle, now),
                Observation::Ended(ending) => progress::observe_ended(task, handle, ending, rules, now),
                Observation::Lost { message } => progress::observe_lost(task, handle, message, now),
                Observation::StartFailed { reason, message, transient } => {
                    progress::observe_start_failed(task, handle, reason, message, *transient, now)
                }
            };
            match outcome {
                Ok(()) => {
                    if is_end {
                        let succeeded = state_of(&edit.task) == State::Succeeded;
                        let seconds = retention(&edit.task, succeeded, &self.settings.reap);
                        edit.actions.push(Action::Keep(handle.clone(), seconds));
                    }
                    edit.mark();
                }
                Err(why) => {
                    ignored += 1;
                    tracing::debug!(%handle, ?why, "news is ignored");
                }
            }
            // The board counts on what is about to be committed; if that fails, the next look at the task puts it right.
            if let Some(view) = path.and_then(|path| TaskView::of(&edit.task, path)) {
                self.show(&view);
            }
        }
        (concerned, ignored)
    }
}
