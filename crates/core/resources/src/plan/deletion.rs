//! When a deleted resource may go: its adapters have cleaned up and nothing belongs to it any more, or somebody said that it
//! must go without them, and why (`docs/decisions/0015-force-delete.md`).

use muster_types::ManagedResource;
use muster_types::adapter_report::{FINALIZED, find_reported};
use muster_types::condition::{Condition, ConditionStatus, find_condition, set_condition};
use muster_types::managed_resource::{FINALIZER, FORCE_DELETE, FORCE_DELETED};

use super::Planning;

/// Characters of a reason that are kept.
const LONGEST_REASON: usize = 1024;

impl Planning<'_> {
    /// Lets the resource go if it may. True if there is nothing more to decide.
    ///
    /// Why it may go must be stored before it goes, so that its last state tells: who agreed, or who forced it.
    pub(super) fn let_go(&mut self, stored: &ManagedResource) -> bool {
        if self.may_go(stored) {
            self.release();
            return true;
        }
        let resource = &self.plan.resource;
        let Some(reason) = force_reason(resource).filter(|_| is_kept(resource)) else { return false };
        let message = format!("deleted without its adapters: {reason}");
        let forced = Condition::new(FORCE_DELETED, ConditionStatus::True, "Requested", message, self.now);
        set_condition(&mut self.plan.resource.status.conditions, forced);
        true
    }

    /// True if a deleted resource says why it may go.
    pub(super) fn may_go(&self, resource: &ManagedResource) -> bool {
        let is_forced = || find_condition(&resource.status.conditions, FORCE_DELETED).is_some();
        is_kept(resource) && (is_forced() || (self.world.children == 0 && self.is_finalized(resource)))
    }

    fn release(&mut self) {
        self.plan.release = true;
        self.plan.resource.metadata.finalizers.retain(|name| name != FINALIZER);
    }

    /// True if all required adapters say that they cleaned up after this deletion.
    fn is_finalized(&self, resource: &ManagedResource) -> bool {
        self.rules.required().iter().all(|adapter| {
            resource.status.standing(adapter).is_some_and(|standing| {
                standing.observed_generation == resource.metadata.generation
                    && find_reported(&standing.conditions, FINALIZED)
                        .is_some_and(|condition| condition.status == ConditionStatus::True)
            })
        })
    }
}

/// True if a deleted resource is kept for its adapters.
fn is_kept(resource: &ManagedResource) -> bool {
    resource.is_deleting() && resource.metadata.finalizers.iter().any(|name| name == FINALIZER)
}

/// Why a resource is to go without its adapters, if somebody said so.
fn force_reason(resource: &ManagedResource) -> Option<String> {
    let reason = resource.metadata.annotations.get(FORCE_DELETE)?.trim();
    (!reason.is_empty()).then(|| reason.chars().take(LONGEST_REASON).collect())
}
