//! Rules on Rust files as such: they say what they are for, are named for it, and stay short.

use std::path::Path;

use super::{Tree, Violation};

const BANNED_NAMES: [&str; 7] = ["util", "utils", "common", "helpers", "misc", "manager", "base"];
/// Longer files are worth a look, not an error.
const LONG: usize = 400;

/// Every file outside of tests begins with its purpose.
pub fn check_docs(tree: &Tree) -> Vec<Violation> {
    let without = tree.rust_files().filter(|(path, text)| !is_test_file(path) && !text.starts_with("//!"));
    let violation = |(path, _): (&str, &str)| Violation {
        path: path.into(),
        line: 1,
        rule: "module-docs",
        advice: "begin the file with `//!` docs: what it is for, what it never does".into(),
    };
    without.map(violation).collect()
}

/// No file or directory has a name that invites everything.
pub fn check_names(tree: &Tree) -> Vec<Violation> {
    let violation = |(path, _): (&str, &str)| {
        let banned = path.split('/').find(|part| {
            let stem = Path::new(part).file_stem().and_then(|stem| stem.to_str());
            stem.is_some_and(|stem| BANNED_NAMES.contains(&stem))
        })?;
        let advice = format!("`{banned}` says nothing; name it after its main type or verb");
        Some(Violation { path: path.into(), line: 1, rule: "file-name", advice })
    };
    tree.code_files().filter_map(violation).collect()
}

/// Files long enough to hold two subjects; a warning.
pub fn check_length(tree: &Tree) -> Vec<Violation> {
    let violation = |(path, text): (&str, &str)| {
        let lines = text.lines().count();
        let advice = format!("{lines} lines; split it when it holds two subjects");
        (lines > LONG).then(|| Violation { path: path.into(), line: lines, rule: "file-length", advice })
    };
    tree.rust_files().filter_map(violation).collect()
}

/// Files that are nothing but tests.
pub fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.split('/').any(|part| part == "tests")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(violations: &[Violation]) -> Vec<&str> {
        violations.iter().map(|violation| violation.path.as_str()).collect()
    }

    #[test]
    fn files_without_module_docs_are_found_outside_of_tests() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "//! Docs.\n"),
            ("crates/a/src/bare.rs", "fn f() {}\n//! too late\n"),
            ("crates/a/src/empty.rs", ""),
            ("crates/a/tests/bare.rs", "fn f() {}\n"),
            ("crates/a/src/plan/tests.rs", "fn f() {}\n"),
            ("docs/sample.rs", "fn f() {}\n"),
        ]);
        assert_eq!(paths(&check_docs(&tree)), ["crates/a/src/bare.rs", "crates/a/src/empty.rs"]);
    }

    #[test]
    fn names_that_say_nothing_are_found_in_files_and_directories() {
        let tree = Tree::of(&[
            ("crates/a/src/utils.rs", ""),
            ("crates/a/tests/common/mod.rs", ""),
            ("bins/muster/src/base.rs", ""),
            ("crates/a/src/database.rs", ""),
            ("docs/misc.md", ""),
        ]);
        let expected = ["bins/muster/src/base.rs", "crates/a/src/utils.rs", "crates/a/tests/common/mod.rs"];
        assert_eq!(paths(&check_names(&tree)), expected);
    }

    #[test]
    fn only_files_over_the_limit_are_long() {
        let (fits, long) = ("x\n".repeat(LONG), "x\n".repeat(LONG + 1));
        let tree = Tree::of(&[("crates/a/src/fits.rs", &fits), ("crates/a/src/long.rs", &long)]);
        assert_eq!(paths(&check_length(&tree)), ["crates/a/src/long.rs"]);
    }
}
