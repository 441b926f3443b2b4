//! How a task changes: each function takes a task and what happened, and leaves the task as it is to be stored.
//!
//! Every change of state goes through [`crate::lifecycle::transition`]. News of an older attempt, or of a task that has ended,
//! changes nothing and says so.

use muster_types::attempt::{Cause, ContainerEnding, Ending, Handle, IMAGE_ERROR, SERVER_STOPPED};
use muster_types::task::RetryOn;
use muster_types::task_status::{
    Attachment, Attempt, FIRST_ATTEMPT, QuotaRefusals, RecordKind, Stopping, WaitingFor,
};
use muster_types::{MilliTimestamp, Millis, State, Task, TaskStatus, Timestamp};

use crate::absent::awaited_since;
use crate::brief::has_attempt;
use crate::lifecycle::{Event, Refused, transition};
use crate::plan::{Hold, Lent, TaskRef};
use crate::reconcile::await_original;
use crate::records::{add_error, add_record};
use crate::recovery::{Recovery, recover};
use crate::rest::describe_rest;
use crate::settings::Settings;
use crate::view::state_of;

/// Attempts that are kept in the status.
const MAX_ATTEMPTS: usize = 10;

/// The reason of an attempt whose robot is gone. It may come back.
pub const ROBOT_LOST: &str = "RobotLost";

/// Why news was not taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ignored {
    /// It is about an attempt that is not the current one, or that has ended.
    OldAttempt,
    /// It is a refusal that was taken in before.
    OldRefusal,
    /// It does not apply.
    Refused(Refused),
}

impl From<Refused> for Ignored {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

/// What failed, as `spec.retry.on` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The leading container ended with another code than zero.
    NonZeroExit,
    /// It was killed.
    Killed,
    /// The executor is gone.
    ExecutorLost,
    /// It took too long.
    Timeout,
    /// It could not be started.
    StartFailed,
}

/// Number of the attempt that began last, which need not be the one that is the task's. None is given twice.
pub fn highest_attempt(status: &TaskStatus) -> u32 {
    status.attempts.iter().map(|attempt| attempt.number).max().unwrap_or(0).max(status.attempt)
}

/// The first attempt is about to be handed to its executor ahead of a free slot: the intent that is committed before. The task stays
/// where it is in its life until its program runs. Returns how often that was so.
pub fn prefetch(task: &mut Task) -> Result<u32, Refused> {
    let state = state_of(task);
    transition(state, Event::Start)?;
    if highest_attempt(&task.status) > 0 || task.status.prefetched || task.status.stopping.is_some() {
        return Err(Refused::NotNow { state, event: Event::Start });
    }
    task.status.prefetched = true;
    task.status.prefetches = task.status.prefetches.saturating_add(1);
    Ok(task.status.prefetches)
}

/// The first attempt was taken back before its program ran: there was none. The task ends if that is what it was taken back for.
pub fn observe_returned(task: &mut Task, handle: &Handle, now: Millis) -> Result<(), Ignored> {
    if !is_prefetched(task, handle) {
        return Err(Ignored::OldAttempt);
    }
    task.status.prefetched = false;
    if task.status.stopping.is_some() {
        return Ok(cancel(task, now)?);
    }
    Ok(())
}

/// True if this is the attempt of a task that waits at its executor.
pub fn is_prefetched(task: &Task, handle: &Handle) -> bool {
    task.status.prefetched && task.metadata.uid == handle.task && handle.attempt == FIRST_ATTEMPT
}

