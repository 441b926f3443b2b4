//! How fast one token may ask: a bucket of tokens per name, refilled over time.

use std::collections::HashMap;

use muster_ports::clock::Millis;
use parking_lot::Mutex;

/// Buckets that are kept; the fullest go first when there are more.
const MAX_BUCKETS: usize = 10_000;

/// Limits requests per name.
pub struct Rates {
    per_second: f64,
    burst: f64,
    buckets: Mutex<HashMap<String, Bucket>>,
}

struct Bucket {
    level: f64,
    at: Millis,
}

impl Rates {
    /// `per_second` requests on average, twice that at once; zero is no limit.
    pub fn new(per_second: u32) -> Self {
        let per_second = f64::from(per_second);
        Self { per_second, burst: per_second * 2.0, buckets: Mutex::default() }
    }

    /// True if this request may go on.
    pub fn take(&self, name: &str, now: Millis) -> bool {
        if self.per_second <= 0.0 {
            return true;
        }
        let mut buckets = self.buckets.lock();
        if !buckets.contains_key(name) {
            if buckets.len() >= MAX_BUCKETS {
                buckets.retain(|_, bucket| bucket.level < self.burst / 2.0);
            }
            buckets.insert(name.to_owned(), Bucket { level: self.burst, at: now });
        }
        let Some(bucket) = buckets.get_mut(name) else { return true };
        #[allow(clippy::cast_precision_loss, reason = "milliseconds between two requests fit a float")]
        let passed = now.0.saturating_sub(bucket.at.0).max(0) as f64 / 1000.0;
        bucket.level = (bucket.level + passed * self.per_second).min(self.burst);
        bucket.at = now;
        let allowed = bucket.level >= 1.0;
        if allowed {
            bucket.level -= 1.0;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_allowed_and_then_the_rate_holds() {
        let rates = Rates::new(10);
        let allowed = (0..100).filter(|_| rates.take("a", Millis(0))).count();
        assert_eq!(allowed, 20);
        assert!(rates.take("b", Millis(0)), "another name has its own bucket");
        let later = (0..100).filter(|_| rates.take("a", Millis(500))).count();
        assert_eq!(later, 5);
    }

    #[test]
    fn zero_is_no_limit() {
        let rates = Rates::new(0);
        assert!((0..1000).all(|_| rates.take("a", Millis(0))));
    }
}
