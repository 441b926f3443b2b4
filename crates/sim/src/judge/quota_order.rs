//! When a quota refuses a task, none of lower effective priority that needs the same gets in before it. No pod is started for an
//! attempt that was chosen while a task of higher rank, which a quota had refused, waited for nothing else; and none is let in
//! that was chosen together with one of higher rank which the quota refused just then.

use std::collections::BTreeMap;

use super::history::{Program, What};
use super::present::Present;
use super::rank_order::{is_placeable, is_plain};
use super::task::Task;
use super::{Moment, PATIENCE, Statement};

#[derive(Default)]
pub struct QuotaOrder {
    /// How many entries were read.
    read: u64,
    /// When each task got its attempt, in entries, by uid.
    chosen: BTreeMap<String, u64>,
    /// What the quota refused since the same server leads: when, in entries, and the task.
    refused: Vec<(u64, String)>,
    /// The entry at which the present leader began.
    led_at: u64,
}

impl Statement for QuotaOrder {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        self.read += 1;
        if let Some(task) = moment.task {
            let (uid, attempt) = (&task.metadata.uid, task.status.attempt);
            // One that was refused and is chosen again at once keeps its number.
            let chosen = self.chosen.get(uid).copied().unwrap_or(0);
            let is_again = task.state() == "Pending"
                && self.refused.iter().any(|(read, refused)| refused == uid && *read > chosen);
            if is_again || moment.before.is_none_or(|before| before.status.attempt != attempt) {
                self.chosen.insert(uid.clone(), self.read);
            }
        }
        match &moment.entry.what {
            What::Server(..) => {
                self.refused.clear();
                self.led_at = self.read;
            }
            What::Refused(program) => self.refused.push((self.read, program.task.clone())),
            What::Admitted(program) => self.let_in(moment.present, program, broken),
            What::Started(_) => started(moment, broken),
            _ => {}
        }
    }
}

impl QuotaOrder {
    /// One of higher rank that was refused between the choice of a pod and the moment it was let in was chosen no later.
    fn let_in(&self, present: &Present, program: &Program, broken: &mut Vec<String>) {
        let Some(task) = present.tasks.get(&program.task) else { return };
        // What a former leader chose is asked for again in no order: it may be there.
        let chosen = self.chosen.get(&program.task).filter(|chosen| **chosen > self.led_at);
        let Some(chosen) = chosen else { return };
        let rank = task.attempt_rank.max(present.effective_priority(task));
        let since = self.refused.iter().rev().take_while(|(read, _)| read > chosen);
        for other in since.filter_map(|(_, uid)| present.tasks.get(uid)) {
            present.compared();
            let is_first = self.chosen.get(&other.metadata.uid).is_some_and(|its| its <= chosen);
            if is_first && is_anywhere(other) && !other.is_unwanted() && present.priority(other) > rank {
                let (name, refused) = (&task.metadata.name, &other.metadata.name);
                broken.push(format!(
                    "the pod of {name} (effective priority {rank}) was let in right after that of {refused} was refused"
                ));
            }
        }
    }
}

fn started(moment: &Moment<'_>, broken: &mut Vec<String>) {
    let Some((_, task)) = moment.started().filter(|(_, task)| task.runtime() == "pod") else { return };
    let present = moment.present;
    let chosen = task.attempt_at - PATIENCE - present.late;
    if task.gone || present.isolated_until >= chosen || !present.calm_for(present.at - chosen) {
        return;
    }
    present.compared();
    let rank = task.attempt_rank.max(present.effective_priority(task));
    let waited = |it: &&Task| is_refused(it) && it.queued_at < chosen && it.rest_over_at < chosen;
    for waiting in present.open().filter(waited) {
        let waiting_rank = present.effective_priority(waiting);
        if waiting_rank > rank && is_long_placeable(present, waiting, chosen) {
            let (name, other) = (&task.metadata.name, &waiting.metadata.name);
            broken.push(format!(
                "the pod of {name} (effective priority {rank}) got in while {other} ({waiting_rank}) was refused"
            ));
        }
    }
}

