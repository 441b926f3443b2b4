//! Backups, which `muster restore` reads.

use std::io::Write;

use muster_apiserver::backup::{BackupError, Into, Summary, read};
use muster_ports::blobs::MemoryBlobs;
use muster_ports::clock::{ManualClock, Millis};
use muster_ports::store::{History, MemoryLog, Store};
use ring::digest::{Context, SHA256};
use tar::{Builder, Header};

use crate::Target;
use crate::api_objects::first_line;

pub const BACKUP: Target = Target {
    name: "backup",
    property: "checking a backup and restoring it agree, a store opens what was restored, and it has as many objects as were told",
    run: backup,
};

/// A tar as it is. An input that begins with a brace is the head of one, a line, and then its rows: the rest is put around them, so that
/// its sum is right.
fn backup(input: &[u8]) {
    let packed = input.starts_with(b"{").then(|| pack(input));
    let archive = packed.as_deref().unwrap_or(input);
    let checked = read(archive, None);
    let (mut log, blobs) = (MemoryLog::default(), MemoryBlobs::default());
    let restored = read(archive, Some(Into { log: &mut log, blobs: &blobs, now: Millis(1_763_000_000_000) }));
    match (checked, restored) {
        (Ok(checked), Ok(restored)) => {
            assert_eq!(checked, restored);
            check_store(log, &restored);
        }
        // Where files go may refuse a name that was only looked at.
        (Err(_), Err(_)) | (Ok(_), Err(BackupError::Blob(_))) => {}
        (checked, restored) => panic!("checking gives {checked:?}, restoring gives {restored:?}"),
    }
}

fn check_store(log: MemoryLog, summary: &Summary) {
    let store =
        Store::open_inline(log, History::default(), ManualClock::default()).expect("a store opens it");
    assert_eq!(store.revision(), summary.revision);
    let objects: usize = store.counts().iter().map(|(_, count)| count).sum();
    // Of two rows of one object the later counts.
    assert!(objects as u64 <= summary.rows, "{objects} objects of {summary:?}");
}

fn pack(input: &[u8]) -> Vec<u8> {
    let (head, rows) = first_line(input);
    let mut sum = Context::new(&SHA256);
    let mut out = Builder::new(Vec::new());
    for (name, content) in [("muster-backup.json", head.as_bytes()), ("rows", rows)] {
        for part in [
            &(name.len() as u64).to_be_bytes()[..],
            name.as_bytes(),
            &(content.len() as u64).to_be_bytes()[..],
            content,
        ] {
            sum.update(part);
        }
        append(&mut out, name, content);
    }
    let mut hex = String::new();
    for byte in sum.finish().as_ref() {
        hex += &format!("{byte:02x}");
    }
    append(&mut out, "sum", hex.as_bytes());
    out.into_inner().unwrap()
}

fn append(out: &mut Builder<impl Write>, name: &str, content: &[u8]) {
    let mut header = Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    out.append_data(&mut header, name, content).unwrap();
}
