//! Writes a backup.

use std::io::{self, Read, Write};

use muster_ports::blobs::{BlobError, BlobKey, Blobs};
use muster_ports::clock::Millis;
use muster_ports::store::{ResourceName, Revision, Store, Stored};
use tar::{Builder, Header};

use super::{FILES, FORMAT, HEAD, Head, ROWS, RowHead, SUM, Sum, Summed};

/// Bytes of a file that are read at once.
const BLOCK: usize = 256 * 1024;
/// What is below these keys is kept.
const KEPT: [&str; 2] = ["tasks", "kubejobs"];

/// Writes everything of a server. What was acknowledged before this was called is in it.
pub fn pack(
    store: &Store,
    blobs: Option<&dyn Blobs>,
    now: Millis,
    out: &mut Builder<impl Write>,
) -> io::Result<()> {
    let (revision, rows) = rows_of(store);
    let mut packer = Packer { out, sum: Sum::default(), now };
    let head = Head { format: FORMAT, revision: revision.0, rows: rows.len() as u64 };
    packer.append_bytes(HEAD, &serde_json::to_vec(&head)?)?;
    packer.append_rows(&rows)?;
    drop(rows);
    if let Some(blobs) = blobs {
        for below in KEPT {
            let below = BlobKey::new(below).map_err(io::Error::other)?;
            for entry in blobs.list(&below).map_err(io::Error::other)? {
                packer.append_file(blobs, &below.join(&entry.path).map_err(io::Error::other)?)?;
            }
        }
    }
    let Packer { sum, out, now } = packer;
    let sum = sum.end();
    let mut header = header(sum.len() as u64, now);
    out.append_data(&mut header, SUM, sum.as_bytes())?;
    out.finish()
}

/// All objects of one moment, in order of their revisions.
fn rows_of(store: &Store) -> (Revision, Vec<(ResourceName, Stored)>) {
    let known = || store.counts().into_iter().map(|(resource, _)| resource).collect::<Vec<_>>();
    let mut resources = known();
    loop {
        let snapshots = store.snapshots(&resources);
        let now_known = known();
        // Otherwise a kind became known in between.
        if now_known == resources {
            let revision = snapshots.first().map_or_else(|| store.revision(), |snapshot| snapshot.revision);
            let mut rows: Vec<_> = std::iter::zip(&resources, &snapshots)
                .flat_map(|(resource, snapshot)| {
                    snapshot.range(None, None).map(|stored| (resource.clone(), stored.clone()))
                })
                .collect();
            rows.sort_by_key(|(_, stored)| stored.revision);
            return (revision, rows);
        }
        resources = now_known;
    }
}

fn row_head(resource: &ResourceName, stored: &Stored) -> io::Result<Vec<u8>> {
    let head = RowHead {
        revision: stored.revision.0,
        resource: resource.as_str().into(),
        path: (&*stored.path).into(),
        splice: stored.splice(),
        length: stored.json().len() as u64,
    };
    let mut line = serde_json::to_vec(&head)?;
    line.push(b'\n');
    Ok(line)
}

fn header(size: u64, now: Millis) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o600);
    header.set_mtime(u64::try_from(now.0.div_euclid(1000)).unwrap_or(0));
    header
}

fn changed(name: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        format!("{name} changed while it was read; make the backup again"),
    )
}

struct Packer<'a, W: Write> {
    out: &'a mut Builder<W>,
    sum: Sum,
    now: Millis,
}

impl<W: Write> Packer<'_, W> {
    fn append_bytes(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.append(name, bytes.len() as u64, bytes)
    }

    fn append_rows(&mut self, rows: &[(ResourceName, Stored)]) -> io::Result<()> {
        let mut size = 0;
        for (resource, stored) in rows {
            size += (row_head(resource, stored)?.len() + stored.json().len()) as u64;
        }
        let pieces = rows.iter().flat_map(|(resource, stored)| {
            let head = row_head(resource, stored).unwrap_or_default();
            [Piece::Head(head), Piece::Object(stored)]
        });
        self.append(ROWS, size, Pieces { rest: pieces, open: None, at: 0 })
    }

    /// Leaves out what was deleted meanwhile. One that is written anew while it is read ends the backup.
    fn append_file(&mut self, blobs: &dyn Blobs, key: &BlobKey) -> io::Result<()> {
        let found = blobs.size(key).and_then(|size| Ok((size, blobs.read(key, 0, BLOCK)?)));
        let (size, first) = match found {
            Ok(found) => found,
            Err(BlobError::NotFound(_)) => return Ok(()),
            Err(error) => return Err(io::Error::other(error)),
        };
        let at_once = first.len() as u64 == size;
        let file = FileReader { blobs, key, block: first, at: 0, offset: 0 };
        let name = format!("{FILES}{key}");
        self.append(&name, size, file)?;
        if at_once || blobs.size(key).is_ok_and(|now| now == size) { Ok(()) } else { Err(changed(&name)) }
    }

    fn append(&mut self, name: &str, size: u64, content: impl Read) -> io::Result<()> {
        self.sum.begin(name, size);
        let mut content = Summed { content: content.take(size), sum: &mut self.sum };
        self.out.append_data(&mut header(size, self.now), name, &mut content)?;
        if content.content.limit() > 0 {
            return Err(changed(name));
        }
        Ok(())
    }
}

enum Piece<'a> {
    Head(Vec<u8>),
    Object(&'a Stored),
}

impl Piece<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Head(bytes) => bytes,
            Self::Object(stored) => stored.json(),
        }
    }
}

/// Pieces as one text.
struct Pieces<'a, I: Iterator<Item = Piece<'a>>> {
    rest: I,
    open: Option<Piece<'a>>,
    at: usize,
}

impl<'a, I: Iterator<Item = Piece<'a>>> Read for Pieces<'a, I> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(open) = &self.open
                && let Some(rest @ [_, ..]) = open.bytes().get(self.at..)
            {
                let count = rest.len().min(out.len());
                out[..count].copy_from_slice(&rest[..count]);
                self.at += count;
                return Ok(count);
            }
            let Some(next) = self.rest.next() else { return Ok(0) };
            (self.open, self.at) = (Some(next), 0);
        }
    }
}

/// Reads a kept file whose beginning is known.
struct FileReader<'a> {
    blobs: &'a dyn Blobs,
    key: &'a BlobKey,
    block: Vec<u8>,
    at: usize,
    /// Where the block began.
    offset: u64,
}

impl Read for FileReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.block.len() && !self.block.is_empty() {
            self.offset += self.block.len() as u64;
            self.block = self.blobs.read(self.key, self.offset, BLOCK).map_err(io::Error::other)?;
            self.at = 0;
        }
        let rest = &self.block[self.at..];
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}
