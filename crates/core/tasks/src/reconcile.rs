//! What becomes of an attempt that counted as lost when its robot comes back (`disconnect.reconcile`, seed 003 R17).
//!
//! With `keepReplacement` nothing: it is told to end as soon as it counts as lost. With `keepOriginal` it stays awaited, beside the
//! attempts that follow, until one of the two has ended:
//!
//! - It is back and runs, or has succeeded meanwhile: it is the task's attempt again, and the one that replaced it is ended. Until that
//!   has ended it is leaving, and the end of the task's own attempt does not count yet: what the task keeps from others stays its own.
//! - It is back and has failed, or its robot knows nothing of it: the one that replaced it goes on.
//! - The one that replaced it ended first, or nobody wants the task any more: it is told to end when its robot is back.
//!
//! There is one original at a time, the first that was lost: of the attempts of a task no more than two are ever wanted. Numbers of
//! attempts are never used again, although [`muster_types::TaskStatus::attempt`] goes back to that of the original.

use muster_types::attempt::{Cause, Ending, Handle, Observation};
use muster_types::recovery::Reconcile;
use muster_types::task_status::RecordKind;
use muster_types::{Millis, Task};

use crate::brief::has_attempt;
use crate::lifecycle::Event;
use crate::progress::{Ignored, change_state, forget_report, observe_ended};
use crate::records::add_record;
use crate::settings::Settings;
use crate::view::state_of;

/// The reason of an attempt that was ended because the one it replaced came back.
pub const ORIGINAL_RETURNED: &str = "OriginalReturned";

/// What is to be done with attempts besides the one that news was about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Return {
    /// The original is the task's attempt again. The one that replaced it, if there was one, is to end.
    Kept {
        /// The one that replaced it.
        replacement: Option<Handle>,
    },
    /// The original is gone for good.
    Gone,
}

/// The attempt that counted as lost and may come back.
pub fn original_of(task: &Task) -> Option<Handle> {
    task.status.original.map(|attempt| Handle { task: task.metadata.uid.clone(), attempt })
}

/// The attempt that was replaced by its original and has not ended yet.
pub fn leaving_of(task: &Task) -> Option<Handle> {
    task.status.leaving.map(|attempt| Handle { task: task.metadata.uid.clone(), attempt })
}

/// News of an attempt that is leaving: it has ended.
pub fn observe_left(task: &mut Task) {
    task.status.leaving = None;
}

/// An attempt was lost with its robot and another one may follow: it stays awaited, if the task wants that.
pub(crate) fn await_original(task: &mut Task, handle: &Handle) {
    let policy = task.spec.disconnect.unwrap_or_default().reconcile;
    if policy == Reconcile::KeepOriginal && task.status.original.is_none() {
        task.status.original = Some(handle.attempt);
    }
}

/// News of the original.
pub fn observe_original(
    task: &mut Task,
    handle: &Handle,
    what: &Observation,
    settings: &Settings,
    now: Millis,
) -> Result<Return, Ignored> {
    if original_of(task).as_ref() != Some(handle) || state_of(task).is_terminal() {
        return Err(Ignored::OldAttempt);
    }
    match what {
        Observation::Created
        | Observation::Waiting { .. }
        | Observation::Removed
        | Observation::Returned { .. } => Err(Ignored::OldAttempt),
        Observation::Started => keep(task, handle, now),
        Observation::Ended(ending) if succeeded(ending) => {
            let kept = keep(task, handle, now)?;
            if task.status.leaving.is_none() {
                observe_ended(task, handle, ending, settings, now)?;
            }
            Ok(kept)
        }
        Observation::Ended(_) => Ok(forget(task, "it came back and had failed", now)),
        Observation::Lost { .. } | Observation::Blocked { .. } | Observation::StartFailed { .. } => {
            Ok(forget(task, "its robot is back without it", now))
        }
    }
}

/// The original is not awaited any more: whoever has it is to end it.
pub fn give_up_original(task: &mut Task, why: &str, now: Millis) -> Option<Handle> {
    let original = original_of(task)?;
    forget(task, why, now);
    Some(original)
}

fn succeeded(ending: &Ending) -> bool {
    let failed = |it: &muster_types::attempt::ContainerEnding| it.exit_code != 0 && !it.killed_as_leftover;
    ending.cause == Cause::Itself && !ending.containers.iter().any(failed)
}

fn forget(task: &mut Task, why: &str, now: Millis) -> Return {
    if let Some(original) = original_of(task) {
        let reason = format!("{original}: {why}");
        add_record(&mut task.status.events, RecordKind::PodDeleted, &reason, now.to_timestamp());
    }
    task.status.original = None;
    Return::Gone
}

/// Makes the original the attempt of the task again.
fn keep(task: &mut Task, handle: &Handle, now: Millis) -> Result<Return, Ignored> {
    let place = task.status.attempts.iter().position(|attempt| attempt.number == handle.attempt);
    // What is not told of any more cannot be told of again.
    let Some(place) = place else { return Ok(forget(task, "too many attempts followed it", now)) };
    let at = now.to_timestamp();
    let replacement =
        has_attempt(task).then(|| Handle { task: task.metadata.uid.clone(), attempt: task.status.attempt });
    change_state(task, Event::Resume, now)?;
    let status = &mut task.status;
    if replacement.is_some()
        && let Some(last) = status.attempts.last_mut()
    {
        last.finished_at = Some(now.to_milli_timestamp());
        ORIGINAL_RETURNED.clone_into(&mut last.reason);
    }
    let mut original = status.attempts.remove(place);
    original.finished_at = None;
    original.reason.clear();
    status.started = original.started_at;
    status.attempts.push(original);
    status.attempt = handle.attempt;
    status.original = None;
    status.leaving = replacement.as_ref().map(|replacement| replacement.attempt);
    status.rest_until = None;
    status.waiting_for = None;
    status.blocked_since = None;
    forget_report(status);
    if let Some(replacement) = &replacement {
        let reason = format!("{replacement}: the attempt that it replaced is back");
        add_record(&mut status.events, RecordKind::PodDeleted, &reason, at);
    }
    add_record(&mut status.events, RecordKind::PodRunning, &handle.to_string(), at);
    status.message = format!("Attempt {} is back and runs", handle.attempt);
    Ok(Return::Kept { replacement })
}
