//! The members of a group, tallied: one change costs the same however many there are.
//!
//! Members have places: their order in the group, by which they are made, submitted and named. What was made is known by a
//! watermark, so a member that is no longer there is not made again: it counts as it ended, or as Canceled.

use muster_types::{Counts, State};

/// One member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    /// Nothing is known of it.
    Unseen,
    /// It is there; its end may have been asked for.
    Here { state: State, cancel: bool },
    /// It was deleted; how it had ended.
    Gone { state: State },
}

impl Member {
    fn state(self) -> Option<State> {
        match self {
            Self::Unseen => None,
            Self::Here { state, .. } | Self::Gone { state } => Some(state),
        }
    }
}

/// All members of a group.
#[derive(Debug, Clone)]
pub struct Members {
    by_place: Vec<Member>,
    counts: Counts,
    gone: Counts,
    made: u32,
    /// None before this place waits to be submitted.
    submit_from: usize,
    /// None before this place has to be told to end.
    cancel_from: usize,
    /// First place that ended badly.
    broken: Option<u32>,
}

impl Members {
    /// A group of so many, none of them seen.
    pub fn new(total: u32, made: u32) -> Self {
        Self {
            by_place: vec![Member::Unseen; total as usize],
            counts: Counts::default(),
            gone: Counts::default(),
            made: made.min(total),
            submit_from: 0,
            cancel_from: 0,
            broken: None,
        }
    }

    /// Everything below this place was made.
    pub fn set_made(&mut self, made: u32) {
        self.made = self.made.max(made.min(self.total()));
    }

    /// A member is there, in this state.
    pub fn observe(&mut self, place: u32, state: State, cancel: bool) {
        self.put(place, Member::Here { state, cancel });
    }

    /// A member was deleted. What had not ended ends with it.
    pub fn observe_gone(&mut self, place: u32) {
        let before = self.by_place.get(place as usize).and_then(|member| member.state());
        let state = before.filter(|state| state.is_terminal()).unwrap_or(State::Canceled);
        self.put(place, Member::Gone { state });
    }

    /// A member cannot be made, because something else has its name. It counts as failed.
    pub fn observe_taken(&mut self, place: u32) {
        self.put(place, Member::Gone { state: State::Failed });
    }

    /// Everything that is there was seen: what was made and was not seen is gone, and ended as was written down.
    pub fn settle(&mut self, mut recorded: Counts) {
        for place in 0..self.made {
            if self.by_place.get(place as usize) != Some(&Member::Unseen) {
                continue;
            }
            let state = if recorded.succeeded > 0 {
                State::Succeeded
            } else if recorded.failed > 0 {
                State::Failed
            } else {
                State::Canceled
            };
            let left = recorded.of(state);
            *left = left.saturating_sub(1);
            self.put(place, Member::Gone { state });
        }
    }

    fn put(&mut self, place: u32, new: Member) {
        let Some(member) = self.by_place.get_mut(place as usize) else { return };
        let old = std::mem::replace(member, new);
        if let Some(state) = old.state() {
            *self.counts.of(state) -= 1;
        }
        if let Member::Gone { state } = old {
            *self.gone.of(state) -= 1;
        }
        if let Some(state) = new.state() {
            *self.counts.of(state) += 1;
            let is_first = self.broken.is_none_or(|broken| place < broken);
            if matches!(state, State::Failed | State::Canceled) && is_first {
                self.broken = Some(place);
                // Those between it and a later one that ended badly before have to end as well.
                self.cancel_from = self.cancel_from.min(place as usize);
            }
            if state == State::Created {
                self.submit_from = self.submit_from.min(place as usize);
            }
            if !state.is_terminal() {
                self.cancel_from = self.cancel_from.min(place as usize);
            }
        }
        if let Member::Gone { state } = new {
            *self.gone.of(state) += 1;
        }
    }

