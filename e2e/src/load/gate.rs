//! Where clients wait while the server is gone, instead of knocking on a closed door.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How long a client waits for the server before it gives up.
const PATIENCE: Duration = Duration::from_mins(1);

/// Opens once per start of the server.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    starts: u64,
    closed: bool,
}

impl Gate {
    /// The server is there, once more.
    pub fn open(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).starts += 1;
        self.changed.notify_all();
    }

    /// Nothing more is to be written.
    pub fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.changed.notify_all();
    }

    /// True if nothing more is to be written.
    pub fn is_closed(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).closed
    }

    /// How often the server was started.
    pub fn starts(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).starts
    }

    /// Waits for a start of the server later than this one and returns its number. `None` if there will be none.
    pub fn wait_beyond(&self, start: u64) -> Option<u64> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |state: &mut State| state.starts <= start && !state.closed;
        let waited = self.changed.wait_timeout_while(state, PATIENCE, waits);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (state.starts > start).then_some(state.starts)
    }
}
