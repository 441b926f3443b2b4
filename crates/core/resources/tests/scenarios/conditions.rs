//! Available and Ready, step by step (seed 002, use cases and rules).

use muster_types::condition::find_condition;
use serde_json::json;

use crate::stage::Stage;

#[test]
fn before_any_report_both_are_false_with_a_reason() {
    let mut stage = Stage::new(&["dns", "validation"]);
    stage.play("create -> Available=False@1 Ready=False");
    for condition in &stage.resource.status.conditions {
        assert_eq!(condition.reason, "AdaptersMissingReports");
        assert_eq!(condition.message, "no report yet from dns, validation");
    }
}

#[test]
fn a_resource_is_ready_when_all_required_adapters_are() {
    Stage::new(&["dns", "validation"]).play(
        "create                    -> Available=False@1 Ready=False
         report dns g1 True        -> Accepted; Available=False@1 Ready=False
         report other g1 False     -> Accepted; Available=False@1 Ready=False
         report validation g1 True -> Accepted; Available=True@1 Ready=True",
    );
}

/// Use case 1 of the seed.
#[test]
fn work_in_progress_on_a_ready_resource_changes_nothing() {
    let mut stage = Stage::new(&["dns"]);
    stage.play(
        "create                -> Available=False@1 Ready=False
         report dns g1 True    -> Accepted; Available=True@1 Ready=True
         wait 30m              ->",
    );
    let before = stage.resource.status.standing("dns").unwrap().last_report_time;
    stage.play("report dns g1 Unknown -> Traced; Available=True@1 Ready=True");
    let standing = stage.resource.status.standing("dns").unwrap();
    assert_eq!(standing.last_report_time, before, "Unknown does not renew the report time");
    assert_eq!(standing.history.len(), 2, "but it is kept for tracing");
    assert_eq!(stage.says("dns"), "Applied=True Available=True Health=True");
}

/// Use case 2 of the seed.
#[test]
fn a_spec_change_ends_ready_at_once_and_available_stays_at_the_last_good_generation() {
    Stage::new(&["dns", "validation"]).play(
        "create                    -> Available=False@1 Ready=False
         report dns g1 True        -> Accepted; Available=False@1 Ready=False
         report validation g1 True -> Accepted; Available=True@1 Ready=True
         edit                      -> Available=True@1 Ready=False
         report dns g2 True        -> Accepted; Available=True@1 Ready=False
         report validation g2 True -> Accepted; Available=True@2 Ready=True",
    );
}

/// Use case 3 of the seed.
#[test]
fn available_stays_false_at_its_generation_until_all_agree_on_another() {
    Stage::new(&["dns", "validation"]).play(
        "create                    -> Available=False@1 Ready=False
         report dns g1 True        -> Accepted; Available=False@1 Ready=False
         report validation g1 True -> Accepted; Available=True@1 Ready=True
         report dns g1 False       -> Accepted; Available=False@1 Ready=False
         edit                      -> Available=False@1 Ready=False
         report dns g2 True        -> Accepted; Available=False@1 Ready=False
         report validation g2 True -> Accepted; Available=True@2 Ready=True",
    );
}

#[test]
fn a_failure_at_another_generation_leaves_available_as_it_is() {
    Stage::new(&["dns", "validation"]).play(
        "create                     -> Available=False@1 Ready=False
         report dns g1 True         -> Accepted; Available=False@1 Ready=False
         report validation g1 True  -> Accepted; Available=True@1 Ready=True
         edit                       -> Available=True@1 Ready=False
         report dns g2 False        -> Accepted; Available=True@1 Ready=False
         report validation g1 False -> Accepted; Available=False@1 Ready=False",
    );
}

#[test]
fn reports_on_an_older_generation_can_make_it_available_there() {
    Stage::new(&["dns", "validation"]).play(
        "create                    -> Available=False@1 Ready=False
         edit                      -> Available=False@1 Ready=False
         edit                      -> Available=False@1 Ready=False
         report dns g2 True        -> Accepted; Available=False@1 Ready=False
         report validation g2 True -> Accepted; Available=True@2 Ready=False
         report dns g3 True        -> Accepted; Available=True@2 Ready=False
         report validation g3 True -> Accepted; Available=True@3 Ready=True",
    );
}

