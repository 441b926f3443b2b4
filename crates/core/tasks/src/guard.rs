//! How many pods are asked for, learned from what the cluster says.
//!
//! Decides: when the quota of a namespace refused a pod, no more are asked for there than there were, and now and then one more,
//! until it is let in again. Other namespaces have quotas of their own, or none. Never knows the quota itself: others use it too.
//! Pods that find no node are the business of [`crate::board::Board::observe_unschedulable`].

use std::collections::BTreeMap;
use std::sync::Arc;

/// The longest time between two tries, in seconds.
const LONGEST: i64 = 30;

/// What is known of the quotas of a cluster, by the namespace in which pods are created.
#[derive(Debug, Clone, Default)]
pub struct PodGuards(BTreeMap<Arc<str>, PodGuard>);

impl PodGuards {
    /// A quota refused a pod while this many were in its namespace.
    pub fn observe_blocked(&mut self, namespace: &Arc<str>, there: u32, now: i64) {
        self.0.entry(namespace.clone()).or_default().observe_blocked(there, now);
    }

    /// A pod was let in, and this many are in its namespace now.
    pub fn observe_created(&mut self, namespace: &str, there: u32, now: i64) {
        if let Some(guard) = self.0.get_mut(namespace) {
            guard.observe_created(there, now);
        }
    }

    /// A pod of a namespace is gone.
    pub fn observe_ended(&mut self, namespace: &str, now: i64) {
        if let Some(guard) = self.0.get_mut(namespace) {
            guard.observe_ended(now);
        }
    }

    /// How many pods there may be now, in each namespace for which that is known.
    pub fn limits(&self, now: i64) -> impl Iterator<Item = (&str, u32)> {
        self.0.iter().filter_map(move |(namespace, guard)| Some((&**namespace, guard.limit(now)?)))
    }

    /// When one more is tried next in one of the namespaces, in seconds.
    pub fn wake_at(&self, now: i64) -> Option<i64> {
        self.0.values().filter_map(|guard| guard.wake_at(now)).min()
    }
}

/// What is known of the quota of one namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodGuard {
    /// As many as there were when one was refused.
    limit: Option<u32>,
    pause: i64,
    /// When one more is tried.
    probe_at: i64,
    refused_at: Option<i64>,
}

impl PodGuard {
    /// A quota refused a pod while this many were there.
    pub fn observe_blocked(&mut self, there: u32, now: i64) {
        self.limit = Some(self.limit.map_or(there, |limit| limit.min(there)));
        // One refusal rarely comes alone.
        if self.refused_at != Some(now) {
            self.refused_at = Some(now);
            self.pause = (self.pause * 2).clamp(1, LONGEST);
            self.probe_at = now.saturating_add(self.pause);
        }
    }

    /// A pod was let in, and this many are there now.
    pub fn observe_created(&mut self, there: u32, now: i64) {
        if self.limit.is_some_and(|limit| there > limit) {
            self.limit = Some(there);
            self.pause = 0;
            self.probe_at = now;
        }
    }

    /// A pod is gone: what it used of the quota will be counted as free soon.
    pub fn observe_ended(&mut self, now: i64) {
        self.pause = 0;
        self.probe_at = self.probe_at.min(now.saturating_add(1));
    }

    /// How many pods there may be now, if that is known.
    pub fn limit(&self, now: i64) -> Option<u32> {
        let more = u32::from(now >= self.probe_at);
        self.limit.map(|limit| limit.saturating_add(more))
    }

    /// When one more is tried, in seconds.
    pub fn wake_at(&self, now: i64) -> Option<i64> {
        self.limit.filter(|_| self.probe_at > now).map(|_| self.probe_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_refusal_no_more_are_asked_for_than_there_were() {
        let mut guard = PodGuard::default();
        assert_eq!(guard.limit(0), None);
        guard.observe_blocked(2, 100);
        guard.observe_blocked(2, 100);
        assert_eq!((guard.limit(100), guard.wake_at(100)), (Some(2), Some(101)));
    }

    #[test]
    fn one_more_is_tried_ever_more_rarely_until_it_is_let_in() {
        let mut guard = PodGuard::default();
        let mut pauses = vec![];
        let mut now = 100;
        for _ in 0..7 {
            guard.observe_blocked(2, now);
            let next = guard.wake_at(now).unwrap();
            pauses.push(next - now);
            now = next;
            assert_eq!(guard.limit(now), Some(3));
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        guard.observe_created(3, now);
        assert_eq!(guard.limit(now), Some(4));
        guard.observe_blocked(3, now + 1);
        assert_eq!(guard.wake_at(now + 1), Some(now + 2), "it begins anew");
    }

    #[test]
    fn when_a_pod_has_ended_another_is_tried_soon() {
        let mut guard = PodGuard::default();
        for second in [100, 101, 103, 107] {
            guard.observe_blocked(2, second);
        }
        assert_eq!(guard.wake_at(107), Some(115));
        guard.observe_ended(108);
        assert_eq!(guard.wake_at(108), Some(109));
    }
}