/// A new attempt is about to be made: the intent that is committed before anything is started. One that waited at its executor has
/// begun: what it reported since is kept.
pub fn begin_attempt(
    task: &mut Task,
    lent: Option<&Lent>,
    addon: Option<&str>,
    extensions: &[String],
    now: Millis,
) -> Result<Handle, Refused> {
    change_state(task, Event::Start, now)?;
    let at = now.to_timestamp();
    let status = &mut task.status;
    status.attempt = highest_attempt(status) + 1;
    status.rest_until = None;
    status.waiting_for = None;
    status.terminated = None;
    if status.prefetched {
        (status.prefetched, status.prefetches) = (false, 0);
    } else {
        status.stopping = None;
        forget_report(status);
    }
    let handle = Handle { task: task.metadata.uid.clone(), attempt: status.attempt };
    if let Some(lent) = lent {
        let reason = format!("raised to {} by {}", lent.priority, lent.by.path);
        add_record(&mut status.events, RecordKind::Escalated, &reason, at);
    }
    if let Some(addon) = addon {
        add_record(&mut status.events, RecordKind::AddonSelected, addon, at);
    }
    for extension in extensions {
        add_record(&mut status.events, RecordKind::ExtensionSelected, extension, at);
    }
    add_record(&mut status.events, RecordKind::PodCreated, &handle.to_string(), at);
    if status.attempts.len() >= MAX_ATTEMPTS {
        status.attempts.remove(0);
    }
    status.attempts.push(Attempt {
        number: handle.attempt,
        runtime: task.spec.runtime,
        handle: handle.to_string(),
        ..Attempt::default()
    });
    status.started = None;
    status.message = format!("Starting attempt {}", handle.attempt);
    Ok(handle)
}

/// The attempt runs, since a time.
pub fn observe_started(task: &mut Task, handle: &Handle, since: Millis) -> Result<(), Ignored> {
    current(task, handle)?;
    change_state(task, Event::Run, since)?;
    let at = since.to_timestamp();
    task.status.started = Some(since.to_milli_timestamp());
    if let Some(attempt) = task.status.attempts.last_mut() {
        attempt.started_at = task.status.started;
    }
    add_record(&mut task.status.events, RecordKind::PodRunning, &handle.to_string(), at);
    task.status.waiting_for = None;
    task.status.blocked_since = None;
    task.status.message = format!("Attempt {} runs", handle.attempt);
    Ok(())
}

/// The attempt ended: the task ends, or goes back to the queue.
pub fn observe_ended(
    task: &mut Task,
    handle: &Handle,
    ending: &Ending,
    settings: &Settings,
    now: Millis,
) -> Result<(), Ignored> {
    current(task, handle)?;
    let at = now.to_timestamp();
    let leader = ending.containers.first();
    let finished = close_attempt(task, leader, ending, now);
    for container in stopped_leftovers(ending) {
        add_record(&mut task.status.events, RecordKind::ContainerKilled, &container.name, at);
    }
    attach_logs(task, &ending.containers, &settings.log_suffix);
    for (name, size) in &ending.files {
        attach(task, name.clone(), *size);
    }
    if let Some(why) = task.status.stopping {
        return leave(task, handle, why, settings, now);
    }
    if ending.cause == Cause::Stopped && ending.reason.as_deref() == Some(SERVER_STOPPED) {
        let has_run = !ending.containers.is_empty();
        return Ok(stopped_with_server(task, has_run, settings, now)?);
    }
    let failed =
        ending.containers.iter().find(|container| container.exit_code != 0 && !container.killed_as_leftover);
    let failure = match (ending.cause, failed) {
        (Cause::Timeout, _) => Some(Failure::Timeout),
        (Cause::Stopped, _) => Some(Failure::ExecutorLost),
        (Cause::LogFailed, _) => Some(Failure::StartFailed),
        (Cause::Itself, Some(container)) if container.exit_code == 137 => Some(Failure::Killed),
        (Cause::Itself, Some(_)) => Some(Failure::NonZeroExit),
        (Cause::Itself, None) => None,
    };
    match failure {
        None => {
            change_state(task, Event::Succeed, now)?;
            add_record(&mut task.status.events, RecordKind::PodSucceeded, &handle.to_string(), at);
            end(task, "Succeeded", finished);
            Ok(())
        }
        Some(failure) => {
            let words = describe(failure, failed, ending);
            fail(task, failure, &words, settings, now)?;
            Ok(())
        }
    }
}

