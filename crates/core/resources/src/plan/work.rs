//! What the work of adapters came to: tasks that ended, calls that were answered.

use muster_expr::cel::Program;
use muster_types::adapter_standing::{AdapterWork, WorkPhase};
use muster_types::{JsonText, State, Task};
use serde_json::Value as Json;

use super::{CallState, Planning};
use crate::adapter_rules::{ActionRules, AdapterRules, HttpRules};
use crate::inputs::read_params;
use crate::outcome::Outcome;

impl Planning<'_> {
    /// Reports how an adapter's work ended, if it did.
    pub(super) fn take_outcome(&mut self, adapter: &AdapterRules) {
        let Some(work) = self.open_work(&adapter.name) else { return };
        let outcome = if work.task.is_empty() {
            self.call_outcome(adapter, &work)
        } else {
            self.task_outcome(&work.task)
        };
        let Some(outcome) = outcome else { return };
        let phase = match &outcome {
            Outcome::Succeeded { .. } => WorkPhase::Succeeded,
            Outcome::Failed { .. } | Outcome::Unable(_) | Outcome::Unmet(_) => WorkPhase::Failed,
            Outcome::InProgress { .. } => WorkPhase::InProgress,
        };
        let (now, until_success) = (self.now, adapter.spec.lifecycle.until_success());
        let standing = self.plan.resource.status.standing_mut(&adapter.name);
        if let Some(work) = &mut standing.work {
            work.phase = Some(phase);
            work.ended = (phase != WorkPhase::InProgress).then_some(now);
        }
        if phase == WorkPhase::Failed && until_success {
            // Nothing but this says how often it was tried.
            standing.failures = standing.failures.saturating_add(1);
        }
        self.report(adapter, work.generation, work.delete, &outcome);
    }

    fn open_work(&self, adapter: &str) -> Option<AdapterWork> {
        let work = self.plan.resource.status.standing(adapter)?.work.clone()?;
        work.goes_on().then_some(work)
    }

    fn task_outcome(&self, name: &str) -> Option<Outcome> {
        let Some(task) = (self.world.task)(name) else {
            let message = format!("task {name} was deleted before it ended");
            return Some(Outcome::Failed { reason: "TaskDeleted".into(), message, got: Json::Null });
        };
        if !task.state().is_terminal() {
            return None;
        }
        let got = task.to_document().unwrap_or_default();
        Some(match task.state() {
            State::Succeeded => Outcome::Succeeded { got },
            State::Canceled => {
                Outcome::Failed { reason: "TaskCanceled".into(), message: why_failed(&task), got }
            }
            _ => Outcome::Failed { reason: "TaskFailed".into(), message: why_failed(&task), got },
        })
    }

    fn call_outcome(&self, adapter: &AdapterRules, work: &AdapterWork) -> Option<Outcome> {
        let CallState::Answered { number, answer } = (self.world.call)(&adapter.name) else { return None };
        if number != work.number {
            return None;
        }
        let got = match answer {
            Ok(got) => got,
            Err(message) => {
                return Some(Outcome::Failed { reason: "CallFailed".into(), message, got: Json::Null });
            }
        };
        let action = if work.delete { adapter.delete.as_ref() } else { Some(&adapter.action) };
        Some(match action {
            Some(ActionRules::Http(http)) => self.judge_answer(adapter, http, got),
            Some(ActionRules::DeleteManifest(_)) if !got.is_null() => Outcome::InProgress { got },
            Some(ActionRules::Manifest(_)) if is_behind(&got) => Outcome::InProgress { got },
            Some(ActionRules::Manifest(_) | ActionRules::DeleteManifest(_) | ActionRules::Task(_)) | None => {
                Outcome::Succeeded { got }
            }
        })
    }

    /// What an answer means, by the adapter's expressions or by its status.
    fn judge_answer(&self, adapter: &AdapterRules, http: &HttpRules, got: Json) -> Outcome {
        let inputs = self.inputs();
        let params = read_params(adapter, &inputs).unwrap_or_default();
        let status = got.get("status").and_then(Json::as_u64).unwrap_or(0);
        let scope = inputs.scope(&params).with_json("response", &got);
        let holds = |program: &Option<Program>, default: bool| {
            program.as_ref().map_or(Ok(default), |program| program.holds(&scope))
        };
        let judged = (|| {
            if holds(&http.failed, false)? {
                return Ok(WorkPhase::Failed);
            }
            if holds(&http.in_progress, status == 202)? {
                return Ok(WorkPhase::InProgress);
            }
            let done = holds(&http.succeeded, (200..300).contains(&status))?;
            Ok(if done { WorkPhase::Succeeded } else { WorkPhase::Failed })
        })();
        drop(scope);
        match judged {
            Ok(WorkPhase::InProgress) => Outcome::InProgress { got },
            Ok(WorkPhase::Succeeded) => Outcome::Succeeded { got },
            Ok(WorkPhase::Failed) => {
                let message = format!("the answer has status {status}");
                Outcome::Failed { reason: "CallFailed".into(), message, got }
            }
            Err(error) => {
                let error: muster_expr::cel::CelError = error;
                Outcome::Unable(format!("the answer cannot be judged: {error}"))
            }
        }
    }
}

/// True if the cluster has not seen what was applied yet.
fn is_behind(object: &Json) -> bool {
    let number = |pointer: &str| object.pointer(pointer).and_then(Json::as_i64);
    match (number("/metadata/generation"), number("/status/observedGeneration")) {
        (Some(wanted), Some(seen)) => seen < wanted,
        // An object that is told apart by no generation is done when it is there.
        _ => false,
    }
}

/// Why a task failed, in a sentence.
fn why_failed(task: &Task) -> String {
    let status = &task.status;
    let error = status.errors.last().map(|error| error.description.clone());
    let ended = status.attempts.last().map(|attempt| match attempt.exit_code {
        Some(code) => format!("exit code {code}"),
        None => attempt.reason.clone(),
    });
    let why = error.or_else(|| Some(status.message.clone()).filter(|text| !text.is_empty())).or(ended);
    format!("task {}: {}", task.metadata.name, why.unwrap_or_else(|| "ended badly".to_owned()))
}
