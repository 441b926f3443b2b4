//! PostgreSQL passes the suite that every log passes.

use muster_e2e::databases::Postgres;
use muster_ports::store::conformance::Subject;
use muster_store_sql::{PostgresLog, Target};

muster_ports::store_conformance!(subject(), 12);

fn subject() -> impl Subject {
    let postgres = Postgres::shared();
    let target = Target::parse(&postgres.fresh_url(), |_| None).expect("the address is well-formed");
    move || {
        // Kept as long as there is something to open.
        let _running = &postgres;
        PostgresLog::open(&target, "test")
    }
}
