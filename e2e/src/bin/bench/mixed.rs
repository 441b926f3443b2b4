//! `bench mixed`: short and long tasks of random priorities, interleaved. Starting ahead of a free slot must not break their order.
//!
//! Each program writes down itself when it starts and ends; when a task was acknowledged is seen by whoever made it. Nothing that the
//! server says about time is used.
//!
//! A program that was started may wait for a processor for some milliseconds before it says so, while others come and go: the kernel
//! knows when it was born, to a tick. It was passed over only if both say so.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts and seconds"
)]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use serde_json::json;

use crate::muster_peer::{Muster, TASKS};
use crate::plot::{Bar, Series, bars, number};
use crate::report::{Report, circumstances};

/// Programs that run at a time.
const WIDTH: usize = 2;
/// One in so many is long.
const LONG_ONE_IN: u64 = 20;
/// Priorities are below this.
const PRIORITIES: u64 = 100;
/// Tasks that have not started, at least, as long as there are more to make.
const BACKLOG: usize = 400;
/// For how long a task may be ready while one of lower priority starts.
const BOUND: f64 = 0.100;
/// Two programs that were started at the same instant may say so in any order within this time.
const JITTER: f64 = 0.005;
/// Ticks of the kernel, in which it says when a program was born.
const TICKS_PER_SECOND: f64 = 100.0;
/// Longest wait of the first in order for a slot that is free, for 99 in 100.
const GOAL: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_mins(20);

/// What is known of a task, in seconds.
#[derive(Debug, Clone, Copy)]
struct Seen {
    priority: i64,
    acknowledged: f64,
    /// The beginning of the tick in which the kernel made its process, since the machine was started.
    born: f64,
    started: f64,
    ended: f64,
}

/// What was found out of order.
#[derive(Default)]
struct Disorder {
    passed_over: usize,
    /// Pairs in which only the first line came late: the process was there in time.
    spoke_late: usize,
    examples: Vec<String>,
}

/// Runs the benchmark.
pub fn run(quick: bool, write: bool) -> anyhow::Result<()> {
    let count = if quick { 2_000 } else { 20_000 };
    let dir = tempfile::tempdir()?;
    let mut report = Report::default();
    let bare = run_bare(dir.path(), count / 10)?;
    let (seen, took) = run_muster(dir.path(), count)?;
    let Disorder { passed_over, spoke_late, examples } = out_of_order(&seen);
    let waits = waits(&seen);
    let p99 = percentile(&waits, 0.99);
    let rate = count as f64 / took.as_secs_f64();
    report.line(
        format!("starts of {count} short and long tasks of random priorities, {WIDTH} slots"),
        format!("{}/s", number(rate)),
        format!(
            "{:.0} % of the same programs in {WIDTH} bare loops ({}/s)",
            100.0 * rate / bare,
            number(bare)
        ),
    );
    report.line(
        "starts while a task of higher priority had been ready for more than 100 ms",
        format!("{passed_over} of {}", seen.len()),
        format!("goal 0; {spoke_late} more before one whose process was there and waited for a processor"),
    );
    report.line(
        "from ready, first in order and a free slot to the program's own first line, p99",
        format!("{:.1} ms", p99 * 1000.0),
        format!("p50 {:.1} ms; goal {} ms", percentile(&waits, 0.5) * 1000.0, GOAL.as_millis()),
    );
    for example in examples {
        println!("  {example}");
    }
    if write && !quick {
        let bar = |label: &str, value, series| Bar { label: label.into(), value, series };
        let plot = [bar("bare limit", bare, Series::Limit), bar("muster", rate, Series::Muster)];
        let svg = bars("short and long tasks of random priorities", "per s", &plot);
        report.write("mixed", &circumstances("cargo xtask bench mixed"), &svg)?;
    }
    if passed_over > 0 || p99 > GOAL.as_secs_f64() {
        bail!("the goal is not reached");
    }
    Ok(())
}

