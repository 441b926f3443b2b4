//! `cargo xtask fuzz`: runs fuzz targets under libFuzzer, which is guided by the code that inputs reach.
//!
//! The same targets are part of every test run, without guidance. Here they are built with the instrumentation that libFuzzer reads, for
//! which the stable compiler is enough, in a directory of their own. Inputs that reach new code are kept there; inputs that fail are
//! kept beside them and end their target.

mod final_stats;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use crate::{run, workspace};
use final_stats::FinalStats;

const USAGE: &str = "usage: cargo xtask fuzz [TARGET...] [--seconds N] [--jobs N] [--list]";

/// How long a target runs if nothing else is said.
const SECONDS: u64 = 600;
/// What one input may take, in seconds: a busy machine is slow.
const INPUT_SECONDS: u64 = 60;
/// What a target may take, in MiB.
const MEMORY: u64 = 1536;
/// Largest input that is made.
const MAX_BYTES: usize = 16 << 10;
/// Words of a dictionary, and the longest of them.
const WORDS: usize = 2000;
const WORD_BYTES: usize = 40;

/// What makes a build say where an input went.
const INSTRUMENTATION: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

#[derive(Debug, PartialEq)]
struct Options {
    targets: Vec<String>,
    seconds: u64,
    jobs: usize,
    list: bool,
}

