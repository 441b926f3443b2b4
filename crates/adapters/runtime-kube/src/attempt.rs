//! One attempt while it is in the cluster: what was seen of it, and what was said about it.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_ports::clock::Millis;
use muster_ports::runtime::Observation;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::ending::{Circumstances, judge_end, judge_missing};
use crate::pod_view::{ContainerPhase, Phase, PodView, Trouble};
use crate::tail::Taken;

/// What the desk has to do about an attempt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Say something.
    Say(Observation),
    /// Take the log of a container.
    Tail(String),
    /// Delete the pod within this time.
    Delete(Duration),
    /// Say how it ended, and forget it.
    End(Observation),
}

/// An attempt that was started here or taken over.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub namespace: String,
    kill_timeout: Duration,
    /// It is taken over, and must be there.
    pub must_exist: bool,
    pub view: Option<PodView>,
    /// When the cluster said that the pod is there.
    pub answered: Option<Instant>,
    gone: Option<Instant>,
    stop: Option<(Instant, Duration)>,
    said_created: bool,
    said_started: bool,
    /// The reason and the message of what it was last said to wait for.
    said_trouble: Option<(String, String)>,
    deleted_by_others: bool,
    /// It cannot run, and its pod is on its way out.
    failed_start: Option<Observation>,
    failed_sidecar: Option<(String, crate::pod_view::Terminated)>,
    leader_ended: Option<Instant>,
    /// The pod was told to go, and must go at the latest by then.
    force_at: Option<Instant>,
    tails: BTreeMap<String, TailState>,
}

#[derive(Debug)]
struct TailState {
    ended: watch::Sender<bool>,
    task: Option<AbortHandle>,
    taken: Option<Taken>,
}

/// How long a pod may be there before it is seen.
const UNSEEN: Duration = Duration::from_mins(1);
/// How long the logs of a pod that is gone may still take.
const LAST_WORDS: Duration = Duration::from_secs(10);

impl Attempt {
    pub(crate) fn new(namespace: String, kill_timeout: Duration, ran: bool) -> Self {
        Self {
            namespace,
            kill_timeout,
            must_exist: ran,
            view: None,
            answered: None,
            gone: None,
            stop: None,
            said_created: ran,
            said_started: ran,
            said_trouble: None,
            deleted_by_others: false,
            failed_start: None,
            failed_sidecar: None,
            leader_ended: None,
            force_at: None,
            tails: BTreeMap::new(),
        }
    }

    /// The runtime was told to stop it.
    pub(crate) fn stop(&mut self, grace: Duration, now: Instant, stuck_after: Duration) -> Option<Step> {
        if self.stop.is_none_or(|(_, before)| grace < before) {
            self.stop = Some((now, grace));
            self.force_at = Some(now + grace + stuck_after);
            return self.view.as_ref().map(|_| Step::Delete(grace));
        }
        None
    }

    /// True if its pod was made long ago and was never seen.
    pub(crate) fn came_and_went(&self, now: Instant) -> bool {
        self.view.is_none() && self.gone.is_none() && self.answered.is_some_and(|at| at + UNSEEN <= now)
    }

