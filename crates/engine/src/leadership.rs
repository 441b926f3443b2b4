//! Who of several servers of one store acts alone: the holder of a lease.
//!
//! The lease is renewed three times in its time. Whoever sees it unchanged for its whole time takes it: that time is measured by
//! everybody's own steady clock, from when the last renewal was seen, so clocks that differ do no harm. The holder counts from
//! before it asked for a renewal, so it gives up no later than others may begin.
//!
//! What the holder does goes through [`Term::store`], behind the fence of its lease: a holder that was paused and does not know
//! that its time is over can commit nothing, and so start nothing.

use std::sync::Arc;
use std::time::Duration;

use muster_ports::clock::Clock;
use muster_ports::store::{Fence, Lease, LeaseView, Store, WatchError, WatchScope};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

/// Pause after something failed.
const PAUSE: Duration = Duration::from_millis(250);

/// Somebody who would lead.
#[derive(Clone)]
pub struct Candidate {
    /// The store that is shared.
    pub store: Store,
    /// The time, for people who look at the lease.
    pub clock: Arc<dyn Clock>,
    /// What is led.
    pub name: String,
    /// Who this is; no two processes ever have the same name.
    pub holder: String,
    /// How long a lease holds without being renewed.
    pub lease: Duration,
}

impl Candidate {
    /// Waits until this one leads; `None` if the store closed.
    pub async fn campaign(&self) -> Option<Term> {
        let mut seen: Option<(Option<LeaseView>, Instant)> = None;
        loop {
            let mut watch =
                match self.store.watch(WatchScope::Resource(Lease::resource()), self.store.revision()) {
                    Ok(watch) => watch,
                    Err(WatchError::Closed) => return None,
                    Err(_) => continue,
                };
            let view = Lease::look(&self.store, &self.name);
            let since = match &seen {
                Some((known, since)) if *known == view => *since,
                _ => Instant::now(),
            };
            seen = Some((view.clone(), since));
            let is_free = view
                .as_ref()
                .is_none_or(|view| view.holder.as_ref().is_none_or(|holder| *holder == self.holder));
            if is_free || since.elapsed() >= self.lease {
                let asked = Instant::now();
                match self.take(view.as_ref()).await {
                    Some(lease) => return Some(Term::new(self.clone(), lease, asked)),
                    None => sleep(PAUSE).await,
                }
                continue;
            }
            tokio::select! {
                changes = watch.next(16) => if matches!(changes, Err(WatchError::Closed)) { return None },
                () = sleep_until(since + self.lease) => {}
            }
        }
    }

    /// Takes the lease as it was seen. Whoever is quicker has it.
    async fn take(&self, seen: Option<&LeaseView>) -> Option<Lease> {
        let now = self.clock.now();
        let taken = Lease::take_over(&self.store, &self.name, &self.holder, self.lease, now, seen).await;
        taken.inspect_err(|error| tracing::debug!(%error, "the lease was not taken")).ok()
    }
}

/// The time in which this one leads.
pub struct Term {
    candidate: Candidate,
    lease: Lease,
    fence: Fence,
    /// Others wait at least this long.
    until: Instant,
}

impl Term {
    fn new(candidate: Candidate, lease: Lease, asked: Instant) -> Self {
        let (fence, until) = (lease.fence(), asked + candidate.lease);
        Self { candidate, lease, fence, until }
    }

    /// The store for everything that only the leader does.
    pub fn store(&self) -> Store {
        self.candidate.store.fenced(self.fence.clone())
    }

    /// Renews the lease. Returns, with the reason, when this one may lead no longer. Cancel-safe but for a renewal under way.
    pub async fn hold(&mut self) -> &'static str {
        let fence = self.fence.clone();
        tokio::select! {
            () = fence.fallen() => "another one leads, or a write was lost sight of",
            why = self.renew() => why,
        }
    }

    async fn renew(&mut self) -> &'static str {
        loop {
            sleep(self.candidate.lease / 3).await;
            let asked = Instant::now();
            match timeout_at(self.until, self.renew_once()).await {
                Ok(Some(lease)) => {
                    self.lease = lease;
                    self.until = asked + self.candidate.lease;
                }
                Ok(None) => return "another one leads",
                Err(_) => return "the lease could not be renewed in time",
            }
        }
    }

    /// The renewed lease; `None` if somebody else has it.
    async fn renew_once(&self) -> Option<Lease> {
        let Candidate { store, clock, name, holder, lease: ttl } = &self.candidate;
        loop {
            if let Ok(lease) = self.lease.renew(store, *ttl, clock.now()).await {
                return Some(lease);
            }
            // Lost, or it happened and the answer was lost: then it is there.
            let mine = Lease::look(store, name).is_some_and(|view| view.holder.as_deref() == Some(holder));
            if !mine {
                return None;
            }
            match Lease::acquire(store, name, holder, *ttl, clock.now()).await {
                Ok(lease) if lease.fence == self.lease.fence => return Some(lease),
                Ok(_) => return None,
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// Gives the lease up, so that nobody has to wait for its end.
    pub async fn resign(self) {
        if let Err(error) = self.lease.release(&self.candidate.store).await {
            tracing::debug!(%error, "the lease was not given up; it ends by itself");
        }
    }
}
