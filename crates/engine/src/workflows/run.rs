//! The loop of groups and jobs, which sleeps until there is a reason to look.

use std::sync::Arc;

use muster_ports::clock::{Clock, Millis};
use muster_ports::publisher::Boxed;
use muster_ports::store::{Store, WatchError};

use muster_workflows::lifetime::Lifetimes;

use super::Workflows;
use crate::wake::{self, Cycle};

impl Cycle for Workflows {
    const WHAT: &'static str = "groups and jobs";

    fn step(&mut self) -> impl Future<Output = Result<Option<Millis>, WatchError>> + Send {
        Self::step(self)
    }
}

/// Cycles whenever something changed or is due, until the store closes.
pub fn run(store: Store, clock: Arc<dyn Clock>, lifetimes: Lifetimes) -> Boxed<'static, ()> {
    Box::pin(async move {
        let workflows = Workflows::with_lifetimes(store.clone(), clock.clone(), lifetimes);
        wake::run(store, clock, workflows).await;
    })
}
