//! What the engine tells about itself, rendered from its plans.

use std::time::Duration;

use muster_ports::telemetry::{Metric, Telemetry};
use muster_tasks::board::Board;
use muster_tasks::plan::{Decision, Plan};

const PASSES: Metric = Metric { name: "muster_engine_passes", help: "Cycles of the engine", label: None };
const TIME: Metric =
    Metric { name: "muster_engine_pass_microseconds", help: "Time spent in cycles", label: None };
const STARTS: Metric =
    Metric { name: "muster_task_starts", help: "Attempts that were decided on", label: None };
const HOLDS: Metric =
    Metric { name: "muster_task_holds", help: "Tasks that were held back, by reason", label: Some("reason") };
const PREEMPTIONS: Metric =
    Metric { name: "muster_task_preemptions", help: "Attempts that had to make room", label: None };
const NEWS: Metric = Metric { name: "muster_runtime_facts", help: "News from runtimes", label: None };
const IGNORED: Metric = Metric {
    name: "muster_runtime_facts_ignored",
    help: "News of older attempts or of tasks that have ended",
    label: None,
};
const REFUSED: Metric = Metric {
    name: "muster_engine_conflicts",
    help: "Decisions that came too late to be committed",
    label: None,
};
const QUEUE: Metric = Metric {
    name: "muster_queue_tasks",
    help: "Tasks that have not ended, by where they stand",
    label: Some("at"),
};

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

/// Tells what a cycle decided and how the queue stands.
pub fn tell(telemetry: &Telemetry, board: &Board, plan: &Plan, pass: Pass) {
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    telemetry.count(PASSES, "", 1);
    telemetry.count(TIME, "", u64::try_from(pass.took.as_micros()).unwrap_or(u64::MAX));
    telemetry.count(NEWS, "", number(pass.facts));
    telemetry.count(IGNORED, "", number(pass.ignored));
    telemetry.count(REFUSED, "", number(pass.refused));
    let (mut starts, mut preemptions) = (0, 0);
    for decision in &plan.decisions {
        match decision {
            Decision::Start { .. } => starts += 1,
            Decision::Preempt { .. } => preemptions += 1,
            Decision::Hold { hold, .. } => telemetry.count(HOLDS, hold.reason(), 1),
        }
    }
    telemetry.count(STARTS, "", starts);
    telemetry.count(PREEMPTIONS, "", preemptions);
    for (at, count) in board.census() {
        telemetry.set(QUEUE, at, number(count));
    }
}
