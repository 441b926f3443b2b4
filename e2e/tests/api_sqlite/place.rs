//! Where the objects of a test are: in a SQLite file of its own.

use muster_ports::clock::ManualClock;
use muster_ports::store::{History, Store};
use muster_store_sql::SqliteLog;

use crate::fallible_log::Faults;

/// A store of its own.
pub fn open(faults: &Faults, history: History, clock: ManualClock) -> Store {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let log = SqliteLog::open(&dir.path().join("muster.db")).expect("a file can be made");
    Store::open(faults.around(log, dir), history, clock).expect("a store")
}
