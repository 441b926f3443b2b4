//! Which of several servers of one store does the work of a singleton role: the holder of that role's lease.
//!
//! The lease is renewed three times in its time. A candidate that sees it unchanged for its whole time and the grace takes it: that
//! time is measured by the candidate's own steady clock, from when the last renewal was seen, so clocks that differ do no harm. The
//! holder counts from before it asked for a renewal, so it gives up no later than others may begin.
//!
//! The holder commits through [`Term::store`], behind the fence of its lease: a holder that was paused and does not know that its
//! time is over can commit nothing, and so start nothing. What it has started before is ended without it: [`Term::lasts`] says up to
//! which moment of this machine, and the grace is the time that ending takes.
//!
//! A server of an earlier version does the work of all roles under one lease, [`ONE_LEASE`]. The engine's lease has the same name, so
//! the two exclude each other. The other roles stay with a server of an earlier version as long as it holds that lease: its holder
//! lacks [`ENGINE_MARK`].

use std::sync::Arc;
use std::time::Duration;

use muster_ports::clock::Clock;
use muster_ports::store::{Fence, Lease, LeaseView, Store, WatchError, WatchScope};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

/// Pause after something failed.
const PAUSE: Duration = Duration::from_millis(250);
/// Name of the lease of all roles in earlier versions, and of the engine's lease.
pub const ONE_LEASE: &str = "leader";
/// How the name of a holder ends that took [`ONE_LEASE`] for the engine alone.
pub const ENGINE_MARK: &str = " engine";
/// The least time that ending the processes of a former holder may take.
const LEAST_GRACE: Duration = Duration::from_millis(500);

/// A server that can do the work of a role.
#[derive(Clone)]
pub struct Candidate {
    /// The store that is shared.
    pub store: Store,
    /// The time, for people who look at the lease.
    pub clock: Arc<dyn Clock>,
    /// Name of the role's lease.
    pub name: String,
    /// Who this is; no two processes ever have the same name.
    pub holder: String,
    /// How long a lease holds without being renewed.
    pub lease: Duration,
    /// How much longer than that a candidate waits before it takes a lease that its holder did not give up: by then, what the
    /// former holder started has ended.
    pub grace: Duration,
    /// Time since this machine was started, as all its processes read it, with the time that it slept.
    pub machine_time: fn() -> Duration,
}

/// The grace for a role whose holder starts processes.
pub fn grace_for(lease: Duration) -> Duration {
    (lease / 5).max(LEAST_GRACE)
}

/// A lease as a candidate sees it, and since when it is so.
struct Sighting {
    view: Option<LeaseView>,
    since: Instant,
}

impl Sighting {
    fn of(store: &Store, name: &str) -> Self {
        Self { view: Lease::look(store, name), since: Instant::now() }
    }

    fn refresh(&mut self, store: &Store, name: &str) {
        let now = Self::of(store, name);
        if now.view != self.view {
            *self = now;
        }
    }

    fn holder(&self) -> Option<&str> {
        self.view.as_ref()?.holder.as_deref()
    }
}

impl Candidate {
    /// Waits until this one holds the lease; `None` if the store closed.
    pub async fn campaign(&self) -> Option<Term> {
        let mut own = Sighting::of(&self.store, &self.name);
        let mut earlier = Sighting::of(&self.store, ONE_LEASE);
        loop {
            let mut watch =
                match self.store.watch(WatchScope::Resource(Lease::resource()), self.store.revision()) {
                    Ok(watch) => watch,
                    Err(WatchError::Closed) => return None,
                    Err(_) => continue,
                };
            own.refresh(&self.store, &self.name);
            earlier.refresh(&self.store, ONE_LEASE);
            let free_at = self.free_at(&own, &earlier);
            if free_at.is_none_or(|at| at <= Instant::now()) {
                let (asked, machine) = (Instant::now(), (self.machine_time)());
                match self.take(own.view.as_ref()).await {
                    Some(lease) => {
                        return Some(Term::new(self.clone(), lease, earlier.view, asked, machine));
                    }
                    None => sleep(PAUSE).await,
                }
                continue;
            }
            tokio::select! {
                changes = watch.next(16) => if matches!(changes, Err(WatchError::Closed)) { return None },
                () = sleep_until(free_at.unwrap_or_else(Instant::now)) => {}
            }
        }
    }

