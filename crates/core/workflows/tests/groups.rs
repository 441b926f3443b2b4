//! What groups do, as stories: a group in a small language, and what each look decides.
//!
//! Lines: `group tasks=N [mode=] [count=] [parallelism=] [suspend]`, `look [slice=N]` (which carries out what it decides),
//! `state PLACE STATE`, `gone PLACE`, `suspend`, `resume`, `cancel`, `stand`. Lines that start with `>` are the answers.

use muster_types::task_group::{GroupTask, TaskGroupSpec, TaskGroupStatus};
use muster_types::{State, Timestamp};
use muster_workflows::group_members::Members;
use muster_workflows::group_plan::plan_group;
use muster_workflows::group_status::fold_group;

struct Story {
    spec: TaskGroupSpec,
    members: Members,
}

fn play(story: &str) {
    let mut teller = Story { spec: TaskGroupSpec::default(), members: Members::new(0, 0) };
    let (mut played, mut expected) = (String::new(), String::new());
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        expected += &format!("{line}\n");
        if line.starts_with('>') {
            continue;
        }
        played += &format!("{line}\n");
        for answer in teller.tell(line) {
            played += &format!("> {answer}\n");
        }
        assert_eq!(teller.members.counts(), teller.members.recount(), "after {line}");
    }
    assert_eq!(played, expected);
}

fn spaced(places: &[u32]) -> String {
    places.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

impl Story {
    fn tell(&mut self, line: &str) -> Vec<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let option = |name: &str| words.iter().find_map(|word| word.strip_prefix(&format!("{name}=")));
        let number = |name: &str| option(name).map(|text| text.parse::<u32>().expect("a number"));
        let place = |at: usize| words[at].parse::<u32>().expect("a place");
        match words[0] {
            "group" => {
                self.spec = TaskGroupSpec {
                    mode: option("mode").map(|mode| mode.parse().expect("a mode")),
                    count: number("count"),
                    parallelism: number("parallelism"),
                    tasks: vec![GroupTask::default(); number("tasks").expect("tasks") as usize],
                    suspend: words.contains(&"suspend"),
                    ..TaskGroupSpec::default()
                };
                self.members = Members::new(self.spec.total(), 0);
            }
            "look" => return self.look(number("slice").unwrap_or(100)),
            "state" => {
                let is_told_to_end = words.get(3) == Some(&"canceling");
                self.members.observe(place(1), words[2].parse().expect("a state"), is_told_to_end);
            }
            "gone" => self.members.observe_gone(place(1)),
            "suspend" => self.spec.suspend = true,
            "resume" => self.spec.suspend = false,
            "cancel" => self.spec.cancel = true,
            "stand" => {
                let now = Timestamp::from_second(0);
                let status = fold_group(&self.spec, &self.members, &TaskGroupStatus::default(), now);
                return vec![format!("{}: {}", status.current_state(), status.message)];
            }
            other => unreachable!("{other}"),
        }
        Vec::new()
    }

    fn look(&mut self, slice: u32) -> Vec<String> {
        let plan = plan_group(&self.spec, &mut self.members, slice);
        let mut answers = Vec::new();
        if !plan.make.is_empty() {
            let words =
                plan.make.iter().map(|(place, now)| format!("{place}{}", if *now { "!" } else { "" }));
            answers.push(format!("make {}", words.collect::<Vec<_>>().join(" ")));
        }
        if !plan.submit.is_empty() {
            answers.push(format!("submit {}", spaced(&plan.submit)));
        }
        if !plan.cancel.is_empty() {
            let why = plan.reason.expect("a reason").describe("m", "b");
            answers.push(format!("cancel {} ({why})", spaced(&plan.cancel)));
        }
        for (place, submitted) in plan.make {
            let state = if submitted { State::Ready } else { State::Created };
            self.members.set_made(place + 1);
            self.members.observe(place, state, false);
        }
        for place in plan.submit {
            self.members.observe(place, State::Ready, false);
        }
        for place in plan.cancel {
            let state = self.members.state(place).expect("a member that is there");
            let has_attempt = matches!(state, State::Pending | State::Running);
            self.members.observe(place, if has_attempt { state } else { State::Canceled }, true);
        }
        answers
    }
}

#[test]
fn a_batch_is_submitted_all_at_once() {
    play(
        "group tasks=3
         look
         > make 0! 1! 2!
         look
         stand
         > Ready: 0 of 3 succeeded
         state 0 Running
         stand
         > Running: 0 of 3 succeeded
         state 0 Succeeded
         state 1 Failed
         state 2 Succeeded
         stand
         > Failed: 2 of 3 succeeded, 1 failed
         look",
    );
}

#[test]
fn a_large_group_is_made_in_slices() {
    play(
        "group tasks=2 count=3
         look slice=4
         > make 0! 1! 2! 3!
         stand
         > Ready: 0 of 6 succeeded
         look slice=4
         > make 4! 5!
         look slice=4",
    );
}

