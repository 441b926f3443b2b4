//! No program is started for a subject that does not exist.

use super::{Moment, Statement};

pub struct NamesExist;

impl Statement for NamesExist {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let Some((_, task)) = moment.started() else { return };
        let Some(subject) = &task.spec.subject else { return };
        moment.present.compared();
        if moment.present.names_exist_since(task).is_none() && !task.gone {
            broken.push(format!(
                "{} was started, and its subject {} {} does not exist",
                task.metadata.name, subject.kind, subject.name
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    fn about(name: &str) -> Vec<String> {
        let mut story = Story::new();
        story.object(
            "applications.muster.dev",
            "d/there",
            json!({"metadata": {"name": "there", "namespace": "d"}}),
        );
        story.spec("a", json!({"kind": "scan", "subject": {"kind": "Application", "name": name}}));
        story.started("a", 1).broken("names_exist")
    }

    #[test]
    fn a_start_for_a_subject_that_is_there_is_as_promised() {
        assert!(about("there").is_empty());
    }

    #[test]
    fn a_start_for_a_subject_that_is_not_there_is_found() {
        assert_eq!(about("nowhere").len(), 1);
    }
}