    /// Nothing can be seen of pods, for this reason.
    pub(crate) fn observe_unseen(&mut self, reason: &str, message: String) -> Vec<Step> {
        if self.said_started
            || self.view.is_some()
            || self.said_trouble.as_ref().is_some_and(|(said, _)| said == reason)
        {
            return Vec::new();
        }
        self.said_trouble = Some((reason.to_owned(), message.clone()));
        vec![Step::Say(Observation::Waiting { reason: reason.to_owned(), message })]
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// Takes in how the pod is, and says what follows.
    pub(crate) fn observe(&mut self, view: PodView, now: Instant, at: Millis) -> Vec<Step> {
        let mut steps = Vec::new();
        if view.deleting && self.force_at.is_none() && !view.is_over() {
            self.deleted_by_others = true;
        }
        if !std::mem::replace(&mut self.said_created, true) {
            steps.push(Step::Say(Observation::Created));
        }
        let first = self.view.is_none();
        self.view = Some(view);
        if let (true, Some((_, grace))) = (first, self.stop) {
            steps.push(Step::Delete(grace));
        }
        self.follow_containers(&mut steps);
        self.judge(now, &mut steps);
        self.end_if_over(at, &mut steps);
        steps
    }

    /// The pod is gone.
    pub(crate) fn observe_gone(&mut self, last: Option<PodView>, now: Instant, at: Millis) -> Vec<Step> {
        let mut steps = Vec::new();
        if let Some(last) = last {
            if self.force_at.is_none() && !last.is_over() {
                self.deleted_by_others = true;
            }
            self.view = Some(last);
        }
        self.gone = Some(now);
        for tail in self.tails.values() {
            tail.ended.send_replace(true);
        }
        self.end_if_over(at, &mut steps);
        steps
    }

    /// A log was taken.
    pub(crate) fn observe_taken(&mut self, container: &str, taken: Taken, at: Millis) -> Vec<Step> {
        if let Some(tail) = self.tails.get_mut(container) {
            tail.taken = Some(taken);
        }
        let mut steps = Vec::new();
        self.end_if_over(at, &mut steps);
        steps
    }

    /// Time has passed.
    pub(crate) fn observe_time(&mut self, now: Instant, at: Millis, zombie_after: Duration) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.gone.is_some_and(|gone| gone + LAST_WORDS <= now) {
            for (container, tail) in &mut self.tails {
                if tail.taken.is_none() {
                    tail.abort();
                    let trouble = Some(format!("the pod was gone before the log of {container} was taken"));
                    tail.taken = Some(Taken { bytes: 0, trouble });
                }
            }
            self.end_if_over(at, &mut steps);
            return steps;
        }
        let zombie = self.leader_ended.filter(|_| self.force_at.is_none());
        if zombie.is_some_and(|ended| ended + self.kill_timeout + zombie_after <= now) {
            tracing::warn!(
                namespace = self.namespace,
                "sidecars did not end with their leader; the pod goes"
            );
            self.force_at = Some(now + zombie_after);
            steps.push(Step::Delete(Duration::ZERO));
        } else if self.force_at.is_some_and(|force| force <= now) {
            self.force_at = Some(now + zombie_after);
            steps.push(Step::Delete(Duration::ZERO));
        }
        steps
    }

    /// A log is being taken.
    pub(crate) fn begin_tail(&mut self, container: &str) -> watch::Receiver<bool> {
        let (ended, seen) = watch::channel(self.has_ended(container));
        self.tails.insert(container.to_owned(), TailState { ended, task: None, taken: None });
        seen
    }

    pub(crate) fn set_tail(&mut self, container: &str, task: AbortHandle) {
        if let Some(tail) = self.tails.get_mut(container) {
            tail.task = Some(task);
        }
    }

    fn has_ended(&self, container: &str) -> bool {
        let view = self.view.as_ref();
        let found = view.and_then(|view| view.containers.iter().find(|it| it.name == container));
        self.gone.is_some() || found.is_some_and(|it| matches!(it.state, ContainerPhase::Terminated(_)))
    }

    fn follow_containers(&mut self, steps: &mut Vec<Step>) {
        let Some(view) = &self.view else { return };
        for container in &view.containers {
            match (self.tails.get(&container.name), &container.state) {
                (None, ContainerPhase::Running | ContainerPhase::Terminated(_)) => {
                    steps.push(Step::Tail(container.name.clone()));
                }
                (Some(tail), ContainerPhase::Terminated(_)) => drop(tail.ended.send_replace(true)),
                (_, ContainerPhase::Waiting { .. } | ContainerPhase::Running) => {}
            }
        }
    }

