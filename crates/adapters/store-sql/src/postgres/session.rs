//! What a process has with its database: a connection that is made again when it is lost, and what is known so far.
//!
//! An append is one statement, which locks the header, checks that nothing was written since, and writes: it happens whole or not
//! at all, even if this process is stopped in the middle. If somebody else wrote meanwhile, the lock is taken and kept while
//! their rows are taken in, so that the next append comes through however busy they are.
//!
//! A connection that is lost in an append leaves a question: did it happen? The database is asked on the next connection, and
//! if it says no, it will never happen either, because the number of that append is used up by asking.

use std::sync::Arc;
use std::time::Duration;

use muster_ports::store::{Change, Forget, Header, LogError, Revision};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_postgres::Error;
use tokio_postgres::types::ToSql;

use super::chain;
use super::columns::Columns;
use super::errors::{Words, is_uncertain, tell};
use super::link::{Link, News, NoLink};
use super::stored_row::StoredRow;
use super::target::Target;

/// How long somebody waits for a database that is away.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long somebody waits to learn whether an append happened.
const SETTLING: Duration = Duration::from_secs(15);
/// How long a statement may take. Longer than the server lets it.
const STATEMENT: Duration = Duration::from_secs(35);
/// First pause between two tries to connect; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// Longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Rows that are followed at once.
const PAGE: i64 = 2048;

/// Up to where everything is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub revision: i64,
    pub chain: i64,
}

/// What became of an append that got an answer.
enum Answer {
    Written,
    Behind,
}

/// Why an append got none.
enum Trouble {
    /// Nothing was written.
    Refused(LogError),
    /// The connection was lost.
    Uncertain(String),
}

pub(super) struct Session {
    pub words: Words,
    pub known: Known,
    /// The header is locked in a transaction of this connection.
    pub locked: bool,
    target: Target,
    installation: String,
    /// Which database this is, since the first connection.
    identity: Option<String>,
    news: News,
    link: Option<Link>,
    writer: String,
    sequence: i64,
    /// The append of this number may have happened.
    question: Option<i64>,
    /// Somebody else writes too: the lock is taken before rows are sent in vain.
    contended: bool,
    pause: Duration,
    next_try: Instant,
}

impl Session {
    pub fn new(target: Target, installation: &str, writer: String, news: News) -> Self {
        Self {
            words: Words::new(&target.to_string()),
            known: Known::default(),
            locked: false,
            target,
            installation: installation.to_owned(),
            identity: None,
            news,
            link: None,
            writer,
            sequence: 0,
            question: None,
            contended: false,
            pause: FIRST_PAUSE,
            next_try: Instant::now(),
        }
    }

    /// Connects if there is no connection, within a time. What is open is settled first.
    pub async fn connect(&mut self, patience: Duration) -> Result<(), LogError> {
        let until = Instant::now() + patience;
        loop {
            if self.link.as_ref().is_some_and(|link| !link.client.is_closed()) {
                return Ok(());
            }
            self.lose();
            sleep_until(self.next_try.min(until)).await;
            let opening = Link::open(&self.target, &self.words, &self.installation, &self.news);
            let error = match timeout_at(until.max(Instant::now() + FIRST_PAUSE), opening).await {
                Ok(Ok((link, identity))) => {
                    let known = self.identity.get_or_insert_with(|| identity.identity.clone());
                    if *known != identity.identity {
                        return Err(self.words.diverged(self.known.revision, 0));
                    }
                    (self.link, self.pause) = (Some(link), FIRST_PAUSE);
                    continue;
                }
                Ok(Err(NoLink::Never(error))) if self.identity.is_none() => return Err(error),
                Ok(Err(NoLink::Never(error @ (LogError::TooNew(_) | LogError::InUse(_))))) => {
                    return Err(error);
                }
                Ok(Err(NoLink::Never(error))) => self.words.away(&error.to_string()),
                Ok(Err(error @ NoLink::NotNow(_))) => error.into_error(),
                Err(_) => self.words.slow(),
            };
            self.next_try = Instant::now() + self.pause;
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            if Instant::now() >= until {
                return Err(error);
            }
        }
    }

    /// Which database this is. Known once connected.
    pub fn identity(&self) -> Option<String> {
        self.identity.clone()
    }

    /// Gives the database to another installation.
    pub async fn rename(&mut self, installation: &str) -> Result<(), LogError> {
        self.connect(PATIENCE).await?;
        let update = "UPDATE muster_schema SET installation = $1 WHERE id = 0";
        let updated = self.link()?.client.execute(update, &[&installation]).await;
        updated.map_err(|error| self.words.refused(&error))?;
        installation.clone_into(&mut self.installation);
        Ok(())
    }

    /// Nothing more is asked of this connection. Its transaction, if there is one, is undone by the server.
    pub fn lose(&mut self) {
        self.link = None;
        self.locked = false;
    }

