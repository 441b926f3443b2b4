//! What the API asks whoever runs tasks, if that is this server now.

use std::sync::{Arc, PoisonError, RwLock};

use muster_ports::explain::{Answer, Explain};
use muster_ports::logs::{KeptLogs, LogError, LogPart, Logs};
use muster_ports::runtime::Handle;
use muster_types::Millis;

/// Logs and reasons of tasks that run here, and the logs that are kept in any case.
pub struct Hands {
    kept: KeptLogs,
    live: RwLock<Option<Live>>,
}

#[derive(Clone)]
struct Live {
    logs: Arc<dyn Logs>,
    explain: Arc<dyn Explain>,
}

impl Hands {
    /// Only what is kept.
    pub fn new(kept: KeptLogs) -> Self {
        Self { kept, live: RwLock::new(None) }
    }

    /// Tasks run here from now on.
    pub fn take(&self, logs: Arc<dyn Logs>, explain: Arc<dyn Explain>) {
        self.set(Some(Live { logs, explain }));
    }

    /// They no longer do.
    pub fn let_go(&self) {
        self.set(None);
    }

    fn set(&self, live: Option<Live>) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = live;
    }

    fn live(&self) -> Option<Live> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Logs for Hands {
    fn read(&self, handle: &Handle, container: &str, offset: u64, max: usize) -> Result<LogPart, LogError> {
        match self.live() {
            Some(live) => live.logs.read(handle, container, offset, max),
            None => self.kept.read(handle, container, offset, max),
        }
    }

    fn offset_at(&self, handle: &Handle, container: &str, time: Millis) -> Result<u64, LogError> {
        match self.live() {
            Some(live) => live.logs.offset_at(handle, container, time),
            None => self.kept.offset_at(handle, container, time),
        }
    }
}

impl Explain for Hands {
    fn explain(&self, uid: &str) -> Answer<'_> {
        let (live, uid) = (self.live(), uid.to_owned());
        Box::pin(async move { live?.explain.explain(&uid).await })
    }
}
