//! How a task leaves a TaskGroup that goes on.
//!
//! A group knows of a member that is no longer there only what its status says. So a member that has ended is not deleted at
//! once, whoever asks for it: it gets a finalizer, and the loop of groups deletes it in the commit that writes down in
//! `status.gone` how it ended. No crash can part the two.

use std::borrow::Cow;

use muster_types::{Task, Timestamp};
use serde::Deserialize;

/// Keeps a member from being deleted before its group wrote down how it ended.
pub const COUNTED: &str = "muster.dev/counted-by-group";

/// Asks for the deletion of a member that has ended, from its group. True if the task changed.
pub fn leave(task: &mut Task, now: Timestamp) -> bool {
    let held = hold(task);
    let metadata = &mut task.metadata;
    let asked = metadata.deletion_timestamp.is_none();
    if asked {
        metadata.deletion_timestamp = Some(now);
    }
    held || asked
}

/// Makes the deletion of a member wait for its group. True if the task changed.
pub fn hold(task: &mut Task) -> bool {
    let finalizers = &mut task.metadata.finalizers;
    let missing = finalizers.iter().all(|name| name != COUNTED);
    if missing {
        finalizers.push(COUNTED.to_owned());
    }
    missing
}

/// What keeps a task that leaves its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaving {
    /// Its group alone.
    Group,
    /// Others as well, which go first.
    Others,
}

impl Leaving {
    /// Reads a stored task; `None` if it does not leave a group.
    pub fn read(json: &[u8]) -> Option<Self> {
        let Stored { metadata } = serde_json::from_slice(json).ok()?;
        metadata.deletion_timestamp?;
        let is_held = metadata.finalizers.iter().any(|name| name == COUNTED);
        is_held.then_some(if metadata.finalizers.len() == 1 { Self::Group } else { Self::Others })
    }
}

#[derive(Deserialize)]
struct Stored<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    deletion_timestamp: Option<Timestamp>,
    #[serde(borrow, default)]
    finalizers: Vec<Cow<'a, str>>,
}

#[cfg(test)]
mod tests {
    use muster_types::TaskSpec;

    use super::*;

    #[test]
    fn a_task_leaves_once_its_deletion_was_asked_for_and_waits_for_its_group() {
        let mut task = Task::new("n", "t", TaskSpec::default());
        let read = |task: &Task| Leaving::read(&serde_json::to_vec(task).unwrap());
        assert_eq!(read(&task), None);
        assert!(leave(&mut task, Timestamp::from_second(1)));
        assert_eq!(read(&task), Some(Leaving::Group));
        assert!(!leave(&mut task, Timestamp::from_second(2)));
        task.metadata.finalizers.push("example.com/hold".to_owned());
        assert_eq!(read(&task), Some(Leaving::Others));
    }
}
