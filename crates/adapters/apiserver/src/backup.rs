//! Backups: everything a server keeps, as one tar, made while it goes on working.
//!
//! Is: what is in such an archive, written by [`pack`] and read by [`read`]. All objects are of one moment: the archive is made of a
//! snapshot, which costs writers nothing. Files are those that were there afterwards, so that none is missing that the objects
//! speak of, but for those that were deleted meanwhile. Is not: a copy of the history; whoever watches begins anew.
//!
//! ```text
//! muster-backup.json    the format, the revision and the number of objects
//! rows                  for each object a line of JSON that describes it, and the object itself
//! files/KEY             each kept file
//! sum                   SHA-256 over names, sizes and contents of all of these; without it the archive is not whole
//! ```

mod pack;
mod read;

use std::borrow::Cow;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub(crate) use pack::pack;
pub use read::{BackupError, Into, Summary, read};

use crate::ids;

/// The only format so far.
const FORMAT: u32 = 1;
const HEAD: &str = "muster-backup.json";
const ROWS: &str = "rows";
const FILES: &str = "files/";
const SUM: &str = "sum";

/// What comes first.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    format: u32,
    revision: u64,
    rows: u64,
}

/// What comes before each object.
#[derive(Debug, Serialize, Deserialize)]
struct RowHead<'a> {
    revision: u64,
    resource: Cow<'a, str>,
    path: Cow<'a, str>,
    splice: u32,
    length: u64,
}

/// Adds up what an archive holds.
#[derive(Default)]
struct Sum(Sha256);

impl Sum {
    fn begin(&mut self, name: &str, size: u64) {
        self.0.update((name.len() as u64).to_be_bytes());
        self.0.update(name);
        self.0.update(size.to_be_bytes());
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn end(self) -> String {
        ids::hex(&self.0.finalize())
    }
}

/// Adds up what is read.
struct Summed<'a, R> {
    content: R,
    sum: &'a mut Sum,
}

impl<R: Read> Read for Summed<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read(out)?;
        self.sum.add(&out[..count]);
        Ok(count)
    }
}