    /// How many there are when all are made.
    pub fn total(&self) -> u32 {
        u32::try_from(self.by_place.len()).unwrap_or(u32::MAX)
    }

    /// How many were made.
    pub fn made(&self) -> u32 {
        self.made
    }

    /// How many are in each state.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How those that are no longer there had ended.
    pub fn gone(&self) -> Counts {
        self.gone
    }

    /// The first that failed or was canceled.
    pub fn broken(&self) -> Option<u32> {
        self.broken
    }

    /// The state of a member that was seen.
    pub fn state(&self, place: u32) -> Option<State> {
        self.by_place.get(place as usize).and_then(|member| member.state())
    }

    /// The first members that wait to be submitted.
    pub fn to_submit(&mut self, most: u32) -> Vec<u32> {
        let waits = |member: &Member| matches!(member, Member::Here { state: State::Created, cancel: false });
        let made = self.made as usize;
        while self.submit_from < made && !waits(&self.by_place[self.submit_from]) {
            self.submit_from += 1;
        }
        self.places(self.submit_from, most, waits)
    }

    /// The first members at or after a place that have not ended and were not told to.
    pub fn to_cancel(&mut self, from: u32, most: u32) -> Vec<u32> {
        let goes_on =
            |member: &Member| matches!(member, Member::Here { state, cancel: false } if !state.is_terminal());
        let made = self.made as usize;
        while self.cancel_from < made && !goes_on(&self.by_place[self.cancel_from]) {
            self.cancel_from += 1;
        }
        self.places(self.cancel_from.max(from as usize), most, goes_on)
    }

    fn places(&self, from: usize, most: u32, wanted: impl Fn(&Member) -> bool) -> Vec<u32> {
        let made = self.by_place.iter().enumerate().take(self.made as usize).skip(from);
        let chosen = made.filter(|(_, member)| wanted(member)).take(most as usize);
        chosen.filter_map(|(place, _)| u32::try_from(place).ok()).collect()
    }

    /// Counts all anew, for tests: the tally must agree.
    pub fn recount(&self) -> Counts {
        let mut counts = Counts::default();
        for state in self.by_place.iter().filter_map(|member| member.state()) {
            *counts.of(state) += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deleted_member_counts_as_it_ended_or_as_canceled() {
        let mut members = Members::new(3, 3);
        members.observe(0, State::Succeeded, false);
        members.observe(1, State::Running, false);
        members.observe_gone(0);
        members.observe_gone(1);
        assert_eq!((members.counts().succeeded, members.counts().canceled), (1, 1));
        assert_eq!(members.gone(), members.counts());
    }

    #[test]
    fn after_a_start_members_that_are_gone_count_as_was_written_down() {
        let mut members = Members::new(5, 4);
        members.observe(1, State::Running, false);
        members.settle(Counts { succeeded: 1, failed: 1, ..Counts::default() });
        let counts = members.counts();
        assert_eq!((counts.running, counts.succeeded, counts.failed, counts.canceled), (1, 1, 1, 1));
        assert_eq!(members.state(4), None);
    }

    #[test]
    fn a_member_that_fails_before_one_that_was_canceled_takes_those_between_with_it() {
        let mut members = Members::new(4, 4);
        members.observe(0, State::Running, false);
        members.observe(1, State::Created, false);
        members.observe(2, State::Created, false);
        members.observe(3, State::Canceled, false);
        assert_eq!((members.broken(), members.to_cancel(4, 9)), (Some(3), vec![]));
        members.observe(0, State::Succeeded, false);
        members.observe(1, State::Failed, false);
        assert_eq!((members.broken(), members.to_cancel(2, 9)), (Some(1), vec![2]));
    }

    #[test]
    fn a_member_beyond_the_group_is_of_no_interest() {
        let mut members = Members::new(1, 1);
        members.observe(1, State::Running, false);
        assert_eq!(members.counts(), Counts::default());
    }
}
