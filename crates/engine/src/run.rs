//! The engine as a loop that sleeps until there is a reason to look.

use std::time::Duration;

use muster_ports::clock::{Clock, Millis};
use muster_ports::runtime::Fact;
use muster_ports::store::{Store, Watch, WatchError, WatchScope};
use tokio::sync::mpsc;

use crate::engine::{Engine, Outside};
use crate::questions::Question;

/// Longest time between two looks.
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// Changes looked at in order to wake.
const CHANGES: usize = 1024;

/// Cycles whenever something changed, was reported, or is due, until the facts end or the store closes.
pub async fn run(
    mut engine: Engine,
    outside: Outside,
    mut facts: mpsc::UnboundedReceiver<Fact>,
    mut questions: mpsc::Receiver<Question>,
) {
    let mut wake = match watch(&outside.store) {
        Ok(watch) => watch,
        Err(error) => return tracing::error!(%error, "the engine cannot watch the store"),
    };
    loop {
        let due = match engine.step().await {
            Ok(due) => due,
            Err(WatchError::Closed) => return,
            Err(error) => return tracing::error!(%error, "the engine cannot follow the store"),
        };
        let pause = pause(due, &*outside.clock);
        tokio::select! {
            fact = facts.recv() => match fact {
                Some(fact) => {
                    engine.report(fact);
                    while let Ok(fact) = facts.try_recv() {
                        engine.report(fact);
                    }
                }
                None => return,
            },
            Some(question) = questions.recv() => {
                // Whoever asked may be gone.
                drop(question.reply.send(engine.explain(&question.uid)));
            }
            changes = wake.next(CHANGES) => match changes {
                Ok(_) => {}
                Err(WatchError::Closed) => return,
                Err(_) => match watch(&outside.store) {
                    Ok(watch) => wake = watch,
                    Err(_) => return,
                },
            },
            () = tokio::time::sleep(pause) => {}
        }
    }
}

fn watch(store: &Store) -> Result<Watch, WatchError> {
    store.watch(WatchScope::All, store.revision())
}

fn pause(due: Option<Millis>, clock: &dyn Clock) -> Duration {
    let left = due.map(|due| Duration::from_millis(u64::try_from(due.0 - clock.now().0).unwrap_or(0)));
    left.unwrap_or(MAX_PAUSE).min(MAX_PAUSE)
}
