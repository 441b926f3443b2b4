//! Which ended runs of a schedule are kept.

use muster_types::schedule::ScheduleSpec;
use muster_types::{State, Timestamp};

/// A run that ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndedRun<K> {
    /// When.
    pub at: Timestamp,
    /// What tells it from others.
    pub key: K,
    /// How.
    pub state: State,
}

/// The runs that are kept no longer, of runs in the order in which they ended.
pub fn choose_forgotten<'a, K: Ord + 'a>(
    spec: &ScheduleSpec,
    ended: impl DoubleEndedIterator<Item = &'a EndedRun<K>>,
) -> Vec<&'a EndedRun<K>> {
    let (mut succeeded, mut failed) = (0, 0);
    let mut forgotten = Vec::new();
    for run in ended.rev() {
        let (seen, limit) = if run.state == State::Succeeded {
            (&mut succeeded, spec.successful_history_limit)
        } else {
            (&mut failed, spec.failed_history_limit)
        };
        *seen += 1;
        if limit.is_some_and(|limit| *seen > limit) {
            forgotten.push(run);
        }
    }
    forgotten
}
