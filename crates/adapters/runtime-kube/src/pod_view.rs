//! What matters of a pod. Pure.

use muster_ports::clock::Millis;
use muster_ports::runtime::{Handle, IMAGE_ERROR, UNSCHEDULABLE};

use crate::manifest::{ATTEMPT_LABEL, TASK_LABEL};
use crate::pod::{ContainerState, ContainerStatus, Pod, Termination};

/// Reasons of a container that waits for its image.
const IMAGE_TROUBLE: [&str; 7] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
];
/// What is said of a pull that was put off.
const THROTTLED: [&str; 4] = ["QPS exceeded", "toomanyrequests", "Too Many Requests", "429"];
/// Reasons of a container whose program could not be run at all.
const NOT_STARTED: [&str; 3] = ["StartError", "ContainerCannotRun", "CreateContainerError"];

/// A pod as the runtime sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodView {
    pub handle: Handle,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// Somebody asked for its deletion.
    pub deleting: bool,
    pub phase: Phase,
    /// Why the whole of it failed, if it is not for a container.
    pub reason: String,
    pub message: String,
    /// What took it away, if something did.
    pub disruption: Option<(String, String)>,
    /// Why no node takes it.
    pub unschedulable: Option<String>,
    /// A node has taken it.
    pub has_node: bool,
    /// The leading one first.
    pub containers: Vec<ContainerView>,
}

/// How far a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Pending,
    Running,
    Ended,
}

/// A container of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContainerView {
    pub name: String,
    pub state: ContainerPhase,
    /// How it ended before it was started again.
    pub before: Option<Terminated>,
}

/// How far a container is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ContainerPhase {
    Waiting { reason: String, message: String },
    Running,
    Terminated(Terminated),
}

/// How a container ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Terminated {
    pub exit_code: i32,
    pub signal: Option<i32>,
    pub reason: String,
    pub message: String,
    pub at: Millis,
}

/// Something that keeps an attempt from running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It may pass.
    Passing { reason: String, message: String },
    /// It will not.
    Lasting { reason: &'static str, message: String },
}

impl ContainerView {
    /// True if it was not started, as far as is known.
    pub(crate) fn never_ran(&self) -> bool {
        matches!(self.state, ContainerPhase::Waiting { .. }) && self.before.is_none()
    }
}

impl PodView {
    /// Reads a pod; `None` if it is not of an attempt.
    pub(crate) fn read(pod: &Pod) -> Option<Self> {
        let labels = pod.metadata.labels.as_ref()?;
        let attempt = labels.get(ATTEMPT_LABEL)?.parse().ok()?;
        let handle = Handle { task: labels.get(TASK_LABEL)?.clone(), attempt };
        let status = &pod.status;
        let condition = |kind: &str, value: &str| {
            status.conditions.iter().find(|condition| condition.kind == kind && condition.status == value)
        };
        let disruption = condition("DisruptionTarget", "True")
            .map(|condition| (condition.reason.clone(), condition.message.clone()));
        let unschedulable = condition("PodScheduled", "False")
            .filter(|condition| condition.reason == UNSCHEDULABLE)
            .map(|condition| condition.message.clone());
        // Statuses are sorted by name; the order that counts is that of the spec.
        let statuses = status.container_statuses.iter().chain(&status.init_container_statuses);
        let named = |name: &str| statuses.clone().find(|status| status.name == name);
        let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
        Some(Self {
            handle,
            namespace: pod.metadata.namespace.clone()?,
            name: pod.metadata.name.clone()?,
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            deleting: pod.metadata.deletion_timestamp.is_some(),
            phase: match status.phase.as_str() {
                "Succeeded" | "Failed" => Phase::Ended,
                "Running" => Phase::Running,
                _ => Phase::Pending,
            },
            reason: status.reason.clone(),
            message: status.message.clone(),
            disruption,
            unschedulable,
            has_node: condition("PodScheduled", "True").is_some(),
            containers: containers
                .map(|container| read_container(&container.name, named(&container.name)))
                .collect(),
        })
    }

    /// How the leading container ended.
    pub(crate) fn leader_end(&self) -> Option<&Terminated> {
        match &self.containers.first()?.state {
            ContainerPhase::Terminated(end) => Some(end),
            ContainerPhase::Waiting { .. } | ContainerPhase::Running => None,
        }
    }

