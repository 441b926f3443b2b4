//! SQLite passes the suite that every log passes.

use muster_ports::store::conformance::Subject;
use muster_store_sql::SqliteLog;

muster_ports::store_conformance!(subject());

fn subject() -> impl Subject {
    let directory = tempfile::tempdir().expect("a directory for the test");
    move || SqliteLog::open(&directory.path().join("muster.db"))
}
