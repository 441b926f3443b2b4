//! Which robot a task goes to, and what is said if none takes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_fleet::fleet::Fleet;
use muster_fleet::{RobotView, Traits};
use muster_types::placement::{Affinity, Constraint, Demand, Operator, Spread};
use muster_types::robot_status::{DeviceInfo, Phase};

fn robot(name: &str, slots: u32) -> RobotView {
    RobotView {
        path: format!("default/{name}").into(),
        phase: Phase::Online,
        unschedulable: false,
        max_tasks: slots,
        hostname: "".into(),
        traits: Arc::new(Traits {
            labels: BTreeMap::from([("zone".to_owned(), name[..1].to_owned())]),
            device: DeviceInfo {
                cpus: 2,
                memory: 1 << 30,
                agent_version: "1.4.2".to_owned(),
                ..DeviceInfo::default()
            },
        }),
        cut_since: None,
    }
}

fn fleet(robots: impl IntoIterator<Item = RobotView>) -> Fleet {
    let mut fleet = Fleet::default();
    robots.into_iter().for_each(|robot| fleet.observe(robot));
    fleet
}

fn demand() -> Demand {
    Demand { namespace: "default".to_owned(), ..Demand::default() }
}

fn constraint(attribute: &str, operator: Operator, value: &str) -> Constraint {
    Constraint { attribute: attribute.to_owned(), operator, value: value.to_owned() }
}

/// Places tasks with the same demand; names of robots, or the reason why there is none.
fn place(fleet: &mut Fleet, first: u128, count: u128, demand: Demand) -> Vec<String> {
    let demand = Arc::new(demand);
    let mut placed = Vec::new();
    for uid in first..first + count {
        placed.push(match fleet.place(uid, &demand) {
            Ok(path) => path.trim_start_matches("default/").to_owned(),
            Err(refusal) => refusal.reason.to_owned(),
        });
    }
    assert_eq!(fleet.violations(), [""; 0]);
    placed
}

#[test]
fn tasks_are_spread_and_no_robot_gets_more_than_its_slots() {
    let mut fleet = fleet([robot("a", 2), robot("b", 1)]);
    assert_eq!(place(&mut fleet, 1, 4, demand()), ["a", "b", "a", "RobotsBusy"]);
}

#[test]
fn robots_that_are_equally_free_have_their_turns() {
    let mut fleet = fleet([robot("a", 1), robot("b", 1), robot("c", 1)]);
    let mut order = Vec::new();
    for uid in 1..=6 {
        order.extend(place(&mut fleet, uid, 1, demand()));
        fleet.release(uid);
    }
    assert_eq!(order, ["a", "b", "c", "a", "b", "c"]);
}

#[test]
fn bin_pack_fills_one_robot_before_the_next() {
    let mut fleet = fleet([robot("a", 2), robot("b", 2)]);
    let packed = Demand { affinity: Affinity { prefer: Spread::BinPack, ..Affinity::default() }, ..demand() };
    let placed = place(&mut fleet, 1, 4, packed);
    assert_eq!(placed[0], placed[1]);
    assert_eq!(placed[2], placed[3]);
    assert_ne!(placed[0], placed[2]);
}

#[test]
fn a_selector_and_a_target_choose_among_robots() {
    let mut fleet = fleet([robot("a1", 1), robot("b1", 1), robot("b2", 1)]);
    let selector = BTreeMap::from([("zone".to_owned(), "b".to_owned())]);
    assert_eq!(place(&mut fleet, 1, 3, Demand { selector, ..demand() }), ["b1", "b2", "RobotsBusy"]);
    let target = Demand { target: "a1".to_owned(), ..demand() };
    assert_eq!(place(&mut fleet, 9, 2, target), ["a1", "RobotsBusy"]);
}

#[test]
fn constraints_look_at_labels_and_at_the_device() {
    for (attribute, operator, value, fits) in [
        ("label.zone", Operator::Equal, "a", true),
        ("label.zone", Operator::NotEqual, "a", false),
        ("label.arm", Operator::NotEqual, "left", true),
        ("label.arm", Operator::Equal, "left", false),
        ("device.cpus", Operator::GreaterOrEqual, "2", true),
        ("device.cpus", Operator::Less, "2", false),
        ("device.memory", Operator::GreaterOrEqual, "1Gi", true),
        ("device.memory", Operator::Greater, "1Gi", false),
        ("label.zone", Operator::Regexp, "^[ab]$", true),
        ("label.zone", Operator::Regexp, "^b", false),
        ("device.agentVersion", Operator::Version, ">= 1.4, < 2", true),
        ("device.agentVersion", Operator::Version, ">= 2", false),
        ("label.zone", Operator::SetContains, "a", true),
    ] {
        let mut fleet = fleet([robot("a", 1)]);
        let constraints = vec![constraint(attribute, operator, value)];
        let placed = place(&mut fleet, 1, 1, Demand { constraints, ..demand() });
        assert_eq!(placed == ["a"], fits, "{attribute} {operator} {value}: {placed:?}");
    }
}

