//! Tests run, and wait for conditions instead of sleeping.

use super::modules::is_test_file;
use super::{OWN_RULES, Tree, Violation};

/// The one place that may sleep: between two looks at a condition.
const WAITS: [&str; 1] = ["e2e/src/wait.rs"];
/// Programs that measure, in a crate that otherwise tests.
const MEASURES: [&str; 2] = ["e2e/src/bin/", "e2e/src/bench/"];

/// No test is switched off.
pub fn check_ignored(tree: &Tree) -> Vec<Violation> {
    let advice = "a test that does not run proves nothing; make it run or delete it";
    check_lines(tree, "no-ignored-tests", advice, |path, text| {
        let lines = text.lines().enumerate().filter(|_| !path.starts_with(OWN_RULES));
        lines.filter(|(_, line)| ignores(line.trim_start())).map(|(index, _)| index + 1).collect()
    })
}

/// No test waits for time to pass.
pub fn check_sleeps(tree: &Tree) -> Vec<Violation> {
    let advice = "wait for the condition with a deadline instead (as e2e/src/wait.rs does)";
    check_lines(tree, "no-sleeping-tests", advice, |path, text| {
        let exempt = WAITS.contains(&path) || path.starts_with(OWN_RULES);
        let lines = text.lines().enumerate().filter(|_| !exempt).skip(first_test_line(path, text));
        lines.filter(|(_, line)| sleeps(line.trim_start())).map(|(index, _)| index + 1).collect()
    })
}

fn check_lines(
    tree: &Tree,
    rule: &'static str,
    advice: &str,
    find: impl Fn(&str, &str) -> Vec<usize>,
) -> Vec<Violation> {
    let violation = |path: &str, line| Violation { path: path.into(), line, rule, advice: advice.into() };
    let of_file = |(path, text)| find(path, text).into_iter().map(move |line| violation(path, line));
    tree.rust_files().flat_map(of_file).collect()
}

/// The attribute in any form, and doc tests that are shown but not run.
fn ignores(line: &str) -> bool {
    let attribute =
        line.starts_with("#[ignore") || (line.starts_with("#[cfg_attr(") && line.contains("ignore"));
    let fence = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim_start);
    attribute || fence.is_some_and(|text| text.starts_with("```") && text.contains("ignore"))
}

fn sleeps(line: &str) -> bool {
    if line.starts_with("//") {
        return false;
    }
    let imports = line.starts_with("use ") && (line.contains("time::") || line.contains("thread::"));
    let called = line.match_indices("sleep").any(|(at, word)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        let call =
            after.starts_with('(') || after.starts_with("_until(") || (imports && !after.starts_with('_'));
        // A fake clock's `.sleep(...)` takes no time, and a word in a string is somebody's command.
        call && !before.ends_with(|c: char| c.is_alphanumeric() || "_.\"'".contains(c))
            && !before.ends_with("fn ")
    });
    called || line.contains("thread::sleep") || line.contains("time::sleep")
}

/// Index of the first line that is test code; past the end when there is none.
fn first_test_line(path: &str, text: &str) -> usize {
    if MEASURES.iter().any(|place| path.starts_with(place)) {
        return usize::MAX;
    }
    if path.starts_with("e2e/") || is_test_file(path) {
        return 0;
    }
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let opens = |pair: &[&str]| pair[0].starts_with("#[cfg(test)]") && pair[1].contains("mod ");
    lines.windows(2).position(opens).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ignored(text: &str) -> usize {
        check_ignored(&Tree::of(&[("crates/a/tests/a.rs", text)])).len()
    }

    fn sleeping(path: &str, text: &str) -> Vec<usize> {
        check_sleeps(&Tree::of(&[(path, text)])).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn switched_off_tests_are_found_in_every_form() {
        assert_eq!(ignored("#[test]\n#[ignore]\nfn f() {}\n"), 1);
        assert_eq!(ignored("    #[ignore = \"slow\"]\n"), 1);
        assert_eq!(ignored("#[cfg_attr(not(feature = \"x\"), ignore)]\n"), 1);
        assert_eq!(ignored("/// ```ignore\n/// f();\n/// ```\n"), 1);
        assert_eq!(ignored("/// unknown fields are ignored\nlet ignore = 1;\n"), 0);
    }

    #[test]
    fn sleeps_are_found_in_test_files_and_test_modules() {
        assert_eq!(sleeping("crates/a/tests/a.rs", "a();\nthread::sleep(d);\n"), [2]);
        assert_eq!(sleeping("e2e/src/lib.rs", "tokio::time::sleep(d).await;\n"), [1]);
        assert_eq!(
            sleeping("e2e/tests/a.rs", "use tokio::time::{Duration, sleep};\nsleep(d).await;\n"),
            [1, 2]
        );
        let module = "fn f() { thread::sleep(d) }\n#[cfg(test)]\nmod tests {\n    thread::sleep(d);\n}\n";
        assert_eq!(sleeping("crates/a/src/lib.rs", module), [4], "the product may sleep, its tests not");
    }

    #[test]
    fn waiting_measuring_and_mentioning_are_no_sleeps() {
        assert_eq!(sleeping("e2e/src/wait.rs", "thread::sleep(d);\n"), [0; 0]);
        assert_eq!(sleeping("e2e/src/bin/bench.rs", "thread::sleep(d);\n"), [0; 0]);
        assert_eq!(
            sleeping("e2e/tests/a.rs", "run([\"sleep\", \"60\"]);\n// sleep(1)\nclock.sleep(d);\n"),
            [0; 0]
        );
    }
}