pub fn command(arguments: &[String]) -> Result<ExitCode> {
    let options = parse(arguments)?;
    let workspace = workspace::load()?;
    let corpus = workspace.root.join("fuzz/corpus");
    let known = names_in(&corpus)?;
    if options.list {
        for name in &known {
            println!("{name}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(unknown) = options.targets.iter().find(|name| !known.contains(*name)) {
        bail!("there is no target `{unknown}`; --list names them");
    }
    let targets = if options.targets.is_empty() { known.into_iter().collect() } else { options.targets };
    let place = workspace.target_dir.join("fuzz");
    let program = build(&workspace.root, &place)?;
    let bench = Bench { program, corpus, place, seconds: options.seconds };

    let mut failed = false;
    for some in targets.chunks(options.jobs) {
        let running: Vec<_> =
            some.iter().map(|name| Ok((name, bench.start(name)?))).collect::<Result<_>>()?;
        for (name, child) in running {
            failed |= !bench.finish(name, child)?;
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options { targets: Vec::new(), seconds: SECONDS, jobs: 1, list: false };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut number = || -> Result<u64> {
            let value = rest.next().with_context(|| format!("{argument} needs a number\n{USAGE}"))?;
            let number = value.parse().with_context(|| format!("`{value}` is not a number\n{USAGE}"))?;
            if number == 0 {
                bail!("{argument} must be at least 1");
            }
            Ok(number)
        };
        match argument.as_str() {
            "--seconds" => options.seconds = number()?,
            "--jobs" => options.jobs = usize::try_from(number()?)?,
            "--list" => options.list = true,
            flag if flag.starts_with('-') => bail!("{USAGE}"),
            name => options.targets.push(name.to_owned()),
        }
    }
    Ok(options)
}

/// Each target has a directory of inputs.
fn names_in(corpus: &Path) -> Result<BTreeSet<String>> {
    let entries = fs::read_dir(corpus).with_context(|| format!("cannot read {}", corpus.display()))?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// Builds the driver. For a named machine, so that programs that only take part in the build are not instrumented.
fn build(root: &Path, place: &Path) -> Result<PathBuf> {
    let version = run::quietly(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    let mut cargo = run::cargo(root);
    cargo
        .args([
            "build",
            "--release",
            "-p",
            "muster-fuzz",
            "--bin",
            "fuzz",
            "--features",
            "libfuzzer",
            "--target",
            host,
        ])
        .env("CARGO_TARGET_DIR", place)
        .env("RUSTFLAGS", INSTRUMENTATION)
        .env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true")
        .env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true");
    run::openly(&mut cargo)?;
    Ok(place.join(host).join("release/fuzz"))
}

struct Bench {
    program: PathBuf,
    corpus: PathBuf,
    place: PathBuf,
    seconds: u64,
}

impl Bench {
    fn log(&self, name: &str) -> PathBuf {
        self.place.join("logs").join(name)
    }

    fn findings(&self, name: &str) -> PathBuf {
        self.place.join("findings").join(name)
    }

    /// Starts a target on the inputs that were found before and on those of the repository.
    fn start(&self, name: &str) -> Result<Child> {
        let (found, findings, log) =
            (self.place.join("corpus").join(name), self.findings(name), self.log(name));
        for directory in [found.as_path(), &findings, &self.place.join("logs"), &self.place.join("words")] {
            fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        }
        let words = self.place.join("words").join(name);
        fs::write(&words, dictionary(&self.corpus.join(name))?)?;
        let output = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut program = Command::new(&self.program);
        program
            .args([&found, &self.corpus.join(name)])
            .arg(format!("-max_total_time={}", self.seconds))
            .arg(format!("-timeout={INPUT_SECONDS}"))
            .arg(format!("-rss_limit_mb={MEMORY}"))
            .arg(format!("-max_len={MAX_BYTES}"))
            .arg(format!("-dict={}", words.display()))
            .arg(format!("-artifact_prefix={}/", findings.display()))
            .args(["-print_final_stats=1", "-reload=0"])
            .env("MUSTER_FUZZ_TARGET", name)
            .current_dir(&self.place)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        program.spawn().with_context(|| format!("cannot start {}", self.program.display()))
    }

    /// Waits for a target and prints what it did; false if it found something.
    fn finish(&self, name: &str, mut child: Child) -> Result<bool> {
        let ended = child.wait()?;
        let log = self.log(name);
        let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
        let stats = FinalStats::read(&text);
        println!("{name:<18} {stats}");
        if !ended.success() {
            let input =
                text.lines().find_map(|line| line.split_once("Test unit written to ")).map(|(_, path)| path);
            let input =
                input.map_or_else(|| "no input was kept".to_owned(), |path| format!("the input is {path}"));
            println!("{name:<18} failed: {input}; what it said is in {}", log.display());
        }
        Ok(ended.success())
    }
}

/// Words of the inputs, as libFuzzer reads them.
fn dictionary(corpus: &Path) -> Result<String> {
    let mut words = BTreeSet::new();
    for entry in fs::read_dir(corpus).with_context(|| format!("cannot read {}", corpus.display()))? {
        let bytes = fs::read(entry?.path())?;
        let runs = bytes.split(|byte| !(byte.is_ascii_alphanumeric() || b"-_.$/:=\"".contains(byte)));
        let fits = runs.filter(|word| (2..=WORD_BYTES).contains(&word.len()));
        words.extend(fits.map(<[u8]>::to_vec));
    }
    let mut lines = String::new();
    for word in words.iter().take(WORDS) {
        lines.push('"');
        for byte in word {
            lines.push_str(&format!("\\x{byte:02x}"));
        }
        lines.push_str("\"\n");
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options> {
        parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn all_targets_run_for_ten_minutes_unless_told_otherwise() {
        let all = Options { targets: vec![], seconds: 600, jobs: 1, list: false };
        assert_eq!(parsed("").unwrap(), all);
        let some = Options { targets: vec!["cel".into(), "apply".into()], seconds: 5, jobs: 2, list: false };
        assert_eq!(parsed("cel --seconds 5 apply --jobs 2").unwrap(), some);
    }

    #[test]
    fn unknown_and_senseless_options_are_refused() {
        for line in ["--frob", "--seconds", "--seconds x", "--jobs 0"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_dictionary_has_the_words_of_the_corpus() {
        let place = std::env::temp_dir().join(format!("muster-xtask-words-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("seed"), "{\"ab\": 1, x, \u{1}cd}").unwrap();
        let words = dictionary(&place);
        fs::remove_dir_all(&place).unwrap();
        let expected = "\"\\x22\\x61\\x62\\x22\\x3a\"\n\"\\x63\\x64\"\n";
        assert_eq!(words.unwrap(), expected);
    }
}
