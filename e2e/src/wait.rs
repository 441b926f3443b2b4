//! Waiting for a condition with a deadline. The only place in this crate that sleeps.

use std::thread;
use std::time::{Duration, Instant};

/// How long anything in these tests may take that should happen at once.
pub const SOON: Duration = Duration::from_secs(20);

/// Time between two looks at a condition.
const PAUSE: Duration = Duration::from_millis(5);

/// Returns when the condition holds; fails the test if it does not within the deadline.
#[track_caller]
pub fn wait_for(what: &str, deadline: Duration, mut condition: impl FnMut() -> bool) {
    let held = holds_within(deadline, &mut condition);
    assert!(held, "waited {deadline:?} in vain for {what}");
}

/// True as soon as the condition holds, false after the deadline.
pub fn holds_within(deadline: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + deadline;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(PAUSE);
    }
}
