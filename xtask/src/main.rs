//! Development commands of the workspace: `cargo xtask <command>`.
//!
//! Is: the one way to set up, test, check and benchmark the tree. Is not: part of the product; no crate depends on it.
//! Start here: [`dispatch`] lists the commands, one module each.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks on its standard streams"
)]

mod bench;
mod cluster;
mod fuzz;
mod mutants;
mod run;
mod setup;
mod sim;
mod soak;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask <command>

  setup [--allow-missing]      install what the tests and benchmarks need, outside the tree
  test [--only FILTER] [--allow-missing]
                               set up, build and run every test; ends with `N passed, M failed`
                               FILTER is a package, an integration test target, or part of a test name
  tidy                         check the house rules
  bench [NAME] [-- ARGS...]    run a benchmark on the release binary; without NAME, list them
  cluster up|down|status|kubeconfig|image [PROGRAM]
                               a real Kubernetes on this machine, for the tests; `kubeconfig` prints the path of its
                               file, `image` the name of a small image with a shell, or
                               makes one of a program
  sim [--seeds N] [--seed S]   play seeds of the simulation in release mode, or one of them again
  mutants [NAME...] [--seeds N]
                               put mended faults back one by one and say which the simulation finds
  fuzz [TARGET...] [--seconds N] [--jobs N] [--list]
                               run fuzz targets with coverage guidance, all of them or those named; the tests run them
                               without it
  soak [--minutes N] [--store sqlite|postgres] [--seed S] [--history FILE]
                               run the release binary with users, robots and faults for a while, and judge what happened
  help                         show this text

--allow-missing: a tool that cannot be installed is not an error; the tests that need it are skipped and listed.

environment read:
  MUSTER_CACHE                 where tools are kept (default: $XDG_CACHE_HOME/muster, else ~/.cache/muster)
  KUBEBUILDER_ASSETS           directory with programs of Kubernetes and etcd, instead of those that are built
  MUSTER_TEST_KUBECONFIG       a cluster to use instead of starting one; MUSTER_TEST_IMAGE is an image with a shell that it
                               can run, MUSTER_TEST_SERVER_IMAGE one of the server
  MUSTER_KUBECTL, MUSTER_KUBECTL_OLD, MUSTER_PYTHON, MUSTER_KUBE_APISERVER, MUSTER_ETCD, MUSTER_PARALLEL,
  MUSTER_HYPERQUEUE            use this program instead of installing one
environment given to tests and benchmarks: the seven above when found, and MUSTER_BIN
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    dispatch(&arguments).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn dispatch(arguments: &[String]) -> Result<ExitCode> {
    let Some((command, rest)) = arguments.split_first() else {
        eprint!("{USAGE}");
        return Ok(ExitCode::from(2));
    };
    match command.as_str() {
        "setup" => setup::command(rest),
        "test" => test::command(rest),
        "tidy" => tidy::command(rest),
        "bench" => bench::command(rest),
        "cluster" => cluster::command(rest),
        "sim" => sim::command(rest),
        "soak" => soak::command(rest),
        "fuzz" => fuzz::command(rest),
        "mutants" => mutants::command(rest),
        "help" | "-h" | "--help" => {
            print!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        other => bail!("unknown command `{other}`; `cargo xtask help` lists the commands"),
    }
}
