//! How a sink stands, as its status says it. Written at a bounded rate, and only if there is something new to say.

use std::sync::Arc;

use muster_ports::clock::Millis;
use muster_ports::publisher::PublishError;
use muster_ports::store::{Batch, Key, Precondition, ResourceName, Store};
use muster_types::condition::{Condition, ConditionStatus, set_condition};
use muster_types::event_sink_status::SinkRequest;
use muster_types::{Duration, EventSink, EventSinkStatus, JsonText};

use super::SINKS;
use super::cursor::Cursor;
use super::job_source::JobSourceStanding;
use crate::writes::put;

/// Least time between two writes, in milliseconds.
const PAUSE: i64 = 1000;

/// What is known of a sink and not yet written.
pub struct Standing {
    key: Key,
    status: EventSinkStatus,
    /// As it was last written.
    written: EventSinkStatus,
    last_write: Millis,
}

impl Standing {
    /// What is written of a sink.
    pub fn new(path: &Arc<str>, status: EventSinkStatus) -> Self {
        let key = Key { resource: ResourceName::new(SINKS), path: path.clone() };
        Self { key, written: status.clone(), status, last_write: Millis(0) }
    }

    /// What was confirmed so far.
    pub fn progress(&mut self, cursor: &Cursor, now: Millis) {
        if cursor.confirmed > self.status.confirmed {
            self.status.last_confirmed_time = Some(now.to_timestamp());
        }
        self.status.confirmed = cursor.confirmed;
        self.status.dead_lettered = cursor.dead;
        self.status.resyncs = cursor.resyncs;
        self.status.confirmed_revision = Some(cursor.upto);
    }

    /// What is left to do.
    pub fn backlog(&mut self, messages: usize, changes: u64, oldest: Option<Millis>, now: Millis) {
        self.status.backlog = messages as u64;
        self.status.behind = if messages == 0 && changes < 64 { 0 } else { changes };
        let age = oldest.map(|at| u64::try_from(now.0 - at.0).unwrap_or(0) / 1000).filter(|age| *age > 0);
        self.status.lag = age.map(Duration::from_secs);
    }

    /// The generation that is carried out.
    pub fn observed(&mut self, generation: i64) {
        self.status.observed_generation = Some(generation);
    }

    /// The sink takes messages.
    pub fn connected(&mut self, now: Millis) {
        self.set("Connected", ConditionStatus::True, "Connected", "", now);
    }

    /// It does not.
    pub fn disconnected(&mut self, error: &PublishError, now: Millis) {
        self.set("Connected", ConditionStatus::False, error.reason, &error.message, now);
    }

    /// It was told to pause.
    pub fn paused(&mut self, now: Millis) {
        self.set("Connected", ConditionStatus::False, "Suspended", "spec.suspend is true", now);
    }

    /// Messages are kept, or one is not.
    pub fn delivering(&mut self, trouble: Option<&PublishError>, now: Millis) {
        match trouble {
            None => self.set("Delivering", ConditionStatus::True, "Confirmed", "", now),
            Some(error) => self.set("Delivering", ConditionStatus::False, error.reason, &error.message, now),
        }
    }

    /// Changes were forgotten before they were told, or everything was told since.
    pub fn lagging(&mut self, message: Option<&str>, now: Millis) {
        match message {
            Some(message) => self.set("Lagging", ConditionStatus::True, "Resync", message, now),
            None => self.set("Lagging", ConditionStatus::False, "KeepsUp", "", now),
        }
    }

    /// Whether jobs of a cluster are seen.
    pub fn watching(&mut self, jobs: &JobSourceStanding, now: Millis) {
        match (&jobs.trouble, &jobs.gap) {
            (Some(error), _) => {
                self.set("Watching", ConditionStatus::False, error.reason, &error.message, now);
            }
            (None, Some(gap)) => self.set("Watching", ConditionStatus::True, "AfterGap", gap, now),
            (None, None) => self.set("Watching", ConditionStatus::True, "Watching", "", now),
        }
    }

    /// What became of a request for a test message.
    pub fn tested(&mut self, request: SinkRequest) {
        self.status.test = Some(request);
    }

    /// What became of a request to send messages again.
    pub fn replayed(&mut self, request: SinkRequest) {
        self.status.replay = Some(request);
    }

    /// The requests that were dealt with.
    pub fn requests(&self) -> (Option<&str>, Option<&str>) {
        fn name(request: Option<&SinkRequest>) -> Option<&str> {
            request.map(|request| request.request.as_str())
        }
        (name(self.status.test.as_ref()), name(self.status.replay.as_ref()))
    }

    fn set(&mut self, of: &str, status: ConditionStatus, reason: &str, message: &str, now: Millis) {
        let condition = Condition::new(of, status, reason, message, now.to_timestamp());
        set_condition(&mut self.status.conditions, condition);
    }

    /// True if there is something to say. Where the log is, is not worth a write: a write moves it.
    pub fn is_news(&self) -> bool {
        let plain = |status: &EventSinkStatus| EventSinkStatus { confirmed_revision: None, ..status.clone() };
        plain(&self.status) != plain(&self.written)
    }

    /// True if the numbers are not these.
    pub fn is_outdated(&self, backlog: usize, confirmed: u64) -> bool {
        self.status.backlog != backlog as u64 || self.status.confirmed != confirmed
    }

    /// When it may be written again.
    pub fn due(&self) -> Millis {
        Millis(self.last_write.0 + PAUSE)
    }

    /// Writes it, if there is something to say. Whoever changed the sink meanwhile wins; then it is said later.
    pub async fn write(&mut self, store: &Store, now: Millis) {
        self.last_write = now;
        if !self.is_news() {
            return;
        }
        let Some(stored) = store.get(&self.key) else { return };
        let Ok(mut sink) = EventSink::from_json(stored.json()) else { return };
        sink.status.clone_from(&self.status);
        let Some(write) = put(self.key.clone(), Precondition::At(stored.revision), &mut sink) else { return };
        match store.commit(Batch::of(write)).await {
            Ok(_) => self.written.clone_from(&self.status),
            Err(error) => {
                tracing::debug!(key = %self.key, %error, "the status of a sink could not be committed");
            }
        }
    }
}
