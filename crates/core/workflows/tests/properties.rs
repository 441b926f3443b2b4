//! What holds for every group and every job, however their tasks end.

use std::collections::BTreeSet;

use muster_types::job::{FailurePolicy, JobGroup, When};
use muster_types::task_group::{GroupMode, GroupTask, TaskGroupSpec, TaskGroupStatus};
use muster_types::{Job, State, Timestamp, WorkState};
use muster_workflows::group_members::Members;
use muster_workflows::group_plan::plan_group;
use muster_workflows::group_status::fold_group;
use muster_workflows::job_plan::{GroupStand, plan_job};
use proptest::prelude::*;

fn ending() -> impl Strategy<Value = State> {
    prop_oneof![4 => Just(State::Succeeded), 1 => Just(State::Failed), 1 => Just(State::Canceled)]
}

/// Groups that depend on earlier ones, with how each ends.
fn dag() -> impl Strategy<Value = Vec<(Vec<usize>, When, WorkState)>> {
    let group = (
        prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        prop_oneof![Just(When::Succeeded), Just(When::Failed), Just(When::Completed)],
        prop_oneof![3 => Just(WorkState::Succeeded), 1 => Just(WorkState::Failed), 1 => Just(WorkState::Canceled)],
    );
    prop::collection::vec(group, 1..14).prop_map(|groups| {
        let groups = groups.into_iter().enumerate();
        let edges = groups.map(|(place, (needs, when, end))| {
            let needs: BTreeSet<usize> =
                needs.iter().filter(|_| place > 0).map(|need| need.index(place)).collect();
            (needs.into_iter().collect(), when, end)
        });
        edges.collect()
    })
}

proptest! {
    #[test]
    fn a_job_always_ends_and_makes_each_group_at_most_once(
        groups in dag(),
        stop in any::<bool>(),
        order in prop::collection::vec(any::<prop::sample::Index>(), 200),
    ) {
        let mut job = Job::default();
        job.spec.failure_policy = stop.then_some(FailurePolicy::Stop);
        for (place, (needs, when, _)) in groups.iter().enumerate() {
            job.spec.task_groups.push(JobGroup {
                name: format!("g{place}"),
                depends_on: needs.iter().map(|need| format!("g{need}")).collect(),
                when: Some(*when),
                ..JobGroup::default()
            });
        }
        let mut stands: Vec<Option<GroupStand>> = vec![None; groups.len()];
        let mut made = BTreeSet::new();
        for choice in order {
            let plan = plan_job(&job, &stands, Timestamp::from_second(0));
            job.status = plan.status;
            for place in plan.make {
                prop_assert!(made.insert(place), "group {place} was made twice");
                for need in &groups[place].0 {
                    let state = job.status.groups[*need].state;
                    prop_assert!(state.is_terminal(), "group {place} was made before {need} ended");
                }
                stands[place] = Some(GroupStand { state: WorkState::Ready, ..GroupStand::default() });
            }
            for place in plan.cancel {
                let stand = stands[place].as_mut().expect("a group that is there");
                (stand.cancel, stand.state) = (true, WorkState::Canceled);
            }
            if job.status.current_state().is_terminal() {
                break;
            }
            let open: Vec<usize> = (0..groups.len())
                .filter(|place| stands[*place].as_ref().is_some_and(|stand| !stand.state.is_terminal()))
                .collect();
            if !open.is_empty() {
                let place = open[choice.index(open.len())];
                stands[place].as_mut().expect("a group that is open").state = groups[place].2;
            }
        }
        prop_assert!(job.status.current_state().is_terminal(), "{:?}", job.status);
        let failed = job.status.groups.iter().any(|group| group.state == WorkState::Failed);
        prop_assert_eq!(job.status.current_state() == WorkState::Failed, failed);
    }

    #[test]
    fn a_group_always_ends_within_its_limits_and_its_counts_are_right(
        mode in prop_oneof![Just(GroupMode::Batch), Just(GroupMode::Pipeline), Just(GroupMode::Replicas)],
        tasks in 1_usize..6,
        count in 1_u32..6,
        parallelism in prop::option::of(1_u32..4),
        slice in 1_u32..5,
        events in prop::collection::vec((any::<prop::sample::Index>(), ending(), 0_u8..20), 400),
    ) {
        let spec = TaskGroupSpec {
            mode: Some(mode),
            count: Some(count),
            parallelism,
            tasks: vec![GroupTask::default(); tasks],
            ..TaskGroupSpec::default()
        };
        let mut members = Members::new(spec.total(), 0);
        let mut status = TaskGroupStatus::default();
        for (choice, end, dice) in events {
            let plan = plan_group(&spec, &mut members, slice);
            for (place, submitted) in plan.make {
                prop_assert_eq!(place, members.made(), "members are made in order, each once");
                members.set_made(place + 1);
                members.observe(place, if submitted { State::Ready } else { State::Created }, false);
            }
            for place in plan.submit {
                prop_assert_eq!(members.state(place), Some(State::Created));
                members.observe(place, State::Ready, false);
            }
            for place in plan.cancel {
                members.observe(place, State::Canceled, true);
            }
            let most = if mode == GroupMode::Pipeline { 1 } else { parallelism.unwrap_or(u32::MAX) };
            prop_assert!(members.counts().open() <= most);
            prop_assert_eq!(members.counts(), members.recount());
            status = fold_group(&spec, &members, &status, Timestamp::from_second(0));
            if status.current_state().is_terminal() {
                break;
            }
            let there: Vec<u32> = (0..members.made()).filter(|place| {
                members.state(*place).is_some_and(|state| !state.is_terminal() && state != State::Created)
            }).collect();
            if !there.is_empty() {
                let place = there[choice.index(there.len())];
                if dice == 0 { members.observe_gone(place) } else { members.observe(place, end, false) }
            }
        }
        prop_assert!(status.current_state().is_terminal(), "{status:?}");
        prop_assert_eq!(status.counts.ended(), status.made);
    }
}
