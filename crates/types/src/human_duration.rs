//! How long something took or is ago, as `kubectl` shows it.

/// A duration in two significant units, as `kubectl` shows ages.
pub fn human_duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let two = |large: i64, large_unit: &str, small: i64, small_unit: &str| {
        if small == 0 {
            format!("{large}{large_unit}")
        } else {
            format!("{large}{large_unit}{small}{small_unit}")
        }
    };
    match seconds {
        ..0 => "0s".to_owned(),
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(s / MINUTE, "m", s % MINUTE, "s"),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => two(s / HOUR, "h", s % HOUR / MINUTE, "m"),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 8 * DAY => two(s / DAY, "d", s % DAY / HOUR, "h"),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s if s < 8 * YEAR => two(s / YEAR, "y", s % YEAR / DAY, "d"),
        s => format!("{}y", s / YEAR),
    }
}

/// The same of milliseconds: what took less than ten seconds is shown with its fraction.
pub fn human_millis(millis: i64) -> String {
    match millis {
        ..0 => "0s".to_owned(),
        ms if ms < 1_000 => format!("{ms}ms"),
        ms if ms < 10_000 => format!("{}.{:02}s", ms / 1_000, ms % 1_000 / 10),
        ms => human_duration(ms / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_kubectl_writes_them() {
        let shown = [0, 119, 120, 330, 6_000, 12_000, 100_000, 200_000, 800_000].map(human_duration);
        assert_eq!(shown, ["0s", "119s", "2m", "5m30s", "100m", "3h20m", "27h", "2d7h", "9d"]);
        assert_eq!(human_duration(-5), "0s");
    }

    #[test]
    fn short_times_show_their_fraction() {
        let shown = [-1, 0, 12, 999, 1_000, 1_259, 9_999, 10_000, 330_500].map(human_millis);
        assert_eq!(shown, ["0s", "0ms", "12ms", "999ms", "1.00s", "1.25s", "9.99s", "10s", "5m30s"]);
    }
}
