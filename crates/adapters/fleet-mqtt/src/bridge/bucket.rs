//! How much one robot may say: a flood of one does not drown the others.

use muster_ports::clock::Millis;

/// Messages in a burst.
const BURST: i64 = 1000;
/// Messages in a second, for long.
const PER_SECOND: i64 = 400;

/// What a robot may still say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bucket {
    /// Thousandths of messages.
    left: i64,
    at: Millis,
}

impl Bucket {
    pub(crate) fn new(now: Millis) -> Self {
        Self { left: BURST * 1000, at: now }
    }

    /// Takes one message, if there is one left.
    pub(crate) fn take(&mut self, now: Millis) -> bool {
        let passed = (now.0 - self.at.0).clamp(0, 60_000);
        self.at = now;
        self.left = (self.left + passed * PER_SECOND).min(BURST * 1000);
        let enough = self.left >= 1000;
        if enough {
            self.left -= 1000;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_a_quiet_robot_is_not() {
        let mut bucket = Bucket::new(Millis(0));
        let heard = (0..5000).filter(|_| bucket.take(Millis(0))).count();
        assert_eq!(heard, 1000);
        assert_eq!((0..5000).filter(|_| bucket.take(Millis(1000))).count(), 400);
        assert!((0..100).all(|second| bucket.take(Millis(10_000 + second * 1000))));
    }
}
