//! An S3-compatible service of one's own: over a fresh directory on a free port, ended with the test that started it. It can be
//! killed at any moment and started again with what it kept.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tempfile::TempDir;

use crate::brokers::{OwnProcess, free_port, program, takes_connections};
use crate::databases::certificates;
use crate::wait::wait_for;

const SLOW: Duration = Duration::from_mins(1);

/// A service with buckets.
pub struct ObjectStorage {
    // Before the directory it works in.
    process: Mutex<OwnProcess>,
    port: u16,
    dir: TempDir,
    is_secured: bool,
}

impl ObjectStorage {
    /// Starts one.
    pub fn start() -> Self {
        Self::start_as(false)
    }

    /// Starts one that speaks TLS only, as `localhost`; [`Self::authority`] signed its certificate.
    pub fn start_secured() -> Self {
        Self::start_as(true)
    }

    fn start_as(is_secured: bool) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let port = free_port();
        fs::create_dir(dir.path().join("buckets")).expect("a directory can be made");
        let mut command = Command::new(program("MUSTER_VERSITYGW"));
        let address = format!("127.0.0.1:{port}");
        command.args(["--port", &address, "--access", "muster", "--secret", "secret-of-muster", "--quiet"]);
        if is_secured {
            let (authority, (certificate, key)) = certificates();
            for (name, text) in [("ca.pem", authority), ("cert.pem", certificate), ("key.pem", key)] {
                fs::write(dir.path().join(name), text).expect("a file can be written");
            }
            command
                .arg("--cert")
                .arg(dir.path().join("cert.pem"))
                .arg("--key")
                .arg(dir.path().join("key.pem"));
        }
        command.arg("posix").arg(dir.path().join("buckets"));
        let process = OwnProcess::start(command, dir.path(), "versitygw");
        let storage = Self { process: Mutex::new(process), port, dir, is_secured };
        storage.wait();
        storage
    }

    /// The one that tests which run at the same time share. The last one of them ends it.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<ObjectStorage>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().expect("no test panics here");
        shared.upgrade().unwrap_or_else(|| {
            let started = Arc::new(Self::start());
            *shared = Arc::downgrade(&started);
            started
        })
    }

    /// `s3://…` of a bucket that nobody else uses.
    pub fn fresh_bucket(&self) -> String {
        static USED: AtomicU32 = AtomicU32::new(0);
        let name = format!("bucket-{}", USED.fetch_add(1, Ordering::Relaxed));
        fs::create_dir(self.dir.path().join("buckets").join(&name)).expect("a directory can be made");
        format!("s3://{name}/below")
    }

    /// The names of the objects of a bucket that begin alike, as the service keeps them: files.
    pub fn files(&self, bucket: &str, below: &str) -> Vec<String> {
        let root = self.dir.path().join("buckets").join(bucket.trim_start_matches("s3://")).join(below);
        let mut found = Vec::new();
        let mut open = vec![root.clone()];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    open.push(entry.path());
                } else if let Ok(path) = entry.path().strip_prefix(&root) {
                    found.push(path.display().to_string());
                }
            }
        }
        found.sort();
        found
    }

    /// Copies all files of all tasks to another task. Returns how many.
    pub fn copy_task(&self, bucket: &str, uid: &str) -> usize {
        let tasks = self.dir.path().join("buckets").join(bucket.trim_start_matches("s3://")).join("tasks");
        let files = self.files(bucket, "tasks");
        for file in &files {
            let (_, rest) = file.split_once('/').expect("files are below their task");
            let target = tasks.join(uid).join(rest);
            fs::create_dir_all(target.parent().expect("it is below a directory"))
                .expect("a directory can be made");
            fs::copy(tasks.join(file), target).expect("a file can be copied");
        }
        files.len()
    }

    /// The file with the authority to trust, if it speaks TLS.
    pub fn authority(&self) -> String {
        self.dir.path().join("ca.pem").display().to_string()
    }

    /// What a client has in its environment.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let (endpoint, plain) = if self.is_secured {
            (format!("https://localhost:{}", self.port), "false")
        } else {
            (format!("http://127.0.0.1:{}", self.port), "true")
        };
        vec![
            ("AWS_ENDPOINT_URL", endpoint),
            ("AWS_ALLOW_HTTP", plain.to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "muster".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "secret-of-muster".to_owned()),
        ]
    }

    /// Ends it at once.
    pub fn kill(&self) {
        self.process.lock().expect("no test panics here").kill();
    }

    /// Starts it again.
    pub fn restart(&self) {
        self.process.lock().expect("no test panics here").restart();
        self.wait();
    }

    fn wait(&self) {
        wait_for("the object storage", SLOW, || {
            self.process.lock().expect("no test panics here").assert_alive();
            takes_connections(self.port)
        });
    }
}
