//! How many attempts are committed ahead of a free slot.
//!
//! A commit takes about as long as a short program. If the next attempt were committed only when a slot is free, slots
//! would stand empty most of the time; so as many wait at the runtime as end while a commit is under way. Tasks that take
//! longer than that are never committed ahead, and priority keeps its meaning.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_ports::clock::Millis;
use muster_ports::runtime::{Fact, Handle, Observation};

/// What a rest, a commit and the way to the runtime and back may take.
const ROUND_TRIP: f64 = 32.0;
/// Weight of one attempt in the average.
const WEIGHT: f64 = 0.1;
/// Longest rest, in milliseconds.
const REST: f64 = 5.0;
/// Most attempts that wait for one slot.
const MOST: f64 = 32.0;

/// Follows how long attempts take.
#[derive(Debug, Default)]
pub struct Pace {
    begun: BTreeMap<Handle, Millis>,
    /// Average time of an attempt, in milliseconds.
    average: Option<f64>,
}

impl Pace {
    /// When an attempt that has not ended began.
    pub fn begun(&self, handle: &Handle) -> Option<Millis> {
        self.begun.get(handle).copied()
    }

    /// Takes in news.
    #[allow(clippy::cast_precision_loss, reason = "an average of milliseconds")]
    pub fn observe(&mut self, fact: &Fact) {
        match &fact.what {
            Observation::Started => drop(self.begun.insert(fact.handle.clone(), fact.at)),
            Observation::Ended(_) => {
                let Some(begun) = self.begun.remove(&fact.handle) else { return };
                let took = (fact.at.0 - begun.0).max(0) as f64;
                let average = self.average.unwrap_or(took);
                self.average = Some(average + WEIGHT * (took - average));
            }
            Observation::StartFailed { .. } | Observation::Lost { .. } | Observation::Blocked { .. } => {
                self.begun.remove(&fact.handle);
            }
            Observation::Created | Observation::Waiting { .. } => {}
        }
    }

    /// How many may wait at a runtime with this many slots.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and not negative")]
    pub fn ahead(&self, slots: u32) -> u32 {
        let each = self.average.map_or(0.0, |average| (ROUND_TRIP / average.max(1.0)).min(MOST));
        (f64::from(slots) * each) as u32
    }

    /// How long a runtime with these slots does without news while so many attempts wait at it. What happens meanwhile is
    /// dealt with and written at once, and half of what waits is left when the rest is over.
    pub fn rest(&self, slots: u32, waiting: u32) -> Duration {
        let each = self.average.map_or(0.0, |average| average.max(1.0));
        let supply = each * f64::from(waiting) / f64::from(slots.max(1));
        // Timers know no less than a millisecond.
        let rest = if supply < 2.0 { 0.0 } else { (supply / 2.0).min(REST) };
        Duration::from_secs_f64(rest / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use muster_ports::runtime::{Cause, Ending};

    use super::*;

    fn pace(took: i64) -> Pace {
        let mut pace = Pace::default();
        for number in 0..50 {
            let handle = Handle { task: "t".into(), attempt: number };
            let start = i64::from(number) * 10_000;
            pace.observe(&Fact { handle: handle.clone(), at: Millis(start), what: Observation::Started });
            let at = Millis(start + took);
            let ending = Ending::without_containers(Cause::Itself, at);
            pace.observe(&Fact { handle, at, what: Observation::Ended(ending) });
        }
        pace
    }

    #[test]
    fn short_attempts_are_committed_ahead() {
        assert_eq!(pace(1).ahead(2), 64);
        assert_eq!(pace(0).ahead(2), 64);
        assert_eq!(pace(5).ahead(2), 12);
    }

    #[test]
    fn the_engine_rests_only_while_enough_waits_at_the_runtime() {
        assert_eq!(pace(1).rest(2, 50), Duration::from_millis(5));
        assert_eq!(pace(1).rest(2, 8), Duration::from_millis(2));
        assert_eq!(pace(1).rest(2, 3), Duration::ZERO);
        assert_eq!(pace(1).rest(2, 0), Duration::ZERO);
        assert_eq!(Pace::default().rest(2, 50), Duration::ZERO);
        assert_eq!(pace(200).rest(0, 1), Duration::from_millis(5));
    }

    #[test]
    fn long_ones_never_are() {
        assert_eq!(pace(200).ahead(2), 0);
        assert_eq!(Pace::default().ahead(64), 0);
    }
}
