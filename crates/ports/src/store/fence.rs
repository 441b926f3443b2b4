//! What keeps a former holder of a lease from acting.

use tokio::sync::watch;

use super::batch::{Check, CommitError, Committed};

/// A condition on everything that somebody does, and whether it was found not to hold. Clones are the same fence.
#[derive(Debug, Clone)]
pub struct Fence {
    check: Check,
    fallen: watch::Sender<bool>,
}

impl Fence {
    /// A fence that stands as long as a condition holds.
    pub fn new(check: Check) -> Self {
        Self { check, fallen: watch::Sender::new(false) }
    }

    pub(super) fn check(&self) -> Check {
        self.check.clone()
    }

    /// True if an outcome says that the holder may not go on: somebody else took over, or nobody can tell what it did.
    pub(super) fn fell_by(&self, outcome: &Result<Committed, CommitError>) -> bool {
        match outcome {
            Err(CommitError::Conflict { key, .. }) => *key == self.check.key,
            Err(CommitError::Unknown(_)) => true,
            Ok(_) | Err(_) => false,
        }
    }

    pub(super) fn fall(&self) {
        self.fallen.send_replace(true);
    }

    /// Returns once it fell.
    pub async fn fallen(&self) {
        let mut fallen = self.fallen.subscribe();
        // The sender is this one's own.
        drop(fallen.wait_for(|fallen| *fallen).await);
    }
}
