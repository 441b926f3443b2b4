//! What a server finds in its database when it starts.

use std::cell::RefCell;
use std::fs;
use std::sync::Arc;

use muster_ports::clock::{ManualClock, Millis};
use muster_ports::store::{
    Batch, Change, Draft, Forget, Header, History, Key, Log, LogError, MemoryLog, Precondition, ResourceName,
    Revision, Row, Store, Write,
};
use muster_store_sql::SqliteLog;
use serde::Deserialize;
use tempfile::TempDir;

use crate::Target;
use crate::api_server::with_server_over;

pub const ROWS: Target = Target {
    name: "store_rows",
    property: "a server starts over whatever rows there are, answers every request about them, and objects can be deleted and are gone \
               after the next start",
    run: rows,
};
pub const SQLITE: Target = Target {
    name: "sqlite",
    property: "a damaged database is refused as it is, to the byte, or opens with exactly what was written",
    run: sqlite,
};

/// A row that is kept in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRow {
    revision: Revision,
    at: Millis,
    resource: String,
    path: String,
    splice: u32,
    json: Option<Vec<u8>>,
}

impl From<Row<'_>> for KeptRow {
    fn from(row: Row<'_>) -> Self {
        Self {
            revision: row.revision,
            at: row.at,
            resource: row.resource.to_owned(),
            path: row.path.to_owned(),
            splice: row.splice,
            json: row.json.map(<[u8]>::to_vec),
        }
    }
}

impl KeptRow {
    fn row(&self) -> Row<'_> {
        let Self { revision, at, resource, path, splice, json } = self;
        Row { revision: *revision, at: *at, resource, path, splice: *splice, json: json.as_deref() }
    }
}

/// A log that begins with some rows, and forgets what is written to it.
#[derive(Debug, Clone)]
pub struct KeptRows {
    pub header: Header,
    pub rows: Arc<[KeptRow]>,
}

impl Log for KeptRows {
    fn header(&mut self) -> Result<Header, LogError> {
        Ok(self.header)
    }

