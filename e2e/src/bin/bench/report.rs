//! Results as a section of `docs/benchmarks.md`, replaced by each run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// One line of a result.
pub struct Line {
    /// What was measured.
    pub what: String,
    /// The figure.
    pub figure: String,
    /// What it is to be compared with.
    pub beside: String,
}

/// Lines under a heading.
#[derive(Default)]
pub struct Report {
    lines: Vec<Line>,
}

impl Report {
    /// Adds a line and prints it.
    pub fn line(&mut self, what: impl Into<String>, figure: impl Into<String>, beside: impl Into<String>) {
        let line = Line { what: what.into(), figure: figure.into(), beside: beside.into() };
        println!("{:<58} {:>22}   {}", line.what, line.figure, line.beside);
        self.lines.push(line);
    }

    fn table(&self) -> String {
        let mut text = "| what | figure | compared |\n|---|---|---|\n".to_owned();
        for line in &self.lines {
            text += &format!("| {} | {} | {} |\n", line.what, line.figure, line.beside);
        }
        text
    }

    /// Writes the section `name` and its plot.
    pub fn write(&self, name: &str, intro: &str, svg: &str) -> anyhow::Result<()> {
        let docs = repository()?.join("docs");
        fs::create_dir_all(docs.join("plots"))?;
        fs::write(docs.join(format!("plots/{name}.svg")), svg)?;
        let path = docs.join("benchmarks.md");
        let old = fs::read_to_string(&path).unwrap_or_else(|_| "# Benchmarks\n".to_owned());
        let (open, close) = (format!("<!-- bench:{name} -->"), format!("<!-- /bench:{name} -->"));
        let section =
            format!("{open}\n## {name}\n\n{intro}\n\n{}\n![{name}](plots/{name}.svg)\n{close}", self.table());
        let new = match (old.find(&open), old.find(&close)) {
            (Some(start), Some(end)) => format!("{}{section}{}", &old[..start], &old[end + close.len()..]),
            _ => format!("{}\n\n{section}\n", old.trim_end()),
        };
        fs::write(&path, new)?;
        println!("\nwritten to docs/benchmarks.md and docs/plots/{name}.svg");
        Ok(())
    }
}

/// The date, the machine and the command of a run.
pub fn circumstances(command: &str) -> String {
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{date}, {cores} cores ({}), Linux {}, `{command}`. Client and server share the machine; figures are of one \
         run, compare them with each other and not with other machines.",
        model.trim_start_matches([' ', '\t', ':']),
        kernel.trim()
    )
}

fn repository() -> anyhow::Result<PathBuf> {
    let mut dir: &Path = Path::new(env!("CARGO_MANIFEST_DIR"));
    while !dir.join("Cargo.lock").exists() {
        dir = dir.parent().context("the repository was not found")?;
    }
    Ok(dir.to_owned())
}
