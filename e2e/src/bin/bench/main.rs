//! Benchmarks: peers and physical limits in the same run, reported as ratios.
//!
//! `cargo xtask bench NAME` builds everything and calls this with the servers' paths in the environment.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark reports on its streams")]

mod backlog;
mod clients;
mod dag;
mod fan_out;
mod fleet;
mod hostile;
mod kube_peer;
mod limits;
mod mixed;
mod muster_peer;
mod planner;
mod plot;
mod pods;
mod postgres;
mod process;
mod relay;
mod report;
mod resources;
mod resources_server;
mod schedules;
mod stand_in;
mod submit;
mod tasks;
mod ui;

use std::process::ExitCode;

const USAGE: &str = "usage: bench NAME [--quick] [--no-write]

  submit   durable creates, lists, watch fan-out, memory and start-up of the API server
  tasks    10 000 tasks of `true`, beside the bare limit, GNU parallel and HyperQueue
  mixed    short and long tasks of random priorities: whether they start in order, and how soon
  dag      a fan-out of 10 000 and a chain of 1 000, beside HyperQueue
  schedules  100 000 schedules, 20 000 of them due in the same second
  pods     2 000 tasks as pods of a real API server, beside the cluster's own Job controller
  resources  reports, conditions, expressions and the sentinel of managed resources
  fleet    10 000 robots over MQTT, by the embedded broker and by Mosquitto (--robots N, --rate N, --seconds N)
  hostile  one client beside 10 000 watches, slow clients and uploads, costly expressions and wrong tokens
  relay    messages to RabbitMQ from committed changes, beside a bare publisher
  ui       200 open consoles at 500 tasks a second, and how long pages take with 100 000 tasks
  postgres  creates, tasks and fail-over with PostgreSQL, beside SQLite, Graphile Worker and procrastinate
  backlog  what a queue of up to a million tasks costs
  plan     the pure planner alone: placements per second
  creates  only the creates of one client count (--clients N, --count N), for a profiler

  --quick     fewer objects: a look, not a result
  --no-write  do not write docs/benchmarks.md";

/// What a build has left to be written is not part of a measurement: waits until it is on the disk.
fn flush_disk() {
    if let Err(error) = std::process::Command::new("sync").status() {
        eprintln!("cannot run sync: {error}; earlier writes may disturb the measurement");
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let number = |flag: &str, default: usize| {
        let at = arguments.iter().position(|argument| argument == flag);
        at.and_then(|at| arguments.get(at + 1)).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let name = arguments.first().map(String::as_str);
    if !matches!(name, Some(fleet::RAW_BROKER | limits::ECHO_SERVER)) {
        flush_disk();
    }
    let outcome = match name {
        Some("submit") => submit::run(has("--quick"), !has("--no-write")),
        Some("tasks") => tasks::run(has("--quick"), !has("--no-write")),
        Some("mixed") => mixed::run(has("--quick"), !has("--no-write")),
        Some("dag") => dag::run(has("--quick"), !has("--no-write")),
        Some("schedules") => schedules::run(has("--quick"), !has("--no-write")),
        Some("pods") => pods::run(has("--quick"), !has("--no-write")),
        Some("resources") => resources::run(has("--quick"), !has("--no-write")),
        Some("hostile") => hostile::run(has("--quick"), !has("--no-write")),
        Some("relay") => relay::run(has("--quick"), !has("--no-write")),
        Some("ui") => ui::run(has("--quick"), !has("--no-write")),
        Some("postgres") => postgres::run(has("--quick"), !has("--no-write")),
        Some("backlog") => backlog::run(has("--quick"), !has("--no-write")),
        Some("plan") => planner::run(!has("--no-write")),
        Some("fleet") => {
            let usual = fleet::Size::new(has("--quick"));
            let size = fleet::Size {
                robots: number("--robots", usual.robots),
                rate: number("--rate", usual.rate),
                seconds: number("--seconds", usual.seconds),
                raw: usual.raw,
            };
            fleet::run(size, !has("--no-write"))
        }
        Some("creates") => submit::run_creates(number("--clients", 64), number("--count", 100_000)),
        Some(fleet::RAW_BROKER) => fleet::raw_broker(),
        Some(limits::ECHO_SERVER) => limits::echo_server(),
        None | Some("--help" | "help") => {
            println!("{USAGE}");
            Ok(())
        }
        Some(other) => Err(anyhow::anyhow!("there is no benchmark \"{other}\"\n{USAGE}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
