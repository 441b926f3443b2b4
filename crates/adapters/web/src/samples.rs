//! The last half hour in numbers: how many tasks were in which state, how many ended, how long they had waited.

use std::collections::VecDeque;

use muster_types::State;

/// Seconds between two samples.
pub const SAMPLE_SECONDS: u64 = 5;
/// How many are kept: half an hour.
const KEPT: usize = 360;
/// How many waits are kept for percentiles.
const WAITS: usize = 2_000;

/// How many tasks are in each state, in the order of [`State::ALL`].
pub type Tally = [usize; 9];

/// One look at the queue.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// Tasks by state.
    pub tally: Tally,
    /// Tasks that ended since the sample before.
    pub ended: u64,
}

/// What was seen lately.
#[derive(Debug, Default)]
pub struct Samples {
    kept: VecDeque<Sample>,
    ended: u64,
    waits: VecDeque<u32>,
}

impl Samples {
    /// Notes that a task ended.
    pub fn note_end(&mut self) {
        self.ended += 1;
    }

    /// Notes for how many seconds a task had waited when it started.
    pub fn note_wait(&mut self, seconds: i64) {
        if self.waits.len() == WAITS {
            self.waits.pop_front();
        }
        self.waits.push_back(u32::try_from(seconds.max(0)).unwrap_or(u32::MAX));
    }

    /// Takes a sample.
    pub fn take(&mut self, tally: Tally) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(Sample { tally, ended: std::mem::take(&mut self.ended) });
    }

    /// All samples, oldest first.
    pub fn all(&self) -> impl ExactSizeIterator<Item = &Sample> {
        self.kept.iter()
    }

    /// Tasks that ended per second, over the last minute.
    pub fn throughput(&self) -> f64 {
        let lately = usize::try_from(60 / SAMPLE_SECONDS).unwrap_or(1);
        let last: Vec<_> = self.kept.iter().rev().take(lately).collect();
        let seconds = u32::try_from(last.len() as u64 * SAMPLE_SECONDS).unwrap_or(u32::MAX);
        let ended = u32::try_from(last.iter().map(|sample| sample.ended).sum::<u64>()).unwrap_or(u32::MAX);
        if seconds == 0 { 0.0 } else { f64::from(ended) / f64::from(seconds) }
    }

    /// Seconds that the given percentage of the latest tasks waited at most.
    pub fn wait(&self, percent: usize) -> Option<u32> {
        let mut sorted: Vec<_> = self.waits.iter().copied().collect();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1)?;
        sorted.get(last * percent / 100).copied()
    }
}

/// The place of a state in a tally.
pub fn place_of(state: State) -> usize {
    State::ALL.iter().position(|known| *known == state).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_samples_go_and_ends_count_once() {
        let mut samples = Samples::default();
        for number in 0..400 {
            samples.note_end();
            samples.note_end();
            samples.take([number; 9]);
        }
        assert_eq!(samples.all().len(), KEPT);
        assert_eq!(samples.all().next().unwrap().tally, [40; 9]);
        assert!((samples.throughput() - 2.0 / 5.0).abs() < 1e-9);
    }

    #[test]
    fn percentiles_are_of_the_latest_waits() {
        let mut samples = Samples::default();
        assert_eq!(samples.wait(50), None);
        for seconds in (0..=100).rev() {
            samples.note_wait(seconds);
        }
        assert_eq!((samples.wait(50), samples.wait(99), samples.wait(0)), (Some(50), Some(99), Some(0)));
        for _ in 0..WAITS {
            samples.note_wait(7);
        }
        assert_eq!(samples.wait(100), Some(7));
    }

    #[test]
    fn every_state_has_a_place() {
        let places: Vec<_> = State::ALL.iter().map(|state| place_of(*state)).collect();
        assert_eq!(places, (0..Tally::default().len()).collect::<Vec<_>>());
    }
}
