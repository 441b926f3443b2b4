//! Attempts that were asked for while no more may run: first come, first started.

use std::collections::{BTreeMap, HashMap};

use muster_types::attempt::{Handle, Launch};

/// Launches in the order they came.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    next: u64,
    launches: BTreeMap<u64, Launch>,
    places: HashMap<Handle, u64>,
}

impl Waiting {
    pub(crate) fn len(&self) -> usize {
        self.launches.len()
    }

    pub(crate) fn contains(&self, handle: &Handle) -> bool {
        self.places.contains_key(handle)
    }

    /// Puts one at the end.
    pub(crate) fn push(&mut self, launch: Launch) {
        self.places.insert(launch.handle.clone(), self.next);
        self.launches.insert(self.next, launch);
        self.next += 1;
    }

    /// The one that waited longest.
    pub(crate) fn first(&self) -> Option<&Launch> {
        self.launches.first_key_value().map(|(_, launch)| launch)
    }

    /// Takes the one that waited longest.
    pub(crate) fn pop(&mut self) -> Option<Launch> {
        let (_, launch) = self.launches.pop_first()?;
        self.places.remove(&launch.handle);
        Some(launch)
    }

    /// Takes one out of the row; false if it does not wait.
    pub(crate) fn remove(&mut self, handle: &Handle) -> bool {
        self.places.remove(handle).is_some_and(|place| self.launches.remove(&place).is_some())
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

    fn launch(task: &str) -> Launch {
        Launch {
            handle: handle(task),
            containers: vec![],
            timeout: None,
            kill_timeout: Duration::ZERO,
            limits: Limits::default(),
            pod: None,
            robot: None,
            image: None,
        }
    }

    #[test]
    fn launches_leave_in_the_order_they_came_unless_they_are_taken_out() {
        let mut waiting = Waiting::default();
        for task in ["a", "b", "c"] {
            waiting.push(launch(task));
        }
        assert!(waiting.contains(&handle("b")) && waiting.remove(&handle("b")));
        assert!(!waiting.contains(&handle("b")) && !waiting.remove(&handle("b")));
        assert_eq!(waiting.len(), 2);
        let order: Vec<_> = std::iter::from_fn(|| waiting.pop()).map(|launch| launch.handle.task).collect();
        assert_eq!(order, ["a", "c"]);
        assert!(!waiting.contains(&handle("a")));
    }
}