/// Containers that outlived the leading one and were stopped for it: none if somebody else ended the attempt, or if the leading
/// one was itself ended because another failed.
fn stopped_leftovers(ending: &Ending) -> impl Iterator<Item = &ContainerEnding> {
    let leads = ending.containers.first().is_some_and(|leader| !leader.killed_as_leftover);
    let applies = ending.cause == Cause::Itself && leads;
    ending.containers.iter().skip(1).filter(move |container| applies && container.killed_as_leftover)
}

/// The pod of an attempt is gone. That is written down once, also of a task that has ended.
pub fn observe_removed(task: &mut Task, handle: &Handle, now: Millis) -> Result<(), Ignored> {
    if task.metadata.uid != handle.task || !add_deleted(&mut task.status, handle, now.to_timestamp()) {
        return Err(Ignored::OldAttempt);
    }
    Ok(())
}

/// Writes down that what an attempt ran in was removed; false if that was written down before.
fn add_deleted(status: &mut TaskStatus, handle: &Handle, at: Timestamp) -> bool {
    let name = handle.to_string();
    let is_known =
        status.events.iter().any(|record| record.kind == RecordKind::PodDeleted && record.reason == name);
    if !is_known {
        add_record(&mut status.events, RecordKind::PodDeleted, &name, at);
    }
    !is_known
}

/// How often a quota refused an attempt of the task so far.
pub fn refusals_of(status: &TaskStatus, attempt: u32) -> u32 {
    status.refusals.filter(|refusals| refusals.attempt == attempt).map_or(0, |refusals| refusals.count)
}

/// A quota refused the attempt: there is none, and the task waits without having used up anything, its number included. The
/// next one has the same name, so a refusal that comes twice is known by its own number.
pub fn observe_blocked(
    task: &mut Task,
    handle: &Handle,
    refusal: u32,
    message: &str,
    now: Millis,
) -> Result<(), Ignored> {
    current(task, handle)?;
    if refusal <= refusals_of(&task.status, handle.attempt) {
        return Err(Ignored::OldRefusal);
    }
    task.status.refusals = Some(QuotaRefusals { attempt: handle.attempt, count: refusal });
    give_back_number(&mut task.status, handle);
    // A preempted task whose attempt was never made has nothing to rest from: it waits like any other.
    if task.status.stopping.is_some_and(Stopping::ends_task) {
        return Ok(cancel(task, now)?);
    }
    task.status.stopping = None;
    change_state(task, Event::Block, now)?;
    let status = &mut task.status;
    // It waits since the first time, not since the last.
    let since = *status.blocked_since.get_or_insert(now.to_timestamp());
    status.state_since = Some(since);
    message.clone_into(&mut status.message);
    add_record(&mut status.events, RecordKind::QuotaBlocked, "Quota", now.to_timestamp());
    status.waiting_for = Some(waiting_for("Quota", message));
    Ok(())
}

/// Takes out an attempt that never was: its number is given to the next one.
fn give_back_number(status: &mut TaskStatus, handle: &Handle) {
    let name = handle.to_string();
    status.attempts.retain(|attempt| attempt.number != handle.attempt);
    status.events.retain(|record| record.kind != RecordKind::PodCreated || record.reason != name);
    status.attempt = handle.attempt.saturating_sub(1);
    status.started = None;
    status.pod.clear();
}

/// The attempt waits to run, and says what for.
pub fn observe_waiting(
    task: &mut Task,
    handle: &Handle,
    reason: &str,
    message: &str,
    now: Millis,
) -> Result<(), Ignored> {
    current(task, handle)?;
    let state = state_of(task);
    if state != State::Pending {
        return Err(Refused::NotNow { state, event: Event::Run }.into());
    }
    let kind = if reason.contains("Image") { RecordKind::ImageError } else { RecordKind::PodPending };
    add_record(&mut task.status.events, kind, reason, now.to_timestamp());
    message.clone_into(&mut task.status.message);
    task.status.waiting_for = Some(waiting_for(reason, message));
    Ok(())
}

