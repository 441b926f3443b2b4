//! A `muster up` of its own: started in a fresh directory on a free port, ended with the test that started it.
//!
//! A server is killed by its id: when it is dropped, or, for the one a whole test binary shares, by a small shell
//! that waits for the binary to end. Nothing is left behind even if the binary itself is killed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::databases::Postgres;
use crate::http::Http;
use crate::lines::Lines;
use crate::round_robin::RoundRobin;
use crate::wait::SOON;

/// What the server prints before the URL it listens on.
const ANNOUNCEMENT: &str = "API ";
/// Kills a server and removes its directory once nobody holds the other end of the standard input.
const GUARD: &str = r#"read -r _; kill -9 "$1" 2>/dev/null; rm -rf "$2""#;

/// A running server.
pub struct Server {
    process: Child,
    guard: Child,
    url: String,
    program: PathBuf,
    flags: Vec<String>,
    env: Vec<(&'static str, String)>,
    front: Option<Front>,
    dir: TempDir,
}

/// What makes two servers of one database look like one.
struct Front {
    _other: Box<Server>,
    _postgres: Postgres,
    door: RoundRobin,
}

impl Server {
    /// Starts a server with further flags for `muster up`.
    pub fn start(flags: &[&str]) -> Self {
        Self::start_program(&muster(), flags)
    }

