//! Where a task that runs on a robot goes: asked for in the middle of a pass, so that what one task takes is gone for the next.

use std::sync::Arc;

use muster_types::placement::Demand;

/// Why no robot takes a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unplaced {
    /// One CamelCase word.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

/// Finds robots for tasks.
pub trait Places {
    /// The robot a task goes to. It counts as taken from now on.
    fn place(&mut self, uid: u128, demand: &Arc<Demand>) -> Result<Arc<str>, Unplaced>;

    /// Whether some robot would take a task if no robot had any.
    fn could_place(&mut self, demand: &Arc<Demand>) -> Result<(), Unplaced>;
}

/// There are no robots.
pub struct NoRobots;

impl Places for NoRobots {
    fn place(&mut self, _: u128, _: &Arc<Demand>) -> Result<Arc<str>, Unplaced> {
        Err(no_fleet())
    }

    fn could_place(&mut self, _: &Arc<Demand>) -> Result<(), Unplaced> {
        Err(no_fleet())
    }
}

fn no_fleet() -> Unplaced {
    let message = "this server has no fleet; start it with --mqtt-listen or --mqtt-url".to_owned();
    Unplaced { reason: "NoFleet", message }
}