/// What each program does: says when it starts and ends, and takes its time in between.
fn script(number: usize, log: &Path) -> [String; 3] {
    let nap = if draw(number, 1).is_multiple_of(LONG_ONE_IN) { "sleep 0.1; " } else { "" };
    let log = log.display();
    let text = format!(
        "read -ra stat < /proc/self/stat; echo s {number} $EPOCHREALTIME ${{stat[21]}} >> {log}; \
         {nap}echo e {number} $EPOCHREALTIME 0 >> {log}"
    );
    ["bash".to_owned(), "-c".to_owned(), text]
}

/// The same programs without a server, per second.
fn run_bare(dir: &Path, count: usize) -> anyhow::Result<f64> {
    let log = dir.join("bare");
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let run = |first: usize| {
            let log = &log;
            move || -> std::io::Result<()> {
                for number in (first..count).step_by(WIDTH) {
                    let [program, flag, text] = script(number, log);
                    Command::new(program).args([flag, text]).status()?;
                }
                Ok(())
            }
        };
        let loops: Vec<_> = (0..WIDTH).map(|first| scope.spawn(run(first))).collect();
        loops.into_iter().try_for_each(|each| each.join().unwrap_or(Ok(())))
    })?;
    Ok(count as f64 / begun.elapsed().as_secs_f64())
}

