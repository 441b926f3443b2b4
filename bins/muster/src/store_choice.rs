//! Where everything is kept: a file of this machine, or a database that several servers share.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use muster_engine::relay;
use muster_ports::clock::SystemClock;
use muster_ports::store::{History, Log, MeasuredLog, Revision, Store};
use muster_ports::telemetry::Telemetry;
use muster_store_sql::{PostgresLog, SqliteLog, Target};

use crate::cli::{LimitArgs, StoreArgs};
use crate::data_dir::{DataDir, write_private};
use crate::work::relay_settings;

/// A place for a log.
#[derive(Debug)]
pub enum Place {
    /// A file.
    Sqlite(PathBuf),
    /// A database.
    Postgres(Box<Target>),
}

impl Place {
    /// Reads `sqlite:FILE` or `postgres://…`.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            return Ok(Self::Sqlite(path.trim_start_matches("//").into()));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") || text.contains('=') {
            return Ok(Self::Postgres(Box::new(Target::parse(text, |name| std::env::var(name).ok())?)));
        }
        // What is before the host may be a secret.
        let shown = text.rsplit('@').next().unwrap_or_default();
        bail!("`{shown}` is no store; write sqlite:FILE or postgres://USER@HOST/DATABASE")
    }
}

/// Opens the store of a server. A shared one comes with what tells it from all others.
pub fn open(
    data: &DataDir,
    wanted: &StoreArgs,
    limits: &LimitArgs,
    telemetry: &Telemetry,
) -> anyhow::Result<(Store, Option<String>)> {
    let place = match &wanted.store {
        Some(text) => Place::parse(text)?,
        None => Place::Sqlite(data.database()),
    };
    match place {
        Place::Sqlite(path) => Ok((open_log(SqliteLog::open(&path)?, limits, telemetry)?, None)),
        Place::Postgres(target) => {
            let log = PostgresLog::open(&target, &wanted.installation)?;
            let identity = log.identity().to_owned();
            remember(data, &identity, &target)?;
            Ok((open_log(log, limits, telemetry)?, Some(identity)))
        }
    }
}

/// A data directory belongs to one database for ever: what attempts left in it is of the tasks there.
fn remember(data: &DataDir, identity: &str, target: &Target) -> anyhow::Result<()> {
    let path = data.path().join("store-identity");
    match fs::read_to_string(&path) {
        Ok(known) if known.trim() == identity => Ok(()),
        Ok(_) => bail!(
            "the data directory {} belongs to another database than {target}; name the right one with --store, or another \
             directory with --data",
            data.path().display()
        ),
        Err(_) => write_private(&path, identity).context("cannot write which database this is"),
    }
}

fn open_log(log: impl Log, limits: &LimitArgs, telemetry: &Telemetry) -> anyhow::Result<Store> {
    let log = MeasuredLog::new(log, telemetry.clone());
    let history = History {
        max_changes: limits.history_changes,
        max_age: limits.history_age.as_std(),
        ..History::default()
    };
    let relay = relay_settings(limits);
    let hold = Some((relay::START_HOLD, relay.hold(Revision::ZERO)));
    let store = Store::open_holding(log, history, SystemClock, hold)?;
    relay::hold_for_sinks(&store, &relay);
    Ok(store)
}
