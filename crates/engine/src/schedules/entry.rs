//! What is remembered of a schedule between two looks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_ports::clock::Millis;
use muster_types::schedule::TriggerKind;
use muster_types::schedule_status::{RunRef, RunResult};
use muster_types::{State, Timestamp};
use muster_workflows::schedule_history::EndedRun;
use muster_workflows::trigger::EndedWork;

/// A run: its kind, and `namespace/name`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKey {
    /// Task or Job.
    pub kind: TriggerKind,
    /// Where it is stored.
    pub path: Arc<str>,
}

impl RunKey {
    /// Its name.
    pub fn name(&self) -> String {
        self.path.split_once('/').map_or(&*self.path, |(_, name)| name).to_owned()
    }

    /// As the status shows it, with the backfill and the time it was made for.
    pub fn to_ref(&self, backfill: &str, scheduled_at: Option<Timestamp>) -> RunRef {
        let (kind, name) = (self.kind.to_string(), self.name());
        RunRef { kind, name, backfill: backfill.to_owned(), scheduled_at }
    }
}

/// One schedule.
#[derive(Debug, Default)]
pub struct Entry {
    /// Its uid.
    pub uid: String,
    /// When it is looked at next.
    pub due: Option<Millis>,
    /// Its runs that have not ended, as the status shows them.
    pub active: BTreeMap<RunKey, RunRef>,
    /// Its runs that have, in the order in which they ended.
    pub ended: BTreeSet<EndedRun<RunKey>>,
    /// When a run last succeeded.
    pub succeeded: Option<Timestamp>,
    /// Work that ended and may not have made its run yet, by end and uid.
    pub awaited: BTreeMap<(Timestamp, String), EndedWork>,
}

/// Where a run is remembered.
#[derive(Debug, Clone)]
pub struct Place {
    /// Path of its schedule.
    pub schedule: Arc<str>,
    /// How and when it ended; `None` if it has not.
    pub ended: Option<(Timestamp, State)>,
}

impl Entry {
    /// Its runs that have not ended, as the status shows them.
    pub fn active_refs(&self) -> Vec<RunRef> {
        self.active.values().cloned().collect()
    }

    /// How its last runs ended, the latest first.
    pub fn results(&self, most: usize) -> Vec<RunResult> {
        let result = |ended: &EndedRun<RunKey>| RunResult {
            kind: ended.key.kind.to_string(),
            name: ended.key.name(),
            state: ended.state,
            at: ended.at,
        };
        self.ended.iter().rev().take(most).map(result).collect()
    }

    /// Forgets a run. True if it had not ended.
    pub fn forget(&mut self, run: &RunKey, place: &Place) -> bool {
        if let Some((at, state)) = place.ended {
            self.ended.remove(&EndedRun { at, key: run.clone(), state });
        }
        self.active.remove(run).is_some()
    }
}
