//! The fake passes the suite that every database passes.

use muster_ports::store::MemoryLog;
use muster_ports::store::conformance::Subject;

muster_ports::store_conformance!(subject(), 512);

fn subject() -> impl Subject {
    let log = MemoryLog::default();
    move || Ok(log.clone())
}