/// The attempt could not be started.
pub fn observe_start_failed(
    task: &mut Task,
    handle: &Handle,
    reason: &str,
    message: &str,
    transient: bool,
    settings: &Settings,
    now: Millis,
) -> Result<(), Ignored> {
    current(task, handle)?;
    break_off_attempt(task, reason, now);
    if let Some(why) = task.status.stopping {
        return leave(task, handle, why, settings, now);
    }
    if reason == IMAGE_ERROR {
        add_record(&mut task.status.events, RecordKind::ImageError, message, now.to_timestamp());
    }
    let words = format!("{reason}: {message}");
    if transient {
        // The machine could not; that says nothing about the task.
        task.status.retries += 1;
        let pause = 1_i64 << task.status.retries.min(8);
        return Ok(back_to_queue(task, &words, millis(pause), now)?);
    }
    Ok(fail(task, Failure::StartFailed, &words, settings, now)?)
}

/// The executor is gone and the attempt with it.
pub fn observe_lost(
    task: &mut Task,
    handle: &Handle,
    reason: &str,
    message: &str,
    settings: &Settings,
    now: Millis,
) -> Result<(), Ignored> {
    current(task, handle)?;
    let at = now.to_timestamp();
    let ran = state_of(task) == State::Running;
    break_off_attempt(task, reason, now);
    task.status.waiting_for = None;
    add_record(&mut task.status.events, RecordKind::PodNotFound, &handle.to_string(), at);
    if let Some(why) = task.status.stopping {
        return leave(task, handle, why, settings, now);
    }
    if reason == SERVER_STOPPED {
        return Ok(stopped_with_server(task, true, settings, now)?);
    }
    fail(task, Failure::ExecutorLost, message, settings, now)?;
    if ran && reason == ROBOT_LOST && !state_of(task).is_terminal() {
        await_original(task, handle);
    }
    Ok(())
}

/// The attempt is to end; the task keeps its place until it has. Without an attempt, canceling is immediate.
///
/// An attempt that was told to end already is told again only if the task was to come back and is now to end for good: cancel,
/// delete and expiry win over preemption.
pub fn request_stop(
    task: &mut Task,
    why: Stopping,
    by: Option<&TaskRef>,
    now: Millis,
) -> Result<(), Refused> {
    let state = state_of(task);
    if state.is_terminal() {
        return Err(Refused::Ended(state));
    }
    if let Some(before) = task.status.stopping.filter(|before| before.ends_task() || !why.ends_task()) {
        return Err(Refused::Stopping(before));
    }
    let has_attempt = has_attempt(task);
    if !has_attempt && !why.ends_task() {
        return Err(Refused::NotNow { state, event: Event::Return });
    }
    task.status.stopping = Some(why);
    if !has_attempt {
        return cancel(task, now);
    }
    task.status.message = match (by, why) {
        (Some(by), _) => {
            format!("Making room for {}: its attempt ends, and it goes back to the queue", by.path)
        }
        (None, Stopping::Preempted) => {
            "Making room: its attempt ends, and it goes back to the queue".to_owned()
        }
        (None, Stopping::Unschedulable) => {
            "No node takes its pod, and others wait: its attempt ends, and it goes back to the queue"
                .to_owned()
        }
        (None, Stopping::Canceled) => "Ending: it was canceled".to_owned(),
        (None, Stopping::Expired) => "Ending: its time is over (spec.ttl)".to_owned(),
        (None, Stopping::Deleted) => "Ending: it is being deleted".to_owned(),
    };
    Ok(())
}