    /// True if nothing of it runs, and nothing will.
    pub(crate) fn is_over(&self) -> bool {
        let idle = |container: &ContainerView| container.state != ContainerPhase::Running;
        self.phase == Phase::Ended || (self.leader_end().is_some() && self.containers.iter().all(idle))
    }

    /// True if the leading container runs, or has run.
    pub(crate) fn has_started(&self) -> bool {
        self.containers.first().is_some_and(|leader| !matches!(leader.state, ContainerPhase::Waiting { .. }))
    }

    /// A sidecar that failed although the leading container had not ended.
    pub(crate) fn failed_sidecar(&self) -> Option<(&ContainerView, &Terminated)> {
        let leader = self.leader_end();
        self.containers.iter().skip(1).find_map(|sidecar| {
            let ((ContainerPhase::Terminated(end), _) | (_, Some(end))) = (&sidecar.state, &sidecar.before)
            else {
                return None;
            };
            let before = leader.is_none_or(|leader| end.at < leader.at);
            (end.exit_code != 0 && before && !self.deleting).then_some((sidecar, end))
        })
    }

    /// What keeps it from running.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        if let Some(message) = self.unschedulable.as_ref().filter(|_| self.phase == Phase::Pending) {
            return Some(Trouble::Passing { reason: UNSCHEDULABLE.to_owned(), message: message.clone() });
        }
        self.containers.iter().find_map(trouble_of)
    }
}

fn trouble_of(container: &ContainerView) -> Option<Trouble> {
    let said = |message: &str| format!("Container ({}): {message}", container.name);
    match &container.state {
        ContainerPhase::Waiting { reason, message } if IMAGE_TROUBLE.contains(&reason.as_str()) => {
            let throttled = THROTTLED.iter().any(|word| message.contains(word));
            Some(if throttled {
                Trouble::Passing { reason: reason.clone(), message: said(message) }
            } else {
                Trouble::Lasting { reason: IMAGE_ERROR, message: said(&format!("{reason}: {message}")) }
            })
        }
        ContainerPhase::Waiting { reason, message } if NOT_STARTED.contains(&reason.as_str()) => {
            Some(Trouble::Lasting { reason: "CommandNotRun", message: said(message) })
        }
        ContainerPhase::Waiting { reason, message } if reason == "CreateContainerConfigError" => {
            Some(Trouble::Passing { reason: reason.clone(), message: said(message) })
        }
        ContainerPhase::Terminated(end) if NOT_STARTED.contains(&end.reason.as_str()) => {
            Some(Trouble::Lasting { reason: "CommandNotRun", message: said(&end.message) })
        }
        ContainerPhase::Waiting { .. } | ContainerPhase::Running | ContainerPhase::Terminated(_) => {
            let before = container.before.as_ref().filter(|end| NOT_STARTED.contains(&end.reason.as_str()));
            before.map(|end| Trouble::Lasting { reason: "CommandNotRun", message: said(&end.message) })
        }
    }
}

fn read_container(name: &str, status: Option<&ContainerStatus>) -> ContainerView {
    let status = status.cloned().unwrap_or_default();
    ContainerView {
        name: name.to_owned(),
        state: read_state(&status.state),
        before: status.last_state.terminated.as_ref().map(read_end),
    }
}

fn read_state(state: &ContainerState) -> ContainerPhase {
    if let Some(end) = &state.terminated {
        return ContainerPhase::Terminated(read_end(end));
    }
    if state.running.is_some() {
        return ContainerPhase::Running;
    }
    let waiting = state.waiting.clone().unwrap_or_default();
    ContainerPhase::Waiting { reason: waiting.reason, message: waiting.message }
}

