//! What becomes of reports: accepted, traced, discarded, refused.

use muster_resources::{Verdict, accept_report};
use muster_types::AdapterReport;
use muster_types::condition::ConditionStatus;
use muster_types::timestamp::MicroTimestamp;
use serde_json::json;

use crate::stage::{Stage, report};

#[test]
fn older_generations_are_discarded_and_newer_ones_than_the_spec_too() {
    Stage::new(&["dns"]).play(
        "create              -> Available=False@1 Ready=False
         report dns g2 True  -> Discarded FutureGeneration; Available=False@1 Ready=False
         edit                -> Available=False@1 Ready=False
         report dns g2 True  -> Accepted; Available=True@2 Ready=True
         report dns g1 False -> Discarded StaleGeneration; Available=True@2 Ready=True",
    );
}

#[test]
fn what_was_seen_earlier_is_discarded() {
    let mut stage = Stage::new(&["dns"]);
    stage.play(
        "create             -> Available=False@1 Ready=False
         report dns g1 True -> Accepted; Available=True@1 Ready=True
         report dns g1 True -> Discarded Duplicate; Available=True@1 Ready=True",
    );
    let seen = MicroTimestamp::from_microsecond(stage.now.0 * 1000 - 1);
    let late = report("dns", 1, ConditionStatus::False, "", seen);
    let now = MicroTimestamp::from_microsecond(stage.now.0 * 1000);
    let verdict = accept_report(&stage.rules, &stage.resource, &late, true, now).unwrap();
    assert_eq!(verdict.answer().reason, "StaleTime");
}

#[test]
fn the_first_unknown_is_shown_but_blocks_nothing() {
    let mut stage = Stage::new(&["dns"]);
    stage.play(
        "create                -> Available=False@1 Ready=False
         edit                  -> Available=False@1 Ready=False
         report dns g2 Unknown -> Traced; Available=False@1 Ready=False
         report dns g2 Unknown -> Discarded Duplicate; Available=False@1 Ready=False",
    );
    assert_eq!(stage.says("dns"), "Applied=True Available=Unknown Health=True");
    stage.play("report dns g1 True -> Accepted; Available=True@1 Ready=False");
}

#[test]
fn the_history_is_bounded_and_folds_what_repeats() {
    let mut stage = Stage::new(&["dns"]);
    stage.play("create -> Available=False@1 Ready=False");
    for round in 0..20 {
        let reason = format!("R{}", round / 2);
        stage.play(&format!(
            "wait 1s ->\n report dns g1 False {reason} -> Accepted; Available=False@1 Ready=False"
        ));
    }
    let standing = stage.resource.status.standing("dns").unwrap();
    let history: Vec<_> = standing.history.iter().map(|trace| (trace.reason.as_str(), trace.count)).collect();
    assert_eq!(history.len(), 8);
    assert_eq!(history.last(), Some(&("R9", 2)));
    assert_eq!(standing.failures, 20);
}

#[test]
fn failures_are_counted_per_generation_and_end_with_success() {
    let mut stage = Stage::new(&["dns"]);
    let failures = |stage: &Stage| stage.resource.status.standing("dns").unwrap().failures;
    stage.play(
        "create                                  -> Available=False@1 Ready=False
         report dns g1 False A                   -> Accepted; Available=False@1 Ready=False
         report dns g1 False PreconditionsNotMet -> Accepted; Available=False@1 Ready=False",
    );
    assert_eq!(failures(&stage), 1, "waiting is not failing");
    stage.play(
        "report dns g1 False B -> Accepted; Available=False@1 Ready=False
         edit                  -> Available=False@1 Ready=False
         report dns g2 False B -> Accepted; Available=False@1 Ready=False",
    );
    assert_eq!(failures(&stage), 1);
    stage.play("report dns g2 True -> Accepted; Available=True@2 Ready=True");
    assert_eq!(failures(&stage), 0);
}

