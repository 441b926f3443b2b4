//! Plays seeds of the simulation, many or one: `cargo xtask sim --seeds N [--seed S]`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people talks on its streams")]

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, bail};
use muster_sim::judge::history::to_lines;
use muster_sim::world::{Played, Rule, record, simulate};

/// Most of a seed is small objects.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str =
    "usage: cargo xtask sim [--seeds N] [--from S] [--seed S] [--without RULE] [--history FILE]

  --seeds N  play so many seeds (default 10000)
  --from S   begin with this one (default 0)
  --seed S   play one seed and show what happened in it
  --without RULE   leave out a rule of the queue, such as Order or Unique, to see that it is noticed
  --history FILE   write the history of the one seed, a line of JSON per entry";
const SEEDS: u64 = 10_000;
/// Seeds between two lines of progress where nobody watches.
const SELDOM: u64 = 1_000;
/// The same on a terminal.
const OFTEN: u64 = 25;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether every seed kept every promise.
fn run(arguments: &[String]) -> anyhow::Result<bool> {
    let Some(wanted) = Wanted::parse(arguments)? else {
        println!("{USAGE}");
        return Ok(true);
    };
    let started = Instant::now();
    if let (Some(file), Seeds::One(seed)) = (&wanted.history, &wanted.seeds) {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let history = runtime.block_on(record(*seed, wanted.without)).map_err(anyhow::Error::msg)?;
        std::fs::write(file, to_lines(&history)?).with_context(|| format!("cannot write {file}"))?;
    }
    let played = match wanted.seeds {
        Seeds::One(seed) => play(seed, wanted.without).map(|played| vec![(seed, played)]),
        Seeds::Many { from, count } => play_many(from, count, wanted.without),
    };
    match played {
        Ok(all) => {
            let sum = |what: fn(&Played) -> u32| all.iter().map(|(_, played)| u64::from(what(played))).sum();
            let (tasks, faults): (u64, u64) = (sum(|played| played.tasks), sum(|played| played.faults));
            let (attempts, preempted): (u64, u64) =
                (sum(|played| played.attempts), sum(|played| played.preempted));
            let entries: u64 = sum(|played| played.entries);
            println!(
                "{} seed(s) kept every promise: {tasks} tasks, {attempts} attempts, {preempted} preempted, {faults} faults, \
                 {entries} entries judged, in {:.1} s",
                all.len(),
                started.elapsed().as_secs_f64()
            );
            Ok(true)
        }
        Err(wrong) => {
            println!("{wrong}");
            Ok(false)
        }
    }
}

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    seeds: Seeds,
    without: Option<Rule>,
    history: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Seeds {
    One(u64),
    Many { from: u64, count: u64 },
}

impl Wanted {
    /// `None` if help was asked for.
    fn parse(arguments: &[String]) -> anyhow::Result<Option<Self>> {
        let (mut from, mut count, mut one) = (0, SEEDS, None);
        let (mut without, mut history) = (None, None);
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            if matches!(flag.as_str(), "-h" | "--help" | "help") {
                return Ok(None);
            }
            let value = rest.next().with_context(|| format!("{flag} needs a value\n{USAGE}"))?;
            let number = || value.parse().with_context(|| format!("`{value}` is not a number\n{USAGE}"));
            match flag.as_str() {
                "--seeds" => count = number()?,
                "--from" => from = number()?,
                "--seed" => one = Some(number()?),
                "--without" => {
                    let rule = Rule::ALL.into_iter().find(|rule| format!("{rule:?}") == *value);
                    without = Some(rule.with_context(|| format!("there is no rule `{value}`\n{USAGE}"))?);
                }
                "--history" => history = Some(value.clone()),
                other => bail!("there is no flag `{other}`\n{USAGE}"),
            }
        }
        let seeds = one.map_or(Seeds::Many { from, count }, Seeds::One);
        Ok(Some(Self { seeds, without, history }))
    }
}

/// Plays a seed; says how to play it again if something was wrong.
fn play(seed: u64, without: Option<Rule>) -> Result<Played, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|error| error.to_string())?;
    let again = |wrong| format!("seed {seed}: {wrong}\nplay it again with: cargo xtask sim --seed {seed}");
    runtime.block_on(simulate(seed, without)).map_err(again)
}

/// Plays many on all cores until one goes wrong.
fn play_many(from: u64, count: u64, without: Option<Rule>) -> Result<Vec<(u64, Played)>, String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
    let done = Mutex::new(Vec::new());
    let terminal = std::io::stderr().is_terminal();
    let work = || {
        while !failed.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            let seed = from + number;
            let played = play(seed, without).map_err(|wrong| {
                failed.store(true, Ordering::Relaxed);
                format!("after {} seeds, {wrong}", number + 1)
            })?;
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push((seed, played));
            show_progress(done.len() as u64, count, terminal);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let ended = workers.into_iter().map(|worker| worker.join().unwrap_or(Err("a seed panicked".into())));
        ended.collect::<Result<(), String>>()
    })?;
    Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn show_progress(done: u64, count: u64, terminal: bool) {
    if terminal && (done.is_multiple_of(OFTEN) || done == count) {
        eprint!("\r{done} of {count} seeds{}", if done == count { "\n" } else { "" });
    } else if !terminal && done.is_multiple_of(SELDOM) {
        eprintln!("{done} of {count} seeds");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> anyhow::Result<Option<Wanted>> {
        Wanted::parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn many_seeds_are_played_unless_one_is_named() {
        let seeds = |line: &str| parsed(line).unwrap().unwrap().seeds;
        assert_eq!(seeds(""), Seeds::Many { from: 0, count: SEEDS });
        assert_eq!(seeds("--seeds 7 --from 3"), Seeds::Many { from: 3, count: 7 });
        assert_eq!(seeds("--seeds 7 --seed 5"), Seeds::One(5));
        assert_eq!(parsed("--help").unwrap(), None);
        assert_eq!(parsed("--without Unique").unwrap().unwrap().without, Some(Rule::Unique));
    }

    #[test]
    fn flags_that_make_no_sense_are_refused_with_the_usage() {
        for line in ["--seeds", "--seeds x", "--frob 3", "--without Sense"] {
            let error = format!("{:#}", parsed(line).unwrap_err());
            assert!(error.contains("usage: cargo xtask sim"), "{line}: {error}");
        }
    }

    #[test]
    fn each_seed_is_played_once() {
        let mut seeds: Vec<u64> = play_many(10, 4, None).unwrap().into_iter().map(|(seed, _)| seed).collect();
        seeds.sort_unstable();
        assert_eq!(seeds, [10, 11, 12, 13]);
    }
}
