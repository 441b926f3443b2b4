//! Folds the output of `cargo test` into one table and one verdict.
//!
//! Pure: lines in, text out. Counts what the test binaries themselves declare. A binary that starts and never declares
//! a result (it crashed, or has a harness of its own) counts as one failure, never as nothing.

/// One test binary, or the doc tests of one crate.
#[derive(Debug, Default, PartialEq)]
struct Section {
    label: String,
    passed: u32,
    failed: u32,
    ignored: u32,
    filtered: u32,
    seconds: f64,
    declared: bool,
}

/// All that was seen, and notes on what was not.
#[derive(Debug, Default)]
pub struct Report {
    sections: Vec<Section>,
    failed_tests: Vec<String>,
    /// Failures that are not tests, such as a build.
    failures: Vec<String>,
    not_run: Vec<String>,
    advice: Vec<String>,
    /// Set when filtered tests are those that lack a tool, rather than those nobody asked for.
    pub count_filtered_as_skipped: bool,
}

impl Report {
    pub fn observe_line(&mut self, line: &str) {
        if let Some(label) = section_label(line) {
            self.end_run();
            self.sections.push(Section { label, ..Section::default() });
        } else if let Some(result) = line.strip_prefix("test result: ") {
            if let Some(section) = self.sections.last_mut() {
                section.add_result(result);
            }
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            let label = self.sections.last().map_or("", |section| &section.label);
            self.failed_tests.push(format!("{label}: {name}"));
        }
    }

    /// The binaries seen so far have ended: one that declared no result has failed.
    pub fn end_run(&mut self) {
        if let Some(section) = self.sections.last_mut().filter(|section| !section.declared) {
            section.declared = true;
            section.failed += 1;
            self.failed_tests.push(format!("{}: ended without a result", section.label));
        }
    }

    pub fn note_failure(&mut self, what: &str) {
        self.failures.push(what.into());
    }

    /// Tests lacked a tool; of the reason, which was shown when it happened, the first line is repeated.
    pub fn note_not_run(&mut self, tool: &str, why: &str) {
        self.not_run.push(format!("tests with {tool}: {}", why.lines().next().unwrap_or_default()));
    }

    pub fn note_advice(&mut self, what: &str) {
        self.advice.push(what.into());
    }

    pub fn passed(&self) -> u32 {
        self.sections.iter().map(|section| section.passed).sum()
    }

    pub fn failed(&self) -> u32 {
        let tests: u32 = self.sections.iter().map(|section| section.failed).sum();
        tests + u32::try_from(self.failures.len()).unwrap_or(u32::MAX)
    }

    pub fn ran(&self) -> u32 {
        self.sections.iter().map(|section| section.passed + section.failed).sum()
    }

    pub fn has_failed(&self) -> bool {
        self.failed() > 0
    }

    fn skipped(&self) -> u32 {
        self.sections.iter().map(|section| self.skipped_in(section)).sum()
    }

    fn skipped_in(&self, section: &Section) -> u32 {
        section.ignored + if self.count_filtered_as_skipped { section.filtered } else { 0 }
    }

    /// The table, what failed, what did not run, and the verdict alone on the last line.
    pub fn render(&self) -> String {
        let shown = |section: &&Section| section.passed + section.failed + self.skipped_in(section) > 0;
        let width =
            self.sections.iter().filter(shown).map(|section| section.label.len()).max().unwrap_or(0).max(11);
        let row = |label: &str, passed, failed, skipped, seconds: f64| {
            format!("{label:<width$} {passed:>7} {failed:>7} {skipped:>8} {seconds:>8.2}s")
        };
        let mut lines = vec![String::new()];
        lines.push(format!(
            "{:<width$} {:>7} {:>7} {:>8} {:>9}",
            "test binary", "passed", "failed", "skipped", "time"
        ));
        for section in self.sections.iter().filter(shown) {
            lines.push(row(
                &section.label,
                section.passed,
                section.failed,
                self.skipped_in(section),
                section.seconds,
            ));
        }
        let seconds = self.sections.iter().fold(0.0, |sum, section| sum + section.seconds);
        lines.push(row("total", self.passed(), self.failed(), self.skipped(), seconds));

        for (title, notes) in [
            ("FAILED", &self.failed_tests),
            ("FAILED", &self.failures),
            ("NOT RUN", &self.not_run),
            ("note", &self.advice),
        ] {
            lines.extend(notes.iter().map(|note| format!("{title}: {note}")));
        }
        let skipped = match self.skipped() {
            0 => String::new(),
            skipped => format!(", {skipped} skipped"),
        };
        lines.push(format!("{} passed, {} failed{skipped}\n", self.passed(), self.failed()));
        lines.join("\n")
    }
}