#[test]
fn cpu_and_memory_of_a_robot_are_not_given_away_twice() {
    let mut fleet = fleet([robot("a", 9)]);
    let large = Demand { cpu_millis: 1500, ..demand() };
    assert_eq!(place(&mut fleet, 1, 2, large), ["a", "RobotsBusy"]);
    let memory = Demand { memory: 1 << 29, ..demand() };
    assert_eq!(place(&mut fleet, 11, 3, memory), ["a", "a", "RobotsBusy"]);
    fleet.release(11);
    assert_eq!(place(&mut fleet, 21, 1, Demand { memory: 1 << 29, ..demand() }), ["a"]);
}

#[test]
fn groups_stay_together_or_apart() {
    let mut fleet = fleet([robot("a", 9), robot("b", 9)]);
    let one = Demand { group: "one".to_owned(), ..demand() };
    assert_eq!(place(&mut fleet, 1, 1, one), ["a"]);
    let near = Affinity { with: vec!["one".to_owned()], ..Affinity::default() };
    let with_one = Demand { group: "two".to_owned(), affinity: near, ..demand() };
    assert_eq!(place(&mut fleet, 11, 2, with_one), ["a", "a"]);
    let far = Affinity { apart: vec!["one".to_owned(), "three".to_owned()], ..Affinity::default() };
    let apart = Demand { group: "three".to_owned(), affinity: far, ..demand() };
    assert_eq!(place(&mut fleet, 21, 2, apart), ["b", "RobotsBusy"]);
}

#[test]
fn only_robots_of_the_namespace_that_work_and_take_tasks_are_given_any() {
    let away = |phase, unschedulable| RobotView { phase, unschedulable, ..robot("a", 1) };
    for (view, reason) in [
        (away(Phase::Offline, false), "RobotsAway"),
        (away(Phase::Pending, false), "RobotsAway"),
        (away(Phase::Online, true), "RobotsAway"),
        (RobotView { path: "other/a".into(), ..robot("a", 1) }, "NoRobot"),
    ] {
        assert_eq!(place(&mut fleet([view]), 1, 1, demand()), [reason]);
    }
}

#[test]
fn a_refusal_names_the_reason_and_is_reconsidered_when_a_robot_changes() {
    let mut fleet = fleet([robot("a", 1)]);
    let selector = BTreeMap::from([("zone".to_owned(), "z".to_owned())]);
    let demand = Arc::new(Demand { selector, ..demand() });
    let refusal = fleet.place(1, &demand).unwrap_err();
    assert_eq!(refusal.message, "the only robot does not match: label zone is not z");
    fleet.observe(robot("z", 1));
    assert_eq!(&*fleet.place(1, &demand).unwrap(), "default/z");
}

#[test]
fn what_a_robot_holds_outlives_it_in_the_index() {
    let mut fleet = fleet([robot("a", 1)]);
    place(&mut fleet, 7, 1, demand());
    fleet.forget(&"default/a".into());
    assert_eq!(fleet.held_by("default/a"), [7]);
    fleet.observe(robot("a", 1));
    assert_eq!(place(&mut fleet, 8, 1, demand()), ["RobotsBusy"]);
}

proptest::proptest! {
    #[test]
    fn no_robot_ever_holds_more_than_it_has(steps in proptest::collection::vec((0_u8..8, 0_u8..4, 0_u128..12), 1..80)) {
        let mut fleet = Fleet::default();
        for (what, which, uid) in steps {
            let name = ["a", "b", "c", "d"][which as usize];
            match what {
                0 => fleet.observe(robot(name, u32::from(which) + 1)),
                1 => fleet.observe(RobotView { phase: Phase::Offline, ..robot(name, 2) }),
                2 => fleet.release(uid),
                3 => fleet.forget(&format!("default/{name}").into()),
                // One that becomes like the others.
                4 => fleet.observe(RobotView { traits: robot("z", 1).traits, ..robot(name, 2) }),
                _ => {
                    fleet.release(uid);
                    let demand = Arc::new(Demand { cpu_millis: u64::from(which) * 400, ..demand() });
                    if let Ok(path) = fleet.place(uid, &demand) {
                        let view = fleet.robot(&path).unwrap();
                        proptest::prop_assert_eq!(view.phase, Phase::Online);
                        proptest::prop_assert!(fleet.held_by(&path).len() <= view.max_tasks as usize);
                    }
                }
            }
            proptest::prop_assert_eq!(fleet.violations(), Vec::<String>::new());
        }
    }
}

