//! Every message reaches every sink, in order: that a task was submitted before that it ran, and that it ended last and once. A
//! message may arrive again under the same id and says the same then.

use std::collections::{BTreeMap, BTreeSet};

use super::history::{Delivery, What};
use super::kept_before_reaped::is_end;
use super::present::Present;
use super::{Moment, Statement};

#[derive(Default)]
pub struct Messages {
    /// What each message said, by sink and id.
    said: BTreeMap<(String, String), String>,
    /// What was heard of each task, by sink and uid, in order.
    heard: BTreeMap<(String, String), Vec<String>>,
    /// Sinks, and the tasks that were there before them.
    sinks: BTreeMap<String, BTreeSet<String>>,
    submitted: BTreeSet<String>,
    ran: BTreeSet<String>,
}

impl Statement for Messages {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        match &moment.entry.what {
            What::Delivered(delivery) => {
                moment.present.compared();
                self.deliver(delivery, broken);
            }
            What::Change(commit) if commit.resource == "eventsinks.muster.dev" => {
                let there = moment.present.tasks.keys().cloned().collect();
                self.sinks.entry(commit.path.clone()).or_insert(there);
            }
            _ => {}
        }
        let Some(task) = moment.task.filter(|task| !task.gone) else { return };
        if task.is_submitted() {
            self.submitted.insert(task.metadata.uid.clone());
        }
        if task.state() == "Running" {
            self.ran.insert(task.metadata.uid.clone());
        }
    }

    fn close(&mut self, present: &Present, broken: &mut Vec<String>) {
        if present.quiet_since.is_none() {
            return;
        }
        for (sink, there) in &self.sinks {
            for uid in self.submitted.iter().filter(|uid| !there.contains(*uid)) {
                present.compared();
                let nothing = Vec::new();
                let heard = self.heard.get(&(sink.clone(), uid.clone())).unwrap_or(&nothing);
                let task = &present.tasks[uid];
                let has = |word: &str| heard.iter().any(|topic| topic.ends_with(word));
                let is_over = task.is_over() || task.gone;
                if !has(".starting")
                    || self.ran.contains(uid) && !has(".running")
                    || is_over && !heard.last().is_some_and(|last| is_end(last))
                {
                    let (name, state) = (&task.metadata.name, task.state());
                    broken.push(format!("sink {sink} heard {heard:?} of {name}, which is {state}"));
                }
            }
        }
    }
}

impl Messages {
    fn deliver(&mut self, delivery: &Delivery, broken: &mut Vec<String>) {
        let Delivery { sink, id, about, topic } = delivery;
        if let Some(said) = self.said.insert((sink.clone(), id.clone()), topic.clone()) {
            if said != *topic {
                broken.push(format!("message {id} said {said} to {sink}, and then {topic}"));
            }
            return;
        }
        let heard = self.heard.entry((sink.clone(), about.clone())).or_default();
        if heard.last().is_some_and(|last| is_end(last)) {
            broken.push(format!("sink {sink} heard {topic} of {about} after {heard:?}"));
        }
        if topic.ends_with(".starting") && !heard.is_empty() {
            broken.push(format!("sink {sink} heard {topic} of {about} after {heard:?}"));
        }
        heard.push(topic.clone());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    fn one_task() -> Story {
        let mut story = Story::new();
        story.object("eventsinks.muster.dev", "d/s", json!({}));
        story.task("a", "Ready", 0).task("a", "Running", 1).task("a", "Succeeded", 1);
        story
    }

    #[test]
    fn all_messages_in_order_and_one_twice_are_as_promised() {
        let mut story = one_task();
        for word in ["starting", "running", "starting", "success"] {
            story.delivered("d/s", "a", word);
        }
        assert!(story.quiet().broken("messages").is_empty());
    }

    #[test]
    fn a_message_after_the_last_is_found() {
        let mut story = one_task();
        for word in ["starting", "success", "running"] {
            story.delivered("d/s", "a", word);
        }
        assert!(!story.broken("messages").is_empty());
    }

    #[test]
    fn a_message_that_never_came_is_found() {
        let mut story = one_task();
        story.delivered("d/s", "a", "starting").delivered("d/s", "a", "running");
        assert_eq!(story.quiet().broken("messages").len(), 1);
    }
}