#[test]
fn a_report_for_another_resource_of_the_name_is_discarded() {
    let mut stage = Stage::new(&["dns"]);
    stage.play("create -> Available=False@1 Ready=False");
    let now = MicroTimestamp::from_microsecond(stage.now.0 * 1000);
    let mut late = report("dns", 1, ConditionStatus::True, "", now);
    late.uid = "gone".to_owned();
    let verdict = accept_report(&stage.rules, &stage.resource, &late, true, now).unwrap();
    assert_eq!(verdict.answer().reason, "OtherResource");
    late.uid = "u".to_owned();
    let verdict = accept_report(&stage.rules, &stage.resource, &late, true, now).unwrap();
    assert!(matches!(verdict, Verdict::Accepted(_)));
}

fn refusals(change: impl FnOnce(&mut AdapterReport)) -> Vec<String> {
    let mut stage = Stage::new(&["dns"]);
    stage.play("create -> Available=False@1 Ready=False");
    let now = MicroTimestamp::from_microsecond(stage.now.0 * 1000);
    let mut wrong = report("dns", 1, ConditionStatus::True, "", now);
    change(&mut wrong);
    let verdict = accept_report(&stage.rules, &stage.resource, &wrong, false, now);
    verdict.map_or_else(|problems| problems.iter().map(ToString::to_string).collect(), |_| vec![])
}

#[test]
fn malformed_reports_are_refused_with_the_field() {
    assert_eq!(refusals(|_| {}), Vec::<String>::new());
    assert_eq!(refusals(|it| it.adapter.clear()), ["adapter: \"\": name the adapter that reports"]);
    assert_eq!(
        refusals(|it| it.adapter = "nobody".into()),
        [
            "adapter: \"nobody\": is no adapter of this type; create an Adapter of this name or add it to the type's adapters"
        ]
    );
    assert_eq!(
        refusals(|it| it.observed_generation = 0),
        ["observedGeneration: \"0\": must be the generation of the resource that was seen, at least 1"]
    );
    assert_eq!(
        refusals(|it| drop(it.conditions.remove(2))),
        ["conditions: \"\": condition Health is missing; every report needs Applied, Available, Health"]
    );
    assert_eq!(
        refusals(|it| it.conditions.push(it.conditions[0].clone())),
        ["conditions[3].type: \"Applied\": is reported twice"]
    );
    let named = |name: &str| {
        refusals(|it| {
            let mut condition = it.conditions[0].clone();
            condition.r#type = name.to_owned();
            it.conditions.push(condition);
        })
    };
    assert_eq!(named(""), ["conditions[3].type: \"\": must not be empty"]);
    assert!(named(&"A".repeat(101))[0].ends_with("must have at most 100 characters"));
    assert!(named("1 A")[0].contains("must start with a letter"));
    assert!(refusals(|it| it.conditions[0].reason = "a".repeat(257))[0].contains("at most 256 characters"));
    assert!(
        refusals(|it| it.conditions[0].message = "a".repeat(2049))[0].contains("at most 2048 characters")
    );
    assert!(refusals(|it| it.data = Some(json!("a".repeat(70_000))))[0].contains("at most 65536 bytes"));
    assert!(
        refusals(|it| it.conditions = vec![it.conditions[0].clone(); 33])[0]
            .contains("at most 32 conditions")
    );
}

/// In microseconds.
const MINUTE: i64 = 60_000_000;

#[test]
fn the_clock_of_a_reporter_may_be_off_by_so_much() {
    let seen = |micros: i64| {
        refusals(move |it| {
            let now = it.observed_time.unwrap().as_microsecond();
            it.observed_time = Some(MicroTimestamp::from_microsecond(now + micros));
        })
    };
    assert!(seen(-30 * MINUTE).is_empty());
    assert!(seen(-30 * MINUTE - 1)[0].contains("more than 30 minutes ago"));
    assert!(seen(5 * MINUTE).is_empty());
    assert!(seen(5 * MINUTE + 1)[0].contains("more than 5 minutes in the future"));
}