/// A quota refused it, and it may run wherever others do.
fn is_refused(task: &Task) -> bool {
    task.state() == "QuotaBlocked" && is_anywhere(task)
}

/// Its pod may run wherever others do.
fn is_anywhere(task: &Task) -> bool {
    let is_anywhere = task.spec.pod.as_object().is_none_or(serde_json::Map::is_empty);
    task.runtime() == "pod" && is_anywhere && is_plain(task)
}

/// Nothing but the quota kept it back, from before the other was chosen until now.
fn is_long_placeable(present: &Present, task: &Task, chosen: i64) -> bool {
    is_placeable(present, task, PATIENCE + present.late)
        && task.ranked_at < chosen
        && present.subject_rests_since(task) < chosen
        && !task.spec.policy.isolated
        && present.names_exist_since(task).is_some_and(|since| since < chosen)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    fn low_starts(refused_for: i64) -> Vec<String> {
        let mut story = Story::new();
        story.spec("high", json!({"runtime": "pod", "priority": 9}));
        story.spec("low", json!({"runtime": "pod", "priority": 1}));
        story.task("high", "Pending", 1).status("high", json!({"state": "QuotaBlocked"}));
        story.wait(refused_for).task("low", "Pending", 1);
        story.wait(1_000).started_at("low", 1, "cluster/c");
        story.broken("quota_order")
    }

    #[test]
    fn a_pod_that_was_chosen_before_the_refusal_was_known_is_as_promised() {
        assert!(low_starts(50).is_empty());
    }

    #[test]
    fn a_pod_that_was_chosen_while_one_of_higher_rank_rested_is_as_promised() {
        let mut story = Story::new();
        story.spec("high", json!({"runtime": "pod", "priority": 9}));
        story.spec("low", json!({"runtime": "pod", "priority": 1}));
        let rests = json!({
            "state": "Ready", "attempt": 1, "stateSince": "2027-01-15T08:00:00Z", "restUntil": "2027-01-15T08:00:05Z",
        });
        story.task("high", "Running", 1).status("high", rests).wait(500).task("low", "Pending", 1);
        story.wait(5_000).status("high", json!({"state": "QuotaBlocked", "attempt": 1}));
        assert!(story.started_at("low", 1, "cluster/c").broken("quota_order").is_empty());
    }

    #[test]
    fn a_pod_that_gets_in_before_one_of_higher_rank_that_was_refused_is_found() {
        assert_eq!(low_starts(500).len(), 1);
    }

    #[test]
    fn a_pod_that_was_chosen_before_the_other_was_raised_above_it_is_as_promised() {
        let mut story = Story::new();
        story.spec("high", json!({"runtime": "pod", "priority": 0}));
        story.spec("low", json!({"runtime": "pod", "priority": 1}));
        story.task("high", "Pending", 1).status("high", json!({"state": "QuotaBlocked"}));
        story.wait(500).task("low", "Pending", 1);
        story.wait(500).spec("high", json!({"runtime": "pod", "priority": 9}));
        assert!(story.wait(500).started_at("low", 1, "cluster/c").broken("quota_order").is_empty());
    }

    fn low_is_let_in(chosen_first: &str) -> Vec<String> {
        let mut story = Story::new();
        story.spec("high", json!({"runtime": "pod", "priority": 9}));
        story.spec("low", json!({"runtime": "pod", "priority": 1}));
        let other = if chosen_first == "high" { "low" } else { "high" };
        story.task(chosen_first, "Pending", 1).task(other, "Pending", 1);
        story.refused_by_quota("high", 1).admitted("low", 1).broken("quota_order")
    }

    #[test]
    fn a_pod_that_was_chosen_before_one_of_higher_rank_may_be_let_in() {
        assert!(low_is_let_in("low").is_empty());
    }

    #[test]
    fn a_pod_that_is_let_in_right_after_one_of_higher_rank_was_refused_is_found() {
        assert_eq!(low_is_let_in("high").len(), 1);
    }
}