    fn link(&self) -> Result<&Link, LogError> {
        self.link.as_ref().ok_or_else(|| self.words.away("the connection was lost"))
    }

    /// Begins to read everything, at one moment.
    pub async fn begin_load(&mut self, patience: Duration) -> Result<(Header, i64, i64), LogError> {
        self.connect(patience).await?;
        self.settle().await?;
        let outcome = self.read_header().await;
        outcome.map_err(|error| {
            self.lose();
            self.words.refused(&error)
        })
    }

    async fn read_header(&mut self) -> Result<(Header, i64, i64), Error> {
        let Some(link) = &self.link else { return Ok(Default::default()) };
        link.client
            .batch_execute(
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0;
                 SET LOCAL idle_in_transaction_session_timeout = '60s'",
            )
            .await?;
        let select = "SELECT revision, compacted, chain, row_count, digest FROM muster_header WHERE id = 0";
        let row = link.client.query_one(select, &[]).await?;
        let unsigned = |index| row.try_get::<_, i64>(index).map(i64::cast_unsigned);
        let header = Header { revision: Revision(unsigned(0)?), compacted: Revision(unsigned(1)?) };
        self.known = Known { revision: row.try_get(0)?, chain: row.try_get(2)? };
        Ok((header, row.try_get(3)?, row.try_get(4)?))
    }

    /// All rows, as a stream of the load that was begun.
    pub async fn rows(&self) -> Result<tokio_postgres::RowStream, LogError> {
        let select =
            "SELECT revision, at, resource, path, splice, crc, json FROM muster_log ORDER BY revision";
        let none: [i32; 0] = [];
        let streaming = self.link()?.client.query_raw(select, none).await;
        streaming.map_err(|error| self.words.refused(&error))
    }

    /// Ends a load.
    pub async fn end_load(&mut self) -> Result<(), LogError> {
        let ended = self.link()?.client.batch_execute("COMMIT").await;
        ended.map_err(|error| self.words.refused(&error))
    }

    /// Appends on top of what is known.
    pub async fn append(&mut self, changes: &[Arc<Change>], forget: &Forget) -> Result<(), LogError> {
        let until = Instant::now() + SETTLING;
        let columns = Columns::of(changes, self.known.chain);
        loop {
            self.connect(PATIENCE).await?;
            self.settle().await?;
            match self.try_append(&columns, forget).await {
                Ok(Answer::Written) => {
                    self.known = columns.behind(self.known, forget);
                    return Ok(());
                }
                Ok(Answer::Behind) => {
                    self.contended = true;
                    return Err(LogError::Behind);
                }
                Err(Trouble::Refused(error)) => return Err(error),
                Err(Trouble::Uncertain(why)) => {
                    self.lose();
                    match self.find_out(until).await {
                        Some(true) => {
                            self.known = columns.behind(self.known, forget);
                            return Ok(());
                        }
                        Some(false) => {}
                        None => return Err(self.words.unknown(&why)),
                    }
                }
            }
        }
    }

    async fn try_append(&mut self, columns: &Columns<'_>, forget: &Forget) -> Result<Answer, Trouble> {
        if self.contended && !self.locked && self.lock().await.map_err(Trouble::Refused)? {
            return Ok(Answer::Behind);
        }
        self.sequence += 1;
        let link = self.link().map_err(Trouble::Refused)?;
        let forgotten: Vec<i64> = forget.revisions.iter().map(|revision| revision.0.cast_signed()).collect();
        let compacted = forget.compacted.0.cast_signed();
        let after = columns.behind(self.known, forget).revision;
        let parameters: [&(dyn ToSql + Sync); 15] = [
            &self.writer,
            &self.sequence,
            &self.known.revision,
            &self.known.chain,
            &columns.chain,
            &columns.revisions,
            &columns.ats,
            &columns.resources,
            &columns.paths,
            &columns.splices,
            &columns.crcs,
            &columns.jsons,
            &forgotten,
            &compacted,
            &after,
        ];
        let write = link.client.query_one(&link.append, &parameters);
        let locked = self.locked;
        let end = async { if locked { link.client.batch_execute("COMMIT").await } else { Ok(()) } };
        // Sent together; the end is carried out only if the write was.
        let outcome = timeout(STATEMENT, async { tokio::join!(write, end) }).await;
        let Ok((written, ended)) = outcome else {
            self.question = Some(self.sequence);
            return Err(Trouble::Uncertain("it did not answer in time".into()));
        };
        let row = match (written, ended) {
            (Ok(row), Ok(())) => row,
            (Err(error), _) | (Ok(_), Err(error)) if is_uncertain(&error) || locked => {
                self.question = Some(self.sequence);
                return Err(Trouble::Uncertain(tell(&error)));
            }
            (Err(error), _) | (Ok(_), Err(error)) => {
                let refused = self.words.refused(&error);
                // It may be a server that no longer takes writes; another one may.
                self.lose();
                return Err(Trouble::Refused(refused));
            }
        };
        self.locked = false;
        let answer: Vec<i64> = row.get(0);
        match answer[..] {
            [0, _] => {
                self.contended = locked;
                Ok(Answer::Written)
            }
            [1, _] => {
                // If the lock cannot be had, the next try finds that out.
                drop(self.lock().await);
                Ok(Answer::Behind)
            }
            [2, found] => Err(Trouble::Refused(self.words.diverged(self.known.revision, found))),
            _ => Err(Trouble::Refused(self.words.corrupt("somebody else uses the name of this writer"))),
        }
    }

