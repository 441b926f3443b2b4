//! Tasks: which transitions a change of one holds.
//!
//! A change may hold several: an attempt that was short is written once, with its end. That an attempt ran is read from its
//! record, which names the attempt and stays whatever else is dropped. Nothing is remembered here, so the same change gives
//! the same transitions, and a task whose history was forgotten gives those that must have been.

use std::borrow::Cow;

use muster_types::State;
use muster_types::attempt::SERVER_STOPPED;
use muster_types::task_status::QuotaRefusals;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::step::{Cds, Step, Unique};

/// What of a stored task matters here.
#[derive(Debug, Deserialize)]
pub struct SeenTask<'a> {
    #[serde(borrow, default)]
    spec: Spec<'a>,
    #[serde(borrow, default)]
    status: Status<'a>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default)]
struct Spec<'a> {
    suspend: bool,
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default)]
struct Status<'a> {
    state: Option<State>,
    attempt: u32,
    #[serde(borrow)]
    attempts: Vec<Attempt<'a>>,
    #[serde(borrow)]
    events: Vec<Record<'a>>,
    #[serde(borrow)]
    errors: Vec<Error<'a>>,
    #[serde(borrow)]
    message: Cow<'a, str>,
    retries: u32,
    lost: u32,
    refusals: Option<QuotaRefusals>,
}

#[derive(Debug, Deserialize)]
struct Attempt<'a> {
    number: u32,
    #[serde(borrow, default)]
    reason: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    reason: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
struct Error<'a> {
    #[serde(borrow, default)]
    description: Cow<'a, str>,
}

/// The transitions between two versions, or all that a version without an earlier one must have had.
pub fn steps(before: Option<&SeenTask<'_>>, after: &SeenTask<'_>, deleted: bool) -> Vec<Step> {
    if deleted {
        return vec![deletion(after)];
    }
    let mut steps = Vec::new();
    if before.is_none() {
        steps.push(Step::new("created", Unique::Once));
    }
    let was = before.map(SeenTask::state);
    let is = after.state();
    if after.was_submitted() && was.is_none_or(|was| was == State::Created) {
        steps.push(submission(after));
    }
    let ran = run(before, after);
    if is == State::Pending && was != Some(State::Pending) {
        // An attempt that a quota refused is pending once more under its number.
        let again = after.status.refusals.is_some_and(|it| it.attempt == after.status.attempt);
        let unique = if again { Unique::Revision } else { Unique::Count(after.status.attempt.into()) };
        steps.push(after.step("pending", unique));
    }
    steps.extend(ran);
    if was != Some(is) {
        steps.extend(entry(was, after));
    }
    steps
}

fn submission(after: &SeenTask<'_>) -> Step {
    Step { cds: Some(after.cds("starting", Unique::Once, None)), ..after.step("ready", Unique::Once) }
}

/// What it means to be where the task is now; being submitted, started and running is told elsewhere.
fn entry(was: Option<State>, after: &SeenTask<'_>) -> Option<Step> {
    let state = after.state();
    let step = match state {
        State::Created | State::Pending | State::Running => return None,
        // It came back; that it was submitted is told once.
        State::Ready if was.is_none_or(|was| was == State::Created) => return None,
        State::Ready | State::Postponed | State::QuotaBlocked => {
            let word = if state == State::Ready { "returned" } else { state.as_str() };
            after.step(word, Unique::Revision)
        }
        State::Succeeded => {
            let cds = Some(after.cds("success", Unique::Once, None));
            Step { cds, ..after.step("succeeded", Unique::Once) }
        }
        State::Failed => {
            let cds = Some(after.cds("failed", Unique::Once, Some(after.why())));
            Step { cds, ..after.step("failed", Unique::Once) }
        }
        State::Canceled => {
            let cds = Some(after.cds("failed", Unique::Once, Some("Canceled".to_owned())));
            Step { cds, ..after.step("canceled", Unique::Once) }
        }
    };
    Some(step)
}

