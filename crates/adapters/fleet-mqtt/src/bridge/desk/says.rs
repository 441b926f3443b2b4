//! What the desk would say to robots without an order of the engine: that it did not hear how an attempt stands, that nobody wants
//! one any more. An order was committed behind the fence of the leader just before; this is held against that fence first, so that
//! a leader that was paused tells nobody to end what its successor began.

use std::collections::BTreeSet;

use muster_ports::runtime::Handle;
use muster_ports::store::{Batch, Store};

/// Attempts that nobody wants and that robots can be told to end at once. They are spoken of again.
const MOST_STRAYS: usize = 10_000;

/// What is to be said.
#[derive(Debug, Default)]
pub(super) struct Says {
    /// What the engine wants of these is said again.
    again: BTreeSet<Handle>,
    /// Attempts that robots speak of and nobody waits for.
    strays: BTreeSet<(String, Handle)>,
}

impl Says {
    pub(super) fn is_empty(&self) -> bool {
        self.again.is_empty() && self.strays.is_empty()
    }

    pub(super) fn say_again(&mut self, handle: Handle) {
        self.again.insert(handle);
    }

    pub(super) fn note_stray(&mut self, robot: &str, handle: Handle) {
        if self.strays.len() < MOST_STRAYS {
            self.strays.insert((robot.to_owned(), handle));
        }
    }

    pub(super) fn absorb(&mut self, other: Self) {
        self.again.extend(other.again);
        self.strays.extend(other.strays);
    }

    /// All of it.
    pub(super) fn into_parts(self) -> (BTreeSet<Handle>, BTreeSet<(String, Handle)>) {
        (self.again, self.strays)
    }
}

/// True if whoever has this store may still act. Never returns if another one does by now.
pub(super) async fn may_act(store: &Store) -> bool {
    // A batch of nothing is its conditions alone, held against what the log is now.
    store.catch_up().await.is_ok() && store.commit(Batch::default()).await.is_ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use muster_ports::clock::{Millis, SystemClock};
    use muster_ports::store::{History, Lease, MemoryLog};

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn whoever_was_replaced_may_not_act() {
        let store = Store::open(MemoryLog::default(), History::default(), SystemClock).unwrap();
        let old = Lease::acquire(&store, "leader", "old", LONG, Millis(0)).await.unwrap();
        let (fence, fenced) = (old.fence(), store.fenced(old.fence()));
        assert!(may_act(&fenced).await);
        let seen = Lease::look(&store, "leader").unwrap();
        Lease::take_over(&store, "leader", "new", LONG, Millis(0), Some(&seen)).await.unwrap();
        let fenced_again = store.fenced(fence.clone());
        let asked = tokio::spawn(async move { may_act(&fenced_again).await });
        fence.fallen().await;
        assert!(!asked.is_finished(), "it is not even told");
        asked.abort();
    }

    #[test]
    fn strays_are_noted_once_and_not_without_end() {
        let mut says = Says::default();
        let handle = |attempt| Handle { task: "t".to_owned(), attempt };
        for _ in 0..3 {
            says.note_stray("r1", handle(1));
        }
        for attempt in 0..20_000 {
            says.note_stray("r2", handle(attempt));
        }
        let (again, strays) = says.into_parts();
        assert_eq!((again.len(), strays.len()), (0, MOST_STRAYS));
    }
}
