//! `cargo xtask tidy`: the house rules, checked. Also a test, so that `cargo test` runs it.
//!
//! Each rule is a pure function from the [`Tree`] (or the packages) to violations, with tests that show it failing.
//! Rules look at the files git tracks or would track, so build output and ignored files are nobody's business.

mod documents;
mod edges;
mod leftovers;
mod modules;
mod testing;
mod tree;

use std::fmt;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::workspace::{self, Workspace};
use tree::Tree;

/// Where the rules and their deliberately bad examples live; rules that look at text leave it alone.
const OWN_RULES: &str = "xtask/src/tidy";

/// One place that breaks one rule.
#[derive(Clone, Debug, PartialEq, PartialOrd, Eq, Ord)]
pub struct Violation {
    path: String,
    line: usize,
    rule: &'static str,
    advice: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.advice)
    }
}

/// What the rules say of the tree.
#[derive(Debug, Default)]
struct Findings {
    violations: Vec<Violation>,
    warnings: Vec<Violation>,
}

pub fn command(arguments: &[String]) -> Result<ExitCode> {
    if let Some(argument) = arguments.first() {
        bail!("unexpected `{argument}`; tidy takes no arguments");
    }
    let workspace = workspace::load()?;
    let tree = Tree::read(&workspace.root)?;
    let findings = check(&tree, &workspace);
    for warning in &findings.warnings {
        println!("warning: {warning}");
    }
    for violation in &findings.violations {
        println!("{violation}");
    }
    let (files, count) = (tree.len(), findings.violations.len());
    println!("tidy: {files} files, {count} violations, {} warnings", findings.warnings.len());
    Ok(if count == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn check(tree: &Tree, workspace: &Workspace) -> Findings {
    let mut findings = Findings::default();
    findings.violations.extend(edges::check(&workspace.packages, tree));
    findings.violations.extend(modules::check_docs(tree));
    findings.violations.extend(modules::check_names(tree));
    findings.violations.extend(documents::check_paths(tree));
    findings.violations.extend(leftovers::check(tree));
    findings.violations.extend(testing::check_ignored(tree));
    findings.violations.extend(testing::check_sleeps(tree));
    findings.violations.sort();
    findings.warnings.extend(modules::check_length(tree));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_obeys_the_house_rules() {
        let workspace = workspace::load().unwrap();
        let tree = Tree::read(&workspace.root).unwrap();
        let said: Vec<String> = check(&tree, &workspace).violations.iter().map(ToString::to_string).collect();
        assert!(said.is_empty(), "{} violations:\n{}", said.len(), said.join("\n"));
    }

    #[test]
    fn every_rule_is_applied() {
        let tree = Tree::of(&[
            ("crates/a/src/util.rs", "fn no_docs() {}\n// TODO: later\n"),
            ("crates/a/tests/b.rs", "#[ignore]\nfn f() { std::thread::sleep(d) }\n"),
            ("README.md", "see `crates/gone`\n"),
        ]);
        let package = workspace::Package { name: "a".into(), dir: "crates/a".into(), ..Default::default() };
        let workspace = Workspace { root: "/".into(), target_dir: "/".into(), packages: vec![package] };
        let findings = check(&tree, &workspace);
        let mut rules: Vec<_> = findings.violations.iter().map(|violation| violation.rule).collect();
        rules.sort_unstable();
        let expected = [
            "dependency-edge",
            "document-path",
            "file-name",
            "leftover",
            "module-docs",
            "no-ignored-tests",
            "no-sleeping-tests",
        ];
        assert_eq!(rules, expected);
    }

    #[test]
    fn a_violation_is_printed_as_place_rule_advice() {
        let violation =
            Violation { path: "a.rs".into(), line: 3, rule: "leftover", advice: "finish it".into() };
        assert_eq!(violation.to_string(), "a.rs:3: leftover: finish it");
    }
}
