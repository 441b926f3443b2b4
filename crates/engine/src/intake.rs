//! Taking in what was committed, as all loops do it.

use muster_ports::store::{Change, Watch, WatchError};

/// Changes taken in at once.
const CHANGES: usize = 1024;

/// A loop that knows what is stored from its changes.
pub trait Intake {
    /// Its place in the changes.
    fn watch(&mut self) -> &mut Watch;

    /// Takes in one change.
    fn observe(&mut self, change: &Change);

    /// Fell behind what can be watched: starts over from what is there.
    fn start_over(&mut self) -> Result<(), WatchError>;

    /// Takes in everything that was committed.
    fn take_in(&mut self) -> Result<(), WatchError> {
        loop {
            let changes = match self.watch().poll_page(CHANGES) {
                Err(WatchError::Gone { .. }) => {
                    self.start_over()?;
                    continue;
                }
                other => other?,
            };
            if changes.is_empty() {
                return Ok(());
            }
            for change in changes {
                self.observe(&change);
            }
        }
    }
}
