//! When schedules run.

use muster_types::Timestamp;
use muster_workflows::time_spec::{Occurrences, TimeSpec};

use crate::Target;

pub const TIME_SPEC: Target = Target {
    name: "time_spec",
    property: "the times of a text increase, searching and counting agree with walking, and the normal form says the same times",
    run: time_spec,
};

/// Times that are walked through.
const WALKED: usize = 24;
/// Zones in which the clock never changes, where counting is exact.
const STEADY: [&str; 3] = ["", "UTC", "Asia/Tokyo"];

/// A line with a text, one with a zone, one with two numbers: when the schedule was made, and from when on it is looked at.
fn time_spec(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    let mut lines = text.split('\n');
    let (text, zone) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let mut numbers =
        lines.next().unwrap_or_default().split(' ').map(|word| word.parse::<i64>().unwrap_or(0));
    let (created, from) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let Ok(spec) = TimeSpec::parse(text, zone) else { return };
    let (created, from) = (Timestamp::from_second(created), Timestamp::from_second(from));
    let all = spec.starting(created);
    let shown = format!("{text:?} in {zone:?} from {created}, looked at from {from}");

    let walked = walk(&all, from, &shown);
    search(&all, &walked, &shown);
    if let Some(last) = walked.last().filter(|_| STEADY.contains(&zone)) {
        let later = walked.iter().filter(|time| **time > from).count() as u64;
        assert_eq!(all.count_between(from, *last), later, "counting: {shown}");
    }
    // One that would be after the last instant there is counts as being there, but is never found.
    if let Some(first) = all.nth(0).filter(|first| *first < Timestamp::MAX) {
        assert_eq!(all.next_at_or_after(first), Some(first), "the first: {shown}");
    }
    let whole = all.count_between(Timestamp::MIN, Timestamp::MAX);
    assert!(walked.is_empty() || whole > 0, "{shown}");
    if let Some(left) = all.remaining_after(from) {
        let later = walked.iter().filter(|time| **time > from).count() as u64;
        assert!(left >= later, "{left} are left, and {later} were found: {shown}");
    }
    let far = all.nth(u64::MAX).filter(|time| *time < Timestamp::MAX);
    assert!(far.is_none_or(|time| Some(time) == all.next_at_or_after(time)), "{shown}");
    assert_eq!(all.next_after(Timestamp::MAX), None, "{shown}");
    let last = all.last_between(Timestamp::MIN, Timestamp::MAX);
    assert!(last >= walked.last().copied(), "{last:?} is the last, and {walked:?} are there: {shown}");

    let normal = all.normal_form();
    if !is_written_exactly(&normal) {
        return;
    }
    let again = TimeSpec::parse(&normal, zone).unwrap_or_else(|error| panic!("{shown}: {normal:?}: {error}"));
    let again = again.starting(created);
    assert_eq!(again.normal_form(), normal, "{shown}");
    assert_eq!(walk(&again, from, &normal), walked, "the normal form {normal:?} of {shown}");
}

/// True unless a normal form names a year in which offsets had seconds, which are not written
/// (`fuzz/findings/time_spec/offset-with-seconds.md`), or the last one, after which nothing can be written.
fn is_written_exactly(normal: &str) -> bool {
    let years = normal.split('/').filter_map(|part| part.split_once('-')?.0.parse::<u32>().ok());
    years.into_iter().all(|year| (1973..9999).contains(&year))
}

fn walk(all: &Occurrences, from: Timestamp, shown: &str) -> Vec<Timestamp> {
    let mut walked: Vec<Timestamp> = Vec::new();
    let mut next = all.next_at_or_after(from);
    while let Some(time) = next.filter(|_| walked.len() < WALKED) {
        assert!(walked.last().is_none_or(|last| *last < time), "{time} follows {walked:?}: {shown}");
        assert!(time >= from, "{time}: {shown}");
        walked.push(time);
        next = all.next_after(time);
    }
    walked
}

fn search(all: &Occurrences, walked: &[Timestamp], shown: &str) {
    for pair in walked.windows(2) {
        let (earlier, later) = (pair[0].as_second(), pair[1].as_second());
        for second in [earlier + 1, earlier + (later - earlier) / 2, later] {
            let second = second.clamp(earlier + 1, later);
            let found = all.next_at_or_after(Timestamp::from_second(second));
            assert_eq!(found, Some(pair[1]), "from {second} on: {shown}");
        }
        let before = Timestamp::from_second(later - 1);
        assert_eq!(all.last_between(pair[0], before), Some(pair[0]), "the last before {later}: {shown}");
    }
}
