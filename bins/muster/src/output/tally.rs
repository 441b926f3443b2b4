//! How far many tasks are: counted from their changes, and said in one line.

use std::collections::HashMap;
use std::time::Duration;

use muster_types::State;

/// Seconds in words, for a guess.
const MINUTE: u64 = 60;

/// Tasks by where they are.
#[derive(Debug, Default)]
pub struct Tally {
    total: usize,
    states: HashMap<Box<str>, State>,
    running: usize,
    succeeded: usize,
    failed: usize,
    canceled: usize,
}

impl Tally {
    /// So many tasks are expected.
    pub fn new(total: usize) -> Self {
        Self { total, ..Self::default() }
    }

    /// A task is in a state.
    pub fn observe(&mut self, name: &str, state: State) {
        let before = match self.states.get_mut(name) {
            Some(known) => Some(std::mem::replace(known, state)),
            None => self.states.insert(name.into(), state),
        };
        if let Some(count) = before.and_then(|before| self.count(before)) {
            *count -= 1;
        }
        if let Some(count) = self.count(state) {
            *count += 1;
        }
    }

    /// A task is gone. If it had not ended, it never will.
    pub fn observe_gone(&mut self, name: &str) {
        if !self.states.get(name).is_some_and(|state| state.is_terminal()) {
            self.observe(name, State::Canceled);
        }
    }

    fn count(&mut self, state: State) -> Option<&mut usize> {
        match state {
            State::Running => Some(&mut self.running),
            State::Succeeded => Some(&mut self.succeeded),
            State::Failed => Some(&mut self.failed),
            State::Canceled => Some(&mut self.canceled),
            State::Created | State::Ready | State::Postponed | State::QuotaBlocked | State::Pending => None,
        }
    }

    /// Tasks that have ended.
    pub fn done(&self) -> usize {
        self.succeeded + self.failed + self.canceled
    }

    /// All that are expected.
    pub fn total(&self) -> usize {
        self.total
    }

    /// True if every task has ended.
    pub fn is_over(&self) -> bool {
        self.done() >= self.total
    }

    /// True if every task that ended did so well.
    pub fn is_well(&self) -> bool {
        self.failed + self.canceled == 0
    }

    /// How far it is after some time.
    pub fn line(&self, elapsed: Duration) -> String {
        let mut line = format!("{} of {} done, {} running", self.done(), self.total, self.running);
        line += &self.losses();
        let seconds = elapsed.as_secs_f64();
        let done = u32::try_from(self.done()).unwrap_or(u32::MAX);
        if done == 0 || seconds < 0.001 {
            return line;
        }
        let rate = f64::from(done) / seconds;
        line += &if rate < 10.0 { format!(", {rate:.1}/s") } else { format!(", {rate:.0}/s") };
        let left = u32::try_from(self.total.saturating_sub(self.done())).unwrap_or(u32::MAX);
        if left > 0 {
            line += &format!(", {} left", words(Duration::from_secs_f64(f64::from(left) / rate)));
        }
        line
    }

    /// What came of it.
    pub fn summary(&self) -> String {
        format!("{} of {} tasks succeeded{}", self.succeeded, self.total, self.losses())
    }

    fn losses(&self) -> String {
        let mut text = format!(", {} failed", self.failed);
        if self.canceled > 0 {
            text += &format!(", {} canceled", self.canceled);
        }
        text
    }
}

/// A guess of a time, in one unit.
fn words(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds < 2 * MINUTE => format!("{}s", seconds.max(1)),
        seconds if seconds < 120 * MINUTE => format!("{}m", seconds / MINUTE),
        seconds => format!("{}h", seconds / (60 * MINUTE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_counts_once_wherever_it_goes() {
        let mut tally = Tally::new(3);
        for state in [State::Ready, State::Pending, State::Running, State::Running, State::Succeeded] {
            tally.observe("a", state);
        }
        tally.observe("b", State::Running);
        tally.observe("c", State::Failed);
        assert_eq!((tally.done(), tally.running, tally.is_over(), tally.is_well()), (2, 1, false, false));
        tally.observe("b", State::Ready);
        assert_eq!(tally.running, 0);
    }

    #[test]
    fn a_task_that_is_gone_is_over_and_one_that_ended_stays_as_it_was() {
        let mut tally = Tally::new(2);
        tally.observe("a", State::Succeeded);
        tally.observe_gone("a");
        tally.observe_gone("b");
        assert_eq!(tally.summary(), "1 of 2 tasks succeeded, 0 failed, 1 canceled");
        assert!(tally.is_over());
    }

    #[test]
    fn the_line_tells_rate_and_time_left() {
        let mut tally = Tally::new(1_000);
        assert_eq!(tally.line(Duration::ZERO), "0 of 1000 done, 0 running, 0 failed");
        for task in 0..100 {
            tally.observe(&task.to_string(), State::Succeeded);
        }
        assert_eq!(
            tally.line(Duration::from_secs(2)),
            "100 of 1000 done, 0 running, 0 failed, 50/s, 18s left"
        );
        assert_eq!(
            tally.line(Duration::from_secs(100)),
            "100 of 1000 done, 0 running, 0 failed, 1.0/s, 15m left"
        );
    }
}