/// Writes down what a task waits for.
pub fn write_hold(task: &mut Task, hold: &Hold, now: Millis) -> Result<(), Refused> {
    let (event, kind) = match hold.state() {
        State::QuotaBlocked => (Event::Block, RecordKind::QuotaBlocked),
        _ => (Event::Hold, RecordKind::Postponed),
    };
    // The record of a wait for something that does not exist says when that wait began.
    let has_begun = matches!(hold, Hold::Absent { absent, .. } if awaited_since(task, absent).is_some());
    change_state(task, event, now)?;
    if !has_begun {
        add_record(&mut task.status.events, kind, hold.reason(), now.to_timestamp());
    }
    task.status.waiting_for = Some(hold.waiting_for());
    if !matches!(hold, Hold::Rest { .. }) {
        // Its rest is over, or another look at the task would take it for one that rests and has not been refused.
        task.status.rest_until = None;
    }
    Ok(())
}

/// Waiting for something that is not another task.
fn waiting_for(reason: &str, message: &str) -> WaitingFor {
    WaitingFor { reason: reason.to_owned(), message: message.to_owned(), task: String::new() }
}

/// The user submitted a task that was suspended.
pub fn submit(task: &mut Task, now: Millis) -> Result<(), Refused> {
    let at = now.to_timestamp();
    // What was not recorded is derived from the spec, which no longer says so.
    task.status.state = Some(transition(State::Created, Event::Submit)?);
    task.status.state_since = Some(at);
    task.status.submitted = Some(at);
    Ok(())
}

/// The task has been in its state for longer than its ttl allows: its attempt is to end, and it with it.
pub fn expire(task: &mut Task, now: Millis) -> Result<(), Refused> {
    request_stop(task, Stopping::Expired, None, now)?;
    task.status.expired = true;
    Ok(())
}

/// The files of the task are let go.
pub fn release(task: &mut Task, now: Millis) {
    let at = now.to_timestamp();
    task.status.released = Some(at);
    task.status.attached.clear();
    add_record(&mut task.status.events, RecordKind::Released, "its files were let go", at);
}

/// The task can never start.
pub fn reject(task: &mut Task, reporter: &str, words: &str, now: Millis) -> Result<(), Refused> {
    change_state(task, Event::Fail, now)?;
    add_error(&mut task.status.errors, "Error", reporter, words);
    end(task, words, now.to_milli_timestamp());
    Ok(())
}

/// The task ends because nobody wants it any more.
pub fn cancel(task: &mut Task, now: Millis) -> Result<(), Refused> {
    change_state(task, Event::Cancel, now)?;
    let why = task.status.stopping.take().map_or("Canceled", Stopping::as_str);
    add_record(&mut task.status.events, RecordKind::Canceled, why, now.to_timestamp());
    end(task, "Canceled", now.to_milli_timestamp());
    Ok(())
}

/// The attempt of a task that was told to end is over, however it ended: a preempted task goes back to the queue and has used up
/// nothing, nor has one whose pod found no node; any other ends.
fn leave(
    task: &mut Task,
    handle: &Handle,
    why: Stopping,
    settings: &Settings,
    now: Millis,
) -> Result<(), Ignored> {
    match why {
        Stopping::Preempted => preempted(task, handle, settings.preempt_rest, now),
        Stopping::Unschedulable => taken_back(task, handle, settings, now),
        Stopping::Canceled | Stopping::Deleted | Stopping::Expired => Ok(cancel(task, now)?),
    }
}

