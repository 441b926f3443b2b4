//! What must hold, seen from outside: from the stored tasks and the attempts that are alive, and from nothing the engine
//! keeps for itself.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use muster_ports::runtime::Handle;
use muster_tasks::view::state_of;
use muster_types::{State, Task, Timestamp};

/// Slots and memory of the simulated machine.
pub const SLOTS: usize = 4;
/// Memory of the simulated machine.
pub const MEMORY: u64 = 10;

/// Which kinds wait for which, in the simulated world.
pub fn needs(kind: &str) -> &'static [&'static str] {
    match kind {
        "analyze" => &["discover"],
        "report" => &["analyze", "discover"],
        _ => &[],
    }
}

/// Everything that is wrong with what is alive now.
pub fn check_live(tasks: &BTreeMap<String, Task>, live: &[Handle], ahead: usize) -> Vec<String> {
    let mut wrong = Vec::new();
    let known: Vec<&Task> = live.iter().filter_map(|handle| tasks.get(&handle.task)).collect();
    if known.len() > SLOTS + ahead {
        wrong.push(format!("{} attempts are alive in {SLOTS} slots, {ahead} may wait", known.len()));
    }
    let memory: u64 = known.iter().map(|task| memory_of(task)).sum();
    if memory > MEMORY {
        wrong.push(format!("{memory} of {MEMORY} memory is taken"));
    }
    if known.len() > 1 && known.iter().any(|task| task.spec.policy.isolated) {
        wrong.push("an isolated task runs beside others".to_owned());
    }
    let mut seen = BTreeSet::new();
    let mut busy = BTreeSet::new();
    for (handle, task) in live.iter().filter_map(|handle| Some((handle, tasks.get(&handle.task)?))) {
        if !seen.insert(&handle.task) {
            wrong.push(format!("task {} runs twice at once", task.metadata.name));
        }
        if let Some(subject) = &task.spec.subject
            && !busy.insert((subject, &task.spec.kind))
        {
            wrong.push(format!("two tasks of {} and {} run at once", subject.name, task.spec.kind));
        }
    }
    wrong
}

/// Everything that is wrong with what one cycle started, given the tasks before it.
pub fn check_started(
    now: Timestamp,
    before: &BTreeMap<String, Task>,
    after: &BTreeMap<String, Task>,
    started: &[Handle],
) -> Vec<String> {
    let mut wrong = Vec::new();
    let new: Vec<&Task> = started.iter().filter_map(|handle| before.get(&handle.task)).collect();
    for task in &new {
        if task.status.rest_until.is_some_and(|until| until > now) {
            wrong.push(format!("{} started although it rests", task.metadata.name));
        }
        let blockers = before.values().filter(|other| {
            other.metadata.uid != task.metadata.uid
                && is_submitted(other)
                && task.spec.subject.is_some()
                && other.spec.subject == task.spec.subject
                && needs(&task.spec.kind).contains(&other.spec.kind.as_str())
                && after.get(&other.metadata.uid).is_some_and(is_submitted)
        });
        for blocker in blockers {
            wrong.push(format!(
                "{} started before {}, on which it depends",
                task.metadata.name, blocker.metadata.name
            ));
        }
    }
    wrong.extend(check_order(before, after, &new));
    wrong
}

/// Of tasks that nothing but room and order keeps apart, none may start while one before it goes on waiting.
fn check_order(
    before: &BTreeMap<String, Task>,
    after: &BTreeMap<String, Task>,
    new: &[&Task],
) -> Vec<String> {
    let simple =
        |task: &&Task| !task.spec.policy.isolated && memory_of(task) == 0 && task.status.rest_until.is_none();
    // A task may come back to the queue, or leave it, within the cycle: what starts is judged by the higher priority it had,
    // what waits by the lower one.
    let highest = |task: &Task| effective_priority(task, before).max(effective_priority(task, after));
    let lowest = |task: &Task| effective_priority(task, before).min(effective_priority(task, after));
    let mut wrong = Vec::new();
    for started in new.iter().copied().filter(|task| simple(task)) {
        for waiting in before.values().filter(|task| is_waiting(task)).filter(simple) {
            let still = after.get(&waiting.metadata.uid).is_some_and(is_waiting);
            let free = waiting.spec.subject.is_none() || is_alone(waiting, before);
            let first = (lowest(waiting), Reverse(&waiting.metadata.uid))
                > (highest(started), Reverse(&started.metadata.uid));
            if still && free && first {
                wrong.push(format!(
                    "{} (priority {}) started before {} (priority {}), which was first",
                    started.metadata.name,
                    highest(started),
                    waiting.metadata.name,
                    lowest(waiting)
                ));
            }
        }
    }
    wrong
}

/// The priority of a task, raised by what waits for it.
pub fn effective_priority(task: &Task, tasks: &BTreeMap<String, Task>) -> i32 {
    let lenders = tasks.values().filter(|other| {
        is_submitted(other)
            && task.spec.subject.is_some()
            && other.spec.subject == task.spec.subject
            && needs(&other.spec.kind).contains(&task.spec.kind.as_str())
            && !matches!(state_of(other), State::Pending | State::Running)
    });
    lenders.filter_map(|other| other.spec.priority).chain(task.spec.priority).max().unwrap_or(0)
}

/// Nothing else is going on for its subject.
fn is_alone(task: &Task, tasks: &BTreeMap<String, Task>) -> bool {
    !tasks.values().any(|other| {
        other.metadata.uid != task.metadata.uid
            && is_submitted(other)
            && other.spec.subject == task.spec.subject
            && (other.spec.kind == task.spec.kind
                || needs(&task.spec.kind).contains(&other.spec.kind.as_str()))
    })
}

/// Everything that is wrong with what was let go: the logs of a task that is still there are kept first.
pub fn check_removed(tasks: &BTreeMap<String, Released>, removed: &[(Handle, bool)]) -> Vec<String> {
    let kept_late = removed.iter().filter(|(handle, kept)| {
        !kept && tasks.get(&handle.task).is_some_and(|released| *released == Released::No)
    });
    kept_late.map(|(handle, _)| format!("{handle} was removed before its logs were kept")).collect()
}

/// Whether the files of a task may be let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// They are still wanted.
    No,
    /// The task says that they are gone.
    Yes,
}

/// Everything that is wrong between two looks at the tasks.
pub fn check_history(before: &BTreeMap<String, Task>, after: &BTreeMap<String, Task>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (uid, old) in before {
        let Some(new) = after.get(uid) else { continue };
        let name = &old.metadata.name;
        if new.status.attempt < old.status.attempt {
            wrong.push(format!("{name} went back to attempt {}", new.status.attempt));
        }
        let preempted = |task: &Task| {
            let record = task.status.events.iter().rfind(|record| record.kind.as_str() == "Preempted");
            record.map_or(0, |record| record.count)
        };
        let rests =
            new.status.rest_until.is_some_and(|until| until > new.status.state_since.unwrap_or(until));
        if preempted(new) > preempted(old) && state_of(new) == State::Ready && !rests {
            wrong.push(format!("{name} was preempted and does not rest"));
        }
    }
    wrong
}

fn is_submitted(task: &Task) -> bool {
    !matches!(state_of(task), State::Created | State::Succeeded | State::Failed | State::Canceled)
}

fn is_waiting(task: &Task) -> bool {
    let waits = matches!(state_of(task), State::Ready | State::Postponed | State::QuotaBlocked);
    waits && !task.status.prefetched
}

fn memory_of(task: &Task) -> u64 {
    task.spec.resources.memory.as_ref().map_or(0, muster_types::Quantity::value)
}
