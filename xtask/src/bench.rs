//! `cargo xtask bench`: the release binaries and the benchmark program, built and put together.
//!
//! The list of benchmarks and what they measure belong to the program itself (package `muster-e2e`, binary `bench`).
//! The server is built alone, with exactly the features it ships with, and so is the agent.

use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use crate::{run, setup, workspace};

/// The benchmark that needs a real Kubernetes.
const NEEDS_CLUSTER: &str = "pods";

pub fn command(arguments: &[String]) -> Result<ExitCode> {
    let passed_on = parse(arguments)?;
    let workspace = workspace::load()?;
    let mut toolbox = setup::prepare_all()?;
    if passed_on.first().is_some_and(|name| *name == NEEDS_CLUSTER) {
        toolbox.add_cluster()?;
    }
    toolbox.print_missing();

    println!("==> building the release binaries");
    for package in ["muster", "muster-agent"] {
        run::openly(run::cargo(&workspace.root).args(["build", "--release", "-p", package]))?;
    }
    println!("==> building and starting the benchmark program");
    let mut bench = run::cargo(&workspace.root);
    bench.args(["run", "--release", "-p", "muster-e2e", "--bin", "bench", "--"]).args(passed_on);
    bench.env("MUSTER_BIN", workspace.target_dir.join("release/muster"));
    toolbox.give_to(&mut bench);
    let status = bench.stdin(Stdio::null()).status().context("cannot start cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// `[NAME] [-- ARGS...]` without the separator, which is ours and not the benchmark's.
fn parse(arguments: &[String]) -> Result<Vec<&String>> {
    let (name, rest) = match arguments.split_first() {
        Some((first, rest)) if !first.starts_with('-') => (Some(first), rest),
        _ => (None, arguments),
    };
    let extra = match rest.split_first() {
        None => rest,
        Some((separator, extra)) if separator == "--" => extra,
        Some((other, _)) => bail!("unexpected `{other}`; arguments for a benchmark come after `--`"),
    };
    Ok(name.into_iter().chain(extra).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<String> {
        let arguments: Vec<String> = line.split_whitespace().map(String::from).collect();
        Ok(parse(&arguments)?.into_iter().cloned().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn name_and_arguments_reach_the_benchmark_without_the_separator() {
        assert_eq!(parsed("").unwrap(), "");
        assert_eq!(parsed("writes").unwrap(), "writes");
        assert_eq!(parsed("writes -- --clients 8").unwrap(), "writes --clients 8");
        assert_eq!(parsed("-- --help").unwrap(), "--help");
    }

    #[test]
    fn arguments_before_the_separator_are_refused() {
        assert!(parsed("writes --clients 8").is_err());
        assert!(parsed("--clients").is_err());
    }
}
