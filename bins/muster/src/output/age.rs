//! How long ago something was, as the server's tables show it.

use muster_types::{Timestamp, human_duration};

/// The time between two instants; nothing if the first is later.
pub fn between(earlier: Timestamp, later: Timestamp) -> String {
    human_duration(later.as_second().saturating_sub(earlier.as_second()))
}

/// Now.
pub fn now() -> Timestamp {
    jiff::Timestamp::now().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_future_is_no_time_ago() {
        assert_eq!(between(Timestamp::from_second(10), Timestamp::from_second(5)), "0s");
        assert_eq!(between(Timestamp::from_second(0), Timestamp::from_second(330)), "5m30s");
    }
}
