//! What texts mean, by table: `spec | zone | created | first occurrences in UTC`.

use muster_types::Timestamp;
use muster_workflows::time_spec::TimeSpec;

/// The first occurrences from creation on, in UTC, without the century and the seconds if they are zero.
fn said(spec: &str, zone: &str, created: &str) -> String {
    let spec = match TimeSpec::parse(spec, zone) {
        Ok(spec) => spec,
        Err(error) => return error.to_string(),
    };
    let created: Timestamp = created.parse().expect("a time of creation");
    let occurrences = spec.starting(created);
    let mut shown = Vec::new();
    let mut next = occurrences.next_at_or_after(created);
    while let Some(time) = next.filter(|_| shown.len() < 4) {
        shown.push(time.to_string().trim_end_matches(":00Z").trim_end_matches('Z').to_owned());
        next = occurrences.next_after(time);
    }
    if shown.is_empty() { "never".to_owned() } else { shown.join(" ") }
}

#[track_caller]
fn check(table: &str) {
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let columns: Vec<_> = line.split(" | ").map(str::trim).collect();
        assert_eq!(columns.len(), 4, "not a line of the table: {line}");
        let (spec, zone, created, expected) = (columns[0], columns[1], columns[2], columns[3]);
        assert_eq!(said(spec, zone.trim_matches('-'), created), expected, "{line}");
    }
}

#[track_caller]
fn check_normal(table: &str) {
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (spec, expected) = line.split_once(" -> ").expect("spec -> normal form");
        let created = "2015-04-30T00:10:00Z".parse().expect("a time of creation");
        let normal = |text: &str| TimeSpec::parse(text, "").map(|spec| spec.starting(created).normal_form());
        assert_eq!(normal(spec).as_deref(), Ok(expected), "{spec}");
        assert_eq!(normal(expected).as_deref(), Ok(expected), "the normal form is its own normal form");
    }
}

#[track_caller]
fn check_refused(table: &str) {
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (spec, expected) = line.split_once(" -> ").expect("spec -> error");
        let error = TimeSpec::parse(spec, "").err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(expected), "{spec}");
    }
}

#[test]
fn all_forms_of_repeating_intervals_are_read() {
    check(
        "
        R5/T01:00:00/PT01 | - | 2015-04-30T00:10:00Z | 2015-04-30T01:00 2015-04-30T02:00 2015-04-30T03:00 2015-04-30T04:00
        R2/T01:00:00/PT01 | - | 2015-04-30T01:00:01Z | 2015-05-01T01:00 2015-05-01T02:00
        R/2015-05-01T01:00:00Z/PT90M | - | 2015-04-30T00:10:00Z | 2015-05-01T01:00 2015-05-01T02:30 2015-05-01T04:00 2015-05-01T05:30
        R-1/2015-05-01/P1D | - | 2015-04-30T00:10:00Z | 2015-05-01T00:00 2015-05-02T00:00 2015-05-03T00:00 2015-05-04T00:00
        R3/20150501T010000Z/20150501T013000Z | - | 2015-04-30T00:10:00Z | 2015-05-01T01:00 2015-05-01T01:30 2015-05-01T02:00
        R3/PT1H/2015-05-01T05:00:00Z | - | 2015-04-30T00:10:00Z | 2015-05-01T03:00 2015-05-01T04:00 2015-05-01T05:00
        R/PT6H/2015-05-01T05:00:00Z | - | 2015-04-30T23:10:00Z | 2015-05-01T05:00
        R2/PT1H | - | 2015-04-30T00:10:00Z | 2015-04-30T00:10 2015-04-30T01:10
        2015-05-01T01:00:00+02:00 | - | 2015-04-30T00:10:00Z | 2015-04-30T23:00
        T01:00 | - | 2015-04-30T01:10:00Z | 2015-05-01T01:00
        R0/2015-05-01T01:00:00Z/PT1H | - | 2015-04-30T00:10:00Z | never
        R2/2015-W18-5T01Z/P2W | - | 2015-04-30T00:10:00Z | 2015-05-01T01:00 2015-05-15T01:00
        R2/2015-121T01Z/PT0.5H | - | 2015-04-30T00:10:00Z | 2015-05-01T01:00 2015-05-01T01:30
        R2/2015-05-01T24:00Z/P0000-01-00 | - | 2015-04-30T00:10:00Z | 2015-05-02T00:00 2015-06-02T00:00
        ",
    );
}