    fn load(&mut self, sink: &mut dyn FnMut(Row<'_>)) -> Result<(), LogError> {
        self.rows.iter().for_each(|row| sink(row.row()));
        Ok(())
    }

    fn append(&mut self, _: &[Arc<Change>], _: &Forget) -> Result<(), LogError> {
        Ok(())
    }
}

/// What stands on the line before an object.
#[derive(Deserialize)]
struct Head {
    revision: u64,
    #[serde(default)]
    at: i64,
    resource: String,
    path: String,
    #[serde(default)]
    splice: u32,
}

/// Two lines for each row: what it is, and the object; a deletion has `-` instead. As databases give them: by revision, each once.
fn read_rows(input: &[u8]) -> KeptRows {
    let mut rows: Vec<KeptRow> = Vec::new();
    let mut lines = input.split(|byte| *byte == b'\n');
    while let (Some(head), Some(object)) = (lines.next(), lines.next()) {
        let Ok(Head { revision, at, resource, path, splice }) = serde_json::from_slice(head) else {
            continue;
        };
        let json = (object != b"-").then(|| object.to_vec());
        // Numbers of a database have a sign.
        let revision = Revision(revision & (i64::MAX as u64) >> 1);
        rows.push(KeptRow { revision, at: Millis(at), resource, path, splice, json });
    }
    rows.retain(|row| row.revision > Revision::ZERO);
    rows.sort_by_key(|row| row.revision);
    rows.dedup_by_key(|row| row.revision);
    let revision = rows.last().map_or(Revision::ZERO, |row| row.revision);
    KeptRows { header: Header { revision, compacted: Revision::ZERO }, rows: rows.into() }
}

fn rows(input: &[u8]) {
    let log = read_rows(input);
    with_server_over(log.clone(), crate::api_server::Server::look_at_everything);
    let memory = MemoryLog::default();
    {
        // A log that keeps what is written to it begins with the same.
        let mut copy = memory.clone();
        let changes: Vec<_> = log.rows.iter().map(|row| Arc::new(Change::from(row.row()))).collect();
        copy.append(&changes, &Forget { given: log.header.revision, ..Forget::default() }).unwrap();
    }
    let open =
        || Store::open_inline(memory.clone(), History::default(), ManualClock::default()).expect("a store");
    let store = open();
    let keys: Vec<_> = store
        .counts()
        .into_iter()
        .flat_map(|(resource, _)| {
            let snapshots = store.snapshots(std::slice::from_ref(&resource));
            let paths: Vec<_> = snapshots[0].range(None, None).map(|stored| stored.path.clone()).collect();
            paths.into_iter().map(move |path| Key { resource: resource.clone(), path })
        })
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for key in keys {
        let write = Write::Delete { key: key.clone(), expect: Precondition::Exists };
        runtime.block_on(store.commit(Batch::of(write))).unwrap_or_else(|error| panic!("{key}: {error}"));
    }
    drop(store);
    let left: usize = open().counts().iter().map(|(_, count)| count).sum();
    assert_eq!(left, 0, "objects that were deleted are back");
}

/// A good database, and a directory for damaged copies of it.
struct Database {
    place: TempDir,
    bytes: Vec<u8>,
    contents: (Header, Vec<KeptRow>),
}

thread_local! {
    static DATABASE: RefCell<Option<Database>> = const { RefCell::new(None) };
}

impl Database {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("good.db");
        let log = SqliteLog::open(&path).unwrap();
        let store =
            Store::open(log, History { max_changes: 20, ..History::default() }, ManualClock::default())
                .unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let resource = ResourceName::new("tasks.muster.dev");
        for number in 0..60 {
            let key = |number: usize| Key::new(&resource, "default", &format!("object-{}", number % 25));
            let write = if number % 7 == 6 {
                Write::Delete { key: key(number - 1), expect: Precondition::Exists }
            } else {
                let (key, text) =
                    (key(number), format!("\",\"padding\":\"{}\"}}", "x".repeat(60 * (number % 5))));
                let expect =
                    if store.get(&key).is_some() { Precondition::Exists } else { Precondition::Absent };
                Write::Put { key, expect, draft: Draft::joined("{\"revision\":\"", &text) }
            };
            runtime.block_on(store.commit(Batch::of(write))).unwrap();
        }
        store.close();
        let bytes = fs::read(&path).unwrap();
        let contents = read_database(&path).unwrap();
        Self { place, bytes, contents }
    }
}

fn read_database(path: &std::path::Path) -> Result<(Header, Vec<KeptRow>), LogError> {
    let mut log = SqliteLog::open(path)?;
    let header = log.header()?;
    let mut rows = Vec::new();
    log.load(&mut |row| rows.push(KeptRow::from(row)))?;
    Ok((header, rows))
}

/// Pieces of an input: four bytes of a place, one of a length, and what stands there instead. Length 255 cuts the file there.
fn damage(bytes: &mut Vec<u8>, mut input: &[u8]) {
    while let Some((head, rest)) = input.split_first_chunk::<5>() {
        let at = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize % bytes.len().max(1);
        if head[4] == u8::MAX {
            bytes.truncate(at);
            return;
        }
        let (piece, rest) = rest.split_at(rest.len().min(usize::from(head[4])));
        for (place, byte) in bytes[at..].iter_mut().zip(piece) {
            *place = *byte;
        }
        input = rest;
    }
}

fn sqlite(input: &[u8]) {
    DATABASE.with_borrow_mut(|database| {
        let database = database.get_or_insert_with(Database::new);
        let mut damaged = database.bytes.clone();
        damage(&mut damaged, input);
        let path = database.place.path().join("damaged.db");
        for suffix in ["", "-wal", "-shm", "-journal"] {
            drop(fs::remove_file(database.place.path().join(format!("damaged.db{suffix}"))));
        }
        fs::write(&path, &damaged).unwrap();
        match read_database(&path) {
            Ok(contents) => assert!(contents == database.contents, "it opens with other contents"),
            Err(_) => assert!(fs::read(&path).unwrap() == damaged, "it is refused, and changed"),
        }
    });
}
