//! A program of somebody else's that is driven as a person would: a line in, a transcript out.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write as _};
use std::io::{Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::lines::Lines;
use crate::wait::{SOON, holds_within};

/// Longest time one command may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// A program with its environment and, if it reads one, its input.
#[derive(Debug, Clone)]
pub struct ClientTool {
    program: OsString,
    environment: Vec<(String, OsString)>,
    input: String,
}

/// What a command said and how it ended.
#[derive(Debug)]
pub struct Transcript {
    line: String,
    /// Exit code; `None` if a signal ended it or it took too long.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// A command that goes on by itself; it is killed when dropped.
pub struct Running {
    line: String,
    child: Child,
    lines: Lines,
    errors: Option<JoinHandle<String>>,
}

impl ClientTool {
    /// The program that a variable names. Fails, rather than leaving the test out, when the variable is not set.
    #[track_caller]
    pub fn named_by(variable: &str) -> Self {
        let program = std::env::var_os(variable).filter(|value| !value.is_empty());
        assert!(
            program.is_some(),
            "{variable} is not set, so there is nothing to drive; run `cargo xtask test`, which installs the \
             program and sets it"
        );
        let program = program.unwrap_or_default();
        Self { program, environment: Vec::new(), input: String::new() }
    }

    /// The same program with one more variable.
    #[must_use]
    pub fn env(&self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let mut tool = self.clone();
        tool.environment.push((name.to_owned(), value.as_ref().to_owned()));
        tool
    }

    /// The same program with something to read on its standard input.
    #[must_use]
    pub fn given(&self, input: impl Into<String>) -> Self {
        Self { input: input.into(), ..self.clone() }
    }

    /// Runs a command to its end, whatever that is.
    pub fn run(&self, line: &str) -> Transcript {
        let mut child = self.spawn(line, Stdio::piped());
        let mut input = child.stdin.take().expect("standard input is piped");
        let text = self.input.clone();
        // A program may end without reading what it is given.
        let writer = thread::spawn(move || drop(input.write_all(text.as_bytes())));
        let stdout = collect(child.stdout.take().expect("standard output is piped"));
        let stderr = collect(child.stderr.take().expect("standard error is piped"));
        if !holds_within(PATIENCE, || matches!(child.try_wait(), Ok(Some(_)))) {
            child.kill().expect("a child can be killed");
        }
        let status = child.wait().expect("a child can be waited for");
        writer.join().expect("the writer ends");
        Transcript {
            line: line.to_owned(),
            code: status.code(),
            stdout: stdout.join().expect("the reader ends"),
            stderr: stderr.join().expect("the reader ends"),
        }
    }

    /// Runs a command that must succeed; its standard output.
    #[track_caller]
    pub fn ok(&self, line: &str) -> String {
        let transcript = self.run(line);
        assert!(transcript.code == Some(0), "this should have succeeded:\n{transcript}");
        transcript.stdout
    }

    /// Runs a command that must fail with code 1; everything it said.
    #[track_caller]
    pub fn fails(&self, line: &str) -> String {
        let transcript = self.run(line);
        assert!(transcript.code == Some(1), "this should have failed with code 1:\n{transcript}");
        format!("{}{}", transcript.stdout, transcript.stderr)
    }

    /// Starts a command that goes on by itself.
    pub fn start(&self, line: &str) -> Running {
        let mut child = self.spawn(line, Stdio::null());
        let lines = Lines::of(child.stdout.take().expect("standard output is piped"));
        let errors = collect(child.stderr.take().expect("standard error is piped"));
        Running { line: line.to_owned(), child, lines, errors: Some(errors) }
    }

    fn spawn(&self, line: &str, stdin: Stdio) -> Child {
        let mut command = Command::new(&self.program);
        command.args(words(line)).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program under test can be started")
    }
}

impl Running {
    /// Waits for a line that holds a text.
    #[track_caller]
    pub fn expect_line(&mut self, text: &str) -> String {
        let found = self.lines.find_within(SOON, |line| line.contains(text));
        assert!(found.is_some(), "`{}` did not say {text:?}; it said {:?}", self.line, self.lines.seen());
        found.unwrap_or_default()
    }

    /// The next line, if one comes in time.
    pub fn line_within(&mut self, deadline: Duration) -> Option<String> {
        self.lines.next_within(deadline)
    }

    /// Waits until the command ends by itself.
    #[track_caller]
    pub fn finish(mut self) -> Transcript {
        let ended = holds_within(PATIENCE, || matches!(self.child.try_wait(), Ok(Some(_))));
        assert!(ended, "`{}` goes on; it said {:?}", self.line, self.lines.seen());
        while self.lines.next_within(SOON).is_some() {}
        let status = self.child.wait().expect("a child can be waited for");
        let errors = self.errors.take().expect("errors are collected once");
        Transcript {
            line: self.line.clone(),
            code: status.code(),
            stdout: self.lines.seen().join("\n"),
            stderr: errors.join().expect("the reader ends"),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = format!("$ … {}\n{}", self.line, self.stdout);
        if !self.stderr.is_empty() {
            write!(text, "--- standard error\n{}", self.stderr)?;
        }
        let ended = self.code.map_or("killed".to_owned(), |code| format!("code {code}"));
        writeln!(f, "{text}--- {ended}")
    }
}

fn collect(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        drop(stream.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The words of a command line; quotes of either sort keep blanks together, as in a shell.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for character in line.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, ' ' | '\n') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_blanks_together() {
        assert_eq!(words("get -l 'a in (b, c)'  -o name"), ["get", "-l", "a in (b, c)", "-o", "name"]);
        assert_eq!(words(r#"patch -p '{"a": 1}' ''"#), ["patch", "-p", r#"{"a": 1}"#, ""]);
    }
}