#[test]
fn an_adapter_added_to_the_type_keeps_available_but_a_new_generation_waits_for_it() {
    let mut stage = Stage::new(&["dns"]);
    stage.play(
        "create             -> Available=False@1 Ready=False
         report dns g1 True -> Accepted; Available=True@1 Ready=True",
    );
    let wider = json!({"names": {"kind": "Cluster", "plural": "clusters"}, "adapters": ["dns", "late"]});
    stage.rules = muster_resources::TypeRules::compile(&serde_json::from_value(wider).unwrap()).unwrap();
    stage.play(
        "report dns g1 True  -> Discarded Duplicate; Available=True@1 Ready=True
         edit                -> Available=True@1 Ready=False
         report dns g2 True  -> Accepted; Available=True@1 Ready=False
         report late g2 True -> Accepted; Available=True@2 Ready=True",
    );
}

#[test]
fn a_type_without_adapters_says_so() {
    let mut stage = Stage::new(&[]);
    stage.play("create -> Available=False@1 Ready=False");
    assert_eq!(stage.resource.status.conditions[1].reason, "NoRequiredAdapters");
}

#[test]
fn times_move_only_when_a_status_flips() {
    let mut stage = Stage::new(&["dns"]);
    stage.play(
        "create             -> Available=False@1 Ready=False
         report dns g1 True -> Accepted; Available=True@1 Ready=True",
    );
    let before = stage.resource.clone();
    stage.play("wait 1h -> ");
    let now = stage.now.to_timestamp();
    muster_resources::root_conditions::fold_conditions(&stage.rules, &mut stage.resource, now);
    assert_eq!(stage.resource, before);
    stage.play("report dns g1 True -> Accepted; Available=True@1 Ready=True");
    let time = |resource: &muster_types::ManagedResource| {
        find_condition(&resource.status.conditions, "Ready").map(|condition| condition.last_transition_time)
    };
    assert_eq!(time(&stage.resource), time(&before));
}

#[test]
fn further_conditions_are_said_by_rules() {
    let mut stage = Stage::of_type(json!({
        "names": {"kind": "Cluster", "plural": "clusters"},
        "adapters": ["dns", "validation"],
        "conditions": [
            {"type": "SeedAvailable", "status": "self.items.all(i, \n  i.observed_generation == self.items[0].observed_generation && \n  i.conditions.exists(c, c.type == 'Available' && c.status == 'True')\n)"},
            {"type": "SeedReady", "status": " available && self.items.all(i, i.observed_generation == generationN)"},
            {"type": "Sized", "status": "resource.spec.size > 3 ? 'True' : 'Unknown'", "reason": "'Size' + string(resource.spec.size)", "message": "'has ' + string(resource.spec.size)"},
            {"type": "Hidden", "when": "has(resource.spec.hidden)", "status": "true"},
            {"type": "Broken", "status": "resource.spec.nothing"},
        ],
    }));
    stage.play(
        "create                    -> Available=False@1 Ready=False SeedAvailable=True SeedReady=False Sized=Unknown Broken=Unknown
         report dns g1 True        -> Accepted; Available=False@1 Ready=False SeedAvailable=True SeedReady=False Sized=Unknown Broken=Unknown
         report validation g1 True -> Accepted; Available=True@1 Ready=True SeedAvailable=True SeedReady=True Sized=Unknown Broken=Unknown
         edit                      -> Available=True@1 Ready=False SeedAvailable=True SeedReady=False Sized=Unknown Broken=Unknown",
    );
    let condition = |name: &str| find_condition(&stage.resource.status.conditions, name).unwrap().clone();
    assert_eq!([condition("Sized").reason, condition("Sized").message], ["Size1", "has 1"]);
    assert_eq!(condition("Broken").reason, "RuleFailed");
    assert!(condition("Broken").message.contains("there is no field \"nothing\""));
    assert_eq!(condition("SeedReady").reason, "ByRule");
}
