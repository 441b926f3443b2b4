//! A task gets an attempt only after everything it depends on has ended: every task of the same subject whose kind its own
//! kind needs, directly or through others.
//!
//! A task that was submitted only just before is no hindrance: whoever decides may not have seen it.

use super::{Moment, PATIENCE, Statement};

pub struct DependencyOrder;

impl Statement for DependencyOrder {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let Some((_, task)) = moment.started() else { return };
        let present = moment.present;
        if task.spec.subject.is_some() {
            present.compared();
        }
        for other in present.open().filter(|other| present.depends(task, other)) {
            let was_there = other.submitted_at + PATIENCE < task.attempt_at - task.attempt_late;
            if was_there && !task.gone {
                broken.push(format!(
                    "{} was started while {} was {}, on which it depends",
                    task.metadata.name,
                    other.metadata.name,
                    other.state()
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    fn two_kinds() -> Story {
        let mut story = Story::new();
        story.kind("find", &[]).kind("read", &["find"]).kind("tell", &["read"]);
        let of = |kind: &str| json!({"kind": kind, "subject": {"kind": "Application", "name": "s"}});
        story.spec("first", of("find")).spec("last", of("tell"));
        story
    }

    #[test]
    fn a_task_after_what_it_depends_on_is_as_promised() {
        let mut story = two_kinds();
        story.task("first", "Succeeded", 1).wait(200).task("last", "Pending", 1).started("last", 1);
        assert!(story.broken("dependency_order").is_empty());
    }

    #[test]
    fn a_task_that_was_decided_on_before_its_dependency_came_is_as_promised() {
        let mut story = two_kinds();
        story.wait(200).late(150).task("last", "Pending", 1).started("last", 1);
        assert!(story.broken("dependency_order").is_empty());
    }

    #[test]
    fn a_task_before_what_it_depends_on_through_another_kind_is_found() {
        let mut story = two_kinds();
        story.wait(200).task("last", "Pending", 1).started("last", 1);
        assert_eq!(story.broken("dependency_order").len(), 1);
    }
}