/// That attempts began to run.
fn run(before: Option<&SeenTask<'_>>, after: &SeenTask<'_>) -> Vec<Step> {
    let ran_before = before.and_then(SeenTask::latest_run);
    let Some(latest) = after.latest_run().filter(|latest| ran_before != Some(latest)) else {
        return Vec::new();
    };
    let attempt = attempt_of(latest);
    let step = |cds| Step { cds, ..after.step("running", Unique::Count(attempt.into())) };
    // An attempt may have failed in the same change; that is no try before it.
    let tried = before.map_or(0, SeenTask::tries);
    let first = Some(Cds { retry_count: tried, ..after.cds("running", Unique::Once, None) });
    let again = || {
        // Neither says anything about the task.
        let is_needless = |reason: &str| matches!(reason, "Preempted" | SERVER_STOPPED);
        let needless =
            after.status.attempts.iter().any(|it| it.number + 1 == attempt && is_needless(&it.reason));
        let tried = before.map_or_else(|| after.tries(), SeenTask::tries);
        (!needless)
            .then(|| Cds { retry_count: tried, ..after.cds("retry", Unique::Count(attempt.into()), None) })
    };
    let runs = after.status.events.iter().filter(|record| record.kind == RAN).count();
    match (ran_before, runs) {
        (Some(_), _) => vec![step(again())],
        (None, 0 | 1) => vec![step(first)],
        // Nobody saw the first: it is told now, and so is the latest.
        (None, _) => {
            let earlier = after.status.events.iter().find(|record| record.kind == RAN);
            let number = earlier.map_or(0, |record| attempt_of(&record.reason));
            let earlier = Step { cds: first, ..after.step("running", Unique::Count(number.into())) };
            vec![earlier, step(again())]
        }
    }
}

/// A task that was deleted before it ended will never end; whoever was told that it began is told that.
fn deletion(last: &SeenTask<'_>) -> Step {
    let state = last.state();
    let open = state != State::Created && !state.is_terminal();
    let cds = open.then(|| last.cds("failed", Unique::Once, Some("Deleted".to_owned())));
    Step { cds, ..last.step("deleted", Unique::Once) }
}

/// The record that an attempt runs; its reason is the handle of the attempt.
const RAN: &str = "PodRunning";

/// The number at the end of a handle.
fn attempt_of(handle: &str) -> u32 {
    handle.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

impl SeenTask<'_> {
    fn state(&self) -> State {
        State::of(self.status.state, self.spec.suspend)
    }

    /// A task may be canceled before it was ever submitted.
    fn was_submitted(&self) -> bool {
        match self.state() {
            State::Created => false,
            State::Canceled => !self.spec.suspend || self.status.attempt > 0,
            _ => true,
        }
    }

    fn latest_run(&self) -> Option<&str> {
        let record = self.status.events.iter().rev().find(|record| record.kind == RAN)?;
        Some(&record.reason)
    }

    fn why(&self) -> String {
        let error = self.status.errors.last().map(|error| error.description.as_ref());
        let said = error.filter(|text| !text.is_empty()).unwrap_or(&self.status.message);
        if said.is_empty() { "Unknown".to_owned() } else { said.to_owned() }
    }

    /// Attempts that failed or were lost.
    fn tries(&self) -> u32 {
        self.status.retries.saturating_add(self.status.lost)
    }

    fn cds(&self, word: &'static str, unique: Unique, failure_reason: Option<String>) -> Cds {
        Cds { word, unique, retry_count: self.tries(), failure_reason }
    }

    fn step(&self, word: &str, unique: Unique) -> Step {
        let mut data: Vec<(&'static str, Value)> = vec![("state", json!(self.state()))];
        if !self.spec.kind.is_empty() {
            data.push(("taskKind", json!(self.spec.kind)));
        }
        if self.status.attempt > 0 {
            data.push(("attempt", json!(self.status.attempt)));
        }
        if self.tries() > 0 {
            data.push(("retries", json!(self.tries())));
        }
        match self.state() {
            State::Failed => data.push(("reason", json!(self.why()))),
            State::Canceled => data.push(("reason", json!("Canceled"))),
            _ => {}
        }
        Step { data, ..Step::new(word, unique) }
    }
}
