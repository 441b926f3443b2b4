//! `cargo xtask test`: set up, build once, run everything, and end with one table and one verdict.
//!
//! The last line printed is always `N passed, M failed` (with `, K skipped` when tests did not run), whatever went
//! wrong before it: a build that fails is a failure too.

mod report;
mod select;
mod stream;

use std::io;
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::setup::{self, Need, Toolbox};
use crate::workspace::Workspace;
use crate::{cluster, run, workspace};
use report::Report;
use select::{Selection, choose_selection};

#[derive(Debug, Default, PartialEq)]
struct Options {
    only: Option<String>,
    allow_missing: bool,
}

pub fn command(arguments: &[String]) -> Result<ExitCode> {
    let options = parse(arguments)?;
    let workspace = workspace::load()?;
    let selection = choose_selection(options.only.as_deref(), &workspace.packages);
    let mut toolbox = if selection.drives_tools() { setup::prepare_tests()? } else { Toolbox::default() };
    let used = selection.drives_cluster().then(cluster::Use::begin).transpose()?;
    if used.is_some() {
        toolbox.add_cluster()?;
    }
    toolbox.print_missing();

    let mut report = Report::default();
    if build(&workspace, &selection, &mut report) {
        if used.is_some() {
            toolbox.add_server_image(&workspace.target_dir.join("debug/muster"));
        }
        test(&workspace, &selection, &toolbox, &options, &mut report)?;
    }
    if let Some(used) = used {
        cluster::end_unless_wanted(used)?;
    }
    for missing in &toolbox.missing {
        report.note_not_run(missing.tool.name, &missing.why);
    }
    // A partial run is no verdict on what it leaves out: there a test that lacks its tool fails by itself.
    let incomplete = !toolbox.missing.is_empty() && options.only.is_none() && !options.allow_missing;
    if incomplete {
        report.note_advice("some tests had no tool to drive; --allow-missing accepts that");
    }
    print!("{}", report.render());
    Ok(if report.has_failed() || incomplete { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match (argument.as_str(), argument.strip_prefix("--only=")) {
            ("--allow-missing", _) => options.allow_missing = true,
            ("--only", _) => match rest.next() {
                Some(filter) => options.only = Some(filter.clone()),
                None => bail!("--only needs a package, a test target, or part of a test name"),
            },
            (_, Some(filter)) => options.only = Some(filter.into()),
            (other, None) => bail!("unexpected `{other}`; test takes --only FILTER and --allow-missing"),
        }
    }
    Ok(options)
}

/// Builds with the output in the open, so that a terminal shows cargo's progress.
fn build(workspace: &Workspace, selection: &Selection, report: &mut Report) -> bool {
    for arguments in selection.builds() {
        let line = format!("cargo {}", arguments.join(" "));
        println!("==> {line}");
        if run::openly(run::cargo(&workspace.root).args(&arguments)).is_err() {
            report.note_failure(&format!("`{line}` failed; no test ran"));
            return false;
        }
    }
    true
}

fn test(
    workspace: &Workspace,
    selection: &Selection,
    toolbox: &Toolbox,
    options: &Options,
    report: &mut Report,
) -> Result<()> {
    let skipped = if options.allow_missing { words_to_skip(toolbox) } else { Vec::new() };
    report.count_filtered_as_skipped = !skipped.is_empty() && selection.harness_filter().is_none();
    for arguments in selection.tests() {
        println!("==> cargo {}", arguments.join(" "));
        let mut cargo = run::cargo(&workspace.root);
        cargo.args(&arguments).arg("--").args(selection.harness_filter());
        for word in &skipped {
            cargo.args(["--skip", word]);
        }
        give_environment(&mut cargo, workspace, toolbox);
        let before = report.failed();
        let ended = stream::follow(&mut cargo, &mut io::stdout(), |line| report.observe_line(line))?;
        report.end_run();
        if ended.left_behind {
            report.note_advice("a test left a process behind that still holds its output");
        }
        if !ended.success && report.failed() == before {
            report.note_failure(&format!("`cargo {}` failed without a failing test", arguments.join(" ")));
        }
    }
    if report.ran() == 0 && report.failed() == 0 {
        report.note_failure(
            "no test ran; does --only name a package, a test target or a part of a test's name?",
        );
    }
    Ok(())
}

fn give_environment(cargo: &mut Command, workspace: &Workspace, toolbox: &Toolbox) {
    cargo.env("MUSTER_BIN", workspace.target_dir.join("debug/muster"));
    cargo.env("INSTA_UPDATE", "no");
    toolbox.give_to(cargo);
}

fn words_to_skip(toolbox: &Toolbox) -> Vec<&'static str> {
    let words = toolbox.missing.iter().filter_map(|missing| match missing.tool.need {
        Need::Tests { word } => Some(word),
        Need::Benchmarks | Need::Soaks => None,
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options> {
        parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read_in_any_order() {
        let both = Options { only: Some("types".into()), allow_missing: true };
        assert_eq!(parsed("--only types --allow-missing").unwrap(), both);
        assert_eq!(parsed("--allow-missing --only=types").unwrap(), both);
        assert_eq!(parsed("").unwrap(), Options::default());
    }

    #[test]
    fn unknown_and_incomplete_options_are_refused() {
        assert!(parsed("types").is_err());
        assert!(parsed("--only").is_err());
    }
}
