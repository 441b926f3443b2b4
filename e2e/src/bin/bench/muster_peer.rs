//! Our server, as a separate process.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::clients::Endpoint;
use crate::process::{Process, program};

/// Objects are created here.
pub const TASKS: &str = "/apis/muster.dev/v1alpha1/namespaces/default/tasks";

/// A running server.
pub struct Muster {
    /// The process.
    pub process: Process,
    /// Plain HTTP.
    pub plain: Endpoint,
    /// TLS.
    pub tls: Endpoint,
    /// From start to ready.
    pub start_up: Duration,
}

impl Muster {
    /// Starts a server on a data directory that runs nothing.
    pub async fn start(data: &Path) -> anyhow::Result<Self> {
        Self::start_with(data, &["--roles", "api"]).await
    }

    /// Starts a server on a data directory, with further flags.
    pub async fn start_with(data: &Path, flags: &[&str]) -> anyhow::Result<Self> {
        Self::launch(data, flags)?.ready().await
    }

    /// What it made durable so far, as it counts itself.
    pub async fn commits(&self) -> anyhow::Result<Commits> {
        let mut connection = self.plain.connect().await?;
        connection.round_trip("GET", "/metrics", "text/plain", b"").await?;
        let text = connection.whole_answer();
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|value| value.trim().parse::<f64>().ok()).with_context(|| format!("no {name}"))
        };
        let changes = value("muster_store_commit_changes_sum")?;
        Ok(Commits { changes, commits: value("muster_store_commit_changes_count")? })
    }

    /// The same with the limits that a server has by itself.
    pub async fn start_with_limits(data: &Path, flags: &[&str]) -> anyhow::Result<Self> {
        Self::launch_limited(data, flags)?.ready().await
    }

    /// Starts the process of a server without a limit of requests and does not wait for it.
    pub fn launch(data: &Path, flags: &[&str]) -> anyhow::Result<Launched> {
        Self::launch_limited(data, &[flags, &["--max-requests", "0"]].concat())
    }

    fn launch_limited(data: &Path, flags: &[&str]) -> anyhow::Result<Launched> {
        let bin = program("MUSTER_BIN").context("MUSTER_BIN is not set; use cargo xtask bench")?;
        let log = data.with_extension("log");
        let started = Instant::now();
        let mut command = Command::new(bin);
        command.args(["up", "--listen", "127.0.0.1:0"]);
        command
            .args(flags)
            .arg("--data")
            .arg(data)
            .env("MUSTER_MQTT_LISTEN", "off")
            .env("MUSTER_LOG", "warn");
        let process = Process::start(&mut command, &log)?;
        Ok(Launched { process, started, data: data.to_owned(), log })
    }
}

/// What a server made durable.
#[derive(Debug, Clone, Copy)]
pub struct Commits {
    changes: f64,
    commits: f64,
}

impl Commits {
    /// Changes in one commit since then, on average.
    pub fn batch_since(self, before: Self) -> f64 {
        (self.changes - before.changes) / (self.commits - before.commits).max(1.0)
    }
}

/// A server that may not be ready.
pub struct Launched {
    /// The process.
    pub process: Process,
    /// When it was started.
    pub started: Instant,
    data: PathBuf,
    log: PathBuf,
}

impl Launched {
    /// Waits until it answers.
    pub async fn ready(self) -> anyhow::Result<Muster> {
        let url = wait_for_line(&self.log, "API ").await?;
        let address = url.trim().trim_start_matches("https://").to_owned();
        wait_ready(&address).await?;
        let start_up = self.started.elapsed();
        let token = std::fs::read_to_string(self.data.join("admin-token"))?;
        let authorization = format!("Bearer {}", token.trim());
        let ca = Arc::new(std::fs::read_to_string(self.data.join("tls-ca.pem"))?);
        let plain = Endpoint { address, authorization, ca: None };
        let tls = Endpoint { ca: Some(ca), ..plain.clone() };
        Ok(Muster { process: self.process, plain, tls, start_up })
    }
}

/// The rest of the first line in a log that contains `start`.
pub async fn wait_for_line(log: &Path, start: &str) -> anyhow::Result<String> {
    let deadline = Instant::now() + Duration::from_mins(1);
    while Instant::now() < deadline {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        if let Some(rest) = whole.lines().find_map(|line| line.split_once(start)) {
            return Ok(rest.1.trim().to_owned());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    bail!("the server did not get ready; its log:\n{}", std::fs::read_to_string(log).unwrap_or_default())
}

async fn wait_ready(address: &str) -> anyhow::Result<()> {
    let endpoint = Endpoint { address: address.to_owned(), authorization: "none".into(), ca: None };
    let mut connection = endpoint.connect().await?;
    let status = connection.round_trip("GET", "/readyz", "text/plain", b"").await?;
    if status != 200 {
        bail!("/readyz answered {status}");
    }
    Ok(())
}

/// A task whose JSON is 1 KiB long.
pub fn task(run: &str, number: usize) -> Vec<u8> {
    const SIZE: usize = 1024;
    const END: &str =
        r#""},"policy":{"preemptExempt":true},"ttl":{"succeeded":"72h"},"timeout":"2m","suspend":true}}"#;
    let mut json = Vec::with_capacity(SIZE);
    // Memory takes whatever is written to it.
    drop(write!(
        json,
        concat!(
            r#"{{"apiVersion":"muster.dev/v1alpha1","kind":"Task","metadata":{{"name":"bench-{}-{:07}","#,
            r#""labels":{{"run":"{}","app":"bench"}}}},"spec":{{"kind":"analyzer","priority":10,"#,
            r#""subject":{{"kind":"Application","name":"app-{}"}},"data":{{"source":"git","filler":""#,
        ),
        run,
        number,
        run,
        number % 1000,
    ));
    json.resize(json.len().max(SIZE - END.len()), b'x');
    json.extend_from_slice(END.as_bytes());
    json
}
