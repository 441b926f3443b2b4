//! Leases: who may act alone, with fencing.
//!
//! A lease is an object of the store. A second one, its fence, is written only when the lease changes hands. The holder
//! commits with [`Lease::guard`], or behind [`Lease::fence`], which need the fence to be as it was: once somebody else took the
//! lease, such a batch is refused, however late it arrives. Renewing changes nothing about that.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::batch::{Batch, Check, CommitError, Precondition, Write};
use super::fence::Fence;
use super::key::{Key, ResourceName};
use super::object::{Draft, Revision, Stored};
use super::store_handle::Store;
use crate::clock::Millis;

/// Where leases are kept.
const RESOURCE: &str = "leases.internal";
/// Where their fences are kept.
const FENCES: &str = "fences.internal";

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
    guard: Check,
}

/// A lease as others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseView {
    /// Who holds it; nobody if it was given up.
    pub holder: Option<String>,
    /// When it was last taken, renewed or given up.
    pub revision: Revision,
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
    /// The kind of object that leases are, for watching them.
    pub fn resource() -> ResourceName {
        ResourceName::new(RESOURCE)
    }

    /// Takes a lease that is free, expired, or already held by the same holder.
    pub async fn acquire(
        store: &Store,
        name: &str,
        holder: &str,
        ttl: Duration,
        now: Millis,
    ) -> Result<Self, LeaseError> {
        let key = lease_key(name);
        loop {
            let found = store.get(&key);
            let fence = next_fence(found.as_ref(), holder, now)?;
            match take(store, name, holder, fence, ttl, now, found.as_ref()).await {
                // Somebody was quicker; look again who has it now.
                Err(CommitError::Conflict { .. }) => {}
                outcome => return Ok(outcome?),
            }
        }
    }

    /// How a lease stands; `None` if nobody ever took it.
    pub fn look(store: &Store, name: &str) -> Option<LeaseView> {
        let stored = store.get(&lease_key(name))?;
        let holder = read(&stored).map(|record| record.holder).filter(|holder| !holder.is_empty());
        Some(LeaseView { holder, revision: stored.revision })
    }

    /// Takes a lease if it is still as it was seen, whatever it says about when it ends: the caller knows that its holder did
    /// not renew it in time, by a clock that no two machines have to agree on.
    pub async fn take_over(
        store: &Store,
        name: &str,
        holder: &str,
        ttl: Duration,
        now: Millis,
        seen: Option<&LeaseView>,
    ) -> Result<Self, LeaseError> {
        let found = store.get(&lease_key(name));
        if found.as_ref().map(|stored| stored.revision) != seen.map(|seen| seen.revision) {
            return Err(LeaseError::Lost);
        }
        let fence = match found.as_ref() {
            None => 1,
            Some(stored) => read(stored).map_or(stored.revision.0, |record| record.fence) + 1,
        };
        take(store, name, holder, fence, ttl, now, found.as_ref()).await.map_err(lost)
    }

    /// Extends the lease.
    pub async fn renew(&self, store: &Store, ttl: Duration, now: Millis) -> Result<Self, LeaseError> {
        let (write, expires) =
            write_lease(&self.key, &self.holder, self.fence, ttl, now, Precondition::At(self.revision));
        let committed = store.commit(Batch::of(write)).await.map_err(lost)?;
        Ok(Self { expires, revision: committed.revision, ..self.clone() })
    }

    /// Gives the lease up at once. Its guard holds no longer.
    pub async fn release(self, store: &Store) -> Result<(), LeaseError> {
        let expect = Precondition::At(self.revision);
        let (write, _) = write_lease(&self.key, "", self.fence, Duration::ZERO, Millis(0), expect);
        let fence = write_fence(&self.guard.key, self.fence, self.guard.expect);
        let batch = Batch { checks: Vec::new(), writes: vec![write, fence] };
        store.commit(batch).await.map_err(lost)?;
        Ok(())
    }

    /// The condition that nobody else took this lease since.
    pub fn guard(&self) -> Check {
        self.guard.clone()
    }

    /// The same for everything that somebody does.
    pub fn fence(&self) -> Fence {
        Fence::new(self.guard())
    }
}

fn lease_key(name: &str) -> Key {
    Key::new(&ResourceName::new(RESOURCE), "", name)
}

fn fence_key(name: &str) -> Key {
    Key::new(&ResourceName::new(FENCES), "", name)
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

/// Takes a lease from where it was found, and its fence too if it changes hands.
async fn take(
    store: &Store,
    name: &str,
    holder: &str,
    fence: u64,
    ttl: Duration,
    now: Millis,
    found: Option<&Stored>,
) -> Result<Lease, CommitError> {
    let at =
        |stored: Option<&Stored>| stored.map_or(Precondition::Absent, |it| Precondition::At(it.revision));
    let (key, guard) = (lease_key(name), fence_key(name));
    let (write, expires) = write_lease(&key, holder, fence, ttl, now, at(found));
    let mut batch = Batch::of(write);
    let old = store.get(&guard);
    let same = found.and_then(read).is_some_and(|record| record.holder == holder && record.fence == fence);
    let stays = old.as_ref().filter(|_| same);
    match stays {
        Some(stored) => {
            batch.checks.push(Check { key: guard.clone(), expect: Precondition::At(stored.revision) });
        }
        None => batch.writes.push(write_fence(&guard, fence, at(old.as_ref()))),
    }
    let committed = store.commit(batch).await?;
    let revision = committed.objects.first().map_or(committed.revision, |lease| lease.revision);
    let expect = Precondition::At(stays.map_or(committed.revision, |stored| stored.revision));
    let guard = Check { key: guard, expect };
    Ok(Lease { key, holder: holder.to_owned(), fence, expires, revision, guard })
}

fn write_lease(
    key: &Key,
    holder: &str,
    fence: u64,
    ttl: Duration,
    now: Millis,
    expect: Precondition,
) -> (Write, Millis) {
    let ttl = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
    let expires = Millis(now.0.saturating_add(ttl));
    let record = Record { holder: holder.to_owned(), fence, expires: expires.0 };
    (Write::Put { key: key.clone(), expect, draft: draft(&record) }, expires)
}

fn write_fence(key: &Key, fence: u64, expect: Precondition) -> Write {
    Write::Put {
        key: key.clone(),
        expect,
        draft: Draft::joined("{\"revision\":", &format!(",\"fence\":{fence}}}")),
    }
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
