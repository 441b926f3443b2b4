//! A home directory, a server that lives as long as the test, and what the program said.

use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take that should happen at once.
pub const SOON: Duration = Duration::from_mins(1);

/// A home directory without a server.
pub struct World {
    pub home: TempDir,
}

/// What a run of the program said.
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl World {
    pub fn new() -> Self {
        Self { home: tempfile::tempdir().expect("a temporary directory can be made") }
    }

    /// The program with nothing but a home directory.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
        command.args(arguments).current_dir(self.home.path()).env_clear().stdin(Stdio::null());
        command.env("HOME", self.home.path()).env("PATH", "/usr/bin:/bin");
        // Tasks stay as the tests make them.
        command.env("MUSTER_ROLES", "api").env("MUSTER_MQTT_LISTEN", "off");
        command
    }

    /// Runs the program to its end.
    pub fn muster(&self, arguments: &[&str]) -> Said {
        self.muster_with("", arguments)
    }

    /// Runs the program with something on its standard input.
    pub fn muster_with(&self, input: &str, arguments: &[&str]) -> Said {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("muster starts");
        let mut stdin = child.stdin.take().expect("standard input is piped");
        // A program that does not read its input has closed it.
        drop(stdin.write_all(input.as_bytes()));
        drop(stdin);
        let output = child.wait_with_output().expect("muster ends");
        Said {
            code: output.status.code().expect("muster ends by itself"),
            out: String::from_utf8(output.stdout).expect("the output is UTF-8"),
            err: String::from_utf8(output.stderr).expect("the errors are UTF-8"),
        }
    }

    /// Writes a file in the home directory and returns its name.
    pub fn file<'a>(&self, name: &'a str, text: &str) -> &'a str {
        let path = self.home.path().join(name);
        fs::create_dir_all(path.parent().expect("a file is in a directory"))
            .expect("directories can be made");
        fs::write(path, text).expect("files can be written");
        name
    }

    /// The data directory that is used unless another is named.
    pub fn data(&self) -> PathBuf {
        self.home.path().join(".local/share/muster")
    }

    /// Starts the server of this home directory.
    pub fn up(&self, flags: &[&str]) -> Running {
        let server = Running::start(self.command(&["up"]).args(flags));
        server.wait_for("Stop with Ctrl-C.");
        server
    }
}

impl Said {
    /// Nothing but a success with this output.
    #[track_caller]
    pub fn is(&self, out: &str) {
        assert_eq!((self.code, self.out.as_str(), self.err.as_str()), (0, out, ""));
    }

    /// A failure with this error and nothing else.
    #[track_caller]
    pub fn fails(&self, error: &str) {
        let expected = format!("error: {error}\n");
        assert_eq!((self.code, self.out.as_str(), self.err.as_str()), (1, "", expected.as_str()));
    }

    /// A wrong use of the program, with this in the explanation.
    #[track_caller]
    pub fn is_misuse(&self, part: &str) {
        assert_eq!((self.code, self.out.as_str()), (2, ""), "{}", self.err);
        assert!(self.err.starts_with("error: ") && self.err.contains(part), "{}", self.err);
    }

    /// The words of each line of the output.
    pub fn rows(&self) -> Vec<Vec<&str>> {
        self.out.lines().map(|line| line.split_whitespace().collect()).collect()
    }

    /// The first word of each line of the output.
    pub fn first_words(&self) -> Vec<&str> {
        self.out.lines().filter_map(|line| line.split_whitespace().next()).collect()
    }

    /// The output as JSON.
    pub fn json(&self) -> Value {
        assert_eq!((self.code, self.err.as_str()), (0, ""));
        serde_json::from_str(&self.out).expect("the output is JSON")
    }
}

