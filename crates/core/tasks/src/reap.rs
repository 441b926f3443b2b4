//! When a task has been what it is for long enough, and what happens then (design 4.3, seed 000 H79–H85).
//!
//! A limit the user gave (`spec.ttl`, zero is none) ends with the task deleted: its attempt is stopped first, if it has one.
//! Without one, the server's own rules apply to tasks that were never submitted or have ended; tasks that wait or run have
//! none.

use muster_types::task::Ttl;
use muster_types::{Duration, MilliTimestamp, State, Task, Timestamp};

/// The server's own rules, in seconds; zero is no limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReapSettings {
    /// Tasks that were never submitted are deleted after this time.
    pub created: i64,
    /// Tasks that succeeded or were canceled are deleted after this time.
    pub succeeded: i64,
    /// The files of tasks that failed are let go after this time; the task is kept.
    pub failed: i64,
    /// What an attempt that succeeded left is kept for this time.
    pub keep_succeeded: i64,
    /// What any other attempt left is kept for this time.
    pub keep_failed: i64,
}

impl Default for ReapSettings {
    fn default() -> Self {
        const HOUR: i64 = 3600;
        Self {
            created: 72 * HOUR,
            succeeded: 72 * HOUR,
            failed: 720 * HOUR,
            keep_succeeded: 1,
            keep_failed: 72 * HOUR,
        }
    }
}

/// What happens to a task whose time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reap {
    /// It is ended, and deleted when it has.
    Expire,
    /// It is deleted.
    Delete,
    /// Its files are let go.
    Release,
    /// It leaves its group, which counts it and deletes it in one commit.
    Leave,
}

impl Reap {
    /// What happens instead to a task in a state, while its group goes on. A member that was not submitted waits for its turn.
    pub fn in_open_group(self, state: State) -> Option<Self> {
        match self {
            Self::Delete if state == State::Created => None,
            Self::Delete => Some(Self::Leave),
            Self::Expire | Self::Release | Self::Leave => Some(self),
        }
    }
}

/// The times of a task that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// Where it is.
    pub state: State,
    /// When it was made.
    pub created: i64,
    /// Since when it waits: made, submitted, or back from an attempt.
    pub waits_since: i64,
    /// When its attempt was started.
    pub started: Option<i64>,
    /// When it ended.
    pub terminated: Option<i64>,
    /// What the user allows.
    pub ttl: Ttl,
    /// Its files were let go.
    pub released: bool,
    /// Its time was over before it ended.
    pub expired: bool,
}

/// When what happened to a task, as it is written down.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Times {
    pub created: Option<Timestamp>,
    pub submitted: Option<Timestamp>,
    /// The end of its last attempt.
    pub back: Option<MilliTimestamp>,
    pub started: Option<MilliTimestamp>,
    pub terminated: Option<MilliTimestamp>,
}

impl Life {
    /// Reads a task.
    pub fn of(task: &Task) -> Self {
        let status = &task.status;
        let times = Times {
            created: task.metadata.creation_timestamp,
            submitted: status.submitted,
            back: status.attempts.last().and_then(|attempt| attempt.finished_at),
            started: status.started,
            terminated: status.terminated,
        };
        let state = crate::view::state_of(task);
        Self::new(state, &times, task.spec.ttl, status.released.is_some(), status.expired)
    }

    /// Waits are counted from the second that follows what happened, so that none is too short.
    pub(crate) fn new(state: State, times: &Times, ttl: Ttl, released: bool, expired: bool) -> Self {
        let created = times.created.map_or(0, Timestamp::next_second);
        let submitted = times.submitted.map(Timestamp::next_second);
        let waits_since = submitted.max(times.back.map(MilliTimestamp::next_second));
        Self {
            state,
            created,
            waits_since: waits_since.unwrap_or(created),
            started: times.started.map(MilliTimestamp::next_second),
            terminated: times.terminated.map(MilliTimestamp::next_second),
            ttl,
            released,
            expired,
        }
    }

    /// When its time is over and what happens then; `None` if never.
    pub fn due(&self, settings: &ReapSettings) -> Option<(i64, Reap)> {
        let ended = self.terminated.unwrap_or(self.created);
        let own = |ttl: Option<Duration>, since: i64, what| Some((since.saturating_add(limit(ttl?)?), what));
        let rule = |ttl: Option<Duration>, seconds: i64, since: i64, what| {
            let none_of_its_own = ttl.is_none() && seconds > 0;
            none_of_its_own.then(|| (since.saturating_add(seconds), what))
        };
        let ttl = &self.ttl;
        match self.state {
            State::Succeeded | State::Failed | State::Canceled if self.expired => Some((ended, Reap::Delete)),
            State::Created => own(ttl.created, self.created, Reap::Delete)
                .or_else(|| rule(ttl.created, settings.created, self.created, Reap::Delete)),
            State::Ready | State::Postponed | State::QuotaBlocked | State::Pending => {
                own(ttl.pending, self.waits_since, Reap::Expire)
            }
            State::Running => own(ttl.running, self.started.unwrap_or(self.waits_since), Reap::Expire),
            State::Succeeded => own(ttl.succeeded, ended, Reap::Delete)
                .or_else(|| rule(ttl.succeeded, settings.succeeded, ended, Reap::Delete)),
            State::Canceled => own(ttl.canceled, ended, Reap::Delete)
                .or_else(|| rule(ttl.canceled, settings.succeeded, ended, Reap::Delete)),
            State::Failed => own(ttl.failed, ended, Reap::Delete).or_else(|| {
                rule(ttl.failed, settings.failed, ended, Reap::Release).filter(|_| !self.released)
            }),
        }
    }
}

/// How long what an attempt left is kept after it ended, in seconds.
pub fn retention(task: &Task, succeeded: bool, settings: &ReapSettings) -> i64 {
    let (own, rule) = if succeeded {
        (task.spec.retention.succeeded, settings.keep_succeeded)
    } else {
        (task.spec.retention.failed, settings.keep_failed)
    };
    own.map_or(rule, Duration::seconds_rounded_up)
}

/// The seconds of a limit; zero is none.
fn limit(ttl: Duration) -> Option<i64> {
    Some(ttl.seconds_rounded_up()).filter(|seconds| *seconds > 0)
}
