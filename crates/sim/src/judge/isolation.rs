//! An isolated task runs alone: no program is started while it runs, and it is started when no other program runs.

use super::{Moment, Statement};

pub struct Isolation;

impl Statement for Isolation {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let Some((_, task)) = moment.started() else { return };
        moment.present.compared();
        let others = moment.present.reachable_programs().map(|(_, _, other)| other);
        for other in others.filter(|other| other.metadata.uid != task.metadata.uid) {
            let (name, other_name) = (&task.metadata.name, &other.metadata.name);
            if task.spec.policy.isolated {
                broken.push(format!("{name} is isolated and was started while {other_name} ran"));
            } else if other.spec.policy.isolated {
                broken.push(format!("{name} was started while {other_name} ran, which is isolated"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    fn one_isolated() -> Story {
        let mut story = Story::new();
        story.spec("alone", json!({"policy": {"isolated": true}})).spec("b", json!({}));
        story
    }

    #[test]
    fn an_isolated_task_after_another_is_as_promised() {
        let mut story = one_isolated();
        story.started("b", 1).ended("b", 1, 0).started("alone", 1);
        assert!(story.broken("isolation").is_empty());
    }

    #[test]
    fn an_isolated_task_beside_another_is_found() {
        assert_eq!(one_isolated().started("b", 1).started("alone", 1).broken("isolation").len(), 1);
    }

    #[test]
    fn another_beside_an_isolated_task_is_found_though_that_was_deleted() {
        let mut story = one_isolated();
        story.started("alone", 1).delete("alone").started("b", 1);
        assert_eq!(story.broken("isolation").len(), 1);
    }
}