/// The pod of an isolated task found no node and is gone, so that others can start. That uses up no limit. If a node took it just
/// then and it ran, it counts as one that was lost: it may not run twice if the task does not allow that.
fn taken_back(task: &mut Task, handle: &Handle, settings: &Settings, now: Millis) -> Result<(), Ignored> {
    const WORDS: &str = "no node took its pod";
    let ran = task.status.attempts.last().is_some_and(|attempt| attempt.started_at.is_some());
    if ran && !survives_loss(task) {
        let words = "its pod was taken back when a node had just taken it";
        return Ok(fail(task, Failure::ExecutorLost, words, settings, now)?);
    }
    add_deleted(&mut task.status, handle, now.to_timestamp());
    let rest = if ran { 0 } else { settings.unschedulable_hold };
    Ok(back_to_queue(task, WORDS, millis(rest), now)?)
}

fn preempted(task: &mut Task, handle: &Handle, rest: i64, now: Millis) -> Result<(), Ignored> {
    let at = now.to_timestamp();
    let reason = task.status.message.clone();
    add_record(&mut task.status.events, RecordKind::Preempted, &reason, at);
    add_deleted(&mut task.status, handle, at);
    Ok(back_to_queue(task, "Preempted", millis(rest), now)?)
}

/// The server was told to stop and ended the attempt. That says nothing about the task and uses up no limit. A task that may not be
/// tried again after its executor was lost is not tried again here either if it ran: it may not run twice.
fn stopped_with_server(
    task: &mut Task,
    has_run: bool,
    settings: &Settings,
    now: Millis,
) -> Result<(), Refused> {
    const WORDS: &str = "the server was stopped";
    if has_run && !survives_loss(task) {
        return fail(task, Failure::ExecutorLost, WORDS, settings, now);
    }
    add_record(&mut task.status.events, RecordKind::PodFailed, WORDS, now.to_timestamp());
    back_to_queue(task, WORDS, 0, now)
}

/// True if the policy of a task allows any attempt after one that was lost.
fn survives_loss(task: &Task) -> bool {
    match task.spec.reschedule {
        Some(policy) => policy.unlimited || policy.attempts > 0,
        None if counts_lost(task) => task.spec.retry.limit() > 0,
        None => task.spec.retry.lost_limit() > 0,
    }
}

/// True if `retry.on` names losses: then `retry.limit` is over all of them.
fn counts_lost(task: &Task) -> bool {
    task.spec.retry.on.as_deref().is_some_and(|on| on.contains(&RetryOn::ExecutorLost))
}

/// The task failed: it goes back to the queue if its policy allows, else it ends.
fn fail(
    task: &mut Task,
    failure: Failure,
    words: &str,
    settings: &Settings,
    now: Millis,
) -> Result<(), Refused> {
    let at = now.to_timestamp();
    if failure == Failure::Timeout {
        add_record(&mut task.status.events, RecordKind::Timeout, words, at);
    }
    add_record(&mut task.status.events, RecordKind::PodFailed, words, at);
    let second = at.as_second();
    let pause = match recover(task, failure == Failure::ExecutorLost, second) {
        Recovery::NoPolicy => may_retry(task, failure).then(|| backoff(task)),
        Recovery::After(pause) => Some(pause),
        Recovery::GiveUp => None,
    };
    if let Some(pause) = pause {
        if failure == Failure::ExecutorLost {
            // It did not fail: it keeps its turn.
            task.status.lost += 1;
            return back_to_queue(task, words, millis(pause), now);
        }
        task.status.retries += 1;
        let pause = millis(pause).max(interval_left(task, settings, now));
        return back_to_queue(task, words, pause, now);
    }
    change_state(task, Event::Fail, now)?;
    let words = match lost_limit_reached(task).filter(|_| failure == Failure::ExecutorLost) {
        Some(limit) => format!("{words} ({limit})"),
        None => words.to_owned(),
    };
    add_error(&mut task.status.errors, "Error", "muster", &words);
    let finished = task.status.attempts.last().and_then(|attempt| attempt.finished_at);
    end(task, &words, finished.unwrap_or(now.to_milli_timestamp()));
    Ok(())
}