/// A program that goes on, ended when dropped.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    notes: Receiver<String>,
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("muster starts");
        let lines = read_lines(child.stdout.take().expect("standard output is piped"));
        let notes = read_lines(child.stderr.take().expect("standard error is piped"));
        Self { child, lines, notes }
    }

    /// The same, with nobody who reads what is said beside the output.
    pub fn start_unread(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("muster starts");
        let lines = read_lines(child.stdout.take().expect("standard output is piped"));
        drop(child.stderr.take());
        Self { child, lines, notes: channel().1 }
    }

    /// The next line beside the output.
    #[track_caller]
    pub fn note(&self) -> String {
        self.notes.recv_timeout(SOON).expect("a note comes soon")
    }

    /// The next line of the output.
    #[track_caller]
    pub fn line(&self) -> String {
        self.lines.recv_timeout(SOON).expect("a line comes soon")
    }

    /// Reads lines until one is this.
    #[track_caller]
    pub fn wait_for(&self, wanted: &str) {
        while self.line() != wanted {}
    }

    /// Reads lines until one begins with this.
    #[track_caller]
    pub fn wait_for_start(&self, wanted: &str) {
        while !self.line().starts_with(wanted) {}
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end of the output and of the program, and answers with its exit code.
    #[track_caller]
    pub fn code(&mut self) -> i32 {
        loop {
            match self.lines.recv_timeout(SOON) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    assert!(self.child.try_wait().is_ok_and(|end| end.is_some()), "it does not end");
                }
            }
        }
        self.child.wait().expect("the program can be waited for").code().expect("it ends by itself")
    }

    /// Sends a signal.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.id().to_string()]).status();
        assert!(sent.expect("kill runs").success(), "the signal cannot be sent");
    }

    /// Ends the program at once.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn read_lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            // Read on even if nobody listens: the program must not be held up.
            drop(sender.send(line));
        }
    });
    lines
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A world with a server.
pub struct Served {
    pub world: World,
    pub server: Running,
}

impl Served {
    pub fn new() -> Self {
        let world = World::new();
        let server = world.up(&["--listen", "127.0.0.1:0"]);
        Self { world, server }
    }

    pub fn muster(&self, arguments: &[&str]) -> Said {
        self.world.muster(arguments)
    }

    /// A server that runs tasks.
    pub fn running(slots: &str) -> Self {
        let world = World::new();
        let server = world.up(&["--listen", "127.0.0.1:0", "--roles", "api,engine", "--slots", slots]);
        Self { world, server }
    }

    /// Kills the server and starts it again on the same data.
    pub fn restart(&mut self, listen: &str) {
        self.server.kill();
        self.server = self.world.up(&["--listen", listen]);
    }

    /// The same with a server that runs tasks.
    pub fn restart_running(&mut self, listen: &str) {
        self.server.kill();
        self.server = self.world.up(&["--listen", listen, "--roles", "api,engine"]);
    }

    /// Applies a text that must be accepted.
    #[track_caller]
    pub fn apply(&self, text: &str) {
        let said = self.world.muster_with(text, &["apply", "-f", "-"]);
        assert_eq!((said.code, said.err.as_str()), (0, ""));
    }

    /// The kubeconfig that the server wrote.
    pub fn kubeconfig(&self) -> String {
        fs::read_to_string(self.world.data().join("kubeconfig")).expect("the server writes a kubeconfig")
    }

    /// `https://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        let text = self.kubeconfig();
        let line = text.lines().find_map(|line| line.trim().strip_prefix("server: "));
        line.expect("the kubeconfig names a server").to_owned()
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        self.url().replace("https://", "")
    }

    /// The secret of the admin.
    pub fn admin_token(&self) -> String {
        let text =
            fs::read_to_string(self.world.data().join("admin-token")).expect("there is an admin token");
        text.trim().to_owned()
    }
}

/// Runs a condition again and again until it holds.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + SOON;
    while !condition() {
        assert!(Instant::now() < end, "waited in vain for {what}");
    }
}

/// The manifest of a task.
pub fn task(name: &str, more_metadata: &str) -> String {
    format!(
        "---\napiVersion: muster.dev/v1alpha1\nkind: Task\nmetadata: {{name: {name}, {more_metadata}}}\n\
         spec: {{container: {{command: [echo, hi]}}}}\n"
    )
}

/// The manifest of a TaskKind.
pub fn task_kind(name: &str, priority: i64) -> String {
    format!(
        "---\napiVersion: muster.dev/v1alpha1\nkind: TaskKind\nmetadata: {{name: {name}}}\n\
         spec: {{priority: {priority}}}\n"
    )
}

/// The permissions of a file.
pub fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).expect("the file is there").permissions().mode() & 0o777
}
