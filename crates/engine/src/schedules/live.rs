//! The loop of schedules, which sleeps until there is a reason to look.

use std::sync::Arc;

use muster_ports::clock::{Clock, Millis};
use muster_ports::publisher::Boxed;
use muster_ports::store::{Store, WatchError};

use super::Schedules;
use crate::wake::{self, Cycle};

impl Cycle for Schedules {
    const WHAT: &'static str = "schedules";

    fn step(&mut self) -> impl Future<Output = Result<Option<Millis>, WatchError>> + Send {
        Self::step(self)
    }
}

/// Cycles whenever something changed or is due, until the store closes.
pub fn run(store: Store, clock: Arc<dyn Clock>) -> Boxed<'static, ()> {
    Box::pin(async move { wake::run(store.clone(), clock.clone(), Schedules::new(store, clock)).await })
}
