//! Leases: who may act alone, with fencing.
//!
//! A lease is an object of the store. Its holder commits with [`Lease::guard`] in the batch: once somebody else
//! took the lease, such a batch is refused, however late it arrives. Renewing makes a new guard: a batch with an
//! older one is refused too, and is to be planned again.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::batch::{Batch, Check, CommitError, Precondition, Write};
use super::key::{Key, ResourceName};
use super::object::{Draft, Revision, Stored};
use super::writer::Store;
use crate::clock::Millis;

/// Where leases are kept.
const RESOURCE: &str = "leases.internal";

/// A lease that is held.
#[derive(Debug, Clone)]
pub struct Lease {
    key: Key,
    holder: String,
    /// Grows each time the lease changes hands; pass it to whatever acts on the holder's behalf.
    pub fence: u64,
    /// When it ends unless it is renewed.
    pub expires: Millis,
    revision: Revision,
}

/// Why a lease is not held.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Somebody else holds it.
    #[error("held by {holder} until {}", expires.0)]
    Held {
        /// Who.
        holder: String,
        /// Until when, if it is not renewed.
        expires: Millis,
    },
    /// Somebody else took it.
    #[error("the lease was lost to another holder")]
    Lost,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] CommitError),
}

#[derive(Serialize, Deserialize)]
struct Record {
    holder: String,
    fence: u64,
    expires: i64,
}

impl Lease {
    /// Takes a lease that is free, expired, or already held by the same holder.
    pub async fn acquire(
        store: &Store,
        name: &str,
        holder: &str,
        ttl: Duration,
        now: Millis,
    ) -> Result<Self, LeaseError> {
        let key = Key::new(&ResourceName::new(RESOURCE), "", name);
        loop {
            let found = store.get(&key);
            let fence = next_fence(found.as_deref(), holder, now)?;
            let expect = found.map_or(Precondition::Absent, |stored| Precondition::At(stored.revision));
            match put(store, key.clone(), holder, fence, ttl, now, expect).await {
                // Somebody was quicker; look again who has it now.
                Err(CommitError::Conflict { .. }) => {}
                outcome => return Ok(outcome?),
            }
        }
    }

    /// Extends the lease.
    pub async fn renew(&self, store: &Store, ttl: Duration, now: Millis) -> Result<Self, LeaseError> {
        let expect = Precondition::At(self.revision);
        put(store, self.key.clone(), &self.holder, self.fence, ttl, now, expect).await.map_err(lost)
    }

    /// Gives the lease up at once.
    pub async fn release(self, store: &Store) -> Result<(), LeaseError> {
        let expect = Precondition::At(self.revision);
        put(store, self.key, "", self.fence, Duration::ZERO, Millis(0), expect).await.map_err(lost)?;
        Ok(())
    }

    /// The condition that this lease is still held as it was when it was last renewed.
    pub fn guard(&self) -> Check {
        Check { key: self.key.clone(), expect: Precondition::At(self.revision) }
    }
}

fn read(stored: &Stored) -> Option<Record> {
    serde_json::from_slice(stored.json()).ok()
}

/// The fence with which `holder` may take the lease, if it may.
fn next_fence(found: Option<&Stored>, holder: &str, now: Millis) -> Result<u64, LeaseError> {
    let Some(stored) = found else { return Ok(1) };
    match read(stored) {
        Some(record) if record.holder == holder => Ok(record.fence),
        Some(record) if record.expires > now.0 => {
            Err(LeaseError::Held { holder: record.holder, expires: Millis(record.expires) })
        }
        Some(record) => Ok(record.fence + 1),
        // A fence grows by at most one per change of the lease, so no earlier one was larger than this.
        None => Ok(stored.revision.0 + 1),
    }
}

async fn put(
    store: &Store,
    key: Key,
    holder: &str,
    fence: u64,
    ttl: Duration,
    now: Millis,
    expect: Precondition,
) -> Result<Lease, CommitError> {
    let ttl = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
    let expires = Millis(now.0.saturating_add(ttl));
    let record = Record { holder: holder.to_owned(), fence, expires: expires.0 };
    let draft = draft(&record);
    let committed = store.commit(Batch::of(Write::Put { key: key.clone(), expect, draft })).await?;
    Ok(Lease { key, holder: holder.to_owned(), fence, expires, revision: committed.revision })
}

fn draft(record: &Record) -> Draft {
    let fields = serde_json::to_string(record).unwrap_or_default();
    // The revision goes into a field of its own, before the others.
    Draft::joined("{\"revision\":", &fields.replacen('{', ",", 1))
}

fn lost(error: CommitError) -> LeaseError {
    match error {
        CommitError::Conflict { .. } => LeaseError::Lost,
        error => LeaseError::Store(error),
    }
}
