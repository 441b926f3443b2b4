//! Moves the write-ahead log to the database beside the one who writes.
//!
//! SQLite itself does that in the commit that makes the log long enough, and everybody who writes waits until the disk has taken it
//! all. Here a thread with a connection of its own moves it while commits go on. What they add meanwhile is little: the writer moves
//! that, and the log is begun anew.

use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};

use rusqlite::Connection;

use super::file::{self, Sharing};

/// Pages in the log at which they are moved: 16 MB in a new database.
const PAGES: i32 = 2048;
/// Pages at which the writer no longer waits for another to move them.
const MOST_PAGES: i32 = 8 * PAGES;
/// The first time takes as long as the disk does; the second moves what was added meanwhile.
const PASSES: usize = 2;

/// Nothing is to be moved.
const IDLE: u8 = 0;
/// The thread was asked to move.
const ASKED: u8 = 1;
/// It has moved all but what was added since.
const MOVED: u8 = 2;

/// A thread that moves, until this is dropped.
#[derive(Debug)]
pub(super) struct Mover {
    /// Pages in the log after the last commit.
    pages: Arc<AtomicI32>,
    phase: Arc<AtomicU8>,
    ask: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Mover {
    /// For the database at `path`, to which `writer` commits.
    pub fn start(path: &Path, writer: &mut Connection) -> rusqlite::Result<Self> {
        let own = file::connect(path, Sharing::Shared)?;
        let (ask, asked) = mpsc::channel();
        let (pages, phase) = (Arc::new(AtomicI32::new(0)), Arc::new(AtomicU8::new(IDLE)));
        let noted = pages.clone();
        writer.wal_hook(Some(move |_: &mut _, pages| {
            noted.store(pages, Ordering::Relaxed);
            Ok(())
        }))?;
        let done = phase.clone();
        let body = move || {
            for () in asked {
                (0..PASSES).for_each(|_| move_pages(&own));
                done.store(MOVED, Ordering::Release);
            }
        };
        // Without a thread the writer moves everything by itself, later.
        let thread = Builder::new().name("store-mover".into()).spawn(body);
        let thread = thread.inspect_err(|error| tracing::warn!(%error, "cannot start the thread that moves the write-ahead log; commits will do it")).ok();
        Ok(Self { pages, phase, ask: thread.is_some().then_some(ask), thread })
    }

    /// Sees to the log after a commit.
    pub fn committed(&self, writer: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < PAGES {
            return;
        }
        match self.phase.load(Ordering::Acquire) {
            IDLE => {
                self.phase.store(ASKED, Ordering::Relaxed);
                if let Some(ask) = &self.ask {
                    // A thread that is gone is made up for below.
                    ask.send(()).ok();
                }
            }
            ASKED if pages < MOST_PAGES => {}
            _ => {
                move_pages(writer);
                self.phase.store(IDLE, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that moves the write-ahead log panicked");
        }
    }
}

/// Moves what can be moved without waiting for anybody. What is left is moved the next time.
fn move_pages(connection: &Connection) {
    if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
        tracing::warn!(%error, "the write-ahead log cannot be moved to the database");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin() -> (tempfile::TempDir, Connection, Mover) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let mut writer = Connection::open(&path).unwrap();
        writer.execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE a (b BLOB)").unwrap();
        let mover = Mover::start(&path, &mut writer).unwrap();
        (directory, writer, mover)
    }

    #[test]
    fn the_log_begins_anew_though_commits_never_pause() {
        let (directory, writer, mover) = begin();
        let piece = vec![7_u8; 256 << 10];
        let mut longest = 0;
        let begins_anew = (0..4000).any(|_| {
            writer.execute("INSERT INTO a VALUES (?1)", [&piece]).unwrap();
            mover.committed(&writer);
            let pages = mover.pages.load(Ordering::Relaxed);
            let begins_anew = pages < longest;
            longest = longest.max(pages);
            begins_anew
        });
        assert!(begins_anew, "{longest} pages");
        assert!(longest >= PAGES, "moved before there was enough: {longest} pages");
        let count: i64 = writer.query_row("SELECT count(*) FROM a", [], |row| row.get(0)).unwrap();
        drop(mover);
        let reader = Connection::open(directory.path().join("a.db")).unwrap();
        assert_eq!(reader.query_row("SELECT count(*) FROM a", [], |row| row.get(0)), Ok(count));
    }

    #[test]
    fn without_a_thread_the_writer_moves_by_itself() {
        let (_directory, writer, mut mover) = begin();
        mover.ask = None;
        let piece = vec![7_u8; 4 << 20];
        let longest = (0..24)
            .map(|_| {
                writer.execute("INSERT INTO a VALUES (?1)", [&piece]).unwrap();
                mover.committed(&writer);
                mover.pages.load(Ordering::Relaxed)
            })
            .max();
        assert!(
            longest.is_some_and(|longest| (MOST_PAGES..2 * MOST_PAGES).contains(&longest)),
            "{longest:?}"
        );
    }
}
