//! Where the objects of a test are: in a database of its own, on a PostgreSQL that tests share.

use muster_e2e::databases::Postgres;
use muster_ports::clock::ManualClock;
use muster_ports::store::{History, Store};
use muster_store_sql::{PostgresLog, Target};

use crate::fallible_log::Faults;

/// A store of its own.
pub fn open(faults: &Faults, history: History, clock: ManualClock) -> Store {
    let postgres = Postgres::shared();
    let target = Target::parse(&postgres.fresh_url(), |_| None).expect("the address is well-formed");
    let log = PostgresLog::open(&target, "test").expect("a database can be made");
    Store::open(faults.around(log, postgres), history, clock).expect("a store")
}
