//! What is remembered of a schedule between two looks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_ports::clock::Millis;
use muster_types::schedule::TriggerKind;
use muster_types::schedule_status::RunRef;
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
    /// As the status shows it.
    pub fn to_ref(&self) -> RunRef {
        let name = self.path.split_once('/').map_or(&*self.path, |(_, name)| name);
        RunRef { kind: self.kind.to_string(), name: name.to_owned() }
    }
}

/// One schedule.
#[derive(Debug, Default)]
pub struct Entry {
    /// Its uid.
    pub uid: String,
    /// When it is looked at next.
    pub due: Option<Millis>,
    /// Its runs that have not ended.
    pub active: BTreeSet<RunKey>,
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
    /// Forgets a run. True if it had not ended.
    pub fn forget(&mut self, run: &RunKey, place: &Place) -> bool {
        if let Some((at, state)) = place.ended {
            self.ended.remove(&EndedRun { at, key: run.clone(), state });
        }
        self.active.remove(run)
    }
}
