//! How long ago something was, in two units at most, as `kubectl` and the server's tables show it.

use muster_types::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// The time between two instants; nothing if the first is later.
pub fn between(earlier: Timestamp, later: Timestamp) -> String {
    render(later.as_second().saturating_sub(earlier.as_second()).max(0))
}

/// Now.
pub fn now() -> Timestamp {
    jiff::Timestamp::now().into()
}

fn render(seconds: i64) -> String {
    let (large, unit, rest, rest_unit) = match seconds {
        s if s < 2 * MINUTE => (s, "s", 0, ""),
        s if s < 10 * MINUTE => (s / MINUTE, "m", s % MINUTE, "s"),
        s if s < 3 * HOUR => (s / MINUTE, "m", 0, ""),
        s if s < 8 * HOUR => (s / HOUR, "h", s % HOUR / MINUTE, "m"),
        s if s < 2 * DAY => (s / HOUR, "h", 0, ""),
        s if s < 8 * DAY => (s / DAY, "d", s % DAY / HOUR, "h"),
        s if s < 2 * YEAR => (s / DAY, "d", 0, ""),
        s => (s / YEAR, "y", s % YEAR / DAY, "d"),
    };
    if rest == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{rest}{rest_unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_in_tables() {
        let shown = [0, 119, 120, 330, 6_000, 12_000, 100_000, 200_000, 800_000].map(render);
        assert_eq!(shown, ["0s", "119s", "2m", "5m30s", "100m", "3h20m", "27h", "2d7h", "9d"]);
    }

    #[test]
    fn the_future_is_no_time_ago() {
        assert_eq!(between(Timestamp::from_second(10), Timestamp::from_second(5)), "0s");
    }
}
