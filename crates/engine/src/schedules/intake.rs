//! Committed changes, taken in: what is remembered is as the store is.

use std::sync::Arc;

use muster_ports::store::{Change, Key, Stored, Watch, WatchError};
use muster_types::schedule::TriggerKind;
use muster_types::{JsonText, Schedule, State};
use muster_workflows::schedule_history::EndedRun;
use muster_workflows::trigger::{is_handled, is_waited_for};
use serde::Deserialize;

use super::Schedules;
use super::entry::{Entry, Place, RunKey};
use super::run_brief::{RunBrief, may_be_run};
use crate::intake::Intake;

/// What of a stored schedule must be known before it is looked at.
#[derive(Deserialize)]
struct Head {
    metadata: HeadMetadata,
    #[serde(default)]
    spec: HeadSpec,
}

#[derive(Deserialize)]
struct HeadMetadata {
    #[serde(default)]
    uid: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct HeadSpec {
    triggers: Vec<serde::de::IgnoredAny>,
}

impl Intake for Schedules {
    fn watch(&mut self) -> &mut Watch {
        &mut self.watch
    }

    fn observe(&mut self, change: &Change) {
        let path = &change.object.path;
        if change.resource == self.names.schedules {
            if change.deleted {
                self.forget_schedule(path);
            } else {
                self.observe_schedule(&change.object);
            }
        } else if change.resource == self.names.templates {
            self.dirty.extend(self.without_template.remove(&**path).unwrap_or_default());
        } else if change.resource == self.names.tasks || change.resource == self.names.jobs {
            let is_task = change.resource == self.names.tasks;
            let kind = if is_task { TriggerKind::Task } else { TriggerKind::Job };
            if change.deleted {
                self.forget_run(&RunKey { kind, path: path.clone() });
            } else {
                self.observe_run(kind, &change.object);
            }
        }
    }

    fn start_over(&mut self) -> Result<(), WatchError> {
        *self = Self::new(self.store.clone(), self.clock.clone())?;
        Ok(())
    }
}

impl Schedules {
    /// Takes in everything that is stored: schedules first, so that their runs find them.
    pub(super) fn read_all(&mut self) {
        let schedules = self.store.snapshot(&self.names.schedules);
        for stored in schedules.range(None, None) {
            self.observe_schedule(stored);
        }
        for kind in [TriggerKind::Task, TriggerKind::Job] {
            let resource = if kind == TriggerKind::Task { &self.names.tasks } else { &self.names.jobs };
            let stored = self.store.snapshot(resource);
            for stored in stored.range(None, None) {
                self.observe_run(kind, stored);
            }
        }
    }

    fn observe_schedule(&mut self, stored: &Stored) {
        let path = &stored.path;
        let Ok(head) = serde_json::from_slice::<Head>(stored.json()) else {
            tracing::error!(path = &**path, "a stored schedule cannot be read; it is left alone");
            return;
        };
        if self.entries.get(path).is_some_and(|entry| entry.uid != head.metadata.uid) {
            self.forget_schedule(path);
        }
        let entry = self.entries.entry(path.clone()).or_default();
        entry.uid.clone_from(&head.metadata.uid);
        self.by_uid.insert(head.metadata.uid, path.clone());
        let namespace = stored.namespace().to_owned();
        if head.spec.triggers.is_empty() {
            if let Some(paths) = self.triggered.get_mut(&namespace) {
                paths.remove(path);
            }
        } else {
            self.triggered.entry(namespace).or_default().insert(path.clone());
        }
        self.dirty.insert(path.clone());
    }

    fn forget_schedule(&mut self, path: &Arc<str>) {
        let Some(entry) = self.entries.remove(path) else { return };
        let Entry { uid, due, active, ended, .. } = entry;
        self.by_uid.remove(&uid);
        if let Some(due) = due {
            self.due.remove(&(due, path.clone()));
        }
        for run in active.keys().chain(ended.iter().map(|ended| &ended.key)) {
            self.runs.remove(run);
        }
        for paths in self.triggered.values_mut().chain(self.without_template.values_mut()) {
            paths.remove(path);
        }
        self.dirty.remove(path);
    }

    fn observe_run(&mut self, kind: TriggerKind, stored: &Stored) {
        let waited_for = self.triggered.get(stored.namespace()).is_some_and(|paths| !paths.is_empty());
        let run = RunKey { kind, path: stored.path.clone() };
        let is_known = self.runs.contains_key(&run);
        if !waited_for && !is_known && !may_be_run(stored.json()) {
            return;
        }
        let Some(brief) = RunBrief::read(kind, stored.json()) else { return };
        let owner = brief.owner.as_ref().and_then(|uid| self.by_uid.get(uid)).cloned();
        match owner {
            Some(path) => self.place_run(run, &path, &brief),
            None => self.forget_run(&run),
        }
        if waited_for && brief.ended.is_some() {
            self.tell_triggered(stored.namespace(), &brief);
        }
    }

    fn place_run(&mut self, run: RunKey, path: &Arc<str>, brief: &RunBrief) {
        let Some(entry) = self.entries.get_mut(path) else { return };
        let ended = brief.ended.as_ref().map(|work| (work.at, work.state));
        let known = self.runs.insert(run.clone(), Place { schedule: path.clone(), ended });
        let is_news = known.is_none_or(|known| known.ended != ended);
        match ended {
            None => {
                let shown = run.to_ref(&brief.backfill, brief.scheduled_at);
                entry.active.insert(run, shown);
            }
            Some((at, state)) => {
                entry.active.remove(&run);
                entry.ended.insert(EndedRun { at, key: run, state });
                if state == State::Succeeded {
                    entry.succeeded = entry.succeeded.max(Some(at));
                }
            }
        }
        if is_news {
            self.dirty.insert(path.clone());
        }
    }

    fn forget_run(&mut self, run: &RunKey) {
        let Some(place) = self.runs.remove(run) else { return };
        if self.entries.get_mut(&place.schedule).is_some_and(|entry| entry.forget(run, &place)) {
            self.dirty.insert(place.schedule);
        }
    }

    /// Work ended: schedules that wait for it remember it until they made their run.
    fn tell_triggered(&mut self, namespace: &str, brief: &RunBrief) {
        let (Some(paths), Some(work)) = (self.triggered.get(namespace), &brief.ended) else { return };
        let wall_lead = self.now().wall_lead();
        for path in paths {
            let key = Key { resource: self.names.schedules.clone(), path: path.clone() };
            let stored = self.store.get(&key);
            let schedule = stored.and_then(|stored| Schedule::from_json(stored.json()).ok());
            let Some(schedule) = schedule else { continue };
            if is_waited_for(&schedule, work, &brief.labels)
                && !is_handled(&schedule, &schedule.status, work, wall_lead)
                && let Some(entry) = self.entries.get_mut(path)
            {
                entry.awaited.insert((work.at, work.uid.clone()), work.clone());
                self.dirty.insert(path.clone());
            }
        }
    }
}
