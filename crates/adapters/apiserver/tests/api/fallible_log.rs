//! A log whose next append can be made to fail, whatever keeps its rows.

use std::any::Any;
use std::sync::Arc;

use muster_ports::store::{Change, Forget, Header, Log, LogError, Row};
use parking_lot::Mutex;

/// Makes the next append of a log fail.
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<Option<LogError>>>);

impl Faults {
    pub fn fail_next(&self, error: LogError) {
        *self.0.lock() = Some(error);
    }

    /// The log with these faults. What is given besides is kept as long as the log.
    pub fn around(&self, log: impl Log, kept: impl Any + Send) -> FallibleLog {
        FallibleLog { log: Box::new(log), faults: self.clone(), _kept: Box::new(kept) }
    }
}

/// Such a log.
pub struct FallibleLog {
    // Before what it stands on.
    log: Box<dyn Log>,
    faults: Faults,
    _kept: Box<dyn Any + Send>,
}

impl Log for FallibleLog {
    fn header(&mut self) -> Result<Header, LogError> {
        self.log.header()
    }

    fn load(&mut self, sink: &mut dyn FnMut(Row<'_>)) -> Result<(), LogError> {
        self.log.load(sink)
    }

    fn append(&mut self, changes: &[Arc<Change>], forget: &Forget) -> Result<(), LogError> {
        match self.faults.0.lock().take() {
            Some(error) => Err(error),
            None => self.log.append(changes, forget),
        }
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
