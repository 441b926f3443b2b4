//! What was seen of one managed resource, and whether what is seen next can be.

use std::collections::{BTreeMap, BTreeSet};

use muster_types::adapter_report::{AVAILABLE, FINALIZED, find_reported};
use muster_types::condition::{ConditionStatus, find_condition};
use muster_types::{AdapterStanding, ManagedResource};

use super::REQUIRED;

/// What was seen of one resource.
#[derive(Debug, Default)]
pub struct Seen {
    generation: i64,
    tracked: i64,
    /// The last pulse.
    pub sequence: u64,
    /// It was Ready.
    pub ready: bool,
    reported: BTreeMap<String, i64>,
    said_true: BTreeMap<i64, BTreeSet<String>>,
    /// Adapters that agreed to a deletion.
    pub finalized: BTreeSet<String>,
}

impl Seen {
    /// Takes in one more state; what cannot be is an error.
    pub fn take_in(&mut self, resource: &ManagedResource) -> Result<(), String> {
        let (generation, status) = (resource.metadata.generation, &resource.status);
        if generation < self.generation {
            return Err(format!("the generation went back from {} to {generation}", self.generation));
        }
        self.generation = generation;
        if status.pulse.as_ref().is_some_and(|pulse| pulse.sequence < self.sequence) {
            return Err("a pulse was forgotten".to_owned());
        }
        for standing in &status.adapters {
            self.take_in_report(standing, generation)?;
        }
        let available = find_condition(&status.conditions, AVAILABLE).ok_or("no Available")?;
        let tracked = available.observed_generation.unwrap_or(0);
        if tracked < self.tracked {
            return Err(format!("Available went back from {} to {tracked}", self.tracked));
        }
        self.tracked = tracked;
        let all_said = || self.said_true.get(&tracked).map_or(0, BTreeSet::len) == REQUIRED.len();
        if available.is_true() && !all_said() {
            return Err(format!("Available at {tracked} though not all adapters were"));
        }
        if status.is_ready() && (tracked != generation || resource.is_deleting()) {
            return Err(format!("Ready at {generation}, but available at {tracked}"));
        }
        Ok(())
    }

    fn take_in_report(&mut self, standing: &AdapterStanding, generation: i64) -> Result<(), String> {
        // One commit may carry several reports of an adapter; the history has them all.
        for trace in standing.history.iter().filter(|trace| trace.available == ConditionStatus::True) {
            self.said_true.entry(trace.generation).or_default().insert(standing.adapter.clone());
        }
        if !says(standing, AVAILABLE) && !is_false(standing) {
            return Ok(());
        }
        let last = self.reported.entry(standing.adapter.clone()).or_default();
        if standing.observed_generation < *last {
            return Err(format!("{} went back to {}", standing.adapter, standing.observed_generation));
        }
        *last = standing.observed_generation;
        if says(standing, FINALIZED) && standing.observed_generation == generation {
            self.finalized.insert(standing.adapter.clone());
        }
        Ok(())
    }
}

/// True if the current report of an adapter says True of a condition.
pub fn says(standing: &AdapterStanding, r#type: &str) -> bool {
    find_reported(&standing.conditions, r#type).is_some_and(|it| it.status == ConditionStatus::True)
}

fn is_false(standing: &AdapterStanding) -> bool {
    find_reported(&standing.conditions, AVAILABLE).is_some_and(|it| it.status == ConditionStatus::False)
}
