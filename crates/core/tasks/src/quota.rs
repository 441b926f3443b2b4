//! Quotas of the namespaces in which pods are created.
//!
//! Decides: whether the quota of its namespace lets a task start. What a quota refuses, it refuses to every pod of its namespace and
//! to nothing else: others start, and none of them is preempted for it. How many pods a namespace takes in for now is learned
//! ([`crate::guard`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::board::{Board, Entry};
use crate::capacity::Room;
use crate::group::Slot;
use crate::plan::Hold;
use crate::settings::Rule;

/// Number of the namespace in which a pod is created.
pub type NamespaceId = u32;

/// The quota of a namespace: pods there, and how many it takes in for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// The namespace.
    pub namespace: NamespaceId,
    /// Pods with an attempt.
    pub pods: u32,
    /// The limit.
    pub most: u32,
}

impl Quota {
    /// True if it takes in no more pods.
    pub fn is_used_up(self) -> bool {
        self.pods >= self.most
    }
}

/// Pods by namespace, and the limits of namespaces where a quota refused one.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    pods: BTreeMap<NamespaceId, u32>,
    limits: BTreeMap<NamespaceId, u32>,
}

impl Quotas {
    pub fn enter(&mut self, namespace: Option<NamespaceId>) {
        if let Some(namespace) = namespace {
            *self.pods.entry(namespace).or_default() += 1;
        }
    }

    pub fn leave(&mut self, namespace: Option<NamespaceId>) {
        if let Some(pods) = namespace.and_then(|namespace| self.pods.get_mut(&namespace)) {
            *pods = pods.saturating_sub(1);
        }
    }

    pub fn pods(&self, namespace: NamespaceId) -> u32 {
        self.pods.get(&namespace).copied().unwrap_or(0)
    }

    /// Pods by namespace.
    pub fn counts(&self) -> impl Iterator<Item = (NamespaceId, u32)> {
        self.pods.iter().map(|(namespace, pods)| (*namespace, *pods))
    }

    fn of(&self, namespace: NamespaceId) -> Option<Quota> {
        let most = *self.limits.get(&namespace)?;
        Some(Quota { namespace, pods: self.pods(namespace), most })
    }
}

impl Board {
    /// All pods are created in this namespace. To be said before the first task is observed; without it, the pod of a task is
    /// created in the namespace of the task.
    #[must_use]
    pub fn with_pod_namespace(mut self, namespace: Option<&str>) -> Self {
        self.pod_namespace = namespace.map(|namespace| self.names.intern(namespace));
        self
    }

    /// The namespace in which the pod of a task is created; `None` if the task is not on the board or is not run as a pod.
    pub fn pod_namespace(&self, uid: u128) -> Option<Arc<str>> {
        let namespace = self.entry(self.slot_of(uid)?)?.namespace?;
        Some(self.names.shared(namespace))
    }

    /// The number of pods with an attempt in a namespace.
    pub fn pods_in(&self, namespace: &str) -> u32 {
        self.names.find(namespace).map_or(0, |namespace| self.quotas.pods(namespace))
    }

    /// How many pods a namespace takes in for now, if a quota refused one there.
    pub fn set_pod_limit(&mut self, namespace: &str, limit: Option<u32>) {
        let namespace = self.names.intern(namespace);
        match limit {
            Some(limit) => self.quotas.limits.insert(namespace, limit),
            None => self.quotas.limits.remove(&namespace),
        };
    }

    /// What a task waits for if the quota of its namespace takes in no more pods.
    pub(crate) fn quota_hold(&self, slot: Slot) -> Option<Hold> {
        let quota = self.quota_of(self.entry(slot)?)?;
        quota.is_used_up().then(|| self.hold_by(quota))
    }

    /// What a task waits for if the quota of its namespace takes in no pod at all.
    pub(crate) fn empty_quota_hold(&self, slot: Slot) -> Option<Hold> {
        let quota = self.quota_of(self.entry(slot)?)?;
        (quota.most == 0).then(|| self.hold_by(quota))
    }

    /// The room of the runtime of a task, with the quota of its namespace.
    pub(crate) fn room_for(&self, entry: &Entry) -> Room {
        let mut rooms = self.rooms;
        rooms.of(entry.runtime).with_quota(self.quota_of(entry))
    }

    fn quota_of(&self, entry: &Entry) -> Option<Quota> {
        entry.namespace.filter(|_| self.settings.keeps(Rule::Capacity)).and_then(|it| self.quotas.of(it))
    }

    fn hold_by(&self, quota: Quota) -> Hold {
        Hold::Quota { namespace: self.names.shared(quota.namespace) }
    }
}
