//! The life of a task: one function decides every change of state.
//!
//! Implements the table of the task manager's states (seed 000), with the executor-lost and timeout transitions of
//! schedules and robots. A terminal state never changes. Nothing here knows when or why an event happens.

use std::fmt;

use muster_types::State;
use muster_types::task_status::Stopping;

/// What happens to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The user asks for it to run.
    Submit,
    /// A rule holds it back.
    Hold,
    /// No rule holds it back any more.
    Free,
    /// There is no room for it.
    Block,
    /// An attempt is about to be created.
    Start,
    /// The attempt runs.
    Run,
    /// The attempt ended well.
    Succeed,
    /// It ended badly, or can never start.
    Fail,
    /// The attempt is gone and the policy allows another one.
    Return,
    /// An attempt that counted as lost is back and runs.
    Resume,
    /// The user no longer wants it.
    Cancel,
}

impl Event {
    /// All events.
    pub const ALL: [Self; 11] = [
        Self::Submit,
        Self::Hold,
        Self::Free,
        Self::Block,
        Self::Start,
        Self::Run,
        Self::Succeed,
        Self::Fail,
        Self::Return,
        Self::Resume,
        Self::Cancel,
    ];
}

/// Why an event does not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The task has ended.
    Ended(State),
    /// The event does not apply in this state.
    NotNow {
        /// Where the task is.
        state: State,
        /// What was to happen.
        event: Event,
    },
    /// Its attempt was told to end before, for a reason that counts as much.
    Stopping(Stopping),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(state) => write!(f, "the task has ended ({state}) and does not change any more"),
            Self::Stopping(why) => write!(f, "the attempt is stopping already ({why})"),
            Self::NotNow { state: State::Created, .. } => {
                f.write_str("the task is not submitted; set spec.suspend to false first")
            }
            Self::NotNow { state, event } => {
                write!(f, "a task that is {state} cannot {}", format!("{event:?}").to_lowercase())
            }
        }
    }
}

/// The state after an event.
#[allow(clippy::match_same_arms, reason = "one line per row of the table")]
pub fn transition(state: State, event: Event) -> Result<State, Refused> {
    use State::{Canceled, Created, Failed, Pending, Postponed, QuotaBlocked, Ready, Running, Succeeded};
    let next = match (state, event) {
        (Succeeded | Failed | Canceled, _) => return Err(Refused::Ended(state)),
        (Created, Event::Submit) => Ready,
        (Ready | Postponed | QuotaBlocked, Event::Hold) => Postponed,
        (Ready | Postponed | QuotaBlocked, Event::Free) => Ready,
        (Ready | Postponed | QuotaBlocked, Event::Block) => QuotaBlocked,
        (Ready | Postponed | QuotaBlocked, Event::Start) => Pending,
        // The executor has a quota of its own.
        (Pending, Event::Block) => QuotaBlocked,
        (Pending, Event::Run) => Running,
        // An attempt may end before anybody saw it run.
        (Pending | Running, Event::Succeed) => Succeeded,
        (Ready | Postponed | QuotaBlocked | Pending | Running, Event::Fail) => Failed,
        (Pending | Running, Event::Return) => Ready,
        // With a replacement, or still without one.
        (Ready | Postponed | QuotaBlocked | Pending | Running, Event::Resume) => Running,
        (Created | Ready | Postponed | QuotaBlocked | Pending | Running, Event::Cancel) => Canceled,
        (Created, _)
        | (Ready | Postponed | QuotaBlocked, Event::Submit | Event::Run | Event::Succeed | Event::Return)
        | (Pending, Event::Submit | Event::Hold | Event::Free | Event::Start)
        | (Running, Event::Submit | Event::Hold | Event::Free | Event::Block | Event::Start | Event::Run) => {
            return Err(Refused::NotNow { state, event });
        }
    };
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_state_never_changes() {
        for state in State::ALL.iter().copied().filter(|state| state.is_terminal()) {
            for event in Event::ALL {
                assert_eq!(transition(state, event), Err(Refused::Ended(state)));
            }
        }
    }

    #[test]
    fn a_task_that_was_not_submitted_can_only_be_submitted_or_canceled() {
        let allowed: Vec<_> =
            Event::ALL.into_iter().filter(|event| transition(State::Created, *event).is_ok()).collect();
        assert_eq!(allowed, [Event::Submit, Event::Cancel]);
    }

    #[test]
    fn only_a_task_with_an_attempt_can_come_back() {
        let from: Vec<_> =
            State::ALL.iter().copied().filter(|state| transition(*state, Event::Return).is_ok()).collect();
        assert_eq!(from, [State::Pending, State::Running]);
    }

    #[test]
    fn every_state_that_has_not_ended_can_be_canceled() {
        for state in State::ALL.iter().copied().filter(|state| !state.is_terminal()) {
            assert_eq!(transition(state, Event::Cancel), Ok(State::Canceled));
        }
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let refused = transition(State::Created, Event::Start).unwrap_err();
        assert_eq!(refused.to_string(), "the task is not submitted; set spec.suspend to false first");
        let refused = transition(State::Running, Event::Start).unwrap_err();
        assert_eq!(refused.to_string(), "a task that is Running cannot start");
    }
}