/// Once, and only if killed, unless the task says otherwise. Losing the executor has a limit of its own, unless `retry.on`
/// names it: then one limit is over all of them.
fn may_retry(task: &Task, failure: Failure) -> bool {
    let retry = &task.spec.retry;
    let on = retry.on.as_deref().unwrap_or(&[RetryOn::Killed]);
    let counts_lost = counts_lost(task);
    if failure == Failure::ExecutorLost && !counts_lost {
        return task.status.lost < retry.lost_limit();
    }
    let named = match failure {
        Failure::NonZeroExit => RetryOn::NonZeroExit,
        Failure::Killed => RetryOn::Killed,
        Failure::Timeout => RetryOn::Timeout,
        Failure::StartFailed => RetryOn::StartFailed,
        Failure::ExecutorLost => RetryOn::ExecutorLost,
    };
    let used = task.status.retries + if counts_lost { task.status.lost } else { 0 };
    on.contains(&named) && used < retry.limit()
}

/// The limit that ends a task whose executor was lost, in words, unless another policy does.
fn lost_limit_reached(task: &Task) -> Option<String> {
    if task.spec.reschedule.is_some() || counts_lost(task) {
        return None;
    }
    let limit = task.spec.retry.lost_limit();
    // The last one is not counted: no attempt follows it.
    Some(match task.status.lost {
        0 => format!("retry.lostLimit is {limit}"),
        before => format!("lost {} times, retry.lostLimit is {limit}", before.saturating_add(1)),
    })
}

/// Milliseconds until attempts that follow each other are far enough apart, from the start of the one that just ended: a program that
/// fails at once is not run hundreds of times a second, and one that ran for a while is tried again at once.
fn interval_left(task: &Task, settings: &Settings, now: Millis) -> i64 {
    let began = task.status.attempts.last().and_then(|attempt| attempt.started_at);
    let ran = began.map_or(0, |began| now.0.saturating_sub(began.as_millisecond()));
    // A clock that was set back is no reason to wait for longer.
    millis(settings.min_retry_interval).saturating_sub(ran.max(0)).max(0)
}

/// Seconds to wait before the next try, as the task says.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "seconds, clamped")]
fn backoff(task: &Task) -> i64 {
    let backoff = &task.spec.retry.backoff;
    let Some(initial) = backoff.initial else { return 0 };
    let most = backoff.max.map_or(300.0, |max| max.as_std().as_secs_f64());
    let tries = i32::try_from(task.status.retries.min(30)).unwrap_or(30);
    let seconds = initial.as_std().as_secs_f64() * backoff.factor.unwrap_or(2.0).powi(tries);
    seconds.min(most).max(0.0).ceil() as i64
}

fn millis(seconds: i64) -> i64 {
    seconds.saturating_mul(1000)
}

/// Puts a task back for another attempt after a pause of milliseconds, which is not cut short: rests end with a second.
fn back_to_queue(task: &mut Task, words: &str, pause: i64, now: Millis) -> Result<(), Refused> {
    change_state(task, Event::Return, now)?;
    let status = &mut task.status;
    status.stopping = None;
    status.started = None;
    status.blocked_since = None;
    status.rest_until =
        (pause > 0).then(|| Timestamp::from_second(Millis(now.0.saturating_add(pause)).next_second()));
    status.message = format!("To be tried again: {words}");
    let until = status.rest_until;
    task.status.waiting_for = until.map(|until| describe_rest(task, words, until));
    Ok(())
}

/// What an attempt reported is of no interest for the next.
pub(crate) fn forget_report(status: &mut TaskStatus) {
    status.activity.clear();
    status.errors.clear();
    status.total = None;
    status.completed = None;
    status.result = None;
}