fn read_end(end: &Termination) -> Terminated {
    let signal = end.signal.filter(|signal| *signal > 0);
    Terminated {
        exit_code: end.exit_code,
        signal: signal.or_else(|| (129..=192).contains(&end.exit_code).then(|| end.exit_code - 128)),
        reason: end.reason.clone(),
        message: end.message.clone(),
        at: end.finished_at.as_ref().map_or(Millis(0), |time| Millis(time.0.as_millisecond())),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A pod with a leading container and one sidecar.
    pub(crate) fn pod(status: &Value) -> PodView {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {
                "name": "task-u-1", "namespace": "n", "uid": "p",
                "labels": { TASK_LABEL: "u", ATTEMPT_LABEL: "1" },
            },
            "spec": { "containers": [{ "name": "addon" }], "initContainers": [{ "name": "java" }] },
            "status": status,
        }))
        .expect("a pod");
        PodView::read(&pod).expect("a pod of an attempt")
    }

    pub(crate) fn ended(code: i32, second: u32, reason: &str) -> Value {
        json!({ "terminated": {
            "exitCode": code, "reason": reason, "finishedAt": format!("2026-11-15T20:00:{second:02}Z"),
        } })
    }

    pub(crate) fn statuses(phase: &str, leader: &Value, sidecar: &Value) -> Value {
        let status = |name: &str, state: &Value| json!({ "name": name, "state": state, "image": "", "imageID": "", "ready": true, "restartCount": 0 });
        json!({
            "phase": phase,
            "containerStatuses": [status("addon", leader)],
            "initContainerStatuses": [status("java", sidecar)],
        })
    }

    fn waiting(reason: &str, message: &str) -> Value {
        json!({ "waiting": { "reason": reason, "message": message } })
    }

    #[test]
    fn an_image_that_cannot_be_had_is_lasting_and_a_throttled_pull_is_not() {
        let trouble = |reason: &str, message: &str| {
            pod(&statuses("Pending", &waiting(reason, message), &json!({ "running": {} }))).trouble()
        };
        for reason in ["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"] {
            let seen = trouble(reason, "no such image");
            let message = format!("Container (addon): {reason}: no such image");
            assert_eq!(seen, Some(Trouble::Lasting { reason: "ImageError", message }));
        }
        assert!(matches!(trouble("ErrImagePull", "pull QPS exceeded"), Some(Trouble::Passing { .. })));
        assert_eq!(trouble("ContainerCreating", ""), None);
        assert!(matches!(trouble("CreateContainerConfigError", "no secret"), Some(Trouble::Passing { .. })));
    }

    #[test]
    fn a_program_that_is_not_in_the_image_is_lasting() {
        let view = pod(&statuses("Failed", &ended(128, 1, "StartError"), &json!({ "running": {} })));
        assert!(matches!(view.trouble(), Some(Trouble::Lasting { reason: "CommandNotRun", .. })));
    }

    #[test]
    fn a_pod_without_a_node_says_why() {
        let status = json!({ "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes" },
        ] });
        let expected = Trouble::Passing { reason: "Unschedulable".into(), message: "0/1 nodes".into() };
        assert_eq!(pod(&status).trouble(), Some(expected));
    }

    #[test]
    fn a_pod_is_over_when_nothing_of_it_runs() {
        let (running, end) = (json!({ "running": {} }), ended(0, 5, "Completed"));
        assert!(!pod(&statuses("Running", &end, &running)).is_over());
        assert!(pod(&statuses("Running", &end, &end)).is_over());
        assert!(pod(&statuses("Succeeded", &end, &running)).is_over());
        assert!(!pod(&statuses("Running", &running, &end)).is_over());
    }

    #[test]
    fn a_sidecar_fails_an_attempt_only_before_its_leader_ended() {
        let running = json!({ "running": {} });
        assert!(pod(&statuses("Running", &running, &ended(3, 5, "Error"))).failed_sidecar().is_some());
        assert!(pod(&statuses("Running", &running, &ended(0, 5, "Completed"))).failed_sidecar().is_none());
        let end = ended(0, 5, "Completed");
        assert!(pod(&statuses("Succeeded", &end, &ended(143, 6, "Error"))).failed_sidecar().is_none());
        assert!(pod(&statuses("Succeeded", &end, &ended(3, 4, "Error"))).failed_sidecar().is_some());
    }

    #[test]
    fn what_is_not_ours_is_not_read() {
        let pod: Pod = serde_json::from_value(json!({ "metadata": { "name": "x" } })).unwrap();
        assert_eq!(PodView::read(&pod), None);
    }
}
