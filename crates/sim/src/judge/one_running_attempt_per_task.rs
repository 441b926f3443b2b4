//! Of one task at most one program runs at a time, none once it has succeeded, and no attempt is started twice.
//!
//! A program on a robot that could not be reached does not count: another one takes its place, and it is ended when its robot
//! is back.

use std::collections::BTreeSet;

use super::history::{Program, What};
use super::{Moment, Statement};

#[derive(Default)]
pub struct OneRunningAttempt {
    started: BTreeSet<(String, u32)>,
}

impl Statement for OneRunningAttempt {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        if let (Some(before), Some(task)) = (moment.before, moment.task)
            && task.state() == "Succeeded"
            && before.state() != "Succeeded"
        {
            moment.present.compared();
            let programs = moment.present.reachable_programs();
            for (program, ..) in programs.filter(|(program, ..)| program.task == task.metadata.uid) {
                let (name, Program { attempt, place, .. }) = (&task.metadata.name, program);
                broken.push(format!("task {name} succeeded while attempt {attempt} ran on {place}"));
            }
        }
        let What::Started(program) = &moment.entry.what else { return };
        moment.present.compared();
        let Program { task, attempt, place } = program;
        if !self.started.insert((task.clone(), *attempt)) {
            broken.push(format!("attempt {attempt} of {task} was started again, on {place}"));
        }
        let others = moment.present.reachable_programs().filter(|(other, ..)| other.task == *task);
        for (other, ..) in others.filter(|(other, ..)| *other != program) {
            broken.push(format!(
                "attempt {attempt} of {task} was started on {place} while attempt {} ran on {}",
                other.attempt, other.place
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::judge::story::Story;

    #[test]
    fn one_attempt_after_the_other_is_as_promised() {
        let mut story = Story::new();
        story.started("a", 1).ended("a", 1, 1).started("a", 2);
        assert!(story.broken("one_running_attempt_per_task").is_empty());
    }

    #[test]
    fn two_programs_of_a_task_at_once_are_found() {
        let mut story = Story::new();
        story.task("a", "Running", 1).started("a", 1).started("a", 2);
        assert_eq!(story.broken("one_running_attempt_per_task").len(), 1);
    }

    #[test]
    fn an_attempt_that_is_started_again_is_found() {
        let mut story = Story::new();
        story.started("a", 1).ended("a", 1, 0).started("a", 1);
        assert_eq!(story.broken("one_running_attempt_per_task").len(), 1);
    }

    #[test]
    fn a_task_that_succeeded_while_a_program_of_it_ran_is_found() {
        let mut story = Story::new();
        story.task("a", "Running", 1).started("a", 1).started_at("a", 2, "robot/r2").ended("a", 1, 0);
        story.task("a", "Succeeded", 1);
        let broken = story.broken("one_running_attempt_per_task");
        assert!(
            broken.iter().any(|it| it.contains("a succeeded while attempt 2 ran on robot/r2")),
            "{broken:?}"
        );
    }

    #[test]
    fn a_copy_on_a_robot_that_was_cut_off_does_not_count() {
        let mut story = Story::new();
        story.task("a", "Running", 1).started_at("a", 1, "robot/r1");
        story.link("r1", false).started_at("a", 2, "robot/r2");
        assert!(story.broken("one_running_attempt_per_task").is_empty());
    }
}
