//! When to look at which attempt again: one table, exact, with nothing left behind by attempts that ended early.

use std::collections::BTreeSet;
use std::time::Instant;

/// Deadlines by time, at most one per attempt.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    due: BTreeSet<(Instant, u64)>,
}

impl Timers {
    /// Moves the deadline of an attempt. `armed` is what the attempt remembers of it.
    pub(crate) fn rearm(&mut self, id: u64, armed: &mut Option<Instant>, at: Option<Instant>) {
        if *armed == at {
            return;
        }
        if let Some(old) = *armed {
            self.due.remove(&(old, id));
        }
        if let Some(new) = at {
            self.due.insert((new, id));
        }
        *armed = at;
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The attempts whose deadline has come, earliest first.
    pub(crate) fn due(&self, now: Instant) -> Vec<u64> {
        self.due.range(..=(now, u64::MAX)).map(|(_, id)| *id).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn deadlines_come_due_in_order_and_can_be_moved_or_dropped() {
        let (mut timers, start) = (Timers::default(), Instant::now());
        let at = |seconds| Some(start + Duration::from_secs(seconds));
        let (mut one, mut two, mut three) = (None, None, None);
        timers.rearm(1, &mut one, at(3));
        timers.rearm(2, &mut two, at(2));
        timers.rearm(3, &mut three, at(2));
        assert_eq!(timers.next(), at(2));
        timers.rearm(3, &mut three, None);
        timers.rearm(1, &mut one, at(1));
        assert_eq!(timers.due(start + Duration::from_secs(2)), [1, 2]);
        timers.rearm(1, &mut one, None);
        timers.rearm(2, &mut two, None);
        assert_eq!(timers.next(), None);
    }
}
