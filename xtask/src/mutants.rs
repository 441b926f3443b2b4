//! `cargo xtask mutants`: puts faults back one by one, plays seeds of the simulation, and says which the judge finds.
//!
//! A mutant is a patch in `crates/sim/mutants`, applied to a copy of the tree that is built in a directory of its own; or a rule of the
//! queue that the simulation leaves out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use crate::{run, workspace};

const USAGE: &str = "usage: cargo xtask mutants [NAME...] [--seeds N]

  NAME       only these mutants (default: all)
  --seeds N  play at most so many seeds with each (default 5000)";
/// Seeds that are played with each mutant.
const SEEDS: u64 = 5_000;
/// Rules of the queue that can be left out.
const RULES: [&str; 8] =
    ["Order", "Unique", "Dependency", "Escalation", "Isolated", "Capacity", "Preemption", "Rest"];
/// Where patches are.
const PATCHES: &str = "crates/sim/mutants";

/// A fault that is put back.
enum Mutant {
    Rule(&'static str),
    Patch(PathBuf),
}

impl Mutant {
    fn name(&self) -> String {
        match self {
            Self::Rule(rule) => format!("without_{}", rule.to_lowercase()),
            Self::Patch(path) => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        }
    }
}

pub fn command(arguments: &[String]) -> Result<ExitCode> {
    let (names, seeds) = parse(arguments)?;
    let root = workspace::load()?.root;
    let mut mutants: Vec<Mutant> = RULES.into_iter().map(Mutant::Rule).collect();
    let mut patches: Vec<PathBuf> = fs::read_dir(root.join(PATCHES))
        .context("cannot list the mutants")?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|it| it == "patch"))
        .collect();
    patches.sort();
    mutants.extend(patches.into_iter().map(Mutant::Patch));
    mutants.retain(|mutant| names.is_empty() || names.contains(&mutant.name()));
    if mutants.is_empty() {
        bail!("there is no such mutant\n{USAGE}");
    }
    let (mut found, all) = (0, mutants.len());
    for mutant in mutants {
        let name = mutant.name();
        let outcome = match &mutant {
            Mutant::Rule(rule) => play(&root, &root.join("target"), &["--without", rule], seeds),
            Mutant::Patch(patch) => play_patched(&root, patch, seeds),
        };
        match outcome? {
            Some(words) => {
                found += 1;
                println!("found      {name}: {words}");
            }
            None => println!("not found  {name}: {seeds} seeds kept every promise"),
        }
    }
    println!("{found} of {all} mutants were found");
    Ok(if found == all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn parse(arguments: &[String]) -> Result<(Vec<String>, u64)> {
    let (mut names, mut seeds) = (Vec::new(), SEEDS);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--seeds" => {
                let value = rest.next().with_context(|| format!("--seeds needs a number\n{USAGE}"))?;
                seeds = value.parse().with_context(|| format!("`{value}` is not a number\n{USAGE}"))?;
            }
            flag if flag.starts_with('-') => bail!("{USAGE}"),
            name => names.push(name.to_owned()),
        }
    }
    Ok((names, seeds))
}

/// Plays seeds with a patch, in a copy of the tree. The copy and what is built from it stay, for the next mutant.
fn play_patched(root: &Path, patch: &Path, seeds: u64) -> Result<Option<String>> {
    let place = root.join("target/mutants");
    let tree = place.join("tree");
    fs::create_dir_all(&tree)?;
    copy_tracked(root, &tree)?;
    let applied = Command::new("git")
        .args(["apply", "--unsafe-paths", "--directory"])
        .arg(&tree)
        .arg(patch)
        .current_dir("/")
        .status()
        .context("cannot start git")?;
    if !applied.success() {
        bail!("{} does not apply any more: write it anew", patch.display());
    }
    play(&tree, &place.join("build"), &[], seeds)
}

/// Copies every file that git knows, if it differs: what did not change is not built again.
fn copy_tracked(root: &Path, tree: &Path) -> Result<()> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output()?;
    let listed = String::from_utf8(listed.stdout).context("git lists names that are no text")?;
    for name in listed.split('\0').filter(|name| !name.is_empty()) {
        let Ok(wanted) = fs::read(root.join(name)) else { continue };
        let copy = tree.join(name);
        if fs::read(&copy).is_ok_and(|there| there == wanted) {
            continue;
        }
        if let Some(parent) = copy.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&copy, wanted).with_context(|| format!("cannot write {}", copy.display()))?;
    }
    Ok(())
}

/// Plays seeds; what was found first, if anything was.
fn play(tree: &Path, target: &Path, more: &[&str], seeds: u64) -> Result<Option<String>> {
    let mut sim = run::cargo(tree);
    // Most mutants are found within some hundred seeds: to optimize each of them takes longer than that saves.
    sim.args(["run", "--quiet", "-p", "muster-sim", "--bin", "sim", "--"])
        .args(["--seeds", &seeds.to_string()])
        .args(more)
        .env("CARGO_TARGET_DIR", target);
    let output = sim.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    let words = String::from_utf8_lossy(&output.stdout);
    match output.status.code() {
        Some(0) => Ok(None),
        Some(1) => Ok(words.lines().next().map(str::to_owned)),
        _ => bail!("the simulation could not be played: {words}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(Vec<String>, u64)> {
        parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn all_mutants_are_played_unless_some_are_named() {
        assert_eq!(parsed("").unwrap(), (vec![], SEEDS));
        assert_eq!(parsed("a b --seeds 7").unwrap(), (vec!["a".to_owned(), "b".to_owned()], 7));
        assert!(parsed("--frob").is_err());
    }
}
