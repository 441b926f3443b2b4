//! What the machine itself can do, measured in the same run.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use rusqlite::Connection;
use tokio::net::TcpListener;

use crate::clients::{Endpoint, load};
use crate::process::Process;

/// The argument that makes this program an echo server.
pub const ECHO_SERVER: &str = "echo-server";

/// How long each limit is measured.
const SPAN: Duration = Duration::from_secs(1);

/// Appends of `size` bytes, each followed by fdatasync, per second.
#[allow(clippy::cast_precision_loss, reason = "counts are small")]
pub fn fsyncs(dir: &Path, size: usize) -> anyhow::Result<f64> {
    let mut file = OpenOptions::new().create(true).append(true).open(dir.join("fsync"))?;
    let block = vec![b'x'; size];
    let (started, mut count) = (Instant::now(), 0_u32);
    while started.elapsed() < SPAN {
        file.write_all(&block)?;
        file.sync_data()?;
        count += 1;
    }
    Ok(f64::from(count) / started.elapsed().as_secs_f64())
}

/// Rows of `size` bytes per second into SQLite, `batch` in one durable transaction.
pub fn sqlite_rows(dir: &Path, size: usize, batch: usize) -> anyhow::Result<f64> {
    // Gone afterwards: what the kernel has yet to write of it must not hinder what is measured next.
    let dir = tempfile::tempdir_in(dir)?;
    let mut database = Connection::open(dir.path().join("rows.db"))?;
    database.execute_batch(
        "PRAGMA page_size=8192; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA locking_mode=EXCLUSIVE; \
         CREATE TABLE log(revision INTEGER PRIMARY KEY, at INTEGER, resource INTEGER, path TEXT, json BLOB);",
    )?;
    let json = vec![b'x'; size];
    let (started, mut count) = (Instant::now(), 0_u32);
    while started.elapsed() < SPAN {
        let transaction = database.transaction()?;
        {
            let mut insert = transaction.prepare_cached("INSERT INTO log VALUES (?1, ?2, ?3, ?4, ?5)")?;
            for _ in 0..batch {
                count += 1;
                insert.execute((count, 1_700_000_000_000_i64, 1, format!("default/bench-{count}"), &json))?;
            }
        }
        transaction.commit()?;
    }
    Ok(f64::from(count) / started.elapsed().as_secs_f64())
}

/// Requests per second against a server that sends back what it gets.
pub async fn echoes(dir: &Path, clients: usize, size: usize) -> anyhow::Result<f64> {
    let own = std::env::current_exe()?;
    let log = dir.join("echo.log");
    let _server = Process::start(Command::new(own).arg(ECHO_SERVER), &log)?;
    let address = crate::muster_peer::wait_for_line(&log, "echo on ").await?;
    let endpoint = Endpoint { address, authorization: "none".into(), ca: None };
    let body = vec![b'x'; size];
    let count = if clients == 1 { 10_000 } else { 60_000 };
    Ok(load(&endpoint, clients, count, "/", move |_| body.clone()).await?.per_second())
}

/// Serves echoes until killed.
pub fn echo_server() -> anyhow::Result<()> {
    async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
        Ok(Response::new(Full::new(request.into_body().collect().await?.to_bytes())))
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("echo on {}", listener.local_addr()?);
        std::io::stdout().flush().context("stdout")?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(async move {
                let connection = hyper::server::conn::http1::Builder::new();
                drop(connection.serve_connection(TokioIo::new(stream), service_fn(echo)).await);
            });
        }
    })
}
