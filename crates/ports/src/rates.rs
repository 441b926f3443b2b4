//! How fast somebody may ask: a bucket per name, refilled over time. A flood of one does not drown the others.

use std::collections::HashMap;

use crate::clock::Millis;

/// Names that are counted at once; beyond, counting begins anew.
const MOST: usize = 200_000;
/// Between two looks at who has been quiet, in milliseconds.
const SWEEP: i64 = 10_000;
/// Names beyond which another look is worth it before that.
const MANY: usize = 1024;

/// What each name may still ask. One that has been quiet costs nothing.
#[derive(Debug)]
pub struct Rates {
    per_second: i64,
    /// Thousandths.
    burst: i64,
    by_name: HashMap<Box<str>, Bucket>,
    swept: Millis,
    /// Names that were left by the last look.
    left: usize,
}

/// What one name may still ask.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Thousandths.
    left: i64,
    at: Millis,
}

impl Rates {
    /// So many in a second for long, and so many at once.
    pub fn new(per_second: u32, burst: u32) -> Self {
        Self {
            per_second: per_second.into(),
            burst: i64::from(burst) * 1000,
            by_name: HashMap::new(),
            swept: Millis(0),
            left: 0,
        }
    }

    /// Takes one, if there is one left.
    pub fn take(&mut self, name: &str, now: Millis) -> bool {
        let grown = self.by_name.len() >= MANY.max(self.left * 2);
        if grown || now.0.saturating_sub(self.swept.0) >= SWEEP {
            self.sweep(now);
        }
        let bucket = match self.by_name.get(name) {
            Some(bucket) => *bucket,
            None => Bucket { left: self.burst, at: now },
        };
        let left = self.left_at(bucket, now);
        let enough = left >= 1000;
        let bucket = Bucket { left: if enough { left - 1000 } else { left }, at: now };
        if let Some(known) = self.by_name.get_mut(name) {
            *known = bucket;
        } else {
            if self.by_name.len() >= MOST {
                self.by_name.clear();
            }
            self.by_name.insert(name.into(), bucket);
        }
        enough
    }

    fn left_at(&self, bucket: Bucket, now: Millis) -> i64 {
        let passed = now.0.saturating_sub(bucket.at.0).clamp(0, 60_000);
        (bucket.left + passed * self.per_second).min(self.burst)
    }

    /// Forgets those whose bucket is full: a new one would be the same.
    fn sweep(&mut self, now: Millis) {
        self.swept = now;
        let mut names = std::mem::take(&mut self.by_name);
        names.retain(|_, bucket| self.left_at(*bucket, now) < self.burst);
        names.shrink_to(names.len() * 2);
        self.left = names.len();
        self.by_name = names;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(rates: &mut Rates, name: &str, second: i64) -> usize {
        (0..5000).filter(|_| rates.take(name, Millis(second * 1000))).count()
    }

    #[test]
    fn a_burst_is_allowed_and_then_the_rate_holds_for_each_name() {
        let mut rates = Rates::new(400, 1000);
        assert_eq!(taken(&mut rates, "a", 0), 1000);
        assert_eq!(taken(&mut rates, "b", 0), 1000, "another name has its own bucket");
        assert_eq!(taken(&mut rates, "a", 1), 400);
        assert!((10..100).all(|second| rates.take("a", Millis(second * 1000))));
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing_and_takes_nothing() {
        let mut rates = Rates::new(10, 20);
        assert_eq!(taken(&mut rates, "a", 100), 20);
        assert_eq!(taken(&mut rates, "a", 50), 0);
        assert_eq!(taken(&mut rates, "a", 51), 10);
    }

    #[test]
    fn who_has_been_quiet_is_forgotten_and_who_has_not_is_still_counted() {
        let mut rates = Rates::new(400, 1000);
        for name in 0..1000 {
            assert!(rates.take(&format!("quiet-{name}"), Millis(50_000)));
        }
        while rates.take("loud", Millis(59_999)) {}
        assert!(!rates.take("loud", Millis(60_001)), "two milliseconds later it has asked too much still");
        assert_eq!(rates.by_name.len(), 1, "the quiet ones are gone");
    }

    #[test]
    fn a_crowd_that_asks_once_takes_no_room_though_nobody_asks_after_it() {
        let mut rates = Rates::new(400, 1000);
        for name in 0..50_000 {
            assert!(rates.take(&format!("one-{name}"), Millis(10_000 + name / 10)));
        }
        assert!(rates.by_name.len() <= MANY, "{} names are counted", rates.by_name.len());
    }
}
