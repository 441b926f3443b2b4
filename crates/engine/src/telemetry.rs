//! What the engine tells about itself: rendered from its plans, and from each task that starts or ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use muster_ports::clock::Millis;
use muster_ports::telemetry::Telemetry;
use muster_ports::telemetry::catalog::{
    CONFLICTS, ENDS, FACTS, FACTS_IGNORED, LOG_BYTES, PASS_SECONDS, PREEMPTIONS, QUEUE, RETRIES, RUN, STARTS,
    TASK_HOLDS, WAIT,
};
use muster_tasks::board::Board;
use muster_tasks::plan::{Decision, Plan};
use muster_tasks::view::{parse_uid, state_of};
use muster_types::{MilliTimestamp, State, Task, Timestamp};

/// Kinds that are told apart; names come from users, and each costs memory in whoever reads the numbers.
const MOST_KINDS: usize = 100;
/// What the others are together.
const OTHER: &str = "(other)";

/// What one cycle did besides its plan.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pass {
    /// News that was taken in.
    pub facts: usize,
    /// News of no consequence.
    pub ignored: usize,
    /// Decisions that were not committed.
    pub refused: usize,
    /// How long it took.
    pub took: Duration,
}

/// Tells the numbers of one engine.
#[derive(Debug)]
pub struct Teller {
    telemetry: Telemetry,
    kinds: BTreeSet<String>,
    /// What was told of the queue.
    queue: BTreeMap<(String, State), u64>,
}

impl Teller {
    /// Tells them here.
    pub fn new(telemetry: Telemetry) -> Self {
        Self { telemetry, kinds: BTreeSet::new(), queue: BTreeMap::new() }
    }

    /// What a cycle decided and how the queue stands.
    pub fn pass(&mut self, board: &Board, plan: &Plan, pass: Pass) {
        let telemetry = &self.telemetry;
        telemetry.observe(PASS_SECONDS, &[], pass.took.as_secs_f64());
        telemetry.count(FACTS, &[], number(pass.facts));
        telemetry.count(FACTS_IGNORED, &[], number(pass.ignored));
        telemetry.count(CONFLICTS, &[], number(pass.refused));
        let (mut starts, mut preemptions) = (0, 0);
        for decision in &plan.decisions {
            match decision {
                Decision::Start { .. } => starts += 1,
                Decision::Recall { .. } | Decision::TakeBack { .. } => {}
                Decision::Preempt { .. } => preemptions += 1,
                Decision::Hold { hold, .. } => telemetry.count(TASK_HOLDS, &[hold.reason()], 1),
            }
        }
        telemetry.count(STARTS, &[], starts);
        telemetry.count(PREEMPTIONS, &[], preemptions);
        self.queue(board);
    }

    fn queue(&mut self, board: &Board) {
        let mut queue = BTreeMap::new();
        for (kind, state, count) in board.census() {
            let kind = self.kind(kind).to_owned();
            *queue.entry((kind, state)).or_insert(0) += number(count);
        }
        for ((kind, state), count) in &queue {
            if self.queue.get(&(kind.clone(), *state)) != Some(count) {
                self.telemetry.set(QUEUE, &[state.as_str(), kind], *count);
            }
        }
        for (kind, state) in self.queue.keys().filter(|key| !queue.contains_key(*key)) {
            self.telemetry.set(QUEUE, &[state.as_str(), kind], 0);
        }
        self.queue = queue;
    }

    /// An attempt was admitted.
    pub fn started(&mut self, task: &Task, now: Millis) {
        let kind = self.kind(&task.spec.kind).to_owned();
        self.telemetry.observe(WAIT, &[&kind], seconds(waited(task, now)));
        if task.status.attempt > 1 {
            self.telemetry.count(RETRIES, &[&kind], 1);
        }
    }

    /// An attempt ended after this many milliseconds, if that is known.
    pub fn ended(&mut self, task: &Task, took: Option<i64>, log_bytes: u64) {
        let kind = self.kind(&task.spec.kind).to_owned();
        if let Some(took) = took {
            self.telemetry.observe(RUN, &[&kind], seconds(took));
        }
        self.telemetry.count(LOG_BYTES, &[], log_bytes);
    }

    /// A task ended.
    pub fn over(&mut self, task: &Task) {
        let kind = self.kind(&task.spec.kind).to_owned();
        self.telemetry.count(ENDS, &[state_of(task).as_str(), &kind], 1);
    }

    fn kind<'a>(&mut self, kind: &'a str) -> &'a str {
        if self.kinds.contains(kind) {
            return kind;
        }
        if self.kinds.len() >= MOST_KINDS {
            return OTHER;
        }
        self.kinds.insert(kind.to_owned());
        kind
    }
}

/// How long a task has waited since it was last let go, in milliseconds. When it was submitted is known to the second only.
pub fn waited(task: &Task, now: Millis) -> i64 {
    let made = parse_uid(&task.metadata.uid).and_then(|uid| i64::try_from(uid >> 80).ok()).unwrap_or(now.0);
    let noted = |time: Timestamp| time.as_second().saturating_mul(1000);
    let ended = task.status.attempts.iter().rev().find_map(|attempt| attempt.finished_at);
    let back = ended.map(MilliTimestamp::as_millisecond);
    let since = back.into_iter().chain(task.status.submitted.map(noted)).fold(made, i64::max);
    now.0.saturating_sub(since).max(0)
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[allow(clippy::cast_precision_loss, reason = "milliseconds of a task's life")]
fn seconds(millis: i64) -> f64 {
    millis as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use muster_types::TaskSpec;
    use muster_types::task_status::Attempt;

    use super::*;

    #[test]
    fn a_task_waits_since_it_was_made_submitted_or_came_back() {
        let mut task = Task::new("n", "t", TaskSpec::default());
        let made = 1_800_000_000_250_u128;
        let hex = format!("{made:012x}");
        task.metadata.uid = format!("{}-{}-7000-8000-000000000000", &hex[..8], &hex[8..]);
        let now = Millis(1_800_000_005_000);
        assert_eq!(waited(&task, now), 4750);
        task.status.submitted = Some(Timestamp::from_second(1_800_000_002));
        assert_eq!(waited(&task, now), 3000);
        let finished_at = Some(MilliTimestamp::from_millisecond(1_800_000_004_250));
        task.status.attempts = vec![Attempt { finished_at, ..Attempt::default() }, Attempt::default()];
        assert_eq!(waited(&task, now), 750);
        assert_eq!(waited(&task, Millis(0)), 0);
    }

    #[test]
    fn kinds_beyond_the_first_hundred_are_told_together() {
        let telemetry = Telemetry::default();
        let mut teller = Teller::new(telemetry.clone());
        let mut task = Task::new("n", "t", TaskSpec::default());
        task.status.state = Some(State::Succeeded);
        for number in 0..150 {
            task.spec.kind = format!("k{number}");
            teller.over(&task);
        }
        let text = telemetry.render();
        assert!(text.contains("muster_task_ends_total{state=\"Succeeded\",kind=\"k99\"} 1"), "{text}");
        assert!(text.contains("muster_task_ends_total{state=\"Succeeded\",kind=\"(other)\"} 50"), "{text}");
    }
}
