//! Logs and explanations that a test writes itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use muster_ports::clock::Millis;
use muster_ports::explain::{Answer, Explain, Explanation};
use muster_ports::logs::{LogError, LogPart, Logs};
use muster_ports::runtime::Handle;
use parking_lot::Mutex;

/// Logs in memory. A clone is the same place.
#[derive(Clone, Default)]
pub struct FakeLogs {
    logs: Arc<Mutex<BTreeMap<(Handle, String), FakeLog>>>,
    most: Arc<AtomicUsize>,
}

#[derive(Default)]
struct FakeLog {
    /// Bytes that are no longer kept.
    forgotten: usize,
    bytes: Vec<u8>,
    times: Vec<(Millis, u64)>,
}

impl FakeLogs {
    pub fn write(&self, uid: &str, attempt: u32, container: &str, text: &str) {
        self.write_at(uid, attempt, container, text, 0);
    }

    /// Writes at a time, in seconds.
    pub fn write_at(&self, uid: &str, attempt: u32, container: &str, text: &str, second: i64) {
        let handle = Handle { task: uid.to_owned(), attempt };
        let mut logs = self.logs.lock();
        let log = logs.entry((handle, container.to_owned())).or_default();
        log.times.push((Millis(second * 1000), log.bytes.len() as u64));
        log.bytes.extend_from_slice(text.as_bytes());
    }

    /// Forgets the oldest bytes, as rotation does.
    pub fn forget(&self, uid: &str, attempt: u32, container: &str, bytes: usize) {
        let handle = Handle { task: uid.to_owned(), attempt };
        self.logs.lock().get_mut(&(handle, container.to_owned())).unwrap().forgotten = bytes;
    }

    /// The most bytes that were asked for at once.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}

impl Logs for FakeLogs {
    fn read(&self, handle: &Handle, container: &str, offset: u64, max: usize) -> Result<LogPart, LogError> {
        self.most.fetch_max(max, Ordering::Relaxed);
        let logs = self.logs.lock();
        let log = logs.get(&(handle.clone(), container.to_owned())).ok_or(LogError::NotFound)?;
        let from = usize::try_from(offset).unwrap().max(log.forgotten).min(log.bytes.len());
        let to = from.saturating_add(max).min(log.bytes.len());
        Ok(LogPart { offset: from as u64, bytes: log.bytes[from..to].to_vec(), end: log.bytes.len() as u64 })
    }

    fn offset_at(&self, handle: &Handle, container: &str, time: Millis) -> Result<u64, LogError> {
        let logs = self.logs.lock();
        let log = logs.get(&(handle.clone(), container.to_owned())).ok_or(LogError::NotFound)?;
        let found = log.times.iter().find(|(at, _)| at.0 >= time.0);
        Ok(found.map_or(log.bytes.len() as u64, |(_, offset)| *offset))
    }
}

/// Explains what it was told to.
#[derive(Clone, Default)]
pub struct FakeExplain {
    known: Arc<Mutex<BTreeMap<String, Explanation>>>,
}

impl FakeExplain {
    pub fn tell(&self, uid: &str, explanation: Explanation) {
        self.known.lock().insert(uid.to_owned(), explanation);
    }
}

impl Explain for FakeExplain {
    fn explain(&self, uid: &str) -> Answer<'_> {
        let found = self.known.lock().get(uid).cloned();
        Box::pin(async move { found })
    }
}
