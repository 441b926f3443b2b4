//! Every message reaches every sink, in order: that a task was made, that it was submitted, that it ran, that it ended, once, and
//! that it is gone. Nothing is told before it was committed. A message may arrive again under the same id and says the same then.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::history::{Delivery, What};
use super::present::Present;
use super::task::Task;
use super::{Moment, Statement};

/// A change is seen at most so long after the message that tells of it, in milliseconds: by a busy machine that follows real servers.
const SEEN: i64 = 5_000;

/// Where sinks are kept.
pub const SINKS: &str = "eventsinks.muster.dev";

/// Whatever happened so long ago was told, if the sink takes messages; in milliseconds.
const SOON: i64 = 45_000;

/// What a message says of a task, in the order in which it can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Created,
    Submitted,
    /// It ran, waits again, or has another attempt.
    OnItsWay,
    Ended,
    Gone,
}

impl Stage {
    /// What a message about a task says; `None` if it is about something else.
    pub fn of(topic: &str) -> Option<Self> {
        let word = topic.strip_prefix("cds.job.").or_else(|| topic.strip_prefix("dev.muster.task."))?;
        Some(match word {
            "created" => Self::Created,
            "starting" | "ready" => Self::Submitted,
            "success" | "succeeded" | "failed" | "canceled" => Self::Ended,
            "deleted" => Self::Gone,
            _ => Self::OnItsWay,
        })
    }
}

#[derive(Default)]
pub struct Messages {
    /// What each message said, by sink and id.
    said: BTreeMap<(String, String), String>,
    /// What was heard of each object, by sink and uid, in order.
    heard: BTreeMap<(String, String), Vec<String>>,
    /// Sinks, and the tasks that were there before them.
    sinks: BTreeMap<String, BTreeSet<String>>,
    /// Sinks that were suspended: what was forgotten meanwhile is not told.
    lax: BTreeSet<String>,
    /// Messages that told of what was not committed then, and when they came.
    early: VecDeque<(i64, Delivery)>,
    submitted: BTreeSet<String>,
    /// When tasks went.
    gone: BTreeMap<String, i64>,
    ran: BTreeSet<String>,
}

impl Statement for Messages {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        match &moment.entry.what {
            What::Delivered(delivery) => {
                moment.present.compared();
                self.deliver(moment.present, delivery, broken);
            }
            What::Change(commit) if commit.resource == SINKS => {
                let there = || moment.present.tasks.keys().cloned().collect();
                let sink = moment.present.object(SINKS, &commit.path);
                // One that was changed before any server saw it begins then.
                if sink.is_some_and(|sink| sink["status"]["conditions"].is_null()) {
                    self.sinks.remove(&commit.path);
                }
                self.sinks.entry(commit.path.clone()).or_insert_with(there);
                if sink.is_some_and(|sink| sink["spec"]["suspend"] == true) {
                    self.lax.insert(commit.path.clone());
                }
            }
            _ => {}
        }
        self.check_early(moment.present, broken);
        if let Some(task) = moment.task.filter(|task| task.gone) {
            self.gone.insert(task.metadata.uid.clone(), moment.present.at);
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
        for (sink, there) in self.sinks.iter().filter(|(sink, _)| !self.lax.contains(*sink)) {
            for uid in self.submitted.iter().filter(|uid| !there.contains(*uid)) {
                present.compared();
                let nothing = Vec::new();
                let heard = self.heard.get(&(sink.clone(), uid.clone())).unwrap_or(&nothing);
                let task = &present.tasks[uid];
                let speaks_cds = heard.iter().any(|topic| topic.starts_with("cds."));
                let is_fresh = self.gone.get(uid).is_some_and(|at| present.at - at < SOON);
                if !is_fresh && self.is_missing(task, heard, speaks_cds) {
                    let (name, state) = (&task.metadata.name, task.state());
                    let gone = if task.gone { " and gone" } else { "" };
                    broken.push(format!("sink {sink} heard {heard:?} of {name}, which is {state}{gone}"));
                }
            }
        }
    }
}

impl Messages {
    /// True if a message about a task never came.
    fn is_missing(&self, task: &Task, heard: &[String], speaks_cds: bool) -> bool {
        let has = |stage: Stage| heard.iter().any(|topic| Stage::of(topic) == Some(stage));
        let ran = || heard.iter().any(|topic| topic.ends_with(".running"));
        // In the language of CDS, a task that is gone before it ended has failed.
        let is_over = task.is_over() || task.gone && speaks_cds;
        !has(Stage::Submitted)
            || self.ran.contains(&task.metadata.uid) && !ran()
            || is_over && !has(Stage::Ended)
            || task.gone && !speaks_cds && !has(Stage::Gone)
    }

    /// A recorder of real servers may see a message shortly before the change that it tells of.
    fn check_early(&mut self, present: &Present, broken: &mut Vec<String>) {
        while let Some((at, _)) = self.early.front()
            && present.at - at > SEEN
            && let Some((_, delivery)) = self.early.pop_front()
        {
            let Delivery { sink, about, topic, .. } = &delivery;
            if Stage::of(topic).is_some_and(|stage| !is_committed(present, about, stage)) {
                broken.push(format!("sink {sink} heard {topic} of {about}, and that was never committed"));
            }
        }
    }

    fn deliver(&mut self, present: &Present, delivery: &Delivery, broken: &mut Vec<String>) {
        let Delivery { sink, id, about, topic } = delivery;
        if let Some(said) = self.said.insert((sink.clone(), id.clone()), topic.clone()) {
            if said != *topic {
                broken.push(format!("message {id} said {said} to {sink}, and then {topic}"));
            }
            return;
        }
        let Some(stage) = Stage::of(topic) else { return };
        if !is_committed(present, about, stage) {
            self.early.push_back((present.at, delivery.clone()));
        }
        let heard = self.heard.entry((sink.clone(), about.clone())).or_default();
        let last = heard.last().and_then(|last| Stage::of(last));
        // A sink that was suspended begins somewhere, and is told everything anew if what it missed was forgotten.
        let is_anew = self.lax.contains(sink);
        if !is_anew && last.is_some_and(|last| stage < last || stage == last && stage != Stage::OnItsWay) {
            broken.push(format!("sink {sink} heard {topic} of {about} after {heard:?}"));
        }
        heard.push(topic.clone());
    }
}

/// True if what a message says was committed.
fn is_committed(present: &Present, about: &str, stage: Stage) -> bool {
    present.tasks.get(about).is_some_and(|task| match stage {
        Stage::Created | Stage::Submitted | Stage::OnItsWay => true,
        Stage::Ended => task.is_over() || task.gone,
        Stage::Gone => task.gone,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    fn one_task() -> Story {
        let mut story = Story::new();
        story.object("eventsinks.muster.dev", "d/s", json!({"spec": {"amqp": {}}}));
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

    #[test]
    fn a_message_that_never_came_to_a_sink_that_was_suspended_is_as_promised() {
        let mut story = one_task();
        story.object("eventsinks.muster.dev", "d/s", json!({"spec": {"amqp": {}, "suspend": true}}));
        assert!(story.quiet().broken("messages").is_empty());
    }

    #[test]
    fn an_end_that_is_told_before_it_was_committed_is_found() {
        let mut story = Story::new();
        story.object("eventsinks.muster.dev", "d/s", json!({"spec": {"amqp": {}}}));
        story.task("a", "Running", 1).delivered("d/s", "a", "starting").delivered("d/s", "a", "success");
        assert_eq!(story.wait(6_000).task("b", "Ready", 0).broken("messages").len(), 1);
    }
}