#[test]
fn occurrences_before_creation_use_up_the_count() {
    check(
        "
        R5/2015-04-29T22:00:00Z/PT1H | - | 2015-04-30T00:10:00Z | 2015-04-30T01:00 2015-04-30T02:00
        R1/2015-04-29T22:00:00Z/PT1H | - | 2015-04-30T00:10:00Z | never
        ",
    );
}

#[test]
fn calendar_steps_are_taken_from_the_start() {
    check(
        "
        R/2023-01-31T08:00:00Z/P1M | - | 2023-01-01T00:00:00Z | 2023-01-31T08:00 2023-02-28T08:00 2023-03-31T08:00 2023-04-30T08:00
        R/2024-01-31T08:00:00Z/P1M | - | 2024-01-01T00:00:00Z | 2024-01-31T08:00 2024-02-29T08:00 2024-03-31T08:00 2024-04-30T08:00
        R/2024-02-29T08:00:00Z/P1Y | - | 2024-01-01T00:00:00Z | 2024-02-29T08:00 2025-02-28T08:00 2026-02-28T08:00 2027-02-28T08:00
        R/2024-02-29T08:00:00Z/P1Y | - | 2028-01-01T00:00:00Z | 2028-02-29T08:00 2029-02-28T08:00 2030-02-28T08:00 2031-02-28T08:00
        R/2023-08-31T08:00:00Z/P6M | - | 2023-01-01T00:00:00Z | 2023-08-31T08:00 2024-02-29T08:00 2024-08-31T08:00 2025-02-28T08:00
        R3/P1M/2023-05-31T08:00:00Z | - | 2023-01-01T00:00:00Z | 2023-03-31T08:00 2023-04-30T08:00 2023-05-31T08:00
        R/2023-01-30T08:00:00Z/P1M1D | - | 2023-01-01T00:00:00Z | 2023-01-30T08:00 2023-03-01T08:00 2023-04-01T08:00 2023-05-03T08:00
        ",
    );
}

#[test]
fn days_follow_the_clock_of_the_zone_and_hours_do_not() {
    check(
        "
        R/2026-03-28T02:30:00/P1D | Europe/Berlin | 2026-03-01T00:00:00Z | 2026-03-28T01:30 2026-03-29T01:00 2026-03-30T00:30 2026-03-31T00:30
        R/2026-03-28T12:00:00/P1D | Europe/Berlin | 2026-03-01T00:00:00Z | 2026-03-28T11:00 2026-03-29T10:00 2026-03-30T10:00 2026-03-31T10:00
        R/2026-10-24T02:30:00/P1D | Europe/Berlin | 2026-10-01T00:00:00Z | 2026-10-24T00:30 2026-10-25T00:30 2026-10-26T01:30 2026-10-27T01:30
        R/2026-03-28T12:00:00/PT24H | Europe/Berlin | 2026-03-01T00:00:00Z | 2026-03-28T11:00 2026-03-29T11:00 2026-03-30T11:00 2026-03-31T11:00
        R/2026-03-28T12:00:00+02:00/P1D | Europe/Berlin | 2026-03-01T00:00:00Z | 2026-03-28T10:00 2026-03-29T09:00 2026-03-30T09:00 2026-03-31T09:00
        R/T02:30:00/P1D | Europe/Berlin | 2026-03-28T12:00:00Z | 2026-03-29T01:00 2026-03-30T00:30 2026-03-31T00:30 2026-04-01T00:30
        ",
    );
}

#[test]
fn a_fixed_time_of_cron_runs_once_on_days_on_which_the_clock_changes() {
    check(
        "
        30 2 * * * | Europe/Berlin | 2026-03-28T12:00:00Z | 2026-03-29T01:00 2026-03-30T00:30 2026-03-31T00:30 2026-04-01T00:30
        15,45 2 * * * | Europe/Berlin | 2026-03-29T00:00:00Z | 2026-03-29T01:00 2026-03-30T00:15 2026-03-30T00:45 2026-03-31T00:15
        30 2 * * * | Europe/Berlin | 2026-10-24T12:00:00Z | 2026-10-25T00:30 2026-10-26T01:30 2026-10-27T01:30 2026-10-28T01:30
        30 2 * * * | Europe/Berlin | 2026-10-25T00:40:00Z | 2026-10-26T01:30 2026-10-27T01:30 2026-10-28T01:30 2026-10-29T01:30
        ",
    );
}

