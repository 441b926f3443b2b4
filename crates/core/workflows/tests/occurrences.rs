//! What is true of all occurrences, whatever the text.

use muster_types::Timestamp;
use muster_workflows::time_spec::{Occurrences, TimeSpec};
use proptest::prelude::*;

/// 2024 to 2028.
const FROM: i64 = 1_704_067_200;
const UPTO: i64 = 1_830_297_600;

fn zones() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "Asia/Kathmandu",
        "Pacific/Apia",
    ])
}

/// Zones whose clock is never put forward, where several occurrences would become one.
fn steady_zones() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "Asia/Kathmandu", "Etc/GMT+5"])
}

fn intervals() -> impl Strategy<Value = String> {
    let count = prop_oneof![Just(String::new()), (0_u32..60).prop_map(|count| count.to_string())];
    let step = prop_oneof![
        (1_u32..5000).prop_map(|minutes| format!("PT{minutes}M")),
        (1_u32..100_000).prop_map(|seconds| format!("PT{seconds}S")),
        (1_u32..40).prop_map(|days| format!("P{days}D")),
        (1_u32..15, 0_u32..3).prop_map(|(months, days)| format!("P{months}M{days}D")),
        (1_u32..3, 1_u32..30).prop_map(|(days, hours)| format!("P{days}DT{hours}H")),
        (1_u32..4).prop_map(|years| format!("P{years}Y")),
    ];
    let start = (2020_u32..2027, 1_u32..13, 1_u32..29, 0_u32..24, 0_u32..60);
    let start = start.prop_map(|(y, m, d, h, min)| format!("{y:04}-{m:02}-{d:02}T{h:02}:{min:02}:00"));
    (count, start, step, 0..3).prop_map(|(count, start, step, form)| match form {
        0 => format!("R{count}/{step}/{start}"),
        1 => format!("R{count}/{step}"),
        _ => format!("R{count}/{start}/{step}"),
    })
}

fn crons() -> impl Strategy<Value = String> {
    let field = |low: u32, high: u32| {
        prop_oneof![
            2 => Just("*".to_owned()),
            2 => (low..=high).prop_map(|number| number.to_string()),
            1 => (1_u32..=20).prop_map(|step| format!("*/{step}")),
            1 => (low..=high, low..=high).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
            1 => (low..=high, low..=high).prop_map(|(a, b)| format!("{a},{b}")),
        ]
    };
    let days = (field(1, 28), field(1, 12), field(0, 6));
    (field(0, 59), field(0, 23), days)
        .prop_map(|(minute, hour, (day, month, weekday))| format!("{minute} {hour} {day} {month} {weekday}"))
}

fn occurrences(zones: impl Strategy<Value = &'static str>) -> impl Strategy<Value = (String, Occurrences)> {
    let text = prop_oneof![intervals(), crons()];
    (text, zones, FROM..UPTO).prop_filter_map("a day that never comes", |(text, zone, created)| {
        let spec = TimeSpec::parse(&text, zone).ok()?;
        Some((format!("{text} {zone} {created}"), spec.starting(Timestamp::from_second(created))))
    })
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn occurrences_strictly_increase_and_searching_agrees_with_walking(
        (text, all) in occurrences(zones()), from in FROM..UPTO, back in 0_i64..400_000
    ) {
        let mut walked = Vec::new();
        let mut next = all.next_at_or_after(at(from));
        while let Some(time) = next.filter(|_| walked.len() < 40) {
            prop_assert!(walked.last().is_none_or(|last| *last < time), "{}: {:?} then {}", text, walked, time);
            walked.push(time);
            next = all.next_after(time);
        }
        // From anywhere between two of them, the next is the later one.
        for pair in walked.windows(2) {
            let (earlier, later) = (pair[0].as_second(), pair[1].as_second());
            for second in [earlier + 1, earlier + (later - earlier) / 2 + 1, later] {
                prop_assert_eq!(all.next_at_or_after(at(second.min(later))), Some(pair[1]), "{}", text);
            }
            // And the last one before the later is the earlier, from however far one looks.
            prop_assert_eq!(all.last_between(at(earlier - back), at(later - 1)), Some(pair[0]), "{}", text);
        }
    }

    #[test]
    fn counting_agrees_with_walking(
        (text, all) in occurrences(steady_zones()), from in FROM..UPTO, length in 1_i64..200_000
    ) {
        let mut walked = 0;
        let mut next = all.next_after(at(from));
        while let Some(time) = next.filter(|time| time.as_second() <= from + length) {
            walked += 1;
            next = all.next_after(time);
        }
        prop_assert_eq!(all.count_between(at(from), at(from + length)), walked, "{}", text);
    }

    #[test]
    fn the_normal_form_says_the_same_times(text in intervals(), zone in zones(), created in FROM..UPTO) {
        let created = at(created);
        let all = TimeSpec::parse(&text, zone).expect("a good text").starting(created);
        let again = TimeSpec::parse(&all.normal_form(), zone).expect("a normal form").starting(at(FROM));
        prop_assert_eq!(all.normal_form(), again.normal_form());
        for second in (FROM..UPTO).step_by(11_000_003) {
            prop_assert_eq!(all.next_at_or_after(at(second)), again.next_at_or_after(at(second)), "{}", &text);
        }
    }

    #[test]
    fn the_nth_is_found_by_searching_for_it((text, all) in occurrences(zones()), n in 0_u64..50) {
        if let Some(time) = all.nth(n) {
            prop_assert_eq!(all.next_at_or_after(time), Some(time), "{}", text);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,60}", almost in "[R0-9PTZDHMSYW/:+. *,#L@-]{0,40}") {
        for text in [text, almost] {
            if let Ok(spec) = TimeSpec::parse(&text, "Europe/Berlin") {
                let all = spec.starting(at(FROM));
                let _ignored = (all.next_at_or_after(Timestamp::MIN), all.next_after(Timestamp::MAX));
                let _ignored = (all.count_between(Timestamp::MIN, at(UPTO)), all.normal_form());
            }
        }
    }
}

#[test]
fn ten_years_of_missed_minutes_are_found_without_walking() {
    for spec in ["R/2015-01-01T00:00:00Z/PT1M", "* * * * *"] {
        let all = TimeSpec::parse(spec, "").unwrap().starting("2015-01-01T00:00:00Z".parse().unwrap());
        let (then, now) = ("2015-01-01T00:00:00Z".parse().unwrap(), "2025-01-01T00:00:30Z".parse().unwrap());
        let minutes = 3653 * 24 * 60;
        assert_eq!(all.count_between(then, now), minutes);
        assert_eq!(all.last_between(then, now), Some("2025-01-01T00:00:00Z".parse().unwrap()));
        // A hundred thousand such answers take no time to speak of; walking would take hours.
        for _ in 0..100_000 {
            assert_eq!(all.count_between(then, now), minutes);
        }
    }
}
