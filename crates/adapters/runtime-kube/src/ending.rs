//! How an attempt ended, told from the last that was seen of its pod. Pure.

use std::collections::BTreeMap;

use muster_ports::clock::Millis;
use muster_ports::runtime::{Cause, ContainerEnding, Ending, Observation};

use crate::pod_view::{ContainerPhase, ContainerView, PodView, Terminated};

/// What is known besides the pod.
#[derive(Debug, Clone, Default)]
pub(crate) struct Circumstances {
    /// The runtime was told to stop it.
    pub stopped: bool,
    /// Somebody else deleted it while its leading container ran.
    pub deleted_by_others: bool,
    /// The server ended it because this sidecar failed.
    pub failed_sidecar: Option<(String, Terminated)>,
    /// Bytes of each log.
    pub log_bytes: BTreeMap<String, u64>,
    /// What could not be had of the logs.
    pub log_trouble: Option<String>,
}

/// The last news of an attempt.
pub(crate) fn judge_end(view: &PodView, known: &Circumstances, now: Millis) -> Observation {
    let disrupted = view.disruption.as_ref().filter(|_| !known.stopped && known.failed_sidecar.is_none());
    if view.reason == "Evicted" && !known.stopped {
        return lost("Evicted", &view.message);
    }
    if view.reason == "NodeLost" {
        return lost("NodeLost", &view.message);
    }
    if let Some((reason, message)) = disrupted
        && view.leader_end().is_none_or(|end| end.exit_code != 0)
    {
        return lost(name_disruption(reason), message);
    }
    if known.deleted_by_others && !known.stopped {
        return lost("PodDeleted", "the pod was deleted by somebody else");
    }
    let cause = match (known.stopped, view.reason.as_str()) {
        (true, _) => Cause::Stopped,
        (false, "DeadlineExceeded") => Cause::Timeout,
        (false, _) => Cause::Itself,
    };
    let leader = view.leader_end();
    if leader.is_none() && cause == Cause::Itself && known.failed_sidecar.is_none() {
        return lost("PodFailed", &format!("Pod ({}) failed: {} {}", view.name, view.reason, view.message));
    }
    let at = leader.map_or(now, |end| end.at);
    let containers = view.containers.iter().enumerate();
    // One that never ran did not end either; the leading one is always told of, unless none ran.
    let none_ran = view.containers.iter().all(ContainerView::never_ran);
    let told = containers.filter(|(index, it)| !none_ran && (*index == 0 || !it.never_ran()));
    let containers = told.map(|(index, container)| end_of(index, container, at, known)).collect();
    let reason = leader.map(|end| end.reason.as_str()).filter(|reason| *reason == "OOMKilled");
    let message = reason.map(|_| "memory ran out (OOMKilled)".to_owned());
    Observation::Ended(Ending {
        containers,
        cause,
        at,
        message: join(message, known.log_trouble.clone()),
        reason: reason.map(str::to_owned),
        files: Vec::new(),
    })
}

/// News of an attempt whose pod is not there.
pub(crate) fn judge_missing(known: &Circumstances, now: Millis) -> Observation {
    if known.stopped {
        let (containers, cause, message, reason, files) = (vec![], Cause::Stopped, None, None, vec![]);
        return Observation::Ended(Ending { containers, cause, at: now, message, reason, files });
    }
    lost("PodDeleted", "its pod is not there any more")
}

fn lost(reason: &str, message: &str) -> Observation {
    let message = if message.is_empty() { reason } else { message };
    Observation::Lost { reason: reason.to_owned(), message: message.to_owned() }
}

fn name_disruption(reason: &str) -> &'static str {
    match reason {
        "DeletionByTaintManager" | "DeletionByPodGC" => "NodeLost",
        "PreemptionByScheduler" => "PreemptedByCluster",
        _ => "Evicted",
    }
}

fn end_of(index: usize, container: &ContainerView, leader: Millis, known: &Circumstances) -> ContainerEnding {
    let log_bytes = known.log_bytes.get(&container.name).copied().unwrap_or(0);
    let name = container.name.clone();
    let failed = known.failed_sidecar.as_ref().filter(|(failed, _)| *failed == container.name);
    let (end, leftover) = match (&container.state, failed) {
        (_, Some((_, end))) => (Some(end), false),
        // The leading one was killed because another failed: that one says why.
        (ContainerPhase::Terminated(end), None) if index == 0 => (Some(end), known.failed_sidecar.is_some()),
        (ContainerPhase::Terminated(end), None) => {
            (Some(end), end.at >= leader || known.stopped || known.failed_sidecar.is_some())
        }
        (ContainerPhase::Waiting { .. } | ContainerPhase::Running, None) => (None, true),
    };
    match end {
        Some(end) => ContainerEnding {
            name,
            exit_code: end.exit_code,
            signal: end.signal,
            killed_as_leftover: leftover,
            log_bytes,
        },
        None => {
            ContainerEnding { name, exit_code: 137, signal: Some(9), killed_as_leftover: true, log_bytes }
        }
    }
}

