//! Attempts that ended a moment ago and may have no directory any more, which would say that they were started.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use muster_types::attempt::Handle;

/// How long they are known. Directories of attempts that succeeded are kept for about as long.
const KNOWN: Duration = Duration::from_secs(2);

/// Their handles.
#[derive(Debug, Default)]
pub(crate) struct Unmarked {
    handles: HashSet<Handle>,
    order: VecDeque<(Instant, Handle)>,
}

impl Unmarked {
    /// Adds one, and forgets those that are known for long enough.
    pub(crate) fn insert(&mut self, handle: Handle, now: Instant) {
        while let Some((_, old)) = self.order.pop_front_if(|(at, _)| now.duration_since(*at) > KNOWN) {
            self.handles.remove(&old);
        }
        if self.handles.insert(handle.clone()) {
            self.order.push_back((now, handle));
        }
    }

    pub(crate) fn contains(&self, handle: &Handle) -> bool {
        self.handles.contains(handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_known_for_a_while() {
        let handle = |attempt| Handle { task: "t".into(), attempt };
        let (mut known, start) = (Unmarked::default(), Instant::now());
        known.insert(handle(1), start);
        known.insert(handle(1), start);
        known.insert(handle(2), start + KNOWN);
        assert!(known.contains(&handle(1)) && known.contains(&handle(2)));
        known.insert(handle(3), start + KNOWN + Duration::from_millis(1));
        assert!(!known.contains(&handle(1)) && known.contains(&handle(2)));
        assert_eq!((known.handles.len(), known.order.len()), (2, 2));
    }
}