    fn judge(&mut self, now: Instant, steps: &mut Vec<Step>) {
        let Some(view) = &self.view else { return };
        if self.stop.is_some() || self.failed_start.is_some() {
            return;
        }
        match view.trouble() {
            Some(Trouble::Lasting { reason, message }) => {
                let (reason, transient) = (reason.to_owned(), false);
                self.failed_start = Some(Observation::StartFailed { reason, message, transient });
                self.force_at = Some(now + self.kill_timeout + Duration::from_secs(30));
                if view.phase != Phase::Ended {
                    steps.push(Step::Delete(Duration::ZERO));
                }
                return;
            }
            Some(Trouble::Passing { reason, message }) if !self.said_started => {
                // Of a pod that finds no node, the words say what is lacking, and others leave for that.
                let trouble = (reason.clone(), message.clone());
                if self.said_trouble.as_ref() != Some(&trouble) {
                    self.said_trouble = Some(trouble);
                    steps.push(Step::Say(Observation::Waiting { reason, message }));
                }
            }
            Some(Trouble::Passing { .. }) | None => {}
        }
        if let Some((sidecar, end)) = view.failed_sidecar().filter(|_| self.failed_sidecar.is_none()) {
            self.failed_sidecar = Some((sidecar.name.clone(), end.clone()));
            self.force_at = Some(now + self.kill_timeout + Duration::from_secs(30));
            if !view.is_over() {
                steps.push(Step::Delete(self.kill_timeout));
            }
        }
        if view.has_started() && !std::mem::replace(&mut self.said_started, true) {
            steps.push(Step::Say(Observation::Started));
        } else if self.said_trouble.is_some()
            && view.trouble().is_none()
            && view.has_node
            && !self.said_started
        {
            // It has found its node; whoever waited behind it may go on.
            self.said_trouble = None;
            let (reason, message) =
                ("ContainerCreating".to_owned(), "its containers are being made".to_owned());
            steps.push(Step::Say(Observation::Waiting { reason, message }));
        }
        if view.leader_end().is_some() {
            self.leader_ended.get_or_insert(now);
        }
    }

    fn end_if_over(&self, at: Millis, steps: &mut Vec<Step>) {
        let over = self.view.as_ref().is_some_and(PodView::is_over);
        if let Some(failed) = &self.failed_start {
            steps.push(Step::End(failed.clone()));
            return;
        }
        let tailing = steps.iter().any(|step| matches!(step, Step::Tail(_)));
        if !(over || self.gone.is_some()) || tailing || self.tails.values().any(|tail| tail.taken.is_none()) {
            return;
        }
        let known = self.circumstances();
        let last = match &self.view {
            Some(view) => judge_end(view, &known, at),
            None => judge_missing(&known, at),
        };
        steps.push(Step::End(last));
    }

    fn circumstances(&self) -> Circumstances {
        let taken = || self.tails.iter().filter_map(|(name, tail)| Some((name, tail.taken.as_ref()?)));
        Circumstances {
            stopped: self.stop.is_some(),
            deleted_by_others: self.deleted_by_others,
            failed_sidecar: self.failed_sidecar.clone(),
            log_bytes: taken().map(|(name, taken)| (name.clone(), taken.bytes)).collect(),
            log_trouble: taken().find_map(|(_, taken)| taken.trouble.clone()),
        }
    }
}

