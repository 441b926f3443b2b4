//! The sentinel, step by step.

use serde_json::json;

use crate::stage::Stage;

#[test]
fn new_and_changed_resources_are_pulsed_at_once() {
    Stage::new(&["dns"]).play(
        "create -> Available=False@1 Ready=False
         plan   -> pulse 1 Created, Available=False@1 Ready=False
         plan   -> Available=False@1 Ready=False
         edit   -> Available=False@1 Ready=False
         plan   -> pulse 2 Changed, Available=False@1 Ready=False
         delete -> Available=False@1 Ready=False
         plan   -> pulse 3 Deleted, Available=False@1 Ready=False",
    );
}

#[test]
fn reports_older_than_ten_seconds_bring_a_pulse_while_not_ready() {
    Stage::new(&["dns", "validation"]).play(
        "create             -> Available=False@1 Ready=False
         plan               -> pulse 1 Created, Available=False@1 Ready=False
         report dns g1 True -> Accepted; Available=False@1 Ready=False
         wait 10s           ->
         plan               -> Available=False@1 Ready=False
         wait 1s            ->
         plan               -> pulse 2 Stale, Available=False@1 Ready=False
         wait 10s           ->
         plan               -> Available=False@1 Ready=False
         wait 1ms           ->
         plan               -> pulse 3 Stale, Available=False@1 Ready=False",
    );
}

#[test]
fn reports_older_than_thirty_minutes_bring_a_pulse_while_ready() {
    let mut stage = Stage::new(&["dns", "validation"]);
    stage.play(
        "create                    -> Available=False@1 Ready=False
         plan                      -> pulse 1 Created, Available=False@1 Ready=False
         report dns g1 True        -> Accepted; Available=False@1 Ready=False
         wait 5s                   ->
         report validation g1 True -> Accepted; Available=True@1 Ready=True
         wait 1795s                ->
         plan                      -> Available=True@1 Ready=True",
    );
    assert_eq!(stage.wake_at.map(|at| at.0 - stage.now.0), Some(1), "the oldest report counts, strictly");
    stage.play(
        "wait 1ms -> 
         plan     -> pulse 2 Stale, Available=True@1 Ready=True",
    );
}

#[test]
fn unknown_reports_do_not_bring_a_storm_of_pulses() {
    Stage::new(&["dns"]).play(
        "create                -> Available=False@1 Ready=False
         plan                  -> pulse 1 Created, Available=False@1 Ready=False
         report dns g1 True    -> Accepted; Available=True@1 Ready=True
         wait 1801s            ->
         plan                  -> pulse 2 Stale, Available=True@1 Ready=True
         report dns g1 Unknown -> Traced; Available=True@1 Ready=True
         wait 1m               ->
         plan                  -> Available=True@1 Ready=True",
    );
}

#[test]
fn an_adapter_that_keeps_failing_is_asked_less_and_less() {
    let mut stage = Stage::new(&["dns"]);
    stage.play(
        "create -> Available=False@1 Ready=False
         plan   -> pulse 1 Created, Available=False@1 Ready=False",
    );
    let mut pauses = Vec::new();
    for round in 0..10 {
        stage.play(&format!("report dns g1 False R{round} -> Accepted; Available=False@1 Ready=False"));
        stage.play("plan -> Available=False@1 Ready=False");
        let pause = stage.wake_at.unwrap().0 - stage.now.0;
        // Times are kept in whole seconds.
        pauses.push((pause + 500) / 1000);
        stage.now.0 += pause;
        stage.play(&format!("plan -> pulse {} Stale, Available=False@1 Ready=False", round + 2));
    }
    assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1280, 1800, 1800]);
}

#[test]
fn intervals_and_the_rule_are_the_types() {
    let mut stage = Stage::of_type(json!({
        "names": {"kind": "Cluster", "plural": "clusters"},
        "adapters": ["dns"],
        "pulse": {"ready": "1m", "notReady": "2s", "when": "ready ? age > duration('90s') : resource.spec.size == 1"},
    }));
    stage.play(
        "create             -> Available=False@1 Ready=False
         plan               -> pulse 1 Created, Available=False@1 Ready=False
         wait 2001ms        ->
         plan               -> pulse 2 Stale, Available=False@1 Ready=False
         report dns g1 True -> Accepted; Available=True@1 Ready=True
         wait 1m            ->
         plan               -> Available=True@1 Ready=True",
    );
    let asked_again = stage.wake_at.map(|at| at.0 - stage.now.0);
    assert!(
        asked_again.is_some_and(|pause| pause > 0),
        "it is asked again later, not at once: {asked_again:?}"
    );
    stage.play(
        "wait 1m  -> 
         plan     -> pulse 3 Stale, Available=True@1 Ready=True",
    );
}

#[test]
fn without_required_adapters_age_is_no_reason() {
    let mut stage = Stage::new(&[]);
    stage.play(
        "create  -> Available=False@1 Ready=False
         plan    -> pulse 1 Created, Available=False@1 Ready=False
         wait 1h ->
         plan    -> Available=False@1 Ready=False",
    );
    assert_eq!(stage.wake_at, None);
}
