//! What jobs do, as stories: a job in a small language, and what each look decides.
//!
//! Lines: `group NAME [needs=A,B] [when=]`, `policy WORD`, `deadline SECONDS`, `now SECOND`, `look` (which carries out what it
//! decides), `state NAME STATE`, `gone NAME`, `suspend`, `resume`, `cancel`. Lines that start with `>` are the answers.

use muster_types::job::JobGroup;
use muster_types::{Job, Timestamp, WorkState};
use muster_workflows::job_plan::{GroupStand, plan_job};

#[derive(Default)]
struct Story {
    job: Job,
    stands: Vec<Option<GroupStand>>,
    now: i64,
}

fn play(story: &str) {
    let mut teller = Story::default();
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
    }
    assert_eq!(played, expected);
}

impl Story {
    fn place(&self, name: &str) -> usize {
        self.job.spec.task_groups.iter().position(|group| group.name == name).expect("a group")
    }

    fn tell(&mut self, line: &str) -> Vec<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let option = |name: &str| words.iter().find_map(|word| word.strip_prefix(&format!("{name}=")));
        match words[0] {
            "group" => {
                let needs = option("needs").unwrap_or_default().split(',').filter(|need| !need.is_empty());
                self.job.spec.task_groups.push(JobGroup {
                    name: words[1].to_owned(),
                    depends_on: needs.map(str::to_owned).collect(),
                    when: option("when").map(|when| when.parse().expect("a word")),
                    ..JobGroup::default()
                });
                self.stands.push(None);
            }
            "policy" => self.job.spec.failure_policy = Some(words[1].parse().expect("a policy")),
            "deadline" => self.job.spec.deadline = Some(format!("{}s", words[1]).parse().expect("a time")),
            "now" => self.now = words[1].parse().expect("a time"),
            "state" => {
                let place = self.place(words[1]);
                let stand = self.stands[place].as_mut().expect("a group that was made");
                stand.state = words[2].parse().expect("a state");
            }
            "gone" => {
                let place = self.place(words[1]);
                self.stands[place] = None;
            }
            "suspend" => self.job.spec.suspend = true,
            "resume" => self.job.spec.suspend = false,
            "cancel" => self.job.spec.cancel = true,
            "look" => return self.look(),
            other => unreachable!("{other}"),
        }
        Vec::new()
    }

    fn look(&mut self) -> Vec<String> {
        let plan = plan_job(&self.job, &self.stands, Timestamp::from_second(self.now));
        let name = |place: &usize| self.job.spec.task_groups[*place].name.clone();
        let mut answers = Vec::new();
        for (verb, places) in [("make", &plan.make), ("cancel", &plan.cancel)] {
            if !places.is_empty() {
                answers.push(format!("{verb} {}", places.iter().map(name).collect::<Vec<_>>().join(" ")));
            }
        }
        for (place, suspend) in &plan.suspend {
            answers.push(format!("{} {}", if *suspend { "suspend" } else { "resume" }, name(place)));
        }
        let before = &self.job.status.groups;
        for (place, group) in plan.status.groups.iter().enumerate() {
            let skipped = group.state == WorkState::Skipped;
            if skipped && before.get(place).is_none_or(|before| before.state != WorkState::Skipped) {
                answers.push(format!("skip {}: {}", group.name, group.message));
            }
        }
        if plan.status.current_state().is_terminal() && !self.job.status.current_state().is_terminal() {
            answers.push(format!("{}: {}", plan.status.current_state(), plan.status.message));
        }
        if let Some(at) = plan.wake_at {
            answers.push(format!("look again at {at}"));
        }
        for place in &plan.make {
            assert_eq!(self.stands[*place], None, "made twice");
            self.stands[*place] = Some(GroupStand { state: WorkState::Created, ..GroupStand::default() });
        }
        for place in &plan.cancel {
            self.stands[*place].as_mut().expect("a group that is there").cancel = true;
        }
        for (place, suspend) in &plan.suspend {
            self.stands[*place].as_mut().expect("a group that is there").suspend = *suspend;
        }
        self.job.status = plan.status;
        answers
    }
}