#[test]
fn a_star_of_cron_follows_elapsed_time() {
    check(
        "
        */30 * * * * | Europe/Berlin | 2026-03-29T00:15:00Z | 2026-03-29T00:30 2026-03-29T01:00 2026-03-29T01:30 2026-03-29T02:00
        30 * * * * | Europe/Berlin | 2026-10-24T23:00:00Z | 2026-10-24T23:30 2026-10-25T00:30 2026-10-25T01:30 2026-10-25T02:30
        */30 2 * * * | Europe/Berlin | 2026-10-24T23:00:00Z | 2026-10-25T00:00 2026-10-25T00:30 2026-10-25T01:00 2026-10-25T01:30
        ",
    );
}

#[test]
fn cron_has_five_or_six_fields_names_and_nicknames() {
    check(
        "
        0 1 * * MON-FRI | - | 2026-11-13T00:00:00Z | 2026-11-13T01:00 2026-11-16T01:00 2026-11-17T01:00 2026-11-18T01:00
        */20 0 1 1 jan ? | - | 2026-11-13T00:00:00Z | 2027-01-01T01:00 2027-01-01T01:00:20 2027-01-01T01:00:40 2028-01-01T01:00
        @daily | - | 2026-11-13T00:00:01Z | 2026-11-14T00:00 2026-11-15T00:00 2026-11-16T00:00 2026-11-17T00:00
        0 0 13 * FRI | - | 2026-11-01T00:00:00Z | 2026-11-06T00:00 2026-11-13T00:00 2026-11-20T00:00 2026-11-27T00:00
        0 0 */2 * MON | - | 2026-11-01T00:00:00Z | 2026-11-09T00:00 2026-11-23T00:00 2026-12-07T00:00 2026-12-21T00:00
        0 0 L 2 * | - | 2026-11-01T00:00:00Z | 2027-02-28T00:00 2028-02-29T00:00 2029-02-28T00:00 2030-02-28T00:00
        0 0 * * 5L | - | 2026-11-01T00:00:00Z | 2026-11-27T00:00 2026-12-25T00:00 2027-01-29T00:00 2027-02-26T00:00
        0 0 * * 7#2 | - | 2026-11-01T00:00:00Z | 2026-11-08T00:00 2026-12-13T00:00 2027-01-10T00:00 2027-02-14T00:00
        0 0 29 2 * | - | 2097-01-01T00:00:00Z | 2104-02-29T00:00 2108-02-29T00:00 2112-02-29T00:00 2116-02-29T00:00
        ",
    );
}

