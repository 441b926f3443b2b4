//! In which order and how many at a time pods are asked for. Pure.
//!
//! Attempts come in the order of their rank. While it is not known whether a quota is near, pods are asked for one by one, so
//! that none of lower rank gets in before one of higher rank; the longer nothing is refused, the more at a time.

use std::collections::VecDeque;

use muster_ports::runtime::{Handle, Launch};

/// Pods asked for at the same time, at most.
const WIDEST: usize = 16;
/// Pods that got in one after the other before more are asked for at a time.
const CONFIDENCE: usize = 8;

/// Attempts whose pod is to be made.
#[derive(Debug, Default)]
pub(crate) struct CreationQueue {
    waiting: VecDeque<(String, Launch)>,
    in_flight: usize,
    in_a_row: usize,
}

impl CreationQueue {
    /// Another one, behind all others.
    pub(crate) fn push(&mut self, namespace: String, launch: Launch) {
        self.waiting.push_back((namespace, launch));
    }

    /// One that could not be made for a passing reason, before all others.
    pub(crate) fn put_back(&mut self, namespace: String, launch: Launch) {
        self.waiting.push_front((namespace, launch));
    }

    /// The next to be asked for, if it may be now.
    pub(crate) fn next(&mut self) -> Option<(String, Launch)> {
        let width = (self.in_a_row / CONFIDENCE).clamp(1, WIDEST);
        if self.in_flight >= width {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.in_flight += 1;
        Some(next)
    }

    /// One got in, or could not for a reason of its own.
    pub(crate) fn observe_answer(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.in_a_row += 1;
    }

    /// The cluster did not answer.
    pub(crate) fn observe_silence(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.in_a_row = 0;
    }

    /// A quota refused one: whatever waits behind it in the same namespace is refused too.
    pub(crate) fn observe_refusal(&mut self, namespace: &str) -> Vec<Handle> {
        self.observe_silence();
        let (refused, rest) =
            std::mem::take(&mut self.waiting).into_iter().partition(|(waits_in, _)| waits_in == namespace);
        self.waiting = rest;
        let refused: VecDeque<(String, Launch)> = refused;
        refused.into_iter().map(|(_, launch)| launch.handle).collect()
    }

    /// Takes one out; true if it was there.
    pub(crate) fn remove(&mut self, handle: &Handle) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|(_, launch)| launch.handle != *handle);
        self.waiting.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::tests::launch;

    fn queue(namespaces: &[&str]) -> CreationQueue {
        let mut queue = CreationQueue::default();
        for (index, namespace) in namespaces.iter().enumerate() {
            let mut launch = launch();
            launch.handle.task = index.to_string();
            queue.push((*namespace).to_owned(), launch);
        }
        queue
    }

    fn next(queue: &mut CreationQueue) -> Option<String> {
        queue.next().map(|(_, launch)| launch.handle.task)
    }

    #[test]
    fn at_first_one_is_asked_for_after_the_other() {
        let mut queue = queue(&["n", "n"]);
        assert_eq!((next(&mut queue).as_deref(), next(&mut queue)), (Some("0"), None));
        queue.observe_answer();
        assert_eq!(next(&mut queue).as_deref(), Some("1"));
    }

    #[test]
    fn the_longer_nothing_is_refused_the_more_are_asked_for_at_a_time() {
        let mut queue = queue(&["n"; 60]);
        for _ in 0..16 {
            assert!(next(&mut queue).is_some());
            queue.observe_answer();
        }
        assert!(next(&mut queue).is_some() && next(&mut queue).is_some() && next(&mut queue).is_none());
        queue.observe_silence();
        assert!(next(&mut queue).is_none(), "one is under way, and one at a time is enough again");
    }

    #[test]
    fn a_refusal_holds_for_all_behind_it_in_the_same_namespace() {
        let mut queue = queue(&["n", "n", "m", "n"]);
        assert!(next(&mut queue).is_some());
        let refused: Vec<String> = queue.observe_refusal("n").into_iter().map(|it| it.task).collect();
        assert_eq!(refused, ["1", "3"]);
        assert_eq!(next(&mut queue).as_deref(), Some("2"));
    }

    #[test]
    fn what_is_taken_out_is_not_asked_for() {
        let mut queue = queue(&["n"]);
        let handle = Handle { task: "0".into(), attempt: 2 };
        assert!(queue.remove(&handle) && !queue.remove(&handle));
        assert_eq!(next(&mut queue), None);
    }
}
