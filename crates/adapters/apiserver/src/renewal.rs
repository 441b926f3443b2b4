//! How long generated certificates are valid, and when they are made again. Values alone: no clock, no files.
//!
//! The authority outlives many leaves, because clients keep copies of it; a leaf is short, because a key that was stolen is worth
//! as much as its certificate is valid.

use std::time::Duration;

use muster_types::Millis;

const DAY: Duration = Duration::from_hours(24);
/// How long an authority is valid.
pub const AUTHORITY_LASTS: Duration = DAY.saturating_mul(3650);
/// An authority with less than this left is made again, with the key it has.
const AUTHORITY_LEFT: Duration = DAY.saturating_mul(365);
/// How long the certificate of a server is valid.
pub const LEAF_LASTS: Duration = DAY.saturating_mul(90);
/// The certificate of a server with less than this left is made again.
const LEAF_LEFT: Duration = DAY.saturating_mul(30);
/// How far the clock of a client may be behind that of the server.
pub const SKEW: Duration = Duration::from_hours(1);

/// From when until when a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The first moment.
    pub from: Millis,
    /// The last moment.
    pub until: Millis,
}

impl Validity {
    /// That of a certificate that is made now.
    pub fn starting(now: Millis, lasts: Duration) -> Self {
        let from = now.0.saturating_sub(millis(SKEW));
        Self { from: Millis(from), until: Millis(from.saturating_add(millis(lasts))) }
    }

    /// True if an authority has to be made again.
    pub fn is_authority_due(self, now: Millis) -> bool {
        self.is_due(now, AUTHORITY_LASTS, AUTHORITY_LEFT)
    }

    /// True if the certificate of a server has to be made again.
    pub fn is_leaf_due(self, now: Millis) -> bool {
        self.is_due(now, LEAF_LASTS, LEAF_LEFT)
    }

    /// Also true of one that is not valid yet, because the clock was set back, and of one that is valid for longer than is made.
    fn is_due(self, now: Millis, lasts: Duration, left: Duration) -> bool {
        now < self.from
            || self.until.0.saturating_sub(self.from.0) > millis(lasts)
            || self.until.0.saturating_sub(now.0) < millis(left)
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_800_000_000_000);

    fn after(days: i64) -> Millis {
        Millis(NOW.0 + days * millis(DAY))
    }

    #[test]
    fn a_leaf_is_due_in_its_last_third() {
        let leaf = Validity::starting(NOW, LEAF_LASTS);
        assert_eq!(
            [0, 1, 59, 60, 89, 91, 4000].map(|days| leaf.is_leaf_due(after(days))),
            [false, false, false, true, true, true, true]
        );
        assert!(!leaf.is_leaf_due(Millis(leaf.until.0 - millis(LEAF_LEFT))));
        assert!(leaf.is_leaf_due(Millis(leaf.until.0 - millis(LEAF_LEFT) + 1)));
    }

    #[test]
    fn a_leaf_is_valid_for_ninety_days_and_before_clocks_that_are_a_little_late() {
        let leaf = Validity::starting(NOW, LEAF_LASTS);
        assert_eq!(leaf.until.0 - leaf.from.0, 90 * 24 * 3_600_000);
        assert_eq!(NOW.0 - leaf.from.0, 3_600_000);
    }

    #[test]
    fn an_authority_is_due_in_its_last_year() {
        let authority = Validity::starting(NOW, AUTHORITY_LASTS);
        assert_eq!(
            [0, 3284, 3285, 3651].map(|days| authority.is_authority_due(after(days))),
            [false, false, true, true]
        );
    }

    #[test]
    fn what_begins_after_now_is_due() {
        let leaf = Validity::starting(after(1), LEAF_LASTS);
        assert!(leaf.is_leaf_due(NOW));
        assert!(!leaf.is_leaf_due(leaf.from));
    }

    #[test]
    fn what_is_valid_for_longer_than_is_made_is_due() {
        let long = Validity::starting(NOW, LEAF_LASTS + Duration::from_secs(1));
        assert!(long.is_leaf_due(NOW));
        let endless = Validity { from: Millis(0), until: Millis(i64::MAX) };
        assert!(endless.is_leaf_due(NOW) && endless.is_authority_due(NOW));
    }
}