#[test]
fn the_normal_form_says_how_a_text_was_understood() {
    check_normal(
        "
        R5/T01:00:00/PT01 -> R5/2015-04-30T01:00:00Z/PT1H
        R-1/20150501T01Z/P14D -> R/2015-05-01T01:00:00Z/P14D
        R/2015-05-01T01:00:00+02:00/P0001-06-00T00:01:30 -> R/2015-05-01T01:00:00+02:00/P1Y6MT1M30S
        R2/2015-05-01T01:00:00Z/2015-05-01T02:30:00Z -> R2/2015-05-01T01:00:00Z/PT1H30M
        R2/PT90M/2015-05-01T02:30:00Z -> R2/PT1H30M/2015-05-01T02:30:00Z
        R/PT60S -> R/2015-04-30T00:10:00Z/PT1M
        2015-05-01T02:30Z -> R1/2015-05-01T02:30:00Z
        @hourly -> 0 * * * *
        0  1 * * mon-fri -> 0 1 * * MON-FRI
        ",
    );
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    check_refused(
        "
        R/2015-05-01T01:00:00Z/P1H -> at character 26: H is a unit of time and needs a T before it: write PT1H
        R/2015-05-01T01:00:00Z/PT0S -> at character 24: the period is zero; the shortest is PT1S
        R/2015-05-01T01:00:00Z/-PT1S -> at character 24: a period cannot be negative
        R/2015-05-01T01:00:00Z/PT-1S -> at character 26: a period cannot be negative, and needs no sign
        R/PT0.5S -> at character 5: a period has whole seconds; nothing finer can be kept
        R/PT1 -> at character 5: hours have two digits without a unit; write for example PT1H, PT1M or PT1S
        R/PT90 -> at character 5: without a unit this is 90 hours; write PT90H, PT90M or PT90S
        R/P5 -> at character 4: a number needs a unit: Y, M, W or D, or behind a T H, M or S
        R/P1D1M -> at character 7: M comes too late; the order is Y, M, W, D, T, H, M, S
        R/PT1D -> at character 6: D is a unit of dates and stands before the T
        R/PT -> at character 5: hours have two digits without a unit; write for example PT1H, PT1M or PT1S
        R/P1DT -> at character 7: T is followed by hours, minutes or seconds
        R5 -> at character 3: a / and a start or a period are expected here, such as R/T01:00:00/P1D
        R5/T01:00:00 -> at character 13: a / and a period are expected here, such as /PT1H
        Rx/PT1H -> at character 2: behind R stands how often it runs in all, at most 1000000000; nothing is no end
        R-2/PT1H -> at character 2: behind R stands how often it runs in all, at most 1000000000; nothing is no end
        PT1H -> at character 1: what repeats begins with R: write R/PT1H
        2015-05-01/PT1H -> at character 12: what repeats begins with R, such as R5/T01:00:00/PT1H
        R/PT1H/PT1H -> at character 8: one of the two parts is a time, not a period
        R/2015-02-29T01:00Z/PT1H -> at character 3: there is no day 2015-02-29
        R/T25:00/PT1H -> at character 4: there is no such time of day
        R/T01:00:00.5/PT1H -> at character 12: times have whole seconds
        R/2015-05-02T00Z/2015-05-01T00Z -> at character 18: the end is not after the start
        R/PT1H/T01:00 -> at character 8: an end needs a date
        R/PT1H/2015-05-01/P1D -> at character 19: there are at most a count and two parts
        hourly -> at character 1: a time such as 2026-11-15T01:00:00Z or T01:00:00 is expected here
        * * * * -> at character 7: cron has five or six fields, not 4
        60 * * * * -> at character 1: \"60\" is not a minute, which is 0 to 59
        * 1-25 * * * -> at character 5: \"25\" is not a hour, which is 0 to 23
        0 5-1 * * * -> at character 3: the range runs backwards
        */0 * * * * -> at character 3: a step is a number from 1 on
        0 0 30 2 * -> at character 5: there is never such a day
        0 0 * * 1#6 -> at character 9: behind # stands which one, 1 to 5
        @reboot -> at character 1: @reboot is none of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly
        ",
    );
    assert_eq!(
        TimeSpec::parse("@daily", "Mars/Olympus").unwrap_err().to_string(),
        "\"Mars/Olympus\" is not an IANA time zone such as Europe/Berlin"
    );
    assert!(TimeSpec::parse("", "").is_err() && TimeSpec::parse(&"R".repeat(300), "").is_err());
}

#[test]
fn how_many_are_left_is_known_if_there_is_an_end() {
    let left = |spec: &str, time: &str| {
        let spec = TimeSpec::parse(spec, "").unwrap();
        spec.starting("2015-04-30T00:10:00Z".parse().unwrap()).remaining_after(time.parse().unwrap())
    };
    assert_eq!(left("R5/T01:00:00/PT01", "2015-04-30T00:10:00Z"), Some(5));
    assert_eq!(left("R5/T01:00:00/PT01", "2015-04-30T02:00:00Z"), Some(3));
    assert_eq!(left("R5/T01:00:00/PT01", "2016-04-30T02:00:00Z"), Some(0));
    assert_eq!(left("R/T01:00:00/PT01", "2015-04-30T02:00:00Z"), None);
    assert_eq!(left("R/PT1H/2015-05-01T00:00:00Z", "2015-04-30T22:30:00Z"), Some(2));
    assert_eq!(left("@daily", "2015-04-30T02:00:00Z"), None);
}

#[test]
fn a_series_that_begins_in_a_gap_of_the_clock_keeps_its_time_of_day() {
    check(
        "
        R/T02:30:00/P1D | Europe/Berlin | 2026-03-29T00:30:00Z | 2026-03-29T01:00 2026-03-30T00:30 2026-03-31T00:30 2026-04-01T00:30
        R/2026-03-29T02:30:00/P1W | Europe/Berlin | 2026-03-01T00:00:00Z | 2026-03-29T01:00 2026-04-05T00:30 2026-04-12T00:30 2026-04-19T00:30
        R/2026-03-29T02:30:00/PT1H | Europe/Berlin | 2026-03-01T00:00:00Z | 2026-03-29T01:00 2026-03-29T02:00 2026-03-29T03:00 2026-03-29T04:00
        ",
    );
    let created = "2026-03-29T00:30:00Z";
    let times =
        TimeSpec::parse("R/T02:30:00/P1D", "Europe/Berlin").unwrap().starting(created.parse().unwrap());
    assert_eq!(times.normal_form(), "R/2026-03-29T02:30:00/P1D");
    let again = said(&times.normal_form(), "Europe/Berlin", created);
    assert_eq!(again, said("R/T02:30:00/P1D", "Europe/Berlin", created));
}