#[test]
fn a_pipeline_goes_on_when_the_one_before_has_succeeded() {
    play(
        "group mode=pipeline tasks=3
         look
         > make 0! 1 2
         look
         state 0 Running
         look
         state 0 Succeeded
         look
         > submit 1
         state 1 Succeeded
         look
         > submit 2
         state 2 Succeeded
         look
         stand
         > Succeeded: 3 of 3 succeeded",
    );
}

#[test]
fn a_failed_member_of_a_pipeline_takes_the_rest_with_it() {
    play(
        "group mode=pipeline tasks=4
         look
         > make 0! 1 2 3
         state 0 Failed
         look slice=2
         > cancel 1 2 (Canceled:m, when (pipelined) task:b failed.)
         stand
         > Running: 0 of 4 succeeded, 1 failed, 2 canceled
         look slice=2
         > cancel 3 (Canceled:m, when (pipelined) task:b failed.)
         look
         stand
         > Failed: 0 of 4 succeeded, 1 failed, 3 canceled",
    );
}

#[test]
fn a_canceled_member_of_a_pipeline_takes_the_rest_with_it_too() {
    play(
        "group mode=pipeline tasks=3
         look
         > make 0! 1 2
         state 0 Canceled
         look
         > cancel 1 2 (Canceled:m, when (pipelined) task:b was canceled.)
         stand
         > Canceled: 0 of 3 succeeded, 3 canceled",
    );
}

#[test]
fn members_before_a_canceled_one_go_on_and_those_between_end_when_one_of_them_fails() {
    play(
        "group mode=pipeline tasks=4
         look
         > make 0! 1 2 3
         state 3 Canceled
         look
         state 0 Succeeded
         look
         > submit 1
         state 1 Failed
         look
         > cancel 2 (Canceled:m, when (pipelined) task:b failed.)
         stand
         > Failed: 1 of 4 succeeded, 1 failed, 2 canceled",
    );
}

#[test]
fn members_before_the_one_that_was_deleted_from_a_suspended_pipeline_go_on_when_it_is_resumed() {
    play(
        "group mode=pipeline tasks=4
         look
         > make 0! 1 2 3
         suspend
         state 0 Succeeded
         gone 2
         look
         > cancel 3 (Canceled:m, when (pipelined) task:b was canceled.)
         resume
         look
         > submit 1
         state 1 Succeeded
         look
         stand
         > Canceled: 2 of 4 succeeded, 2 canceled",
    );
}

#[test]
fn a_pipeline_does_not_pass_a_member_that_was_told_to_end_before_its_turn() {
    play(
        "group mode=pipeline tasks=3 suspend
         look
         > make 0 1 2
         state 0 Created canceling
         resume
         look
         state 0 Canceled canceling
         look
         > cancel 1 2 (Canceled:m, when (pipelined) task:b was canceled.)",
    );
}

#[test]
fn a_canceled_pipeline_ends_also_the_members_before_one_that_was_canceled_earlier() {
    play(
        "group mode=pipeline tasks=4
         look
         > make 0! 1 2 3
         state 0 Running
         state 3 Canceled
         look
         cancel
         look
         > cancel 0 1 2 (Canceled:m, when its group was canceled.)",
    );
}

#[test]
fn no_more_are_submitted_than_parallelism_allows() {
    play(
        "group tasks=1 count=5 parallelism=2
         look slice=3
         > make 0! 1! 2
         look slice=3
         > make 3 4
         state 1 Succeeded
         look
         > submit 2
         state 0 Failed
         state 2 Running
         look
         > submit 3
         look
         state 2 Succeeded
         state 3 Succeeded
         look
         > submit 4
         state 4 Succeeded
         stand
         > Failed: 4 of 5 succeeded, 1 failed",
    );
}

#[test]
fn a_suspended_group_submits_nothing_until_it_is_resumed() {
    play(
        "group tasks=3 suspend
         look
         > make 0 1 2
         look
         stand
         > Created: 0 of 3 succeeded, suspended
         resume
         look slice=2
         > submit 0 1
         suspend
         look
         resume
         look
         > submit 2
         look",
    );
}

#[test]
fn a_canceled_group_ends_what_it_has_and_makes_nothing_more() {
    play(
        "group tasks=1 count=4 parallelism=2
         look slice=3
         > make 0! 1! 2
         state 0 Running
         cancel
         look
         > cancel 0 1 2 (Canceled:m, when its group was canceled.)
         look
         stand
         > Running: 0 of 4 succeeded, 2 canceled
         state 0 Canceled
         stand
         > Canceled: 0 of 4 succeeded, 3 canceled, 1 never made",
    );
}

#[test]
fn a_deleted_member_is_not_made_again() {
    play(
        "group tasks=2
         look
         > make 0! 1!
         gone 0
         look
         state 1 Succeeded
         stand
         > Canceled: 1 of 2 succeeded, 1 canceled",
    );
}
