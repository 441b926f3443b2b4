//! The loop of schedules, which sleeps until there is a reason to look.

use std::sync::Arc;
use std::time::Duration;

use muster_ports::clock::{Clock, Millis};
use muster_ports::store::{Store, WatchError, WatchScope};

use super::Schedules;

/// Longest time between two looks.
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// Changes looked at in order to wake.
const CHANGES: usize = 1024;

/// Cycles whenever something changed or is due, until the store closes.
pub async fn run(store: Store, clock: Arc<dyn Clock>) {
    let watch = || store.watch(WatchScope::All, store.revision());
    let (mut wake, mut schedules) = match (watch(), Schedules::new(store.clone(), clock.clone())) {
        (Ok(wake), Ok(schedules)) => (wake, schedules),
        (Err(error), _) | (_, Err(error)) => {
            return tracing::error!(%error, "schedules cannot watch the store");
        }
    };
    loop {
        let due = match schedules.step().await {
            Ok(due) => due,
            Err(WatchError::Closed) => return,
            Err(error) => return tracing::error!(%error, "schedules cannot follow the store"),
        };
        let left = due.map(|due: Millis| u64::try_from(due.0 - clock.now().0).unwrap_or(0));
        let pause = left.map_or(MAX_PAUSE, Duration::from_millis).min(MAX_PAUSE);
        tokio::select! {
            changes = wake.next(CHANGES) => match changes {
                Ok(_) => {}
                Err(WatchError::Closed) => return,
                Err(_) => match watch() {
                    Ok(anew) => wake = anew,
                    Err(_) => return,
                },
            },
            () = tokio::time::sleep(pause) => {}
        }
    }
}