#[test]
fn a_robot_that_is_busy_could_take_a_task_and_one_that_is_away_or_too_small_could_not() {
    let could = |fleet: &mut Fleet, demand: Demand| {
        fleet.could_place(&Arc::new(demand)).map_err(|refusal| refusal.reason)
    };
    let mut fleet = fleet([robot("a", 1), RobotView { phase: Phase::Offline, ..robot("b", 9) }]);
    assert_eq!(place(&mut fleet, 1, 2, demand()), ["a", "RobotsBusy"]);
    assert_eq!(could(&mut fleet, demand()), Ok(()));
    let at = |target: &str| Demand { target: target.to_owned(), ..demand() };
    assert_eq!(could(&mut fleet, at("a")), Ok(()));
    assert_eq!(could(&mut fleet, at("b")), Err("RobotsAway"));
    assert_eq!(could(&mut fleet, at("c")), Err("NoRobot"));
    assert_eq!(could(&mut fleet, Demand { memory: 1 << 31, ..demand() }), Err("NeverFits"));
    assert_eq!(could(&mut fleet, Demand { namespace: "other".to_owned(), ..demand() }), Err("NoRobot"));
}

/// Why no robot takes a task.
fn refusal(fleet: &mut Fleet, demand: Demand) -> (&'static str, String) {
    let refusal = fleet.place(99, &Arc::new(demand)).expect_err("no robot takes it");
    (refusal.reason, refusal.message)
}

#[test]
fn a_task_that_is_larger_than_every_robot_never_fits_and_says_what_would_have_to_change() {
    let small = RobotView { traits: traits(1, 1 << 29), ..robot("b", 1) };
    let mut fleet = fleet([robot("a", 1), small]);
    assert_eq!(
        refusal(&mut fleet, Demand { memory: 3 << 30, ..demand() }),
        (
            "NeverFits",
            "it asks for 3Gi memory and the largest of 2 robots that match has 1Gi; add a larger robot, or submit the \
             task again with less in spec.resources.memory"
                .to_owned()
        )
    );
    assert_eq!(
        refusal(&mut fleet, Demand { cpu_millis: 2500, target: "a".to_owned(), ..demand() }),
        (
            "NeverFits",
            "it asks for 2500m cpu and the only robot that matches has 2; add a larger robot, or submit the task \
             again with less in spec.resources.cpu"
                .to_owned()
        )
    );
    let unknown_cpu = RobotView { traits: traits(0, 1 << 30), ..robot("d", 1) };
    fleet.observe(unknown_cpu);
    let said = refusal(&mut fleet, Demand { cpu_millis: 9000, memory: 3 << 30, ..demand() }).1;
    assert!(
        said.starts_with("it asks for 3Gi memory and the largest of 3 robots that match has 1Gi;"),
        "{said}"
    );
    fleet.observe(RobotView { traits: traits(4, 4 << 30), ..robot("c", 1) });
    assert_eq!(place(&mut fleet, 1, 1, Demand { memory: 3 << 30, ..demand() }), ["c"]);
}

#[test]
fn a_task_whose_cpu_and_memory_no_robot_has_together_never_fits() {
    let many_cores = RobotView { traits: traits(8, 1 << 30), ..robot("a", 1) };
    let much_memory = RobotView { traits: traits(2, 8 << 30), ..robot("b", 1) };
    let mut fleet = fleet([many_cores, much_memory]);
    assert_eq!(
        refusal(&mut fleet, Demand { cpu_millis: 4000, memory: 4 << 30, ..demand() }),
        (
            "NeverFits",
            "it asks for 4 cpu and 4Gi memory, and none of 2 robots that match has both; add a larger robot, or submit \
             the task again with less in spec.resources"
                .to_owned()
        )
    );
}

#[test]
fn a_robot_that_is_busy_away_or_of_unknown_size_may_take_a_task_later() {
    let large = Demand { memory: 1 << 30, ..demand() };
    let small = || RobotView { traits: traits(2, 1 << 29), ..robot("b", 1) };
    let mut busy = fleet([robot("a", 1), small()]);
    assert_eq!(place(&mut busy, 1, 1, large.clone()), ["a"]);
    let said = "1 of 2 robots that match is large enough; it is busy";
    assert_eq!(refusal(&mut busy, large.clone()), ("RobotsBusy", said.to_owned()));
    let mut away = fleet([RobotView { phase: Phase::Offline, ..robot("a", 1) }, small()]);
    let said = "1 of 2 robots that match is large enough: 1 offline";
    assert_eq!(refusal(&mut away, large.clone()), ("RobotsAway", said.to_owned()));
    let unknown = RobotView { phase: Phase::Pending, traits: traits(0, 0), ..robot("a", 1) };
    let said = "1 robot matches: 1 not let in yet";
    assert_eq!(refusal(&mut fleet([unknown]), large), ("RobotsAway", said.to_owned()));
}

#[test]
fn a_refusal_counts_robots_as_people_do() {
    let mut one = fleet([robot("a", 1)]);
    place(&mut one, 1, 1, demand());
    assert_eq!(refusal(&mut one, demand()).1, "1 robot matches; it is busy");
    let mut two = fleet([robot("a", 1), robot("b", 1)]);
    place(&mut two, 1, 2, demand());
    assert_eq!(refusal(&mut two, demand()).1, "2 robots match; those that are online have no room now");
}

fn traits(cpus: u32, memory: u64) -> Arc<Traits> {
    Arc::new(Traits { device: DeviceInfo { cpus, memory, ..DeviceInfo::default() }, ..Traits::default() })
}
