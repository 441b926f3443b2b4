//! The log in a PostgreSQL database, which several processes share.
//!
//! Guarantees:
//! - What [`Log::append`] acknowledged is committed: the server waited for its disk.
//! - One order: whoever writes holds the one row of the header until the commit, so a reader never sees revision n+1 before n.
//! - An append happens on top of exactly what this process knows, or not at all.
//! - Whether an append happened is never guessed. If the connection is lost in it, the database is asked.
//! - What is read is what was appended: rows carry checksums, the header counts and sums them, and the chain of all checksums
//!   tells one history from another.
//!
//! The calls of [`Log`] wait; the work is done by a small runtime of its own, so that they can be made from anywhere.

mod chain;
mod columns;
mod errors;
mod link;
mod migrations;
mod session;
mod stored_row;
mod target;
mod tls;

use std::fmt;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use muster_ports::store::{Change, Forget, Header, Log, LogError, Row};
use parking_lot::RwLock;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Mutex, Semaphore};

use crate::checksum::Ledger;
use link::News;
use session::Session;
use stored_row::StoredRow;
pub use target::Target;

/// How long a start waits for the database.
const START: Duration = Duration::from_secs(20);
/// Rows that are handed over at once when everything is read,
const PARCEL: usize = 512;
/// and how many such parcels may wait.
const PARCELS: usize = 16;

/// A log in a PostgreSQL database.
pub struct PostgresLog {
    session: Arc<Mutex<Session>>,
    news: News,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    expected: Ledger,
    locked: bool,
    place: String,
    identity: String,
}

impl fmt::Debug for PostgresLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresLog").field("place", &self.place).finish_non_exhaustive()
    }
}

impl PostgresLog {
    /// Connects to a database, and makes or updates its tables. All servers that share it say the same name of an installation;
    /// a database of another one is refused.
    pub fn open(target: &Target, installation: &str) -> Result<Self, LogError> {
        let failed = |error: std::io::Error| LogError::Io(format!("cannot start a thread: {error}"));
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("store-postgres").enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let mut name = [0; 16];
        getrandom::fill(&mut name)
            .map_err(|error| LogError::Io(format!("there is no randomness: {error}")))?;
        let writer = format!("{:032x}", u128::from_ne_bytes(name));
        let news: News = Arc::new(RwLock::new(Box::new(|| {})));
        let session = Arc::new(Mutex::new(Session::new(target.clone(), installation, writer, news.clone())));
        let place = target.to_string();
        let (expected, identity) = (Ledger::default(), String::new());
        let mut log =
            Self { session, news, runtime: Some(runtime), expected, locked: false, place, identity };
        let session = log.session.clone();
        log.identity = log.wait(async move {
            let mut session = session.lock().await;
            session.connect(START).await.map(|()| session.identity().unwrap_or_default())
        })?;
        Ok(log)
    }

    /// Gives the database to another installation. Servers of this one are refused from then on.
    pub fn rename_installation(&self, installation: &str) -> Result<(), LogError> {
        let (session, name) = (self.session.clone(), installation.to_owned());
        self.wait(async move { session.lock().await.rename(&name).await })
    }

    /// Tells this database from all others, for ever.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Waits for work that the runtime does. Any thread may.
    fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, LogError>> + Send + 'static,
    ) -> Result<T, LogError> {
        let (sender, answer) = mpsc::sync_channel(1);
        self.spawn(async move { drop(sender.send(work.await)) });
        answer.recv().unwrap_or_else(|_| Err(LogError::Io("the worker of the database ended badly".into())))
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(work);
        }
    }
}

/// Reads all rows and hands them over in parcels, as fast as they are taken.
async fn read_rows(
    session: &Mutex<Session>,
    room: &Semaphore,
    sender: &mpsc::Sender<Result<Vec<StoredRow>, LogError>>,
) -> Result<(), LogError> {
    let mut session = session.lock().await;
    let words = session.words.clone();
    let mut stream = Box::pin(session.rows().await?);
    let mut parcel = Vec::with_capacity(PARCEL);
    loop {
        let row = stream.try_next().await.map_err(|error| words.refused(&error))?;
        let ended = row.is_none();
        if let Some(row) = row {
            parcel.push(StoredRow::read(&row, 0, &words)?);
        }
        if ended || parcel.len() == PARCEL {
            if let Ok(permit) = room.acquire().await {
                permit.forget();
            }
            // Nobody takes them if the reader gave up.
            drop(sender.send(Ok(std::mem::take(&mut parcel))));
        }
        if ended {
            drop(stream);
            return session.end_load().await;
        }
    }
}

impl Log for PostgresLog {
    fn header(&mut self) -> Result<Header, LogError> {
        let session = self.session.clone();
        let (header, rows, digest) =
            self.wait(async move { session.lock().await.begin_load(START).await })?;
        self.locked = false;
        self.expected = Ledger { header, rows: rows.cast_unsigned(), digest: digest.cast_unsigned() };
        Ok(header)
    }

    fn load(&mut self, sink: &mut dyn FnMut(Row<'_>)) -> Result<(), LogError> {
        let (session, room) = (self.session.clone(), Arc::new(Semaphore::new(PARCELS)));
        let (sender, parcels) = mpsc::channel();
        let given = room.clone();
        self.spawn(async move {
            if let Err(error) = read_rows(&session, &given, &sender).await {
                session.lock().await.lose();
                drop(sender.send(Err(error)));
            }
        });
        let mut found = Ledger::default();
        for parcel in parcels {
            for row in parcel? {
                let read = row.as_row();
                if read.revision <= found.header.revision {
                    let what = format!("the row of revision {} is out of order", read.revision);
                    return Err(LogError::Corrupt(what));
                }
                found.add(read.revision, row.crc);
                sink(read);
            }
            room.add_permits(1);
        }
        let expected = &self.expected;
        let same = found.rows == expected.rows && found.digest == expected.digest;
        if !same || found.header.revision > expected.header.revision {
            return Err(LogError::Corrupt(format!(
                "the database {} is damaged: it has {} rows, which are not the {} that were written; restore it from a backup",
                self.place, found.rows, expected.rows
            )));
        }
        Ok(())
    }

    fn append(&mut self, changes: &[Arc<Change>], forget: &Forget) -> Result<(), LogError> {
        let (session, changes, forget) = (self.session.clone(), changes.to_vec(), forget.clone());
        let (outcome, locked) = self.wait(async move {
            let mut session = session.lock().await;
            let outcome = session.append(&changes, &forget).await;
            Ok((outcome, session.locked))
        })?;
        self.locked = locked;
        outcome
    }

    fn listen(&mut self, news: Box<dyn Fn() + Send + Sync>) -> bool {
        *self.news.write() = news;
        true
    }

    fn follow(&mut self, sink: &mut dyn FnMut(Row<'_>)) -> Result<(), LogError> {
        let session = self.session.clone();
        let (outcome, locked) = self.wait(async move {
            let mut session = session.lock().await;
            let outcome = session.follow().await;
            Ok((outcome, session.locked))
        })?;
        self.locked = locked;
        outcome?.iter().for_each(|row| sink(row.as_row()));
        Ok(())
    }

    fn is_waiting(&self) -> bool {
        self.locked
    }
}

impl Drop for PostgresLog {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Nobody waits: whatever was acknowledged is written, and the server undoes the rest.
            runtime.shutdown_background();
        }
    }
}