impl TailState {
    fn abort(&self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Drop for TailState {
    fn drop(&mut self) {
        self.abort();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pod_view::tests::{ended, pod, statuses};

    const GRACE: Duration = Duration::from_secs(10);
    const MINUTE: Duration = Duration::from_mins(1);
    const AT: Millis = Millis(0);

    fn attempt() -> Attempt {
        Attempt::new("n".to_owned(), GRACE, false)
    }

    fn running() -> PodView {
        let runs = json!({ "running": {} });
        pod(&statuses("Running", &runs, &runs))
    }

    fn deletes(steps: &[Step]) -> bool {
        steps.contains(&Step::Delete(Duration::ZERO))
    }

    #[test]
    fn sidecars_that_go_on_after_their_leader_are_ended_with_their_pod() {
        let (mut attempt, now) = (attempt(), Instant::now());
        let zombie = pod(&statuses("Running", &ended(0, 5, "Completed"), &json!({ "running": {} })));
        attempt.observe(zombie, now, AT);
        let after = |attempt: &mut Attempt, time| attempt.observe_time(now + time, AT, MINUTE);
        assert!(!deletes(&after(&mut attempt, MINUTE)));
        assert!(deletes(&after(&mut attempt, GRACE + MINUTE)));
        assert!(
            !deletes(&after(&mut attempt, GRACE + MINUTE + Duration::from_secs(1))),
            "once is enough for a while"
        );
        assert!(deletes(&after(&mut attempt, GRACE + MINUTE * 2)), "it is tried again");
    }

    #[test]
    fn a_pod_that_does_not_go_when_it_is_told_to_is_removed_by_force() {
        let (mut attempt, now) = (attempt(), Instant::now());
        attempt.observe(running(), now, AT);
        assert_eq!(attempt.stop(GRACE, now, MINUTE), Some(Step::Delete(GRACE)));
        assert_eq!(attempt.stop(GRACE, now, MINUTE), None, "it was told already");
        assert!(!deletes(&attempt.observe_time(now + GRACE, AT, MINUTE)));
        assert!(deletes(&attempt.observe_time(now + GRACE + MINUTE, AT, MINUTE)));
    }

    #[test]
    fn who_waits_for_a_pod_that_cannot_be_seen_says_so_once() {
        let mut waiting = attempt();
        let said = waiting.observe_unseen("NotPermitted", "no".into());
        assert!(
            matches!(&said[..], [Step::Say(Observation::Waiting { reason, .. })] if reason == "NotPermitted")
        );
        assert_eq!(waiting.observe_unseen("NotPermitted", "no".into()), []);
        let mut seen = attempt();
        seen.observe(running(), Instant::now(), AT);
        assert_eq!(seen.observe_unseen("NotPermitted", "no".into()), []);
    }

    /// The reasons for which a pod is said to wait.
    fn said(steps: &[Step]) -> Vec<&str> {
        let waits = steps.iter().filter_map(|step| match step {
            Step::Say(Observation::Waiting { reason, .. }) => Some(reason.as_str()),
            _ => None,
        });
        waits.collect()
    }

    #[test]
    fn a_pod_that_finds_no_node_says_so_again_when_the_words_of_the_scheduler_change() {
        let unschedulable = |message: &str| {
            let condition = json!({
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
            });
            pod(&json!({ "phase": "Pending", "conditions": [condition] }))
        };
        let (mut attempt, now) = (attempt(), Instant::now());
        let mut see = |view: PodView| said(&attempt.observe(view, now, AT)).len();
        assert_eq!(see(unschedulable("1 Insufficient cpu")), 1);
        assert_eq!(see(unschedulable("1 Insufficient cpu")), 0, "it was said");
        assert_eq!(see(unschedulable("1 node(s) didn't match Pod's node affinity/selector")), 1);
    }

    #[test]
    fn a_pod_that_has_a_node_is_not_said_to_have_one_before_it_has() {
        let pending =
            |conditions: &serde_json::Value| pod(&json!({ "phase": "Pending", "conditions": conditions }));
        let (mut attempt, now) = (attempt(), Instant::now());
        attempt.observe_unseen("NotPermitted", "no".into());
        assert_eq!(said(&attempt.observe(pending(&json!([])), now, AT)), [""; 0]);
        let scheduled = json!([{ "type": "PodScheduled", "status": "True" }]);
        assert_eq!(said(&attempt.observe(pending(&scheduled), now, AT)), ["ContainerCreating"]);
    }

    #[test]
    fn a_container_that_cannot_be_configured_is_said_once_and_not_to_be_made() {
        let waits = json!({ "waiting": { "reason": "CreateContainerConfigError", "message": "no secret" } });
        let (mut attempt, now) = (attempt(), Instant::now());
        let mut see = || {
            let view = pod(&statuses("Pending", &waits, &json!({ "waiting": {} })));
            said(&attempt.observe(view, now, AT)).len()
        };
        assert_eq!((see(), see()), (1, 0));
    }

    #[test]
    fn a_pod_that_vanished_though_nobody_told_it_to_is_lost() {
        let (mut attempt, now) = (attempt(), Instant::now());
        attempt.observe(running(), now, AT);
        attempt.observe_gone(Some(running()), now, AT);
        let steps = attempt.observe_time(now + LAST_WORDS, AT, MINUTE);
        let lost = |step: &Step| matches!(step, Step::End(Observation::Lost { reason, .. }) if reason == "PodDeleted");
        assert!(steps.iter().any(lost), "{steps:?}");
    }
}