/// Writes down how the attempt ended, and gives when.
fn close_attempt(
    task: &mut Task,
    leader: Option<&ContainerEnding>,
    ending: &Ending,
    now: Millis,
) -> MilliTimestamp {
    let Some(attempt) = task.status.attempts.last_mut() else { return now.to_milli_timestamp() };
    // Another machine may have said when, by another clock.
    let first = attempt.started_at.map_or(i64::MIN, MilliTimestamp::as_millisecond);
    let at = if (first.max(1)..=now.0).contains(&ending.at.0) { ending.at } else { now };
    let finished = at.to_milli_timestamp();
    attempt.finished_at = Some(finished);
    attempt.exit_code = leader.map(|leader| leader.exit_code);
    attempt.signal = leader.and_then(|leader| leader.signal);
    attempt.reason = match (task.status.stopping, ending.cause) {
        (Some(stopping), _) => stopping.as_str().to_owned(),
        (None, Cause::Timeout) => "Timeout".to_owned(),
        (None, Cause::Stopped) => ending.reason.clone().unwrap_or_else(|| "Stopped".to_owned()),
        (None, Cause::LogFailed) => "LogFailed".to_owned(),
        (None, Cause::Itself) => ending.reason.clone().unwrap_or_default(),
    };
    finished
}

/// The attempt is over without an ending of its own.
fn break_off_attempt(task: &mut Task, reason: &str, now: Millis) {
    let reason = match task.status.stopping {
        Some(why @ (Stopping::Preempted | Stopping::Unschedulable)) => why.as_str(),
        Some(Stopping::Canceled | Stopping::Deleted | Stopping::Expired) | None => reason,
    };
    if let Some(attempt) = task.status.attempts.last_mut() {
        attempt.finished_at = Some(now.to_milli_timestamp());
        reason.clone_into(&mut attempt.reason);
    }
}

fn attach_logs(task: &mut Task, containers: &[ContainerEnding], suffix: &str) {
    for container in containers {
        attach(task, format!("{}{suffix}", container.name), container.log_bytes);
    }
}

fn attach(task: &mut Task, name: String, size: u64) {
    match task.status.attached.iter_mut().find(|attached| attached.name == name) {
        Some(attached) => attached.size = size,
        None => task.status.attached.push(Attachment { name, size, activity: None }),
    }
}

fn describe(failure: Failure, failed: Option<&ContainerEnding>, ending: &Ending) -> String {
    let words = match (failure, failed, ending.cause) {
        (Failure::Timeout, ..) => "Task terminated: Task timeout".to_owned(),
        (_, _, Cause::LogFailed) => "the log could not be written".to_owned(),
        (Failure::Killed, Some(container), _) => format!("Container ({}) failed: Killed", container.name),
        (_, Some(container), _) => {
            format!("Container ({}) failed: exit code {}", container.name, container.exit_code)
        }
        (_, None, _) => "the attempt was stopped".to_owned(),
    };
    match ending.message.as_deref() {
        Some(more) if !more.is_empty() && more != words => format!("{words}: {more}"),
        _ => words,
    }
}

fn end(task: &mut Task, message: &str, at: MilliTimestamp) {
    task.status.terminated = Some(at);
    task.status.waiting_for = None;
    task.status.rest_until = None;
    task.status.blocked_since = None;
    task.status.stopping = None;
    message.clone_into(&mut task.status.message);
}

/// Only the attempt that a task has now is of consequence: one that has ended does not end again, not even while the task waits
/// for the next.
fn current(task: &Task, handle: &Handle) -> Result<(), Ignored> {
    let state = state_of(task);
    if state.is_terminal() {
        return Err(Refused::Ended(state).into());
    }
    let same = task.metadata.uid == handle.task && task.status.attempt == handle.attempt;
    if same && has_attempt(task) { Ok(()) } else { Err(Ignored::OldAttempt) }
}

pub(crate) fn change_state(task: &mut Task, event: Event, now: Millis) -> Result<(), Refused> {
    let before = state_of(task);
    let after = transition(before, event)?;
    task.status.state = Some(after);
    if before != after || task.status.state_since.is_none() {
        task.status.state_since = Some(now.to_timestamp());
    }
    Ok(())
}