#[test]
fn groups_are_made_when_what_they_depend_on_has_succeeded() {
    play(
        "group fetch
         group left needs=fetch
         group right needs=fetch
         group join needs=left,right
         look
         > make fetch
         look
         state fetch Running
         look
         state fetch Succeeded
         look
         > make left right
         state left Succeeded
         look
         state right Succeeded
         look
         > make join
         state join Succeeded
         look
         > Succeeded: 4 of 4 groups ended
         look",
    );
}

#[test]
fn a_failure_starts_its_branch_and_skips_what_waited_for_success() {
    play(
        "group build
         group deploy needs=build
         group announce needs=deploy
         group alarm needs=build when=failed
         group tidy needs=announce when=completed
         look
         > make build
         state build Failed
         look
         > make alarm tidy
         > skip deploy: group build failed
         > skip announce: group deploy was skipped
         state alarm Succeeded
         state tidy Succeeded
         look
         > Failed: 5 of 5 groups ended; failed: build",
    );
}

#[test]
fn an_on_failure_branch_is_skipped_when_nothing_failed() {
    play(
        "group a
         group alarm needs=a when=failed
         look
         > make a
         state a Succeeded
         look
         > skip alarm: none of the groups it depends on failed
         > Succeeded: 2 of 2 groups ended",
    );
}

#[test]
fn with_the_stop_policy_a_failure_ends_the_others_but_not_the_clean_up() {
    play(
        "policy stop
         group a
         group b
         group c needs=b
         group tidy needs=a,b when=completed
         look
         > make a b
         state b Running
         state a Failed
         look
         > cancel b
         > skip c: group a failed, and the failure policy is stop
         look
         state b Canceled
         look
         > make tidy
         state tidy Succeeded
         look
         > Failed: 4 of 4 groups ended; failed: a",
    );
}

#[test]
fn without_it_independent_branches_go_on() {
    play(
        "group a
         group b
         group c needs=b
         look
         > make a b
         state a Failed
         look
         state b Succeeded
         look
         > make c
         state c Succeeded
         look
         > Failed: 3 of 3 groups ended; failed: a",
    );
}

#[test]
fn a_canceled_job_ends_what_runs_and_makes_nothing_more() {
    play(
        "group a
         group tidy needs=a when=completed
         look
         > make a
         state a Running
         cancel
         look
         > cancel a
         > skip tidy: the job was canceled
         look
         state a Canceled
         look
         > Canceled: 2 of 2 groups ended",
    );
}

#[test]
fn a_job_that_takes_too_long_fails() {
    play(
        "deadline 60
         group a
         group b needs=a
         now 100
         look
         > make a
         > look again at 161
         now 161
         look
         > cancel a
         > skip b: the deadline of the job is over
         state a Canceled
         look
         > Failed: 2 of 2 groups ended; the deadline is over",
    );
}

#[test]
fn time_in_which_a_job_is_suspended_does_not_count_for_its_deadline() {
    play(
        "deadline 60
         group a
         group b needs=a
         now 100
         look
         > make a
         > look again at 161
         suspend
         now 110
         look
         > suspend a
         state a Succeeded
         now 500
         look
         resume
         now 510
         look
         > make b
         > look again at 562",
    );
}

#[test]
fn a_suspended_job_makes_nothing_and_lets_its_groups_go_on_later() {
    play(
        "suspend
         group a
         look
         resume
         look
         > make a
         suspend
         look
         > suspend a
         look
         resume
         look
         > resume a
         look",
    );
}

#[test]
fn a_group_that_was_deleted_counts_as_canceled_and_is_not_made_again() {
    play(
        "group a
         group b needs=a
         look
         > make a
         gone a
         look
         > skip b: group a was canceled
         > Canceled: 2 of 2 groups ended",
    );
}

#[test]
fn a_group_that_succeeded_may_be_deleted() {
    play(
        "group a
         group b needs=a
         look
         > make a
         state a Succeeded
         look
         > make b
         gone a
         state b Succeeded
         look
         > Succeeded: 2 of 2 groups ended",
    );
}

#[test]
fn groups_that_wait_for_each_other_end_all_the_same() {
    play(
        "group a needs=b
         group b needs=a
         look
         > skip a: it waits for itself
         > skip b: it waits for itself
         > Succeeded: 2 of 2 groups ended",
    );
}
