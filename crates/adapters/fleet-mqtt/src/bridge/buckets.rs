//! How much one robot may say: a flood of one does not drown the others.

use std::collections::HashMap;

use muster_ports::clock::Millis;

/// Messages in a burst.
const BURST: i64 = 1000;
/// Messages in a second, for long.
const PER_SECOND: i64 = 400;

/// Robots that are counted at once; beyond, counting begins anew.
const MOST: usize = 200_000;
/// Between two looks at who has been quiet, in milliseconds.
const SWEEP: i64 = 10_000;

/// What each robot may still say. One that has been quiet costs nothing.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    by_robot: HashMap<Box<str>, Bucket>,
    swept: Millis,
}

impl Buckets {
    /// Takes one message of a robot, if it has not said too much already.
    pub(crate) fn take(&mut self, robot: &str, now: Millis) -> bool {
        if now.0 - self.swept.0 >= SWEEP {
            self.swept = now;
            self.by_robot.retain(|_, bucket| !bucket.is_full(now));
            self.by_robot.shrink_to(self.by_robot.len() * 2);
        }
        if let Some(bucket) = self.by_robot.get_mut(robot) {
            return bucket.take(now);
        }
        if self.by_robot.len() >= MOST {
            self.by_robot.clear();
        }
        self.by_robot.entry(robot.into()).or_insert_with(|| Bucket::new(now)).take(now)
    }
}

/// What one robot may still say.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Thousandths of messages.
    left: i64,
    at: Millis,
}

impl Bucket {
    fn new(now: Millis) -> Self {
        Self { left: BURST * 1000, at: now }
    }

    fn left_at(&self, now: Millis) -> i64 {
        let passed = (now.0 - self.at.0).clamp(0, 60_000);
        (self.left + passed * PER_SECOND).min(BURST * 1000)
    }

    /// It holds all it can: a new one would be the same.
    fn is_full(&self, now: Millis) -> bool {
        self.left_at(now) == BURST * 1000
    }

    /// Takes one message, if there is one left.
    fn take(&mut self, now: Millis) -> bool {
        self.left = self.left_at(now);
        self.at = now;
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

    #[test]
    fn who_has_been_quiet_is_forgotten_and_who_has_not_is_still_counted() {
        let mut buckets = Buckets::default();
        for robot in 0..1000 {
            assert!(buckets.take(&format!("quiet-{robot}"), Millis(50_000)));
        }
        while buckets.take("loud", Millis(59_999)) {}
        assert!(!buckets.take("loud", Millis(60_001)), "two milliseconds later it has said too much still");
        assert_eq!(buckets.by_robot.len(), 1, "the quiet ones are gone");
    }
}
