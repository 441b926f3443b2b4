//! `bench plan`: the pure planner alone, with and without preemption.

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_tasks::board::Board;
use muster_tasks::capacity::Capacity;
use muster_tasks::kinds::KindGraph;
use muster_tasks::plan::Decision;
use muster_tasks::settings::Settings;
use muster_tasks::view::{Need, TaskView};
use muster_types::State;

use crate::plot::{Bar, Series, bars, number};
use crate::report::{Report, circumstances};

const TASKS: u32 = 64_000;
const SUBJECTS: u32 = 4_000;
/// What the planner is to reach.
const GOAL: f64 = 300_000.0;

/// Runs the benchmark.
pub fn run(write: bool) -> anyhow::Result<()> {
    let mut report = Report::default();
    let mut plot = vec![Bar { label: "goal".into(), value: GOAL, series: Series::Limit }];
    for (label, tasks) in
        [("free tasks", free as fn(u32) -> TaskView), ("subjects, kinds and dependencies", bound)]
    {
        let (rate, count) = best_of(5, || placements(tasks));
        report.line(
            format!("placements, {label}, {} tasks", number(f64::from(TASKS))),
            format!("{}/s", number(rate)),
            format!("{count} started in passes of 1 024; {:.1} times the goal of 300 000/s", rate / GOAL),
        );
        plot.push(Bar { label: label.into(), value: rate, series: Series::Muster });
    }
    let (rate, count) = best_of(5, preemptions);
    report.line(
        "placements after preemption",
        format!("{}/s", number(rate)),
        format!("{count} victims made room and were replaced; {:.1} times the goal", rate / GOAL),
    );
    plot.push(Bar { label: "with preemption".into(), value: rate, series: Series::Muster });
    if write {
        let svg = bars("Decisions of the planner alone", "per s", &plot);
        report.write("plan", &circumstances("cargo xtask bench plan"), &svg)?;
    }
    Ok(())
}

fn best_of(times: usize, measure: impl Fn() -> (usize, Duration)) -> (f64, usize) {
    let runs = (0..times).map(|_| measure());
    #[allow(clippy::cast_precision_loss, reason = "counts are small")]
    let rates = runs.map(|(count, took)| (count as f64 / took.as_secs_f64(), count));
    rates.fold((0.0, 0), |best, run| if run.0 > best.0 { run } else { best })
}

fn free(number: u32) -> TaskView {
    TaskView {
        uid: u128::from(number) + 1,
        path: Arc::from(format!("default/task-{number}")),
        state: State::Ready,
        since: 0,
        priority: Some(i32::try_from(number % 16).unwrap_or(0)),
        kind: String::new(),
        addon: String::new(),
        subject: String::new(),
        runtime: None,
        need: Need { cpu_millis: 100, memory: 0 },
        isolated: false,
        preempt_enabled: false,
        preempt_exempt: false,
        stopping: false,
        deleted: false,
        prefetched: false,
        is_first: true,
        rest_until: 0,
        demand: None,
        placement: String::new(),
        robot: None,
        awaited: None,
    }
}

fn bound(number: u32) -> TaskView {
    let kind = ["discovery", "analysis", "report", "cleanup"][(number / SUBJECTS % 4) as usize];
    TaskView { kind: kind.into(), subject: format!("Application/app-{}", number % SUBJECTS), ..free(number) }
}

fn board(slots: u32) -> Board {
    let mut board = Board::new(Settings::default(), |_| Capacity { slots, cpu_millis: None, memory: None });
    let kinds = [
        ("default/discovery", vec![]),
        ("default/analysis", vec!["default/discovery"]),
        ("default/report", vec!["default/analysis"]),
        ("default/cleanup", vec![]),
    ];
    board.set_kinds(KindGraph::new(kinds), [].into(), [].into());
    board
}

/// Starts every task; a task that started ends before the next pass. Only passes are timed.
fn placements(make: fn(u32) -> TaskView) -> (usize, Duration) {
    let mut board = board(TASKS);
    (0..TASKS).for_each(|number| board.observe(&make(number)));
    let (mut count, mut took) = (0, Duration::ZERO);
    while !board.is_empty() {
        let started = Instant::now();
        let plan = board.plan(0);
        took += started.elapsed();
        let starts = plan.decisions.iter().filter_map(|decision| match decision {
            Decision::Start { task, .. } => Some(task.uid),
            Decision::Hold { .. }
            | Decision::Preempt { .. }
            | Decision::TakeBack { .. }
            | Decision::Recall { .. } => None,
        });
        for uid in starts.collect::<Vec<_>>() {
            count += 1;
            board.forget(uid);
        }
    }
    (count, took)
}

/// A full machine of lower priority and urgent tasks that take its place, tenth by tenth.
fn preemptions() -> (usize, Duration) {
    let mut board = board(TASKS / 2);
    for number in 0..TASKS / 2 {
        board.observe(&TaskView { state: State::Running, ..free(number) });
    }
    for number in TASKS / 2..TASKS {
        let priority = Some(100);
        board.observe(&TaskView {
            state: State::QuotaBlocked,
            priority,
            preempt_enabled: true,
            ..free(number)
        });
    }
    let (mut count, mut took) = (0, Duration::ZERO);
    for _ in 0..200 {
        let started = Instant::now();
        let plan = board.plan(100);
        took += started.elapsed();
        for decision in &plan.decisions {
            match decision {
                Decision::Preempt { task, .. } => {
                    count += 1;
                    board.forget(task.uid);
                }
                Decision::Start { .. } => count += 1,
                Decision::Hold { .. } | Decision::TakeBack { .. } | Decision::Recall { .. } => {}
            }
        }
        if plan.decisions.is_empty() {
            break;
        }
    }
    (count, took)
}
