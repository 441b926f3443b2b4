//! Nothing is let go before it is kept: files of an attempt only after its logs were kept, unless its task is gone or released
//! them; and a task goes by time only after every sink was told how it ended.

use std::collections::{BTreeMap, BTreeSet};

use super::history::{Program, What};
use super::messages::{SINKS, Stage};
use super::{Moment, Statement};

#[derive(Default)]
pub struct KeptBeforeReaped {
    kept: BTreeSet<(String, u32)>,
    /// What sinks were told last, by sink and uid: that it ended.
    told: BTreeSet<(String, String)>,
    /// Tasks that users deleted, by path.
    asked: BTreeSet<String>,
    /// Tasks that were there before a sink was.
    sinks: BTreeMap<String, BTreeSet<String>>,
    /// Sinks that were suspended: nothing waits for them.
    lax: BTreeSet<String>,
}

impl Statement for KeptBeforeReaped {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        match &moment.entry.what {
            What::Kept(program) => {
                self.kept.insert((program.task.clone(), program.attempt));
            }
            What::Removed(program) => self.removed(moment, program, broken),
            What::Delivered(message) if Stage::of(&message.topic) == Some(Stage::Ended) => {
                self.told.insert((message.sink.clone(), message.about.clone()));
            }
            What::Asked(request) => {
                self.asked.insert(request.path.clone());
            }
            What::Change(commit) if commit.resource == SINKS => {
                let sink = moment.present.object(SINKS, &commit.path);
                if sink.is_some_and(|sink| sink["spec"]["suspend"] == true) {
                    self.lax.insert(commit.path.clone());
                }
                let ended = moment.present.tasks.values().filter(|task| task.is_over());
                let ended = ended.map(|task| task.metadata.uid.clone()).collect();
                self.sinks.entry(commit.path.clone()).or_insert(ended);
            }
            _ => {}
        }
        self.reaped(moment, broken);
    }
}

impl KeptBeforeReaped {
    fn removed(&self, moment: &Moment<'_>, program: &Program, broken: &mut Vec<String>) {
        let Program { task, attempt, place } = program;
        if let Some(running) =
            moment.present.programs.keys().find(|it| it.task == *task && it.attempt == *attempt)
        {
            broken.push(format!(
                "files of attempt {attempt} of {task} were let go while it ran on {}",
                running.place
            ));
        }
        let Some(owner) = moment.present.tasks.get(task) else { return };
        moment.present.compared();
        let is_free = owner.gone || owner.status.released.is_some();
        if !is_free && !self.kept.contains(&(task.clone(), *attempt)) {
            broken.push(format!(
                "files of attempt {attempt} of {task} on {place} were let go before its logs were kept"
            ));
        }
    }

    fn reaped(&self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let Some(task) = moment.task.filter(|task| task.gone && task.is_over()) else { return };
        let path = format!("{}/{}", task.metadata.namespace, task.metadata.name);
        if self.asked.contains(&path) || task.metadata.deletion_timestamp.is_some() {
            return;
        }
        let owned = task.metadata.owner_references.iter();
        // What goes with its owner was asked for.
        if owned.into_iter().any(|owner| !is_there(moment, &owner.uid)) {
            return;
        }
        for (sink, before) in self.sinks.iter().filter(|(sink, _)| !self.lax.contains(*sink)) {
            moment.present.compared();
            let uid = &task.metadata.uid;
            if !before.contains(uid) && !self.told.contains(&(sink.clone(), uid.clone())) {
                broken.push(format!("{path} ({}) went before sink {sink} was told of its end", task.state()));
            }
        }
    }
}

fn is_there(moment: &Moment<'_>, uid: &str) -> bool {
    moment.present.objects.values().any(|object| object["metadata"]["uid"] == uid)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    #[test]
    fn files_that_go_after_their_logs_were_kept_are_as_promised() {
        let mut story = Story::new();
        assert!(
            story
                .task("a", "Succeeded", 1)
                .kept("a", 1)
                .removed("a", 1)
                .broken("kept_before_reaped")
                .is_empty()
        );
    }

    #[test]
    fn files_that_go_before_their_logs_were_kept_are_found() {
        let mut story = Story::new();
        assert_eq!(story.task("a", "Succeeded", 1).removed("a", 1).broken("kept_before_reaped").len(), 1);
    }

    #[test]
    fn files_that_go_under_a_running_program_are_found() {
        let mut story = Story::new();
        story.task("a", "Running", 1).started("a", 1).kept("a", 1).removed("a", 1);
        assert_eq!(story.broken("kept_before_reaped").len(), 1);
    }

    #[test]
    fn a_task_that_goes_before_a_sink_heard_of_its_end_is_found() {
        let mut story = Story::new();
        story.object("eventsinks.muster.dev", "d/s", json!({})).task("a", "Succeeded", 1).delete("a");
        assert_eq!(story.broken("kept_before_reaped").len(), 1);
    }

    #[test]
    fn a_task_that_goes_after_a_sink_heard_of_its_end_is_as_promised() {
        let mut story = Story::new();
        story.object("eventsinks.muster.dev", "d/s", json!({})).task("a", "Succeeded", 1);
        story.delivered("d/s", "a", "success").delete("a");
        assert!(story.broken("kept_before_reaped").is_empty());
    }
}
