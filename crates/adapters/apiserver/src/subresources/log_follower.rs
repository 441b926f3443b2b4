//! Reads a log from where it was left, attempt after attempt, and waits for more if that is wanted.
//!
//! Files are read in threads for that, one block at a time. Where nothing new was written it waits, first shortly and
//! then longer, and is woken by every change of the task. It holds one of the places of watches, and ends when the
//! task has ended and everything was sent, when the task is gone, or when the server stops.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use muster_ports::logs::{LogError, Logs};
use muster_ports::runtime::Handle;
use muster_ports::store::{Key, Store, Watch, WatchError, WatchScope};
use muster_types::{JsonText, State, Task};
use tokio::time::Instant;

use super::PartCall;
use super::containers::containers_of;
use super::log_place::{BLOCK, LogStart};
use crate::refusal::Refusal;
use crate::shares::Share;
use crate::shutdown::Shutdown;

/// How long it waits first when nothing new was written.
const SHORTEST: Duration = Duration::from_millis(10);
/// How long it waits at most.
const LONGEST: Duration = Duration::from_millis(200);
/// Changes that are looked at together.
const CHANGES: usize = 256;

/// A reader of one task's log.
pub struct LogFollower {
    /// The container; the leading one if absent.
    pub container: Option<String>,
    /// Only this attempt; the latest and those after it if absent.
    pub only: Option<u32>,
    /// Where to begin in the first attempt that is read.
    pub start: LogStart,
    /// How many bytes may still be sent.
    pub left: u64,
    logs: Arc<dyn Logs>,
    /// What the names of logs end in.
    suffix: String,
    store: Store,
    key: Key,
    uid: String,
    shutdown: Shutdown,
    at: Option<Place>,
    waits: Option<Waits>,
}

/// Where it reads.
#[derive(Clone)]
struct Place {
    handle: Handle,
    container: String,
    /// `None` before the start was found.
    offset: Option<u64>,
}

/// What it needs to wait.
struct Waits {
    watch: Watch,
    delay: Duration,
    _room: Share,
}

impl LogFollower {
    /// A reader of the log of the task in the path.
    pub fn new(call: &PartCall, uid: &str) -> Result<Self, Refusal> {
        let logs = call.api.parts.logs.clone();
        let logs =
            logs.ok_or_else(|| Refusal::no_such_thing("this server keeps no logs; ask one that runs tasks"))?;
        Ok(Self {
            container: None,
            only: None,
            start: LogStart::default(),
            left: u64::MAX,
            logs,
            suffix: call.api.settings.log_suffix.clone(),
            store: call.api.store.clone(),
            key: call.key(),
            uid: uid.to_owned(),
            shutdown: call.api.shutdown.clone(),
            at: None,
            waits: None,
        })
    }

    /// Lets it wait for more.
    pub fn follow(&mut self, call: &PartCall) -> Result<(), Refusal> {
        let room = call.api.watches.take(&call.user.name)?;
        let scope = WatchScope::Resource(self.key.resource.clone());
        let watch = self.store.watch(scope, self.store.revision())?;
        self.waits = Some(Waits { watch, delay: SHORTEST, _room: room });
        Ok(())
    }

    /// The next part of the log; `None` if nothing more comes.
    pub async fn next(&mut self) -> Result<Option<Bytes>, LogError> {
        while self.left > 0 {
            // What is known of the attempt before its log is read: if it was over then, all of it is there.
            let Some(task) = self.task() else { return Ok(None) };
            let Some(place) = self.place(&task) else {
                if task.state().is_terminal() || !self.wait_for_change().await {
                    return Ok(None);
                }
                continue;
            };
            let over = is_over(&task, place.handle.attempt);
            match self.read(place).await {
                Ok(bytes) if !bytes.is_empty() => return Ok(Some(bytes)),
                Ok(_) => {}
                Err(LogError::NotFound) if self.waits.is_some() || !over => {}
                Err(error) => return Err(error),
            }
            let goes_on = match (over, self.only) {
                (true, None) if self.waits.is_some() => self.next_attempt(&task).await,
                (true, _) => false,
                (false, _) => self.wait_a_little().await,
            };
            if !goes_on {
                return Ok(None);
            }
        }
        Ok(None)
    }

    fn task(&self) -> Option<Task> {
        let stored = self.store.get(&self.key)?;
        let task: Task = Task::from_json(stored.json()).ok()?;
        (task.metadata.uid == self.uid).then_some(task)
    }

