//! How many attempts wait at the runtime for a slot.
//!
//! A commit takes about as long as a short program. If the next attempt were committed only when a slot is free, slots
//! would stand empty most of the time; so as many wait at the runtime as end while a commit is under way. They are on loan: each
//! is taken back when a task of higher rank needs its place, when its task is changed, and when it has waited for [`PATIENCE`].

use std::collections::BTreeMap;
use std::time::Duration;

use muster_ports::clock::Millis;
use muster_ports::runtime::{Fact, Handle, Observation};

/// What a rest, a commit and the way to the runtime and back may take, in milliseconds.
const ROUND_TRIP: i64 = 32;
/// How long an attempt waits at the runtime before it is taken back, in milliseconds.
pub const PATIENCE: i64 = 50;
/// Weight of one attempt in the average.
const WEIGHT: f64 = 0.1;
/// Longest rest, in milliseconds.
const REST: f64 = 5.0;
/// Most attempts that wait for one slot. One that waits for too long halves that, and each that ends adds a little again.
const MOST: f64 = 64.0;
const MORE: f64 = 0.05;
/// The least that an attempt counts for, in milliseconds: times are whole ones.
const SHORTEST: f64 = 0.5;

/// Longest time from one end to the next that is one of many, in milliseconds: longer ones say that there was nothing to do.
const LONGEST_GAP: i64 = 64;

/// Follows how long attempts take.
#[derive(Debug)]
pub struct Pace {
    /// Attempts that have not ended: since when, and whether it is as a process.
    begun: BTreeMap<Handle, (Millis, bool)>,
    /// Average time of a process, in milliseconds.
    average: Option<f64>,
    /// When a process ended last.
    last_end: Option<Millis>,
    /// Average time from one end of a process to the next, in milliseconds.
    gap: Option<f64>,
    /// Most attempts that wait for one slot, as things are.
    most: f64,
    /// Attempts waited for too long: none is handed over before one has ended.
    is_slow: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self { begun: BTreeMap::new(), average: None, last_end: None, gap: None, most: MOST, is_slow: false }
    }
}

impl Pace {
    /// When an attempt that has not ended began.
    pub fn begun(&self, handle: &Handle) -> Option<Millis> {
        self.begun.get(handle).map(|(begun, _)| *begun)
    }

    /// Takes in what happened to an attempt, as a process or elsewhere.
    #[allow(clippy::cast_precision_loss, reason = "an average of milliseconds")]
    pub fn observe(&mut self, fact: &Fact, is_process: bool) {
        match &fact.what {
            Observation::Started => drop(self.begun.insert(fact.handle.clone(), (fact.at, is_process))),
            Observation::Ended(_) => {
                let Some((begun, true)) = self.begun.remove(&fact.handle) else { return };
                let took = (fact.at.0 - begun.0).max(0) as f64;
                self.average = Some(fold_average(self.average, took));
                // Ends of several slots are not told in their order.
                let gap = self.last_end.map(|last| fact.at.0.saturating_sub(last.0).max(0));
                self.last_end = self.last_end.max(Some(fact.at));
                if let Some(gap) = gap.filter(|gap| *gap <= LONGEST_GAP) {
                    self.gap = Some(fold_average(self.gap, gap as f64));
                }
                self.most = (self.most + MORE).min(MOST);
                self.is_slow = false;
            }
            Observation::StartFailed { .. } | Observation::Lost { .. } | Observation::Blocked { .. } => {
                self.begun.remove(&fact.handle);
            }
            Observation::Created
            | Observation::Returned { .. }
            | Observation::Waiting { .. }
            | Observation::Removed => {}
        }
    }

    /// An attempt waited for longer than [`PATIENCE`].
    pub fn observe_wait(&mut self) {
        self.most = (self.most / 2.0).max(1.0);
        self.is_slow = true;
    }

