//! A log that tells how long its writes take and how much each takes in.

use std::sync::Arc;
use std::time::Instant;

use super::log::{Forget, Header, Log, LogError, Row};
use super::object::Change;
use crate::telemetry::Telemetry;
use crate::telemetry::catalog::{COMMIT_CHANGES, COMMIT_SECONDS};

/// Another log, measured.
#[derive(Debug)]
pub struct MeasuredLog<L> {
    log: L,
    telemetry: Telemetry,
}

impl<L: Log> MeasuredLog<L> {
    /// Measures a log.
    pub fn new(log: L, telemetry: Telemetry) -> Self {
        Self { log, telemetry }
    }
}

impl<L: Log> Log for MeasuredLog<L> {
    fn header(&mut self) -> Result<Header, LogError> {
        self.log.header()
    }

    fn load(&mut self, sink: &mut dyn FnMut(Row<'_>)) -> Result<(), LogError> {
        self.log.load(sink)
    }

    fn append(&mut self, changes: &[Arc<Change>], forget: &Forget) -> Result<(), LogError> {
        let begun = Instant::now();
        self.log.append(changes, forget)?;
        if !changes.is_empty() {
            let count = u32::try_from(changes.len()).unwrap_or(u32::MAX);
            self.telemetry.observe(COMMIT_SECONDS, &[], begun.elapsed().as_secs_f64());
            self.telemetry.observe(COMMIT_CHANGES, &[], f64::from(count));
        }
        Ok(())
    }

    fn listen(&mut self, news: Box<dyn Fn() + Send + Sync>) -> bool {
        self.log.listen(news)
    }

    fn follow(&mut self, sink: &mut dyn FnMut(Row<'_>)) -> Result<(), LogError> {
        self.log.follow(sink)
    }

    fn is_waiting(&self) -> bool {
        self.log.is_waiting()
    }
}
