//! Copies one log to another, row by row, with their revisions: whoever watched the one can go on with the other.
//!
//! A copy that was cut goes on where it was: rows come in order, and what the target has is skipped. In the end both are read and
//! compared.

use std::sync::Arc;

use muster_ports::store::{Change, Forget, Header, Log, LogError, Revision};

use crate::checksum::{self, Ledger};

/// Rows that are written at once,
const ROWS: usize = 1024;
/// or as many as have this many bytes.
const BYTES: usize = 4 << 20;

/// What was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// Rows that both have.
    pub rows: u64,
    /// Those of them that the target had before.
    pub found: u64,
    /// The revision that both are at.
    pub revision: Revision,
}

/// Copies everything, and compares. `told` hears up to which revision the target has everything, and of which.
pub fn copy(
    from: &mut dyn Log,
    to: &mut dyn Log,
    told: &mut dyn FnMut(Revision, Revision),
) -> Result<Copied, LogError> {
    let wanted = from.header()?;
    let found = read(to)?;
    let mut tell = |reached| told(reached, wanted.revision);
    let mut target = Target { to, changes: Vec::new(), bytes: 0, rows: found.rows, failed: None };
    from.load(&mut |row| {
        if row.revision > found.header.revision && target.failed.is_none() {
            target.take(Change::from(row), &mut tell);
        }
    })?;
    target.flush(&mut tell);
    let Target { rows, failed, .. } = target;
    if let Some(error) = failed {
        return Err(error);
    }
    let ends = Forget { revisions: Vec::new(), compacted: wanted.compacted, given: wanted.revision };
    to.append(&[], &ends)?;
    compare(&read(from)?, &read(to)?)?;
    Ok(Copied { rows, found: found.rows, revision: wanted.revision })
}

/// Where rows go.
struct Target<'a> {
    to: &'a mut dyn Log,
    changes: Vec<Arc<Change>>,
    bytes: usize,
    rows: u64,
    failed: Option<LogError>,
}

impl Target<'_> {
    fn take(&mut self, change: Change, told: &mut dyn FnMut(Revision)) {
        self.bytes += change.object.json().len();
        self.changes.push(Arc::new(change));
        if self.changes.len() >= ROWS || self.bytes >= BYTES {
            self.flush(told);
        }
    }

    fn flush(&mut self, told: &mut dyn FnMut(Revision)) {
        if self.changes.is_empty() || self.failed.is_some() {
            return;
        }
        match self.to.append(&self.changes, &Forget::default()) {
            Ok(()) => {
                self.rows += self.changes.len() as u64;
                told(self.changes.last().map_or(Revision::ZERO, |last| last.revision()));
            }
            Err(error) => self.failed = Some(error),
        }
        self.changes.clear();
        self.bytes = 0;
    }
}

/// What a log amounts to.
fn read(log: &mut dyn Log) -> Result<Ledger, LogError> {
    let header = log.header()?;
    let mut ledger = Ledger::default();
    log.load(&mut |row| ledger.add(row.revision, checksum::of(&row)))?;
    Ok(Ledger { header, ..ledger })
}

fn compare(from: &Ledger, to: &Ledger) -> Result<(), LogError> {
    if from == to {
        return Ok(());
    }
    let at = |header: &Header| format!("revision {}, compacted {}", header.revision, header.compacted);
    Err(LogError::Corrupt(format!(
        "the copy is not what it was copied from: {} rows at {} became {} rows at {}; copy again to an empty place, while \
         nobody writes to what is copied",
        from.rows,
        at(&from.header),
        to.rows,
        at(&to.header)
    )))
}