    /// The same with further variables in its environment.
    pub fn start_with(flags: &[&str], env: &[(&'static str, String)]) -> Self {
        Self::start_all(&muster(), flags, env)
    }

    /// The same through another program, which is called like `muster` and becomes it.
    pub fn start_program(program: &Path, flags: &[&str]) -> Self {
        Self::start_all(program, flags, &[])
    }

    /// The same with further variables in its environment.
    pub fn start_program_with(program: &Path, flags: &[&str], env: &[(&'static str, String)]) -> Self {
        Self::start_all(program, flags, env)
    }

    fn start_all(program: &Path, flags: &[&str], env: &[(&'static str, String)]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        let (process, url) = launch(program, dir.path(), "127.0.0.1:0", &flags, env);
        let guard = watch_over(&process, dir.path());
        let (program, env) = (program.to_owned(), env.to_vec());
        Self { process, guard, url, program, flags, env, front: None, dir }
    }

    /// The server that all tests of this binary share; each works in a namespace of its own.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(|| if is_of_pairs() { Self::start_pair() } else { Self::start(&[]) })
    }

    /// A server with an engine that all tests of this binary share, for those that need tasks to run.
    pub fn with_engine() -> &'static Self {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&["--roles", "api,engine", "--slots", "64"]))
    }

    /// Two servers of one database behind a door that leads to one and the other in turns.
    pub fn start_pair() -> Self {
        let postgres = Postgres::start();
        let url = postgres.url();
        // Clients trust one certificate, whichever of them they reach.
        let identity = tempfile::tempdir().expect("a temporary directory can be made");
        let made =
            rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate can be made");
        let file = |name: &str, text: String| {
            let path = identity.path().join(name);
            fs::write(&path, text).expect("a file can be written");
            path.display().to_string()
        };
        let (cert, key) =
            (file("cert.pem", made.cert.pem()), file("key.pem", made.signing_key.serialize_pem()));
        let flags = ["--store", url.as_str(), "--tls-cert", &cert, "--tls-key", &key];
        let (mut one, other) = (Self::start(&flags), Self::start(&flags));
        let door = RoundRobin::before(&[one.address(), other.address()]);
        one.front = Some(Front { _other: Box::new(other), _postgres: postgres, door });
        one
    }

    /// A namespace that no other test uses.
    pub fn new_namespace(&self) -> String {
        static USED: AtomicU32 = AtomicU32::new(0);
        format!("test-{}", USED.fetch_add(1, Ordering::Relaxed))
    }

    /// `https://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// `127.0.0.1:PORT`, where plain HTTP is spoken too.
    pub fn address(&self) -> &str {
        self.url.trim_start_matches("https://")
    }

    /// Asks the process for a signal, such as to stand still.
    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw).expect("a child has an id");
        kill_process(id, signal).expect("a child can be signalled");
    }

    /// What it said.
    pub fn log(&self) -> PathBuf {
        self.dir.path().join("server.log")
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        data_of(self.dir.path())
    }

    /// The secret of the admin.
    pub fn admin_token(&self) -> String {
        let secret = fs::read_to_string(self.data().join("admin-token")).expect("the admin token is written");
        secret.trim().to_owned()
    }

    /// The kubeconfig that the server wrote.
    pub fn kubeconfig(&self) -> PathBuf {
        self.data().join("kubeconfig")
    }

    /// A copy of the kubeconfig for another namespace and token.
    pub fn kubeconfig_for(&self, namespace: &str, token: &str) -> PathBuf {
        static WRITTEN: AtomicU32 = AtomicU32::new(0);
        let text = fs::read_to_string(self.kubeconfig()).expect("the server writes a kubeconfig");
        let text = text
            .replace("namespace: default", &format!("namespace: {namespace}"))
            .replace(&self.admin_token(), token);
        let text = match &self.front {
            Some(front) => text.replace(&self.url, &format!("https://{}", front.door.address())),
            None => text,
        };
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let path = self.dir.path().join(format!("kubeconfig-{number}"));
        fs::write(&path, text).expect("a kubeconfig can be written");
        path
    }

    /// The home of clients, shared so that discovery is read once, and gone with the server.
    pub fn client_home(&self) -> PathBuf {
        let home = self.dir.path().join("client-home");
        fs::create_dir_all(&home).expect("a directory can be made");
        home
    }

    /// Plain HTTP as the admin.
    pub fn http(&self) -> Http {
        let door = self.front.as_ref().map(|front| front.door.address());
        Http::new(door.as_deref().unwrap_or(self.address()), Some(&self.admin_token()))
    }

    /// Makes a token and returns its secret.
    pub fn new_token(&self, name: &str, role: &str) -> String {
        self.new_token_of(&serde_json::json!({ "name": name, "role": role }))
    }

    /// Makes a token with which as many robots join as one token allows, and returns its secret.
    pub fn new_join_token(&self, name: &str) -> String {
        self.new_token_of(&serde_json::json!({ "name": name, "role": "robot", "uses": 1000 }))
    }

    /// Makes a token as it is described and returns its secret.
    pub fn new_token_of(&self, wanted: &serde_json::Value) -> String {
        let answer = self.http().post("/tokens", &wanted.to_string());
        assert_eq!(answer.code, 201, "{}", answer.text());
        answer.json()["token"].as_str().expect("the answer holds the secret").to_owned()
    }

    /// Ends the server at once, as a power cut would.
    pub fn kill(&mut self) {
        end(&mut self.process, Signal::KILL);
    }

    /// Asks the server to stop and waits until it has.
    pub fn stop(&mut self) {
        end(&mut self.process, Signal::TERM);
    }

    /// Starts the server again after it was stopped or killed, with other flags.
    pub fn restart_with(&mut self, flags: &[&str]) {
        self.flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        self.restart();
    }

    /// Starts the server again after it was stopped or killed, on the same address.
    pub fn restart(&mut self) {
        let address = self.address().to_owned();
        let (process, url) = launch(&self.program, self.dir.path(), &address, &self.flags, &self.env);
        assert_eq!(url, self.url, "the server moved");
        self.process = process;
        // The old guard knows the old id only, and must not remove the directory.
        end(&mut self.guard, Signal::KILL);
        self.guard = watch_over(&self.process, self.dir.path());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.guard, Signal::KILL);
        end(&mut self.process, Signal::KILL);
    }
}

/// True in a binary of tests that all run against two servers.
fn is_of_pairs() -> bool {
    let name = std::env::current_exe().ok().and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    name.is_some_and(|name| name.starts_with("kubectl_postgres"))
}

fn data_of(dir: &Path) -> PathBuf {
    dir.join("data")
}

/// The program under test.
fn muster() -> PathBuf {
    let program = std::env::var_os("MUSTER_BIN");
    program.expect("MUSTER_BIN must name the muster binary; `cargo xtask test` sets it").into()
}

/// Starts the process and waits until it says where it listens.
fn launch(
    program: &Path,
    dir: &Path,
    listen: &str,
    flags: &[String],
    env: &[(&'static str, String)],
) -> (Child, String) {
    let log = dir.join("server.log");
    let errors = File::options().create(true).append(true).open(&log).expect("the log can be opened");
    let mut process = Command::new(program)
        .args(["up", "--listen", listen, "--data"])
        .arg(data_of(dir))
        .args(flags)
        // Tasks stay as the tests make them; a test that wants them run says so in its flags, which win.
        .env("MUSTER_ROLES", "api")
        // One broker on one machine: those who want robots say where.
        .env("MUSTER_MQTT_LISTEN", "off")
        .envs(env.iter().map(|(name, value)| (*name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .expect("the program that MUSTER_BIN names can be started");
    let mut output = Lines::of(process.stdout.take().expect("standard output is piped"));
    let announced = output.find_within(SOON, |line| line.trim().starts_with(ANNOUNCEMENT));
    if announced.is_none() {
        end(&mut process, Signal::KILL);
    }
    let url = announced.and_then(|line| line.split_whitespace().last().map(str::to_owned));
    let said = fs::read_to_string(&log).unwrap_or_default();
    assert!(url.is_some(), "{} did not get ready; it said:\n{said}", program.display());
    (process, url.unwrap_or_default())
}

fn watch_over(process: &Child, dir: &Path) -> Child {
    Command::new("sh")
        .args(["-c", GUARD, "guard"])
        .arg(process.id().to_string())
        .arg(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell can be started")
}

/// Signals a child of ours and waits for its end. One that has ended already keeps its id until then.
fn end(child: &mut Child, signal: Signal) {
    if matches!(child.try_wait(), Ok(None)) {
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a child has an id");
        kill_process(id, signal).expect("a child can be signalled");
    }
    child.wait().expect("a child can be waited for");
}
