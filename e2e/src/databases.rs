//! A PostgreSQL of one's own: in a fresh directory on a free port, ended with whoever started it. It can be killed at any
//! moment and started again with what it kept.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tempfile::TempDir;

use crate::brokers::{OwnProcess, free_port, program};
use crate::wait::wait_for;

/// A database that recovers on a busy machine.
const SLOW: Duration = Duration::from_mins(1);
/// Who it runs as if this is root, as which it refuses to run: nobody.
const NOBODY: u32 = 65_534;

/// A PostgreSQL.
pub struct Postgres {
    // Before the directory it works in.
    process: Mutex<OwnProcess>,
    port: u16,
    /// Removes what is left even if nobody drops this.
    sweeper: Child,
    dir: TempDir,
}

/// Removes a directory once nobody holds the other end of the standard input.
const SWEEPER: &str = r#"read -r _; rm -rf "$1""#;

fn sweep_after(dir: &Path) -> Child {
    let mut sweeper = Command::new("sh");
    sweeper
        .args(["-c", SWEEPER, "sweeper"])
        .arg(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    sweeper.spawn().expect("a shell can be started")
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.sweeper.kill());
        drop(self.sweeper.wait());
    }
}

impl Postgres {
    /// Starts one with the settings of a server that keeps what it says.
    pub fn start() -> Self {
        Self::start_with(&[], |_| {})
    }

    /// Starts one that also speaks TLS, as `localhost`. A role `secret` has to say the password `word`. Returns the file with
    /// the authority that clients are to trust.
    pub fn start_with_tls() -> (Self, PathBuf) {
        let (authority, server) = certificates();
        let place = |data: &Path| {
            let give = |name: &str, text: &str| give_file(&data.join(name), text);
            give("authority.pem", &authority);
            give("server.crt", &server.0);
            give("server.key", &server.1);
            let rules = data.join("pg_hba.conf");
            let before = fs::read_to_string(&rules).expect("initdb wrote it");
            let added = "host all secret 127.0.0.1/32 scram-sha-256\n";
            fs::write(&rules, format!("{added}{before}")).expect("the rules can be written");
        };
        let postgres = Self::start_with(&["ssl=on"], place);
        let authority = postgres.dir.path().join("data/authority.pem");
        postgres.sql("CREATE ROLE secret LOGIN SUPERUSER PASSWORD 'word'");
        (postgres, authority)
    }

    fn start_with(settings: &[&str], prepare: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let port = free_port();
        let data = dir.path().join("data");
        fs::create_dir(&data).expect("a directory can be made");
        if is_root(dir.path()) {
            for path in [dir.path(), &data] {
                chown(path, Some(NOBODY), Some(NOBODY)).expect("a directory can be given away");
            }
        }
        let mut init = command("initdb", dir.path());
        init.args(["--username=muster", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"])
            .arg(&data);
        let made = init.output().expect("initdb can be started");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        prepare(&data);
        let mut server = command("postgres", dir.path());
        server.arg("-D").arg(&data).args(["-k", "", "-p", &port.to_string()]);
        for setting in [
            "listen_addresses=127.0.0.1",
            "max_connections=200",
            "shared_buffers=64MB",
            "log_min_messages=warning",
        ]
        .iter()
        .chain(settings)
        {
            server.args(["-c", setting]);
        }
        let process = OwnProcess::start(server, dir.path(), "postgres");
        let postgres = Self { process: Mutex::new(process), port, sweeper: sweep_after(dir.path()), dir };
        postgres.wait();
        let createdb = postgres.tool("createdb").args(["muster"]).output().expect("createdb can be started");
        assert!(createdb.status.success(), "createdb: {}", String::from_utf8_lossy(&createdb.stderr));
        postgres
    }

    /// The one that tests which run at the same time share. The last one of them ends it.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().expect("no test panics here");
        shared.upgrade().unwrap_or_else(|| {
            let started = Arc::new(Self::start());
            *shared = Arc::downgrade(&started);
            started
        })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `postgres://…` of its database.
    pub fn url(&self) -> String {
        self.url_at(self.port)
    }

    /// The same through another port, where something stands in between.
    pub fn url_at(&self, port: u16) -> String {
        format!("postgres://muster@127.0.0.1:{port}/muster?sslmode=disable")
    }

    /// `postgres://…` of a schema that nobody else uses.
    pub fn fresh_url(&self) -> String {
        static USED: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", USED.fetch_add(1, Ordering::Relaxed));
        self.sql(&format!("CREATE SCHEMA {name}"));
        format!("{}&options=-csearch_path%3D{name}", self.url())
    }

    /// `postgres://…` of a database that nobody else uses.
    pub fn fresh_database(&self) -> String {
        static USED: AtomicU32 = AtomicU32::new(0);
        let name = format!("own_{}", USED.fetch_add(1, Ordering::Relaxed));
        self.sql(&format!("CREATE DATABASE {name}"));
        format!("postgres://muster@127.0.0.1:{}/{name}?sslmode=disable", self.port)
    }

    /// Has it carry out a statement, and returns what it says, a line per row.
    pub fn sql(&self, statement: &str) -> String {
        let done = self
            .tool("psql")
            // Also when it takes writes of nobody else.
            .env("PGOPTIONS", "-c default_transaction_read_only=off")
            .args(["-d", "muster", "-qAtc", statement])
            .output()
            .expect("psql can be started");
        assert!(done.status.success(), "{statement}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Ends it at once, as a power cut would.
    pub fn kill(&self) {
        self.process.lock().expect("no test panics here").kill();
    }

    /// Starts it again. What served connections before may take a moment to notice that it is alone, and is in the way till then.
    pub fn restart(&self) {
        let mut process = self.process.lock().expect("no test panics here");
        process.restart();
        wait_for("PostgreSQL", SLOW, || {
            if !process.is_alive() {
                process.kill();
                process.restart();
            }
            self.is_ready()
        });
    }

    fn tool(&self, name: &str) -> Command {
        let mut tool = command(name, self.dir.path());
        tool.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", "muster"]);
        tool
    }

    fn wait(&self) {
        wait_for("PostgreSQL", SLOW, || {
            self.process.lock().expect("no test panics here").assert_alive();
            self.is_ready()
        });
    }

    fn is_ready(&self) -> bool {
        self.tool("pg_isready").output().is_ok_and(|answer| answer.status.success())
    }
}

/// An authority, and the certificate and key of a server called `localhost`.
pub(crate) fn certificates() -> (String, (String, String)) {
    let key = || rcgen::KeyPair::generate().expect("a key can be made");
    let (ca_key, server_key) = (key(), key());
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("no names are good names");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca = params.self_signed(&ca_key).expect("an authority can be made");
    let issuer = rcgen::Issuer::new(params, ca_key);
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("it is a name");
    let server = params.signed_by(&server_key, &issuer).expect("a certificate can be made");
    (ca.pem(), (server.pem(), server_key.serialize_pem()))
}

/// Writes a file that whoever the database runs as owns, and nobody else may read.
fn give_file(path: &Path, text: &str) {
    fs::write(path, text).expect("a file can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("its mode can be set");
    if is_root(path) {
        chown(path, Some(NOBODY), Some(NOBODY)).expect("a file can be given away");
    }
}

fn is_root(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.uid() == 0)
}

/// One of its programs, as somebody it agrees to run as.
fn command(name: &str, dir: &Path) -> Command {
    let path: PathBuf = program("MUSTER_POSTGRES").with_file_name(name);
    let mut command = Command::new(path);
    command.current_dir("/").env("HOME", dir);
    if fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0) {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}
