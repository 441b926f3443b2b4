//! News from runtimes, taken in.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use muster_ports::clock::Millis;
use muster_ports::runtime::{Fact, Handle, Observation, UNSCHEDULABLE, WITHOUT_NODE};
use muster_tasks::brief::{has_attempt, is_held, let_go_of_attempt};
use muster_tasks::progress::{self, Ignored};
use muster_tasks::reap::retention;
use muster_tasks::reconcile::{self, Return};
use muster_tasks::settings::Settings;
use muster_tasks::stuck::read_shortage;
use muster_tasks::view::{TaskView, parse_uid, state_of};
use muster_types::{State, Task};

use super::prefetched::never_ran;
use super::{Engine, STARTED_PATIENCE, give_up_original};
use crate::edits::{Action, Edit, Edits};

impl Engine {
    /// News that is to be dealt with now: what is not worth a write of its own yet stays.
    pub(super) fn ripe_facts(&mut self, now: Millis) -> Vec<Fact> {
        let ended: BTreeSet<Handle> =
            self.facts.iter().filter(|fact| ends(&fact.what)).map(|fact| fact.handle.clone()).collect();
        let leaves = self.leaves;
        let is_ripe = |fact: &Fact| {
            leaves
                || !matches!(fact.what, Observation::Started)
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
        let kill_timeout = self.settings.kill_timeout;
        let mut concerned = Vec::with_capacity(facts.len());
        let mut ignored = 0;
        for fact in facts {
            let handle = &fact.handle;
            let uid = parse_uid(&handle.task);
            let path = self.path_of(fact);
            concerned.push(path.clone());
            let is_end = ends(&fact.what);
            self.guard_pods(fact, now);
            if self.observe_orphan(fact) || fact.what == Observation::Created {
                continue;
            }
            let edit = path.as_ref().and_then(|path| edits.edit(path));
            let Some(edit) = edit.filter(|edit| edit.task.metadata.uid == handle.task) else {
                // A task that was deleted a moment ago: the news counts once that is known here.
                let is_new =
                    is_end && path.as_ref().zip(uid).is_some_and(|(path, uid)| self.is_gone(path, uid));
                if is_new {
                    self.facts.push(fact.clone());
                } else {
                    self.ran.remove(handle);
                }
                continue;
            };
            if is_end && reconcile::leaving_of(&edit.task).is_some() {
                self.apply_leaving(edit, fact);
                if let Some(view) = path.and_then(|path| TaskView::of(&edit.task, path)) {
                    self.show(&view);
                }
                continue;
            }
            let is_original = fact.what != Observation::Removed
                && reconcile::original_of(&edit.task).as_ref() == Some(handle);
            let outcome = if is_original {
                self.apply_return(edit, fact, now)
            } else {
                self.begin_prefetched(edit, fact)
                    .map_err(Ignored::from)
                    .and_then(|()| apply_news(&mut edit.task, fact, &self.settings.queue, now))
            };
            let mut succeeded = false;
            match outcome {
                // It has succeeded and is the task's again, which does not end before the other one has.
                Ok(()) if is_end && reconcile::leaving_of(&edit.task).is_some() => {
                    edit.mark();
                    self.waiting_for_copy.push(fact.clone());
                }
                Ok(()) => {
                    let is_awaited = reconcile::original_of(&edit.task).as_ref() == Some(handle);
                    let left_something =
                        !never_ran(&fact.what) && !matches!(fact.what, Observation::Blocked { .. });
                    if is_end && !is_awaited && left_something {
                        succeeded = state_of(&edit.task) == State::Succeeded;
                        let seconds = retention(&edit.task, succeeded, &self.settings.reap);
                        edit.actions.push(Action::Keep(handle.clone(), seconds));
                    }
                    let is_over = fact.what != Observation::Removed && state_of(&edit.task).is_terminal();
                    if !is_original && (is_over || matches!(fact.what, Observation::Ended(_))) {
                        give_up_original(
                            edit,
                            &self.settings,
                            "the attempt that replaced it ended first",
                            now,
                        );
                    }
                    edit.mark();
                    let grace =
                        edit.task.spec.kill_timeout.map_or(kill_timeout, muster_types::Duration::as_std);
                    Self::let_go(edit, fact, grace);
                }
                Err(why) => {
                    ignored += 1;
                    self.ran.remove(handle);
                    tracing::debug!(%handle, ?why, "news is ignored");
                }
            }
            // The board counts on what is about to be committed; if that fails, the next look at the task puts it right.
            if let Some(view) = path.and_then(|path| TaskView::of(&edit.task, path)) {
                self.show(&view);
                if succeeded {
                    self.submit_next(&view.path, edits, now);
                }
            }
        }
        (concerned, ignored)
    }

    /// Where the task is stored that news is about. Only its pod may be heard of after it has ended.
    fn path_of(&self, fact: &Fact) -> Option<Arc<str>> {
        let uid = parse_uid(&fact.handle.task)?;
        let is_late = fact.what == Observation::Removed;
        let open = self.board.path_of(uid);
        open.or_else(|| self.pods_left.get(&fact.handle).filter(|_| is_late)).cloned()
    }

    /// Something of a task has ended of which one attempt is leaving. If it is that, news that waited for it counts now; else it waits.
    fn apply_leaving(&mut self, edit: &mut Edit, fact: &Fact) {
        let Some(leaving) = reconcile::leaving_of(&edit.task) else { return };
        if fact.handle != leaving {
            self.waiting_for_copy.push(fact.clone());
            return;
        }
        reconcile::observe_left(&mut edit.task);
        let seconds = retention(&edit.task, false, &self.settings.reap);
        edit.actions.push(Action::Keep(leaving, seconds));
        edit.mark();
        self.hear_waiting(&fact.handle.task);
    }

    /// News of a task that waited for the end of a copy counts now.
    pub(super) fn hear_waiting(&mut self, task: &str) {
        let waiting = std::mem::take(&mut self.waiting_for_copy);
        let (now, later): (Vec<Fact>, Vec<Fact>) = waiting.into_iter().partition(|it| it.handle.task == task);
        self.waiting_for_copy = later;
        self.facts.extend(now);
    }

    /// News of an attempt that counted as lost: if it is the task's again, the one that replaced it is ended.
    fn apply_return(&self, edit: &mut Edit, fact: &Fact, now: Millis) -> Result<(), Ignored> {
        let Fact { handle, what, .. } = fact;
        match reconcile::observe_original(&mut edit.task, handle, what, &self.settings.queue, now)? {
            Return::Kept { replacement: Some(replacement) } => {
                let grace = self.grace(edit.task.spec.kill_timeout);
                edit.actions.push(Action::Stop(replacement, grace));
            }
            Return::Kept { replacement: None } | Return::Gone => {}
        }
        Ok(())
    }

    /// An attempt that outlives the server is over: a robot that comes back is told so. A task that is being deleted goes once that it
    /// ended is committed.
    fn let_go(edit: &mut Edit, fact: &Fact, grace: Duration) {
        if has_attempt(&edit.task) || !is_held(&edit.task) {
            return;
        }
        let is_awaited = reconcile::original_of(&edit.task).as_ref() == Some(&fact.handle);
        if matches!(fact.what, Observation::Lost { .. }) && !is_awaited {
            edit.actions.push(Action::Stop(fact.handle.clone(), grace));
        }
        if edit.task.metadata.deletion_timestamp.is_none() {
            let_go_of_attempt(&mut edit.task);
        }
    }

    /// What news says about room in the cluster. A quota is that of the namespace of the pod; nothing else says anything of it.
    fn guard_pods(&mut self, fact: &Fact, now: Millis) {
        let second = now.to_timestamp().as_second();
        let uid = parse_uid(&fact.handle.task);
        let namespace = uid.and_then(|uid| self.board.pod_namespace(uid));
        let there = namespace.as_deref().map_or(0, |namespace| self.board.pods_in(namespace));
        match &fact.what {
            Observation::Created => {
                if let Some(namespace) = &namespace {
                    self.guards.observe_created(namespace, there, second);
                }
            }
            Observation::Waiting { reason, message } if reason == UNSCHEDULABLE => {
                let Some(uid) = uid else { return };
                self.board.observe_unschedulable(uid, second);
                // Its lack may be another one than was said before, or none that others could end.
                self.board.observe_stuck(uid, read_shortage(message).unwrap_or_default(), second);
                return;
            }
            Observation::Blocked { .. } => {
                if let Some(namespace) = &namespace {
                    // The one that was refused is still counted.
                    self.guards.observe_blocked(namespace, there.saturating_sub(1), second);
                }
                if let Some(uid) = uid {
                    self.board.observe_refusal(uid);
                }
            }
            // That says nothing of whether a node takes it.
            Observation::Waiting { reason, .. } if WITHOUT_NODE.contains(&reason.as_str()) => return,
            Observation::Waiting { .. } | Observation::Started => {
                if let Some(uid) = uid {
                    self.board.observe_on_node(uid);
                }
            }
            Observation::Removed => return,
            Observation::Returned { .. }
            | Observation::StartFailed { .. }
            | Observation::Ended(_)
            | Observation::Lost { .. } => {
                if let Some(namespace) = &namespace {
                    self.guards.observe_ended(namespace, second);
                }
            }
        }
        if let Some(uid) = uid {
            self.board.observe_placed(uid);
        }
    }
}

/// What news of its attempt makes of a task.
fn apply_news(task: &mut Task, fact: &Fact, rules: &Settings, now: Millis) -> Result<(), Ignored> {
    let handle = &fact.handle;
    match &fact.what {
        Observation::Returned { prefetch } if *prefetch == task.status.prefetches => {
            progress::observe_returned(task, handle, now)
        }
        Observation::Returned { .. } => Err(Ignored::OldAttempt),
        // It was stopped while it waited for a slot.
        what if never_ran(what) && progress::is_prefetched(task, handle) => {
            progress::observe_returned(task, handle, now)
        }
        Observation::Started => progress::observe_started(task, handle, fact.at.min(now)),
        Observation::Ended(ending) => progress::observe_ended(task, handle, ending, rules, now),
        Observation::Lost { reason, message } => {
            progress::observe_lost(task, handle, reason, message, rules, now)
        }
        // Nobody writes that down.
        Observation::Created => Ok(()),
        Observation::Removed => progress::observe_removed(task, handle, now),
        Observation::Waiting { reason, message } => {
            progress::observe_waiting(task, handle, reason, message, now)
        }
        Observation::Blocked { message, refusal } => {
            progress::observe_blocked(task, handle, *refusal, message, now)
        }
        Observation::StartFailed { reason, message, transient } => {
            progress::observe_start_failed(task, handle, reason, message, *transient, rules, now)
        }
    }
}

/// True for the last news of an attempt.
pub(super) fn ends(what: &Observation) -> bool {
    match what {
        Observation::Created | Observation::Waiting { .. } | Observation::Started | Observation::Removed => {
            false
        }
        Observation::Blocked { .. }
        | Observation::Returned { .. }
        | Observation::StartFailed { .. }
        | Observation::Ended(_)
        | Observation::Lost { .. } => true,
    }
}
