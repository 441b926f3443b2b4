//! How long to wait before asking again: twice as long each time, and never quite as long as others wait.

use std::time::Duration;

/// Waiting times that grow.
#[derive(Debug, Clone)]
pub(crate) struct Pause {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Pause {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// True if there was an answer since the last pause.
    pub(crate) fn is_first(&self) -> bool {
        self.next == self.first
    }

    /// There was an answer.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }

    /// How long to wait now; up to half of it more, so that servers do not come back all at once.
    pub(crate) fn next(&mut self) -> Duration {
        let now = self.next;
        self.next = (now * 2).min(self.longest);
        let mut byte = [0];
        let share = getrandom::fill(&mut byte).map_or(0, |()| u32::from(byte[0]));
        now + now * share / 512
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_there_is_an_answer() {
        let mut pause = Pause::new(Duration::from_secs(1), Duration::from_secs(3));
        assert!(pause.is_first());
        for least in [1, 2, 3, 3] {
            let now = pause.next();
            assert!(
                now >= Duration::from_secs(least) && now <= Duration::from_secs(least) * 3 / 2,
                "{now:?}"
            );
        }
        assert!(!pause.is_first());
        pause.reset();
        assert!(pause.next() < Duration::from_secs(2));
    }
}
