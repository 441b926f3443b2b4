//! Of one subject and kind at most one program runs at a time, whatever became of the task of the other.

use super::{Moment, Statement};

pub struct Unique;

impl Statement for Unique {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let Some((_, task)) = moment.started() else { return };
        let Some(key) = task.unique_key() else { return };
        moment.present.compared();
        let others = moment.present.reachable_programs().filter(|(_, _, other)| {
            other.unique_key() == Some(key) && other.metadata.uid != task.metadata.uid
        });
        for (other, ..) in others {
            let of = &moment.present.tasks[&other.task];
            let replaced =
                if of.status.attempt == other.attempt { "" } else { ", which another attempt replaced" };
            broken.push(format!(
                "{} was started while attempt {} of {} ran{replaced}, of the same subject {} and kind {}",
                task.metadata.name, other.attempt, of.metadata.name, key.1.name, key.2
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    fn two(same: bool) -> Story {
        let mut story = Story::new();
        let of = |name: &str| json!({"kind": "scan", "subject": {"kind": "Application", "name": name}});
        story.spec("a", of("s1")).spec("b", of(if same { "s1" } else { "s2" }));
        story
    }

    #[test]
    fn two_of_one_subject_and_kind_after_one_another_are_as_promised() {
        let mut story = two(true);
        story.started("a", 1).ended("a", 1, 0).started("b", 1);
        assert!(story.broken("unique").is_empty());
    }

    #[test]
    fn two_of_different_subjects_at_once_are_as_promised() {
        assert!(two(false).started("a", 1).started("b", 1).broken("unique").is_empty());
    }

    #[test]
    fn two_of_one_subject_and_kind_at_once_are_found() {
        assert_eq!(two(true).started("a", 1).started("b", 1).broken("unique").len(), 1);
    }

    #[test]
    fn a_deleted_task_whose_program_still_runs_keeps_its_place() {
        let mut story = two(true);
        story.started("a", 1).delete("a").started("b", 1);
        assert_eq!(story.broken("unique").len(), 1);
    }
}