    /// Where to read; `None` before the first attempt.
    fn place(&mut self, task: &Task) -> Option<Place> {
        if let Some(place) = &self.at {
            return Some(place.clone());
        }
        let attempt = self.only.unwrap_or(task.status.attempt);
        if attempt == 0 {
            return None;
        }
        let leading = || containers_of(&self.store, task, &self.suffix).into_iter().next();
        let container = self.container.clone().or_else(leading)?;
        let place = Place { handle: Handle { task: self.uid.clone(), attempt }, container, offset: None };
        self.at = Some(place.clone());
        Some(place)
    }

    async fn read(&mut self, place: Place) -> Result<Bytes, LogError> {
        let (logs, start, left) = (self.logs.clone(), self.start, self.left);
        let is_first = place.offset.is_none();
        let max = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
        let reading = tokio::task::spawn_blocking(move || {
            let offset = match place.offset {
                Some(offset) => offset,
                None => start.find(&*logs, &place.handle, &place.container)?,
            };
            logs.read(&place.handle, &place.container, offset, max)
        });
        let part = reading.await.map_err(|error| LogError::Io(std::io::Error::other(error)))??;
        if is_first && self.waits.is_none() {
            // What is written from now on was not asked for.
            self.left = self.left.min(part.end.saturating_sub(part.offset));
        }
        if let Some(place) = &mut self.at {
            place.offset = Some(part.offset + part.bytes.len() as u64);
        }
        self.left -= (part.bytes.len() as u64).min(self.left);
        if let Some(waits) = self.waits.as_mut().filter(|_| !part.bytes.is_empty()) {
            waits.delay = SHORTEST;
        }
        Ok(part.bytes.into())
    }

    /// Goes on with the attempt after this one; waits for it if the task has not ended. False if none comes.
    async fn next_attempt(&mut self, task: &Task) -> bool {
        let Some(place) = &mut self.at else { return false };
        if is_another_current(task, place.handle.attempt) {
            // Each in its turn; one that came back is gone on with.
            place.handle.attempt = (place.handle.attempt + 1).min(task.status.attempt);
            place.offset = Some(0);
            if self.container.is_none() {
                let leading = containers_of(&self.store, task, &self.suffix).into_iter().next();
                place.container = leading.unwrap_or_else(|| place.container.clone());
            }
            return true;
        }
        !task.state().is_terminal() && self.wait_for_change().await
    }

    /// Waits until the task changed. False if nothing is to be waited for any more.
    async fn wait_for_change(&mut self) -> bool {
        let Some(waits) = &mut self.waits else { return false };
        waits.until_changed(&self.store, &self.key, &self.shutdown, None).await
    }

    /// Waits until the task changed or something may have been written.
    async fn wait_a_little(&mut self) -> bool {
        let Some(waits) = &mut self.waits else { return false };
        let until = Instant::now() + waits.delay;
        waits.delay = (waits.delay * 2).min(LONGEST);
        waits.until_changed(&self.store, &self.key, &self.shutdown, Some(until)).await
    }
}

impl Waits {
    async fn until_changed(
        &mut self,
        store: &Store,
        key: &Key,
        shutdown: &Shutdown,
        until: Option<Instant>,
    ) -> bool {
        let far = Instant::now() + Duration::from_hours(24 * 365);
        loop {
            tokio::select! {
                biased;
                () = shutdown.requested() => return false,
                changes = self.watch.next(CHANGES) => match changes {
                    Ok(changes) if changes.iter().any(|change| change.object.path == key.path) => return true,
                    Ok(_) => {}
                    Err(WatchError::Gone { .. } | WatchError::Future { .. }) => {
                        // It looked away for too long; what it missed is in the task.
                        let scope = WatchScope::Resource(key.resource.clone());
                        match store.watch(scope, store.revision()) {
                            Ok(watch) => self.watch = watch,
                            Err(_) => return false,
                        }
                        return true;
                    }
                    Err(WatchError::Closed) => return false,
                },
                () = tokio::time::sleep_until(until.unwrap_or(far)) => return true,
            }
        }
    }
}

/// True if the task has another attempt now: a later one, or an earlier one that came back. One that a quota refused is still to be
/// made, under the same number.
fn is_another_current(task: &Task, attempt: u32) -> bool {
    let mut begun = task.status.attempts.iter().map(|begun| begun.number);
    task.status.attempt > attempt || task.status.attempt < attempt && begun.any(|number| number == attempt)
}

/// True if nothing more is written by this attempt.
fn is_over(task: &Task, attempt: u32) -> bool {
    is_another_current(task, attempt)
        || task.state().is_terminal()
        || task.status.attempt == attempt && !matches!(task.state(), State::Pending | State::Running)
}