    /// Keeps everybody else from writing. True if they wrote before that.
    async fn lock(&mut self) -> Result<bool, LogError> {
        let link = self.link()?;
        let locking = async {
            let ((), row) =
                tokio::try_join!(link.client.batch_execute("BEGIN"), link.client.query_one(&link.lock, &[]))?;
            Ok::<i64, Error>(row.get(0))
        };
        let error = match timeout(STATEMENT, locking).await {
            Ok(Ok(revision)) => {
                self.locked = true;
                let behind = revision != self.known.revision;
                self.contended = behind;
                return Ok(behind);
            }
            Ok(Err(error)) => self.words.refused(&error),
            Err(_) => self.words.slow(),
        };
        self.lose();
        Err(error)
    }

    /// Whether the last append happened; `None` if that cannot be found out in time.
    async fn find_out(&mut self, until: Instant) -> Option<bool> {
        while Instant::now() < until {
            if self.connect(until - Instant::now()).await.is_ok()
                && let Ok(happened) = self.ask().await
            {
                return happened;
            }
            self.lose();
        }
        None
    }

    /// Settles a question that was left open. If it happened, its rows are followed like those of others.
    async fn settle(&mut self) -> Result<(), LogError> {
        match self.ask().await {
            Ok(_) => Ok(()),
            Err(error) => {
                self.lose();
                Err(error)
            }
        }
    }

    /// Asks whether an append happened, if that is open. From then on it did, or never will.
    async fn ask(&mut self) -> Result<Option<bool>, LogError> {
        let Some(sequence) = self.question else { return Ok(None) };
        let link = self.link()?;
        let parameters: [&(dyn ToSql + Sync); 2] = [&self.writer, &sequence];
        let asking = link.client.query_one(&link.settle, &parameters);
        let row = match timeout(STATEMENT, asking).await {
            Ok(Ok(row)) => row,
            Ok(Err(error)) => return Err(self.words.refused(&error)),
            Err(_) => return Err(self.words.slow()),
        };
        self.question = None;
        Ok(Some(row.get(0)))
    }

    /// The rows that others wrote since.
    pub async fn follow(&mut self) -> Result<Vec<StoredRow>, LogError> {
        self.connect(PATIENCE).await?;
        self.settle().await?;
        let (mut rows, before) = (Vec::new(), self.known);
        loop {
            match self.follow_page(&mut rows).await {
                Ok(true) => {}
                Ok(false) => return Ok(rows),
                Err(error) => {
                    // Whoever asked gets none of them.
                    self.known = before;
                    return Err(error);
                }
            }
        }
    }

    /// True if there is more.
    async fn follow_page(&mut self, rows: &mut Vec<StoredRow>) -> Result<bool, LogError> {
        let link = self.link()?;
        let parameters: [&(dyn ToSql + Sync); 2] = [&self.known.revision, &PAGE];
        let reading = link.client.query(&link.follow, &parameters);
        let page = match timeout(STATEMENT, reading).await {
            Ok(Ok(page)) => page,
            Ok(Err(error)) => {
                let error = self.words.refused(&error);
                self.lose();
                return Err(error);
            }
            Err(_) => {
                self.lose();
                return Err(self.words.slow());
            }
        };
        let Some(first) = page.first() else { return Err(self.words.corrupt("its header is gone")) };
        let (head, compacted, head_chain): (i64, i64, i64) = (first.get(0), first.get(1), first.get(2));
        let same = head != self.known.revision || head_chain == self.known.chain;
        if head < self.known.revision || !same {
            return Err(self.words.diverged(self.known.revision, head));
        }
        if head > self.known.revision && compacted > self.known.revision {
            self.lose();
            return Err(LogError::Forgotten);
        }
        let mut known = self.known;
        for row in page.iter().filter(|row| row.get::<_, Option<i64>>(3).is_some()) {
            let row = StoredRow::read(row, 3, &self.words)?;
            if row.revision != known.revision + 1 {
                let what = format!("the row of revision {} is missing", known.revision + 1);
                return Err(self.words.corrupt(&what));
            }
            known = Known { revision: row.revision, chain: chain::link(known.chain, row.crc) };
            rows.push(row);
        }
        if known.revision == head && known.chain != head_chain {
            return Err(self.words.diverged(known.revision, head));
        }
        self.known = known;
        Ok(known.revision < head)
    }
}
