//! What is true of managed resources whatever arrives, in whatever order.

use std::collections::{BTreeMap, BTreeSet};

use muster_resources::root_conditions::fold_conditions;
use muster_resources::{TypeRules, Verdict, accept_report};
use muster_types::adapter_report::{AdapterReport, ReportedCondition};
use muster_types::condition::{ConditionStatus, find_condition};
use muster_types::resource_type::ResourceTypeSpec;
use muster_types::timestamp::MicroTimestamp;
use muster_types::{ManagedResource, Timestamp};
use proptest::prelude::*;
use serde_json::json;

const ADAPTERS: [&str; 3] = ["a", "b", "c"];
const START: i64 = 1_000_000_000_000_000;

#[derive(Debug, Clone)]
enum Step {
    Edit,
    Report { adapter: usize, behind: i64, status: ConditionStatus, late: i64 },
}

fn rules() -> TypeRules {
    let spec = json!({"names": {"kind": "Cluster", "plural": "clusters"}, "adapters": ADAPTERS});
    let spec: ResourceTypeSpec = serde_json::from_value(spec).expect("a type");
    TypeRules::compile(&spec).expect("a good type")
}

fn resource() -> ManagedResource {
    let mut resource = ManagedResource::new("Cluster", "n", "x", json!({}));
    resource.metadata.generation = 1;
    fold_conditions(&rules(), &mut resource, Timestamp::from_second(START / 1_000_000));
    resource
}

fn report(adapter: &str, generation: i64, status: ConditionStatus, micros: i64) -> AdapterReport {
    let condition = |r#type: &str, status| ReportedCondition {
        r#type: r#type.to_owned(),
        status,
        reason: String::new(),
        message: String::new(),
    };
    AdapterReport {
        adapter: adapter.to_owned(),
        observed_generation: generation,
        observed_time: Some(MicroTimestamp::from_microsecond(micros)),
        conditions: vec![
            condition("Applied", ConditionStatus::True),
            condition("Available", status),
            condition("Health", ConditionStatus::True),
        ],
        ..AdapterReport::default()
    }
}

fn status() -> impl Strategy<Value = ConditionStatus> {
    prop_oneof![
        4 => Just(ConditionStatus::True),
        1 => Just(ConditionStatus::False),
        1 => Just(ConditionStatus::Unknown),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::Edit),
        6 => (0..ADAPTERS.len(), -1..3_i64, status(), 0..3_i64)
            .prop_map(|(adapter, behind, status, late)| Step::Report { adapter, behind, status, late }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn generations_never_go_back_and_available_is_never_true_without_all(steps in prop::collection::vec(step(), 0..60)) {
        let rules = rules();
        let mut resource = resource();
        let mut said_true: BTreeMap<i64, BTreeSet<usize>> = BTreeMap::new();
        let mut tracked = 1;
        let mut current = [0; 3];
        for (place, step) in steps.into_iter().enumerate() {
            let now = START + i64::try_from(place).unwrap() * 1_000_000;
            match step {
                Step::Edit => {
                    resource.metadata.generation += 1;
                    fold_conditions(&rules, &mut resource, Timestamp::from_second(now / 1_000_000));
                    prop_assert!(!resource.status.is_ready(), "a spec change ends Ready at once");
                }
                Step::Report { adapter, behind, status, late } => {
                    let generation = resource.metadata.generation - behind;
                    if generation < 1 {
                        continue;
                    }
                    let report = report(ADAPTERS[adapter], generation, status, now - late * 1_500_000);
                    let before = resource.status.clone();
                    let now = MicroTimestamp::from_microsecond(now);
                    let verdict = accept_report(&rules, &resource, &report, true, now).unwrap();
                    let is_accepted = matches!(verdict, Verdict::Accepted(_));
                    if is_accepted && status == ConditionStatus::True {
                        said_true.entry(generation).or_default().insert(adapter);
                    }
                    if let Some(status) = verdict.into_status() {
                        resource.status = status;
                    }
                    if !is_accepted {
                        prop_assert_eq!(&resource.status.conditions, &before.conditions);
                        prop_assert_eq!(resource.status.is_ready(), before.is_ready());
                    }
                    if is_accepted {
                        prop_assert!(generation >= current[adapter], "an adapter went back");
                        current[adapter] = generation;
                    }
                }
            }
            let available = find_condition(&resource.status.conditions, "Available").unwrap();
            let generation = available.observed_generation.unwrap();
            prop_assert!(generation >= tracked, "Available went back from {} to {}", tracked, generation);
            tracked = generation;
            if available.is_true() {
                let said = said_true.get(&generation).map_or(0, BTreeSet::len);
                prop_assert_eq!(said, ADAPTERS.len(), "not all were True at {}", generation);
            }
            if resource.status.is_ready() {
                prop_assert_eq!(generation, resource.metadata.generation);
            }
            let folded = {
                let mut again = resource.clone();
                fold_conditions(&rules, &mut again, Timestamp::from_second(START));
                again
            };
            prop_assert_eq!(&folded, &resource, "folding again changed something");
        }
    }

    #[test]
    fn the_order_of_arrival_does_not_matter_for_reports_and_ready(
        reports in prop::collection::vec((0..ADAPTERS.len(), 1..4_i64, status()), 1..24),
        seed in any::<u64>(),
    ) {
        let rules = rules();
        let mut resource = resource();
        resource.metadata.generation = 3;
        let now = MicroTimestamp::from_microsecond(START + 60_000_000);
        let reports: Vec<_> = reports
            .into_iter()
            .enumerate()
            .map(|(place, (adapter, generation, status))| {
                report(ADAPTERS[adapter], generation, status, START + i64::try_from(place).unwrap())
            })
            .collect();
        let deliver = |order: &[AdapterReport]| {
            let mut resource = resource.clone();
            for report in order {
                let verdict = accept_report(&rules, &resource, report, true, now).unwrap();
                if let Some(status) = verdict.into_status() {
                    resource.status = status;
                }
            }
            resource.status
        };
        let mut shuffled = reports.clone();
        let mut state = seed;
        for place in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            shuffled.swap(place, usize::try_from(state >> 33).unwrap() % (place + 1));
        }
        // Every report arrives twice, the second time anywhere.
        let doubled: Vec<_> = shuffled.iter().chain(&reports).cloned().collect();
        let (one, other) = (deliver(&reports), deliver(&doubled));
        let decided = |status: &muster_types::ManagedStatus| {
            let current = status.adapters.iter().map(|standing| {
                let available = &standing.conditions[1].status;
                let decides = *available != ConditionStatus::Unknown;
                (standing.adapter.clone(), decides.then_some((standing.observed_generation, *available, standing.observed_time)))
            });
            current.collect::<Vec<_>>()
        };
        prop_assert_eq!(decided(&one), decided(&other));
        prop_assert_eq!(one.is_ready(), other.is_ready());
    }
}