fn run_muster(dir: &Path, count: usize) -> anyhow::Result<(Vec<Seen>, Duration)> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (data, log) = (dir.join("data"), dir.join("starts"));
    fs::write(&log, "")?;
    let width = WIDTH.to_string();
    let muster =
        runtime.block_on(Muster::start_with(&data, &["--roles", "api,engine", "--slots", &width]))?;
    let begun = Instant::now();
    let made = runtime.block_on(make(&muster, count, &log))?;
    while ended(&log)? < count {
        if begun.elapsed() > PATIENCE {
            bail!("{} of {count} tasks ended within {PATIENCE:?}", ended(&log)?);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let took = begun.elapsed();
    muster.process.terminate()?;
    Ok((read(&log, &made)?, took))
}

/// Makes the tasks, a few at a time, so that there are always some that wait. Returns when each was acknowledged.
async fn make(muster: &Muster, count: usize, log: &Path) -> anyhow::Result<Vec<f64>> {
    let mut connection = muster.plain.connect().await?;
    let mut made = Vec::with_capacity(count);
    while made.len() < count {
        while made.len() < count && made.len() < started(log)? + BACKLOG {
            for _ in 0..50.min(count - made.len()) {
                let number = made.len();
                let task = json!({
                    "apiVersion": "muster.dev/v1alpha1", "kind": "Task",
                    "metadata": { "name": format!("t{number}") },
                    "spec": { "priority": priority(number), "container": { "command": script(number, log) } },
                });
                let body = task.to_string();
                connection.round_trip("POST", TASKS, "application/json", body.as_bytes()).await?;
                made.push(now());
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(made)
}

fn read(log: &Path, acknowledged: &[f64]) -> anyhow::Result<Vec<Seen>> {
    let mut times: BTreeMap<usize, (Vec<(f64, f64)>, f64)> = BTreeMap::new();
    for line in fs::read_to_string(log)?.lines() {
        let [what, number, time, tick] = line.split(' ').collect::<Vec<_>>()[..] else {
            bail!("odd line {line}")
        };
        let (number, time): (usize, f64) = (number.parse()?, time.parse()?);
        let entry = times.entry(number).or_default();
        if what == "s" {
            entry.0.push((time, tick.parse::<f64>()? / TICKS_PER_SECOND));
        } else {
            entry.1 = time;
        }
    }
    let seen = acknowledged.iter().enumerate().map(|(number, acknowledged)| {
        let (starts, ended) = times.get(&number).with_context(|| format!("task {number} never ran"))?;
        let [(started, born)] = starts[..] else { bail!("task {number} started {} times", starts.len()) };
        Ok(Seen { priority: priority(number), acknowledged: *acknowledged, born, started, ended: *ended })
    });
    seen.collect()
}

/// How many started while one of higher priority had been ready for longer than the bound, and a few of them.
fn out_of_order(seen: &[Seen]) -> Disorder {
    let mut order: Vec<usize> = (0..seen.len()).collect();
    order.sort_by(|a, b| seen[*a].started.total_cmp(&seen[*b].started));
    let mut due: Vec<usize> = (0..seen.len()).collect();
    due.sort_by(|a, b| seen[*a].acknowledged.total_cmp(&seen[*b].acknowledged));
    let mut due = due.into_iter().peekable();
    // Ready for longer than the bound and not started, highest first.
    let mut waiting: BTreeSet<(Reverse<i64>, usize)> = BTreeSet::new();
    let mut disorder = Disorder::default();
    for index in order {
        let start = seen[index];
        while let Some(next) = due.next_if(|next| seen[*next].acknowledged + BOUND < start.started) {
            waiting.insert((Reverse(seen[next].priority), next));
        }
        let higher = waiting.iter().take_while(|(Reverse(priority), _)| *priority > start.priority);
        let mut later = higher.filter(|(_, other)| seen[*other].started > start.started + JITTER).peekable();
        let speaks_late = later.peek().is_some();
        if let Some((_, other)) = later.find(|(_, other)| seen[*other].born > start.born) {
            disorder.passed_over += 1;
            if disorder.examples.len() < 5 {
                disorder
                    .examples
                    .push(format!("task {index} {start:?} before task {other} {:?}", seen[*other]));
            }
        } else if speaks_late {
            disorder.spoke_late += 1;
        }
        waiting.remove(&(Reverse(start.priority), index));
    }
    disorder
}

/// How long each start took after it was ready, the first in order, and a slot was free.
fn waits(seen: &[Seen]) -> Vec<f64> {
    let mut order: Vec<Seen> = seen.to_vec();
    order.sort_by(|a, b| a.started.total_cmp(&b.started));
    let mut ends: Vec<f64> = Vec::new();
    let mut waits = Vec::with_capacity(order.len());
    for (place, start) in order.iter().enumerate() {
        // Of those that ran before, the one whose end left a slot: with one less than the slots still running.
        let running: Vec<f64> = ends.iter().copied().filter(|end| *end > start.started).collect();
        let free = if place < WIDTH {
            0.0
        } else {
            let ended = ends.iter().copied().filter(|end| *end <= start.started);
            let mut ended: Vec<f64> = ended.collect();
            ended.sort_by(f64::total_cmp);
            ended.iter().rev().nth(WIDTH - 1 - running.len().min(WIDTH - 1)).copied().unwrap_or(0.0)
        };
        let before = order[..place].iter().rev().take(64).find(|other| other.priority >= start.priority);
        let first = before.map_or(0.0, |other| other.started);
        waits.push((start.started - free.max(first).max(start.acknowledged)).max(0.0));
        ends.push(start.ended);
        if ends.len() > 256 {
            ends.sort_by(f64::total_cmp);
            ends.drain(..128);
        }
    }
    waits
}

fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0.0)
}

fn started(log: &Path) -> anyhow::Result<usize> {
    Ok(fs::read_to_string(log)?.lines().filter(|line| line.starts_with('s')).count())
}

fn ended(log: &Path) -> anyhow::Result<usize> {
    Ok(fs::read_to_string(log)?.lines().filter(|line| line.starts_with('e')).count())
}

fn priority(number: usize) -> i64 {
    i64::try_from(draw(number, 2) % PRIORITIES).unwrap_or(0)
}

/// The same for every run: SplitMix64.
fn draw(number: usize, salt: u64) -> u64 {
    let mut value = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(salt << 32);
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_passed_over_if_its_process_was_made_later_not_if_it_spoke_late() {
        let seen =
            |priority, born, started| Seen { priority, acknowledged: 0.0, born, started, ended: started };
        let found = |high_born| {
            let all = [seen(1, 1.00, 1.001), seen(9, high_born, 1.012), seen(1, 1.02, 1.021)];
            let Disorder { passed_over, spoke_late, .. } = out_of_order(&all);
            (passed_over, spoke_late)
        };
        assert_eq!((found(1.01), found(1.00)), ((1, 0), (0, 1)));
    }
}
