//! A real terminal with a shell in it: keys in, screens out. It is tmux, which nobody looks at.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::wait::{SOON, holds_within};

/// The variable that names tmux.
const VARIABLE: &str = "MUSTER_TMUX";
/// What the shell says when it waits for a command.
const PROMPT: &str = "ready>";
/// Ends the terminal once nobody holds the other end of the standard input.
const GUARD: &str = r#"read -r _; exec "$1" -S "$2" kill-server"#;
/// Every line of the window is the shell's; a key is one key, however fast another follows.
const SETTINGS: &str = "set -g status off\nset -g escape-time 0\n";

/// A terminal with a shell, ended when dropped, or with the process that opened it.
pub struct Terminal {
    program: PathBuf,
    socket: PathBuf,
    guard: Child,
    _dir: TempDir,
}

impl Terminal {
    /// A terminal of so many columns and lines, with further variables for its shell.
    pub fn open(columns: u16, lines: u16, env: &[(&str, &str)]) -> Self {
        let program = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
        assert!(
            program.is_some(),
            "{VARIABLE} is not set; run `cargo xtask test`, which installs tmux and sets it"
        );
        let program = PathBuf::from(program.unwrap_or_default());
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let (socket, settings) = (dir.path().join("tmux"), dir.path().join("settings"));
        fs::write(&settings, SETTINGS).expect("settings can be written");
        let guard = Command::new("sh")
            .args(["-c", GUARD, "guard"])
            .args([&program, &socket])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell can be started");
        let shell = format!("exec env PS1='{PROMPT} ' ENV= sh");
        let (columns, lines) = (columns.to_string(), lines.to_string());
        let mut start = Command::new(&program);
        start.arg("-u").arg("-S").arg(&socket).arg("-f").arg(&settings);
        start.args(["new-session", "-d", "-x", &columns, "-y", &lines, &shell]);
        start.env("LC_ALL", "C.UTF-8").env_remove("TMUX").env_remove("NO_COLOR");
        start.envs(env.iter().copied());
        let started = start.output().expect("tmux can be started");
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
        let terminal = Self { program, socket, guard, _dir: dir };
        terminal.sees(PROMPT);
        terminal
    }

    /// Types text, letter by letter.
    pub fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Presses a key by the name tmux has for it: Enter, Escape, Tab, Down, C-c.
    pub fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    /// Types a command and starts it.
    pub fn runs(&self, command: &str) {
        self.types(command);
        self.press("Enter");
    }

    /// What is on the screen.
    pub fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The same with the codes of colours.
    pub fn coloured_screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    /// Gives the terminal another size.
    pub fn resize(&self, columns: u16, lines: u16) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &lines.to_string()]);
    }

    /// Waits until a text is on the screen.
    #[track_caller]
    pub fn sees(&self, text: &str) {
        self.sees_that(text, |screen| screen.contains(text));
    }

    /// Waits until a text is no longer on the screen.
    #[track_caller]
    pub fn sees_no(&self, text: &str) {
        self.sees_that(&format!("no {text}"), |screen| !screen.contains(text));
    }

    /// Waits until one line holds all of these.
    #[track_caller]
    pub fn sees_line(&self, parts: &[&str]) {
        let fits = |screen: &str| screen.lines().any(|line| parts.iter().all(|part| line.contains(part)));
        self.sees_that(&format!("a line with {parts:?}"), fits);
    }

    /// Waits until the screen is as wanted.
    #[track_caller]
    pub fn sees_that(&self, what: &str, wanted: impl Fn(&str) -> bool) {
        let mut last = String::new();
        let seen = holds_within(SOON, || {
            last = self.screen();
            wanted(&last)
        });
        assert!(seen, "waited in vain for {what}; the screen is\n{}", framed(&last));
    }

    /// True if a program draws on a screen of its own, as full-screen programs do.
    pub fn is_taken(&self) -> bool {
        self.asks("#{alternate_on}") == "1"
    }

    /// True if the cursor is seen.
    pub fn has_cursor(&self) -> bool {
        self.asks("#{cursor_flag}") == "1"
    }

    fn asks(&self, format: &str) -> String {
        self.tmux(&["display-message", "-p", format]).trim().to_owned()
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.program);
        let output = command.arg("-S").arg(&self.socket).args(arguments).output().expect("tmux runs");
        assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // What the guard waits for is the end of its input.
        drop(self.guard.stdin.take());
        drop(self.guard.wait());
    }
}

fn framed(screen: &str) -> String {
    let lines: Vec<String> = screen.lines().map(|line| format!("| {line}")).collect();
    lines.join("\n")
}