    /// How many may wait at a runtime with this many slots: no more than end within a round trip, however short they are, or the last
    /// would wait for too long where the machine has other work. Slots whose attempt has run for longer than a round trip do not
    /// count: when they are free is not known.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and not negative")]
    #[allow(clippy::cast_precision_loss, reason = "milliseconds of a round trip")]
    pub fn prefetch(&self, slots: u32, now: Millis) -> u32 {
        let Some(average) = self.average.filter(|_| !self.is_slow) else { return 0 };
        let long =
            self.begun.values().filter(|(begun, is_process)| *is_process && now.0 - begun.0 > ROUND_TRIP);
        let long = long.count();
        let turning = slots.saturating_sub(u32::try_from(long).unwrap_or(u32::MAX));
        let each = (ROUND_TRIP as f64 / average.max(SHORTEST)).min(self.most);
        // At least one, or ends that each wait for a round trip would never be seen to come faster.
        let end = self.gap.map_or(f64::MAX, |gap| (ROUND_TRIP as f64 / gap).max(1.0));
        (f64::from(turning) * each).min(end) as u32
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

/// An average with one more value.
fn fold_average(average: Option<f64>, value: f64) -> f64 {
    let average = average.unwrap_or(value);
    average + WEIGHT * (value - average)
}

#[cfg(test)]
mod tests {
    use muster_ports::runtime::{Cause, Ending};

    use super::*;

    const LATER: Millis = Millis(1_000_000);

    fn pace(took: i64) -> Pace {
        pace_of(took, 4)
    }

    /// So many side by side, the last of which end at [`LATER`].
    fn pace_of(took: i64, wide: i64) -> Pace {
        let mut pace = Pace::default();
        for number in 0..64 {
            let handle = Handle { task: "t".into(), attempt: number };
            let start = LATER.0 - (64 - i64::from(number)).div_euclid(wide) * took;
            pace.observe(
                &Fact { handle: handle.clone(), at: Millis(start), what: Observation::Started },
                true,
            );
            let at = Millis(start + took);
            let ending = Ending::without_containers(Cause::Itself, at);
            pace.observe(&Fact { handle, at, what: Observation::Ended(ending) }, true);
        }
        pace
    }

    #[test]
    fn short_attempts_are_prefetched() {
        assert_eq!(pace(1).prefetch(2, LATER), 64);
        assert_eq!(pace(0).prefetch(2, LATER), 128);
        assert_eq!(pace(5).prefetch(2, LATER), 12);
    }

    #[test]
    fn no_more_are_prefetched_than_end_within_a_round_trip() {
        assert_eq!(
            pace_of(4, 1).prefetch(2, LATER),
            8,
            "two slots turn no faster than one: the machine has other work"
        );
        let mut pace = pace_of(4, 1);
        let later = Millis(LATER.0 + 1_000);
        end_at(&mut pace, later);
        assert_eq!(pace.prefetch(2, later), 8, "a pause says nothing about the pace");
    }

    #[test]
    fn ends_of_several_slots_that_are_told_slot_by_slot_come_no_slower_than_they_do() {
        let mut pace = Pace::default();
        let mut end = |slot: u32, at: i64| {
            let handle = Handle { task: slot.to_string(), attempt: 1 };
            let start = Fact { handle: handle.clone(), at: Millis(at - 1), what: Observation::Started };
            pace.observe(&start, true);
            let at = Millis(at);
            let ending = Ending::without_containers(Cause::Itself, at);
            pace.observe(&Fact { handle, at, what: Observation::Ended(ending) }, true);
        };
        for batch in 0..50 {
            for slot in 0..2 {
                (0..10).for_each(|number| end(slot, batch * 40 + number * 4));
            }
        }
        let gap = pace.gap.unwrap();
        assert!((1.0..3.0).contains(&gap), "one every two milliseconds, not {gap}");
    }

    #[test]
    fn one_is_prefetched_where_every_end_waits_for_a_slow_commit() {
        let mut pace = pace_of(1, 1);
        pace.gap = Some(40.0);
        assert_eq!(pace.prefetch(1, LATER), 1);
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
        assert_eq!(pace(200).prefetch(2, LATER), 0);
        assert_eq!(Pace::default().prefetch(64, LATER), 0);
    }

    #[test]
    fn slots_that_have_not_turned_for_a_while_do_not_count() {
        let mut pace = pace(1);
        let handle = Handle { task: "long".into(), attempt: 1 };
        pace.observe(&Fact { handle, at: LATER, what: Observation::Started }, true);
        assert_eq!(pace.prefetch(2, Millis(LATER.0 + 10)), 64);
        assert_eq!(pace.prefetch(2, Millis(LATER.0 + 40)), 32);
        assert_eq!(pace.prefetch(1, Millis(LATER.0 + 40)), 0);
    }

    #[test]
    fn after_a_wait_that_was_too_long_nothing_is_prefetched_before_an_attempt_ended() {
        let mut pace = pace(0);
        pace.observe_wait();
        assert_eq!(pace.prefetch(2, LATER), 0);
        end_one(&mut pace);
        assert_eq!(pace.prefetch(2, LATER), 64, "and half as many as before then");
        let more = (pace.prefetch(2, LATER)..).take_while(|_| {
            end_one(&mut pace);
            pace.prefetch(2, LATER) < 128
        });
        assert!((620..=640).contains(&more.count()), "each that ends adds a little");
    }

    fn end_one(pace: &mut Pace) {
        end_at(pace, LATER);
    }

    fn end_at(pace: &mut Pace, at: Millis) {
        let handle = Handle { task: "t".into(), attempt: 1 };
        pace.observe(&Fact { handle: handle.clone(), at, what: Observation::Started }, true);
        let ending = Ending::without_containers(Cause::Itself, at);
        pace.observe(&Fact { handle, at, what: Observation::Ended(ending) }, true);
    }
}
