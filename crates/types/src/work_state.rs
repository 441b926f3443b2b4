//! How TaskGroups and Jobs stand: one word, and how many of their tasks are in which state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metadata::{is_default, null_is_default};
use crate::task_status::State;

words! {
    /// Where a TaskGroup or a Job is in its life. Succeeded, Failed, Canceled and Skipped are final.
    #[derive(Default)]
    pub enum WorkState {
        /// It waits for other groups of its Job.
        Waiting = "Waiting",
        /// Made, and nothing of it was submitted.
        #[default]
        Created = "Created",
        /// Tasks of it were submitted, and none has started.
        Ready = "Ready",
        /// Tasks of it run or have ended, and others are left.
        Running = "Running",
        /// Every task of it succeeded.
        Succeeded = "Succeeded",
        /// It ended, and a task of it failed.
        Failed = "Failed",
        /// It was ended on request.
        Canceled = "Canceled",
        /// It was never made, because what it waited for did not come.
        Skipped = "Skipped",
    }
}

impl WorkState {
    /// True for states that never change again.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed | Self::Canceled | Self::Skipped => true,
            Self::Waiting | Self::Created | Self::Ready | Self::Running => false,
        }
    }
}

/// How many tasks are in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    /// Made but not submitted.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub created: u32,
    /// Submitted, and not started; those that a rule holds back are among them.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub ready: u32,
    /// An attempt was created and does not run yet.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub pending: u32,
    /// An attempt runs.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub running: u32,
    /// Ended well.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub succeeded: u32,
    /// Ended badly.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub failed: u32,
    /// Ended on request.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub canceled: u32,
}

impl Counts {
    /// The number of tasks in a state. What a rule or a quota holds back counts as Ready.
    pub fn of(&mut self, state: State) -> &mut u32 {
        match state {
            State::Created => &mut self.created,
            State::Ready | State::Postponed | State::QuotaBlocked => &mut self.ready,
            State::Pending => &mut self.pending,
            State::Running => &mut self.running,
            State::Succeeded => &mut self.succeeded,
            State::Failed => &mut self.failed,
            State::Canceled => &mut self.canceled,
        }
    }

    /// Tasks that were submitted and have not ended.
    pub const fn open(&self) -> u32 {
        self.ready + self.pending + self.running
    }

    /// Tasks that have ended.
    pub const fn ended(&self) -> u32 {
        self.succeeded + self.failed + self.canceled
    }

    /// All tasks.
    pub const fn all(&self) -> u32 {
        self.created + self.open() + self.ended()
    }

    /// All of so many tasks after those that have not ended were canceled.
    #[must_use]
    pub fn canceled(&self, total: u32) -> Self {
        let Self { succeeded, failed, .. } = *self;
        let canceled = total.saturating_sub(succeeded).saturating_sub(failed);
        Self { succeeded, failed, canceled, ..Self::default() }
    }

    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            created: self.created.saturating_add(other.created),
            ready: self.ready.saturating_add(other.ready),
            pending: self.pending.saturating_add(other.pending),
            running: self.running.saturating_add(other.running),
            succeeded: self.succeeded.saturating_add(other.succeeded),
            failed: self.failed.saturating_add(other.failed),
            canceled: self.canceled.saturating_add(other.canceled),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_of_a_task_is_counted_once() {
        let mut counts = Counts::default();
        for &state in State::ALL {
            *counts.of(state) += 1;
        }
        assert_eq!(counts.all() as usize, State::ALL.len());
        assert_eq!((counts.created, counts.open(), counts.ended()), (1, 5, 3));
        assert_eq!(counts.plus(counts).all(), 2 * counts.all());
    }

    #[test]
    fn nothing_counted_is_nothing_stored() {
        assert_eq!(serde_json::to_string(&Counts::default()).unwrap(), "{}");
    }

    #[test]
    fn four_states_are_final() {
        let terminal = WorkState::ALL.iter().filter(|state| state.is_terminal());
        let words: Vec<_> = terminal.map(|state| state.as_str()).collect();
        assert_eq!(words, ["Succeeded", "Failed", "Canceled", "Skipped"]);
    }
}