    /// When this one may take the lease if nothing changes; `None` if at once.
    fn free_at(&self, own: &Sighting, earlier: &Sighting) -> Option<Instant> {
        let is_held = own.holder().is_some_and(|holder| holder != self.holder);
        let own_at = is_held.then(|| own.since + self.lease + self.grace);
        let earlier_at = self.is_done_by(earlier.holder()).then(|| earlier.since + self.lease + self.grace);
        own_at.max(earlier_at)
    }

    /// True if a holder of [`ONE_LEASE`] does the work of this role too.
    fn is_done_by(&self, holder: Option<&str>) -> bool {
        self.name != ONE_LEASE && holder.is_some_and(|holder| !holder.ends_with(ENGINE_MARK))
    }

    /// Takes the lease as it was seen. Whoever is quicker has it.
    async fn take(&self, seen: Option<&LeaseView>) -> Option<Lease> {
        let now = self.clock.now();
        let taken = Lease::take_over(&self.store, &self.name, &self.holder, self.lease, now, seen).await;
        taken.inspect_err(|error| tracing::debug!(%error, "the lease was not taken")).ok()
    }

    /// Returns when a server of an earlier version took the lease of all roles, or renewed it, since it was seen like this.
    async fn done_by_earlier_version(&self, before: Option<&LeaseView>) {
        loop {
            let scope = WatchScope::Resource(Lease::resource());
            let Ok(mut watch) = self.store.watch(scope, self.store.revision()) else {
                sleep(PAUSE).await;
                continue;
            };
            let view = Lease::look(&self.store, ONE_LEASE);
            let holder = view.as_ref().and_then(|view| view.holder.as_deref());
            // One that was silent when the term began is gone, unless it is heard of again.
            if view.as_ref() != before && self.is_done_by(holder) {
                return;
            }
            if watch.next(16).await.is_err() {
                sleep(PAUSE).await;
            }
        }
    }
}

/// The time in which this one leads.
pub struct Term {
    candidate: Candidate,
    lease: Lease,
    fence: Fence,
    /// The lease of all roles when this term began.
    earlier: Option<LeaseView>,
    /// Others wait at least this long.
    until: Instant,
    /// The same in the time of this machine.
    lasts: watch::Sender<Duration>,
}

impl Term {
    fn new(
        candidate: Candidate,
        lease: Lease,
        earlier: Option<LeaseView>,
        asked: Instant,
        machine: Duration,
    ) -> Self {
        let (fence, until) = (lease.fence(), asked + candidate.lease);
        let lasts = watch::Sender::new(machine + candidate.lease);
        Self { candidate, lease, fence, earlier, until, lasts }
    }

    /// Up to which moment of this machine (see [`Candidate::machine_time`]) others wait in any case. It moves with each renewal.
    /// Whatever this one started outside must have ended then.
    pub fn lasts(&self) -> watch::Receiver<Duration> {
        self.lasts.subscribe()
    }

    /// The store for everything that only the leader does.
    pub fn store(&self) -> Store {
        self.candidate.store.fenced(self.fence.clone())
    }

    /// Renews the lease. Returns, with the reason, when this one may lead no longer. Cancel-safe but for a renewal under way.
    pub async fn hold(&mut self) -> &'static str {
        let (fence, candidate, earlier) = (self.fence.clone(), self.candidate.clone(), self.earlier.clone());
        tokio::select! {
            () = fence.fallen() => "another one leads, or a write was lost sight of",
            () = candidate.done_by_earlier_version(earlier.as_ref()) => "a server of an earlier version leads",
            why = self.renew() => why,
        }
    }

    async fn renew(&mut self) -> &'static str {
        loop {
            sleep(self.candidate.lease / 3).await;
            let (asked, machine) = (Instant::now(), (self.candidate.machine_time)());
            match timeout_at(self.until, self.renew_once()).await {
                Ok(Some(lease)) => {
                    self.lease = lease;
                    self.until = asked + self.candidate.lease;
                    self.lasts.send_replace(machine + self.candidate.lease);
                }
                Ok(None) => return "another one leads",
                Err(_) => return "the lease could not be renewed in time",
            }
        }
    }

    /// The renewed lease; `None` if somebody else has it.
    async fn renew_once(&self) -> Option<Lease> {
        let Candidate { store, clock, name, holder, lease: ttl, .. } = &self.candidate;
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