impl Section {
    /// Adds `ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.04s`.
    ///
    /// Doc tests declare several results in one section.
    fn add_result(&mut self, result: &str) {
        self.declared = true;
        for part in result.split(['.', ';']).map(str::trim) {
            let mut words = part.split(' ');
            let (Some(Ok(count)), Some(what)) = (words.next().map(str::parse::<u32>), words.next()) else {
                continue;
            };
            match what {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                "filtered" => self.filtered += count,
                _ => {}
            }
        }
        let seconds =
            result.rsplit_once("finished in ").and_then(|(_, time)| time.trim_end_matches('s').parse().ok());
        self.seconds += seconds.unwrap_or(0.0);
    }
}

/// `     Running tests/watch.rs (target/debug/deps/watch-0123)` or `   Doc-tests muster_types`, as a short name.
fn section_label(line: &str) -> Option<String> {
    let line = line.strip_prefix("   ")?.trim_start();
    if let Some(krate) = line.strip_prefix("Doc-tests ") {
        return Some(format!("{krate} (doc tests)"));
    }
    let (source, binary) = line.strip_prefix("Running ")?.strip_suffix(')')?.split_once(" (")?;
    let file = binary.rsplit('/').next()?;
    let name = file.rsplit_once('-').map_or(file, |(name, _)| name);
    Some(format!("{name} ({})", source.trim_start_matches("unittests ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
    Finished `test` profile [unoptimized + debuginfo] target(s) in 0.05s
     Running unittests src/lib.rs (target/debug/deps/muster_types-0a1b)

running 3 tests
test quantity::rounds_up ... ok
test quantity::keeps_sign ... FAILED
test quantity::slow ... ignored

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.25s

     Running tests/watch.rs (target/debug/deps/watch-2c3d)

running 2 tests
test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 4 filtered out; finished in 0.50s

   Doc-tests muster_types
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.25s
";

    fn observed(output: &str) -> Report {
        let mut report = Report::default();
        output.lines().for_each(|line| report.observe_line(line));
        report.end_run();
        report
    }

    #[test]
    fn counts_are_added_up_per_binary_and_in_the_verdict() {
        let expected = "
test binary                passed  failed  skipped      time
muster_types (src/lib.rs)       1       1        1     1.25s
watch (tests/watch.rs)          2       0        0     0.50s
muster_types (doc tests)        3       0        0     0.25s
total                           6       1        1     2.00s
FAILED: muster_types (src/lib.rs): quantity::keeps_sign
6 passed, 1 failed, 1 skipped
";
        let report = observed(OUTPUT);
        assert_eq!(report.render(), expected);
        assert!(report.has_failed());
    }

    #[test]
    fn tests_filtered_for_lack_of_a_tool_count_as_skipped() {
        let mut report = observed(OUTPUT);
        report.count_filtered_as_skipped = true;
        report.note_not_run("kubectl", "no network\n  | details");
        let text = report.render();
        assert!(
            text.ends_with("NOT RUN: tests with kubectl: no network\n6 passed, 1 failed, 5 skipped\n"),
            "{text}"
        );
    }

    #[test]
    fn a_binary_that_ends_without_a_result_is_a_failure() {
        let report = observed(
            "     Running tests/a.rs (target/debug/deps/a-00)\n\
             running 1 test\n\
             \x20    Running tests/b.rs (target/debug/deps/b-00)\n\
             test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        );
        let text = report.render();
        assert!(text.contains("FAILED: a (tests/a.rs): ended without a result\n"), "{text}");
        assert!(text.ends_with("\n1 passed, 1 failed\n"), "{text}");
    }

    #[test]
    fn a_failed_build_is_a_failure_of_its_own() {
        let mut report = Report::default();
        report.note_failure("`cargo build` failed");
        assert!(report.render().ends_with("FAILED: `cargo build` failed\n0 passed, 1 failed\n"));
    }

    #[test]
    fn a_clean_run_has_the_short_verdict() {
        let report = observed(
            "   Doc-tests a\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s",
        );
        assert!(report.render().ends_with("\n1 passed, 0 failed\n"));
        assert!(!report.has_failed());
    }

    #[test]
    fn lines_that_only_resemble_a_section_are_not_one() {
        assert_eq!(section_label("Running tests/a.rs (target/debug/deps/a-00)"), None);
        assert_eq!(section_label("     Running late"), None);
    }
}
