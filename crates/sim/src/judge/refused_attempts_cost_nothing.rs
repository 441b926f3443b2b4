//! An attempt that a quota refused does not use up its number: the next one has the same.

use std::collections::BTreeSet;

use super::history::What;
use super::{Moment, Statement};

#[derive(Default)]
pub struct RefusedAttemptsCostNothing {
    /// Attempts that were refused and never let in, by task and number.
    refused: BTreeSet<(String, u32)>,
}

impl Statement for RefusedAttemptsCostNothing {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        match &moment.entry.what {
            What::Refused(program) => {
                self.refused.insert((program.task.clone(), program.attempt));
            }
            What::Admitted(program) => {
                self.refused.remove(&(program.task.clone(), program.attempt));
            }
            _ => {}
        }
        let Some(task) = moment.task.filter(|task| task.status.attempt > 1) else { return };
        moment.present.compared();
        let (name, uid, number) = (&task.metadata.name, &task.metadata.uid, task.status.attempt);
        if self.refused.remove(&(uid.clone(), number - 1)) {
            broken.push(format!("{name} has attempt {number}, and a quota refused the one before it"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::judge::story::Story;

    #[test]
    fn an_attempt_that_is_tried_again_with_its_number_is_as_promised() {
        let mut story = Story::new();
        story.task("a", "Pending", 1).refused_by_quota("a", 1).task("a", "QuotaBlocked", 0);
        story.task("a", "Pending", 1).admitted("a", 1).task("a", "Pending", 2);
        assert!(story.broken("refused_attempts_cost_nothing").is_empty());
    }

    #[test]
    fn a_number_that_a_refusal_used_up_is_found() {
        let mut story = Story::new();
        story.task("a", "Pending", 1).refused_by_quota("a", 1).task("a", "Pending", 2);
        assert_eq!(story.broken("refused_attempts_cost_nothing").len(), 1);
    }
}
