//! Attempts that were asked for while no more may run: by priority, then by age of their tasks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use muster_types::attempt::{Handle, Launch};

/// Launches in the order in which they start: higher priority first, then the task that was made first, which its uid says.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    launches: BTreeMap<(Reverse<i32>, Handle), Launch>,
    priorities: HashMap<Handle, i32>,
}

impl Waiting {
    pub(crate) fn len(&self) -> usize {
        self.launches.len()
    }

    pub(crate) fn contains(&self, handle: &Handle) -> bool {
        self.priorities.contains_key(handle)
    }

    /// Puts one in its place.
    pub(crate) fn push(&mut self, launch: Launch) {
        self.priorities.insert(launch.handle.clone(), launch.priority);
        self.launches.insert((Reverse(launch.priority), launch.handle.clone()), launch);
    }

    /// The one that starts next.
    pub(crate) fn first(&self) -> Option<&Launch> {
        self.launches.first_key_value().map(|(_, launch)| launch)
    }

    /// Takes the one that starts next.
    pub(crate) fn pop(&mut self) -> Option<Launch> {
        let (_, launch) = self.launches.pop_first()?;
        self.priorities.remove(&launch.handle);
        Some(launch)
    }

    /// Takes one out of the row, if it waits.
    pub(crate) fn remove(&mut self, handle: &Handle) -> Option<Launch> {
        let priority = self.priorities.remove(handle)?;
        self.launches.remove(&(Reverse(priority), handle.clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use muster_types::attempt::Limits;

    use super::*;

    fn handle(task: &str) -> Handle {
        Handle { task: task.into(), attempt: 1 }
    }

    fn launch(task: &str, priority: i32) -> Launch {
        Launch {
            priority,
            handle: handle(task),
            containers: vec![],
            timeout: None,
            kill_timeout: Duration::ZERO,
            prefetch: 0,
            limits: Limits::default(),
            pod: None,
            robot: None,
            image: None,
            data: None,
        }
    }

    #[test]
    fn launches_leave_by_priority_and_age_whenever_they_came_unless_they_are_taken_out() {
        let mut waiting = Waiting::default();
        for (task, priority) in [("c", 0), ("b", 0), ("a", 0), ("low", -5), ("high", 7)] {
            waiting.push(launch(task, priority));
        }
        assert!(waiting.contains(&handle("b")) && waiting.remove(&handle("b")).is_some());
        assert!(!waiting.contains(&handle("b")) && waiting.remove(&handle("b")).is_none());
        assert_eq!(waiting.len(), 4);
        let order: Vec<_> = std::iter::from_fn(|| waiting.pop()).map(|launch| launch.handle.task).collect();
        assert_eq!(order, ["high", "a", "c", "low"]);
        assert!(!waiting.contains(&handle("a")));
    }
}
