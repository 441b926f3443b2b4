//! A soak: real servers, programs and robots for a while, with users and faults, and the judge of the simulation over what happened.
//! `cargo xtask soak` builds everything and calls this.
//!
//! Start here: [`soak::run`] is one soak from its begin to its end; [`merge`] says how its history is put in order.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people talks on its streams")]

mod args;
mod census;
mod faults;
mod merge;
mod program;
mod recorder;
mod report;
mod robots;
mod servers;
mod sink;
mod small_disk;
mod soak;
mod specs;
mod store_probe;
mod users;
mod wall_clock;
mod watches;

use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use muster_sim::judge::history::{of_lines, to_lines};

use args::{StoreKind, USAGE, Wanted};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((first, rest)) if first == program::WORD => program::run(rest),
        _ => run(&arguments),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}

fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let Some(wanted) = Wanted::parse(arguments, seed)? else {
        println!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    };
    let code = |is_kept: bool| if is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if let Some(file) = &wanted.judge {
        let lines =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        return Ok(code(report::print_verdict(&of_lines(&lines)?)));
    }
    if wanted.store == StoreKind::Sqlite && !wanted.is_calm {
        small_disk::enter()?;
    }
    let began = Instant::now();
    let soaked = soak::run(&wanted)?;
    if let Some(file) = &wanted.history {
        let written = std::fs::write(file, to_lines(&soaked.history)?);
        written.with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(code(report::print(&wanted, &soaked, began.elapsed())))
}
