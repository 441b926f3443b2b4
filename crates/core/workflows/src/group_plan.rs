//! What a TaskGroup does next (seed 000 H74–H75, seed 003 R3, R10): which members are made, submitted and told to end.
//!
//! Members are made in their order, some at a time. A batch and replicas are submitted as far as `parallelism` allows, a
//! pipeline one by one, each when the one before it has succeeded. In a pipeline a member that failed or was canceled takes
//! all later ones with it; the seed left them waiting for ever when one was canceled.

use muster_types::State;
use muster_types::task_group::{GroupMode, TaskGroupSpec};

use crate::group_members::Members;

/// What is to be done now. The next look decides on the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupPlan {
    /// Members to make, and whether each is submitted at once.
    pub make: Vec<(u32, bool)>,
    /// Members to submit.
    pub submit: Vec<u32>,
    /// Members to end.
    pub cancel: Vec<u32>,
    /// Why they are ended.
    pub reason: Option<EndReason>,
}

/// Why members are ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// The user no longer wants the group.
    GroupCanceled,
    /// This member of the pipeline did not succeed.
    Pipeline {
        /// Its place.
        broken: u32,
        /// It failed; else it was canceled.
        failed: bool,
    },
}

impl EndReason {
    /// In words, for a member and the one that did not succeed.
    pub fn describe(self, member: &str, broken: &str) -> String {
        match self {
            Self::GroupCanceled => format!("Canceled:{member}, when its group was canceled."),
            Self::Pipeline { failed: true, .. } => {
                format!("Canceled:{member}, when (pipelined) task:{broken} failed.")
            }
            Self::Pipeline { failed: false, .. } => {
                format!("Canceled:{member}, when (pipelined) task:{broken} was canceled.")
            }
        }
    }
}

impl GroupPlan {
    /// True if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.make.is_empty() && self.submit.is_empty() && self.cancel.is_empty()
    }
}

/// Decides for a group; at most `slice` members are made, submitted or ended at once.
pub fn plan_group(spec: &TaskGroupSpec, members: &mut Members, slice: u32) -> GroupPlan {
    if let Some(reason) = end_reason(spec, members) {
        let from = if let EndReason::Pipeline { broken, .. } = reason { broken + 1 } else { 0 };
        // Members before the one that broke a pipeline go on, so that the group ends.
        let mut submit = match reason {
            EndReason::GroupCanceled => Vec::new(),
            EndReason::Pipeline { .. } => choose_submitted(spec, members, slice),
        };
        submit.retain(|place| *place < from);
        let cancel = members.to_cancel(from, slice);
        return GroupPlan { submit, cancel, reason: Some(reason), ..GroupPlan::default() };
    }
    let submit = choose_submitted(spec, members, slice);
    let make = choose_made(spec, members, &submit, slice);
    GroupPlan { make, submit, ..GroupPlan::default() }
}

/// Why members that have not ended are to end, if they are.
pub(crate) fn end_reason(spec: &TaskGroupSpec, members: &Members) -> Option<EndReason> {
    if spec.cancel {
        return Some(EndReason::GroupCanceled);
    }
    let broken = members.broken().filter(|_| spec.mode() == GroupMode::Pipeline)?;
    Some(EndReason::Pipeline { broken, failed: members.state(broken) == Some(State::Failed) })
}

/// How many more may be submitted.
fn room(spec: &TaskGroupSpec, members: &Members) -> u32 {
    if spec.suspend {
        return 0;
    }
    let at_once = if spec.mode() == GroupMode::Pipeline { 1 } else { spec.parallelism.unwrap_or(u32::MAX) };
    at_once.saturating_sub(members.counts().open())
}

fn choose_submitted(spec: &TaskGroupSpec, members: &mut Members, slice: u32) -> Vec<u32> {
    let most = room(spec, members).min(slice);
    if most == 0 || members.counts().created == 0 {
        return Vec::new();
    }
    let mut submit = members.to_submit(most);
    if spec.mode() == GroupMode::Pipeline {
        // One that was told to end before its turn has not ended yet, and takes those behind it with it when it has.
        submit.retain(|place| *place == 0 || members.state(*place - 1) != Some(State::Created));
    }
    submit
}

/// The next members to make. One is submitted at once if none before it waits and there is room.
fn choose_made(spec: &TaskGroupSpec, members: &Members, submit: &[u32], slice: u32) -> Vec<(u32, bool)> {
    let made = members.made();
    let end = members.total().min(made.saturating_add(slice));
    let waiting = members.counts().created as usize > submit.len();
    let room = room(spec, members).saturating_sub(u32::try_from(submit.len()).unwrap_or(u32::MAX));
    (made..end).map(|place| (place, !waiting && place - made < room)).collect()
}