fn join(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) => Some(format!("{first}; {second}")),
        (first, second) => first.or(second),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::pod_view::tests::{ended, pod, statuses};

    const NOW: Millis = Millis(0);

    fn ending(status: &Value, known: &Circumstances) -> Ending {
        match judge_end(&pod(status), known, NOW) {
            Observation::Ended(ending) => ending,
            other => panic!("{other:?}"),
        }
    }

    fn lost_reason(status: &Value, known: &Circumstances) -> String {
        match judge_end(&pod(status), known, NOW) {
            Observation::Lost { reason, .. } => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_leading_container_is_first_and_sidecars_after_it_are_leftovers() {
        let status = statuses("Failed", &ended(3, 5, "Error"), &ended(143, 6, "Error"));
        let ending = ending(&status, &Circumstances::default());
        assert_eq!((ending.containers[0].name.as_str(), ending.containers[0].exit_code), ("addon", 3));
        assert!(ending.containers[1].killed_as_leftover && !ending.containers[0].killed_as_leftover);
        assert_eq!((ending.containers[1].signal, ending.cause), (Some(15), Cause::Itself));
    }

    #[test]
    fn containers_that_never_ran_are_not_told_of_when_their_pod_was_stopped() {
        let waits = json!({ "waiting": { "reason": "PodInitializing" } });
        let known = Circumstances { stopped: true, ..Circumstances::default() };
        let none = ending(&statuses("Failed", &waits, &waits), &known);
        assert_eq!((none.containers.len(), none.cause), (0, Cause::Stopped));
        let sidecar_ran = ending(&statuses("Failed", &waits, &ended(143, 6, "Error")), &known);
        assert_eq!(sidecar_ran.containers.len(), 2);
        let leader_ran = ending(&statuses("Failed", &ended(143, 6, "Error"), &waits), &known);
        assert_eq!(leader_ran.containers.len(), 1);
    }

    #[test]
    fn a_container_that_ran_out_of_memory_says_so() {
        let status = statuses("Failed", &ended(137, 5, "OOMKilled"), &ended(0, 6, "Completed"));
        let ending = ending(&status, &Circumstances::default());
        assert_eq!((ending.reason.as_deref(), ending.containers[0].signal), (Some("OOMKilled"), Some(9)));
    }

    #[test]
    fn a_deadline_is_a_timeout() {
        let mut status = statuses("Failed", &ended(143, 5, "Error"), &ended(0, 6, "Completed"));
        status["reason"] = json!("DeadlineExceeded");
        assert_eq!(ending(&status, &Circumstances::default()).cause, Cause::Timeout);
    }

    #[test]
    fn a_failed_sidecar_fails_the_attempt_and_not_the_leader_it_took_along() {
        let failed = Terminated {
            exit_code: 7,
            signal: None,
            reason: "Error".into(),
            message: String::new(),
            at: Millis(1),
        };
        let known =
            Circumstances { failed_sidecar: Some(("java".into(), failed)), ..Circumstances::default() };
        let ending = ending(&statuses("Failed", &ended(137, 5, "Error"), &ended(7, 6, "Error")), &known);
        assert!(ending.containers[0].killed_as_leftover);
        assert_eq!((ending.containers[1].exit_code, ending.containers[1].killed_as_leftover), (7, false));
    }

    #[test]
    fn what_others_did_to_a_pod_is_no_failure_of_its_program() {
        let status = statuses("Failed", &ended(137, 5, "Error"), &ended(0, 6, "Completed"));
        let deleted = Circumstances { deleted_by_others: true, ..Circumstances::default() };
        assert_eq!(lost_reason(&status, &deleted), "PodDeleted");
        let with = |key: &str, value: Value| {
            let mut status = status.clone();
            status[key] = value;
            lost_reason(&status, &Circumstances::default())
        };
        assert_eq!(with("reason", json!("Evicted")), "Evicted");
        assert_eq!(with("reason", json!("NodeLost")), "NodeLost");
        let disrupted =
            |reason: &str| json!([{ "type": "DisruptionTarget", "status": "True", "reason": reason }]);
        assert_eq!(with("conditions", disrupted("DeletionByTaintManager")), "NodeLost");
        assert_eq!(with("conditions", disrupted("PreemptionByScheduler")), "PreemptedByCluster");
        assert_eq!(with("conditions", disrupted("EvictionByEvictionAPI")), "Evicted");
    }

    #[test]
    fn what_was_stopped_was_stopped_whatever_its_code() {
        let known = Circumstances { stopped: true, deleted_by_others: true, ..Circumstances::default() };
        let status = statuses("Failed", &ended(137, 5, "Error"), &ended(137, 6, "Error"));
        assert_eq!(ending(&status, &known).cause, Cause::Stopped);
        assert!(matches!(judge_missing(&known, NOW), Observation::Ended(_)));
        assert!(matches!(judge_missing(&Circumstances::default(), NOW), Observation::Lost { .. }));
    }
}
