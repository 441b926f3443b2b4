//! How the queue was in the last minutes, second by second.

use std::collections::VecDeque;

use muster_types::State;

use super::rows::Rows;

/// Seconds that are remembered; more than a line of a terminal shows.
const SECONDS: usize = 300;

/// The queue in one second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment {
    /// Tasks that waited.
    pub waiting: u64,
    /// Tasks that ran.
    pub running: u64,
    /// Tasks that ended in it.
    pub ended: u64,
    /// Those of them that failed.
    pub failed: u64,
}

/// What was, oldest first.
#[derive(Debug, Default)]
pub struct History {
    moments: VecDeque<Moment>,
    before: (u64, u64),
    latest: Option<i64>,
}

impl History {
    /// Remembers how it is in this second, unless that was done.
    pub fn observe(&mut self, second: i64, rows: &Rows) {
        if self.latest.is_some_and(|latest| second <= latest) {
            return;
        }
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let sum = |states: &[State]| number(states.iter().map(|state| rows.count(*state)).sum());
        let (ended, failed) = rows.ends();
        let moment = Moment {
            waiting: sum(&[State::Ready, State::Postponed, State::QuotaBlocked]),
            running: sum(&[State::Pending, State::Running]),
            ended: ended - self.before.0,
            failed: failed - self.before.1,
        };
        self.before = (ended, failed);
        self.latest = Some(second);
        if self.moments.len() == SECONDS {
            self.moments.pop_front();
        }
        self.moments.push_back(moment);
    }

    /// At most so many of the latest values of something, oldest first.
    pub fn latest(&self, most: usize, of: impl Fn(&Moment) -> u64) -> Vec<u64> {
        self.moments.iter().skip(self.moments.len().saturating_sub(most)).map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    #[test]
    fn a_second_is_remembered_once_with_what_ended_in_it() {
        let (mut rows, mut history) = (Rows::default(), History::default());
        rows.put(row("a", State::Running, 0));
        rows.put(row("b", State::Ready, 0));
        history.observe(1, &rows);
        history.observe(1, &rows);
        rows.put(row("a", State::Failed, 1));
        history.observe(2, &rows);
        history.observe(3, &rows);
        assert_eq!(history.latest(9, |moment| moment.running), [1, 0, 0]);
        assert_eq!(history.latest(9, |moment| moment.ended), [0, 1, 0]);
        assert_eq!(history.latest(2, |moment| moment.failed), [1, 0]);
        assert_eq!(history.latest(1, |moment| moment.waiting), [1]);
    }

    #[test]
    fn only_the_last_minutes_are_remembered() {
        let mut history = History::default();
        for second in 0..1000 {
            history.observe(second, &Rows::default());
        }
        assert_eq!(history.latest(1000, |moment| moment.waiting).len(), SECONDS);
    }
}
