//! How long nothing starts after the leader of three servers was killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::bail;
use muster_e2e::databases::Postgres;

use crate::clients::Timing;
use crate::muster_peer::{Muster, TASKS};
use crate::report::Report;

const SERVERS: usize = 3;
const LEASE: Duration = Duration::from_secs(3);
/// How much longer than the lease it may take.
const GOAL_BEYOND: Duration = Duration::from_secs(1);
/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_mins(2);
const LOOK: Duration = Duration::from_millis(5);

/// One of the servers. `None` after it was killed.
struct Replica {
    data: PathBuf,
    server: Option<Muster>,
}

impl Replica {
    async fn start(&mut self, store: &str) -> anyhow::Result<()> {
        let lease = format!("{}s", LEASE.as_secs());
        let flags =
            ["--roles", "api,engine", "--slots", "2", "--store", store, "--lease", &lease, "--log", "info"];
        self.server = Some(Muster::start_with(&self.data, &flags).await?);
        Ok(())
    }

    fn leads(&self) -> bool {
        let log = fs::read_to_string(self.data.with_extension("log")).unwrap_or_default();
        let told = |words: &str| log.rfind(words).map_or(0, |at| at + 1);
        self.server.is_some() && told("this server leads ") > told("this server leads no longer")
    }
}

/// Kills whoever leads again and again; each time a task that is made right then is run by the next one.
pub async fn measure(postgres: &Postgres, rounds: usize, report: &mut Report) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let store = postgres.fresh_database();
    let mut replicas = Vec::new();
    for number in 0..SERVERS {
        let mut replica = Replica { data: dir.path().join(number.to_string()), server: None };
        replica.start(&store).await?;
        replicas.push(replica);
    }
    let (begun, mut micros) = (Instant::now(), Vec::new());
    for round in 0..rounds {
        let took = fail_over(&mut replicas, &store, round).await?;
        eprintln!("fail-over {}: {:.2} s", round + 1, took.as_secs_f64());
        micros.push(u32::try_from(took.as_micros())?);
    }
    let timing = Timing::new(micros, begun.elapsed());
    let seconds = |quantile: f64| timing.quantile(quantile).as_secs_f64();
    report.line(
        format!("from kill -9 of the leader to a task that runs at the next, lease {} s", LEASE.as_secs()),
        format!("p99 {:.2} s", seconds(0.99)),
        format!(
            "goal {} s; p50 {:.2} s, shortest {:.2} s, of {rounds}",
            (LEASE + GOAL_BEYOND).as_secs(),
            seconds(0.5),
            seconds(0.0)
        ),
    );
    Ok(())
}

async fn fail_over(replicas: &mut [Replica], store: &str, round: usize) -> anyhow::Result<Duration> {
    let leader = find_leader(replicas).await?;
    let Some(next) = &replicas[(leader + 1) % SERVERS].server else { bail!("a server is missing") };
    let mut asking = next.plain.connect().await?;
    let name = format!("after-{round}");
    let body =
        format!(r#"{{"apiVersion":"muster.dev/v1alpha1","kind":"Task","metadata":{{"name":"{name}"}},"#)
            + r#""spec":{"container":{"command":["true"]}}}"#;
    let begun = Instant::now();
    // Killed, not asked.
    replicas[leader].server = None;
    let status = asking.round_trip("POST", TASKS, "application/json", body.as_bytes()).await?;
    if status != 201 {
        bail!("answer {status}: {}", asking.last_answer());
    }
    let path = format!("{TASKS}/{name}?resourceVersion=0");
    let took = loop {
        asking.round_trip("GET", &path, "application/json", b"").await?;
        if ["Running", "Succeeded"]
            .iter()
            .any(|state| asking.last_answer_has(&format!(r#""state":"{state}""#)))
        {
            break begun.elapsed();
        }
        if begun.elapsed() > PATIENCE {
            bail!("nobody took over: {}", asking.whole_answer());
        }
        tokio::time::sleep(LOOK).await;
    };
    replicas[leader].start(store).await?;
    Ok(took)
}

async fn find_leader(replicas: &[Replica]) -> anyhow::Result<usize> {
    let begun = Instant::now();
    loop {
        if let Some(leader) = replicas.iter().position(Replica::leads) {
            return Ok(leader);
        }
        if begun.elapsed() > PATIENCE {
            bail!("no server leads; see the logs in {}", parent(replicas).display());
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn parent(replicas: &[Replica]) -> &Path {
    replicas.first().and_then(|replica| replica.data.parent()).unwrap_or_else(|| Path::new("."))
}
