//! One of several servers: leads when it is its turn, and hands over when it is not, or when it is told to stop.

use std::time::Duration;

use muster_engine::leadership::{Candidate, Term};
use muster_engine::relay;
use tokio::time::{sleep, timeout};

use crate::work::{Work, relay_settings};

/// Pause after what a leader does could not be begun.
const PAUSE: Duration = Duration::from_secs(1);
/// How long giving up the lease may take. It ends by itself.
const FAREWELL: Duration = Duration::from_secs(3);

/// Leads whenever it is this server's turn, until it is told to stop or the store closes.
pub async fn lead(candidate: Candidate, work: Work) {
    let shutdown = work.shutdown.clone();
    while !shutdown.is_requested() {
        let waiting = relay::hold_for_another(candidate.store.clone(), relay_settings(&work.limits));
        let campaign = async {
            tokio::select! { term = candidate.campaign() => term, () = waiting => None }
        };
        let term = tokio::select! {
            term = campaign => term,
            () = shutdown.requested() => return,
        };
        let Some(term) = term else { return };
        tracing::info!(holder = candidate.holder, "this server leads");
        let left = serve(term, &work).await;
        tracing::info!(holder = candidate.holder, why = left.why, "this server leads no longer");
        if let Some(term) = left.term
            && timeout(FAREWELL, term.resign()).await.is_err()
        {
            tracing::warn!("the lease could not be given up; others wait for its end");
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

/// Does what the leader does until its term is over.
async fn serve(mut term: Term, work: &Work) -> Left {
    let mut working = match work.start(&term.store()).await {
        Ok(working) => working,
        Err(error) => {
            tracing::error!("cannot lead: {error:#}");
            return Left { why: "it cannot", term: Some(term), pauses: true };
        }
    };
    let (why, mine, pauses) = tokio::select! {
        why = term.hold() => (why, false, false),
        () = working.ended() => ("a part of it ended", true, true),
        () = work.shutdown.requested() => ("it was told to stop", true, false),
    };
    // Nothing that was begun goes on when somebody else may begin.
    working.stop().await;
    Left { why, term: mine.then_some(term), pauses }
}
