//! What wakes a loop: a committed change, a time that has come, or a second without either.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use muster_ports::clock::{Clock, Millis};
use muster_ports::store::{Store, Watch, WatchError, WatchScope};

/// Longest time between two looks.
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// Changes looked at in order to wake.
const CHANGES: usize = 1024;

/// Wakes a loop.
pub struct Wake {
    store: Store,
    clock: Arc<dyn Clock>,
    watch: Watch,
}

impl Wake {
    /// Wakes for changes from now on.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Result<Self, WatchError> {
        let watch = store.watch(WatchScope::All, store.revision())?;
        Ok(Self { store, clock, watch })
    }

    /// Takes the changes there are for seen: whoever calls this is about to look.
    pub fn clear(&mut self) {
        // That it fell behind, or that the store closed, is found out by the next wait.
        drop(self.watch.next(CHANGES).now_or_never());
    }

    /// Returns when there is a reason to look. Cancel-safe: what happened meanwhile wakes the next call.
    pub async fn wait(&mut self, due: Option<Millis>) -> Result<(), WatchError> {
        let left =
            due.map(|due| Duration::from_millis(u64::try_from(due.0 - self.clock.now().0).unwrap_or(0)));
        let pause = left.unwrap_or(MAX_PAUSE).min(MAX_PAUSE);
        match tokio::time::timeout(pause, self.watch.next(CHANGES)).await {
            Ok(Ok(_)) | Err(_) => Ok(()),
            Ok(Err(WatchError::Closed)) => Err(WatchError::Closed),
            // It fell behind; there is something to look at in any case.
            Ok(Err(_)) => {
                self.watch = self.store.watch(WatchScope::All, self.store.revision())?;
                Ok(())
            }
        }
    }
}

/// A loop that only writes to the store.
pub trait Cycle {
    /// What it sees to, for people.
    const WHAT: &'static str;

    /// One whole cycle. Returns when to look again even if nothing happens.
    fn step(&mut self) -> impl Future<Output = Result<Option<Millis>, WatchError>> + Send;
}

/// Cycles whenever something changed or is due, until the store closes.
pub async fn run<C: Cycle>(store: Store, clock: Arc<dyn Clock>, cycle: Result<C, WatchError>) {
    let (mut wake, mut cycle) = match (Wake::new(store, clock), cycle) {
        (Ok(wake), Ok(cycle)) => (wake, cycle),
        (Err(error), _) | (_, Err(error)) => {
            return tracing::error!(%error, "{} cannot watch the store", C::WHAT);
        }
    };
    loop {
        let waited = match cycle.step().await {
            Ok(due) => wake.wait(due).await,
            Err(error) => Err(error),
        };
        match waited {
            Ok(()) => {}
            Err(WatchError::Closed) => return,
            Err(error) => return tracing::error!(%error, "{} cannot follow the store", C::WHAT),
        }
    }
}
