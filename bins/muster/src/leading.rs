//! One of several servers of a store: does the work of a singleton role while it holds the role's lease, and hands over when it
//! does not, or when it is told to stop.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use muster_engine::leadership::{Candidate, ENGINE_MARK, ONE_LEASE, Term, grace_for};
use muster_engine::relay;
use muster_ports::clock::Clock;
use muster_ports::store::Store;
use muster_runtime_process::machine_time;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::work::{Singleton, Work, relay_settings};

/// Pause after the work of a role could not be begun.
const PAUSE: Duration = Duration::from_secs(1);
/// How long giving up the lease may take. It ends by itself.
const FAREWELL: Duration = Duration::from_secs(3);

/// A server among several of one store.
pub struct Replica {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    /// Its name; no two processes ever have the same.
    pub name: String,
    /// How long a lease holds without being renewed.
    pub lease: Duration,
}

impl Replica {
    /// Does the work of each role of this server whenever it is its turn, until it is told to stop or the store closes.
    pub async fn serve(self, work: Work) {
        let work = Arc::new(work);
        let mut roles = JoinSet::new();
        for role in work.singletons() {
            roles.spawn(lead(self.candidate(role), role, work.clone()));
        }
        if !work.singletons().contains(&Singleton::Relay) {
            let (store, limits) = (self.store.clone(), relay_settings(&work.limits));
            let shutdown = work.shutdown.clone();
            roles.spawn(async move {
                tokio::select! {
                    () = relay::hold_for_another(store, limits) => {}
                    () = shutdown.requested() => {}
                }
            });
        }
        while let Some(ended) = roles.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "the loop of a role ended badly");
            }
        }
    }

    /// This server as a candidate for a role. Only processes have to end before the next one may begin: everything else that a
    /// holder does is behind its fence, or is the same if it is done twice.
    fn candidate(&self, role: Singleton) -> Candidate {
        let (name, holder, grace) = match role {
            Singleton::Engine => (ONE_LEASE, format!("{}{ENGINE_MARK}", self.name), grace_for(self.lease)),
            Singleton::Relay => ("relay", self.name.clone(), Duration::ZERO),
            Singleton::Collector => ("collector", self.name.clone(), Duration::ZERO),
        };
        Candidate {
            store: self.store.clone(),
            clock: self.clock.clone(),
            name: name.to_owned(),
            holder,
            lease: self.lease,
            grace,
            machine_time,
        }
    }
}

/// Does the work of a role whenever it is this server's turn, until it is told to stop or the store closes.
async fn lead(candidate: Candidate, role: Singleton, work: Arc<Work>) {
    let shutdown = work.shutdown.clone();
    while !shutdown.is_requested() {
        let campaign = async {
            if role == Singleton::Relay {
                let waiting = relay::hold_for_another(candidate.store.clone(), relay_settings(&work.limits));
                tokio::select! { term = candidate.campaign() => term, () = waiting => None }
            } else {
                candidate.campaign().await
            }
        };
        let term = tokio::select! {
            term = campaign => term,
            () = shutdown.requested() => return,
        };
        let Some(term) = term else { return };
        let holder = &candidate.holder;
        match role {
            Singleton::Engine => tracing::info!(holder, "this server leads"),
            Singleton::Relay | Singleton::Collector => {
                tracing::info!(holder, ?role, "this server holds the lease of a role");
            }
        }
        let left = serve(term, role, &work).await;
        match role {
            Singleton::Engine => tracing::info!(holder, why = left.why, "this server leads no longer"),
            Singleton::Relay | Singleton::Collector => {
                tracing::info!(
                    holder,
                    ?role,
                    why = left.why,
                    "this server no longer holds the lease of a role"
                );
            }
        }
        if let Some(term) = left.term
            && timeout(FAREWELL, term.resign()).await.is_err()
        {
            tracing::warn!(?role, "the lease could not be given up; others wait for its end");
        }
        if left.pauses {
            sleep(PAUSE).await;
        }
    }
}

/// How a term ended.
struct Left {
    why: &'static str,
    /// Still this server's, to be given up.
    term: Option<Term>,
    pauses: bool,
}

/// Does the work of a role until its term is over.
async fn serve(mut term: Term, role: Singleton, work: &Work) -> Left {
    let mut working = match work.start(&[role], &term.store(), Some(term.lasts())).await {
        Ok(working) => working,
        Err(error) => {
            tracing::error!(?role, "the work of the role cannot be begun: {error:#}");
            return Left { why: "it cannot", term: Some(term), pauses: true };
        }
    };
    let (why, mut mine, pauses) = tokio::select! {
        why = term.hold() => (why, false, false),
        () = working.ended() => ("a part of it ended", true, true),
        () = work.shutdown.requested() => ("it was told to stop", true, false),
    };
    // The next leader starts only after the processes of this one have ended, so the lease is renewed until they have.
    let mut stopping = pin!(working.stop(mine));
    if mine {
        tokio::select! {
            () = &mut stopping => return Left { why, term: Some(term), pauses },
            _ = term.hold() => mine = false,
        }
    }
    stopping.await;
    Left { why, term: mine.then_some(term), pauses }
}
