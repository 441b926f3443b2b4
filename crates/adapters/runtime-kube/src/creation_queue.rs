//! In which order and how many at a time pods are asked for. Pure.
//!
//! Attempts come in the order of their rank. While it is not known whether a quota is near, pods are asked for one by one, so
//! that none of lower rank gets in before one of higher rank; the longer nothing is refused, the more at a time.
//!
//! A refusal holds for all attempts of the same namespace that were chosen before it was known: those that wait here, and those
//! that come later from a pass that had not heard of it. All of them are chosen anew, in order of rank. An attempt that is taken
//! over is always asked for: its pod may be there.

use std::collections::{BTreeMap, VecDeque};

use muster_ports::runtime::{Handle, Launch};

/// Pods asked for at the same time, at most.
const WIDEST: usize = 16;
/// Pods that got in one after the other before more are asked for at a time.
const CONFIDENCE: usize = 8;

/// Attempts whose pod is to be made.
#[derive(Debug, Default)]
pub(crate) struct CreationQueue {
    waiting: VecDeque<Waiting>,
    in_flight: usize,
    in_a_row: usize,
    /// Attempts that were refused so far.
    refusals: u64,
    /// The last refusal by the quota of each namespace.
    last: BTreeMap<String, LastRefusal>,
}

#[derive(Debug)]
struct Waiting {
    namespace: String,
    launch: Launch,
    /// Its pod may be there already.
    may_exist: bool,
}

#[derive(Debug)]
struct LastRefusal {
    /// Its number among all refusals.
    number: u64,
    message: String,
}

/// An attempt that is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub handle: Handle,
    /// How often it was refused now.
    pub refusal: u32,
    pub message: String,
}

impl CreationQueue {
    /// Another one, behind all others, or refused at once: one that ranks higher may have been refused since it was chosen.
    pub(crate) fn push(&mut self, namespace: String, launch: Launch) -> Option<Refused> {
        let knows = launch.pod.as_ref().map_or(0, |pod| pod.knows_refusals);
        if let Some(last) = self.last.get(&namespace).filter(|last| knows < last.number) {
            let message = last.message.clone();
            return Some(self.refuse(&launch, message));
        }
        self.waiting.push_back(Waiting { namespace, launch, may_exist: false });
        None
    }

    /// One that is taken over, behind all others.
    pub(crate) fn push_adopted(&mut self, namespace: String, launch: Launch) {
        self.waiting.push_back(Waiting { namespace, launch, may_exist: true });
    }

    /// One that could not be made for a passing reason, before all others. It was asked for, so it may be there.
    pub(crate) fn put_back(&mut self, namespace: String, launch: Launch) {
        self.waiting.push_front(Waiting { namespace, launch, may_exist: true });
    }

    /// The next to be asked for, if it may be now.
    pub(crate) fn next(&mut self) -> Option<Launch> {
        let width = (self.in_a_row / CONFIDENCE).clamp(1, WIDEST);
        if self.in_flight >= width {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.in_flight += 1;
        Some(next.launch)
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

    /// A quota refused one: whatever waits behind it in the same namespace is refused too. All that are refused, in the order in
    /// which that is to be told.
    pub(crate) fn observe_refusal(
        &mut self,
        namespace: &str,
        launch: &Launch,
        message: &str,
    ) -> Vec<Refused> {
        self.observe_silence();
        let mut refused = vec![self.refuse(launch, message.to_owned())];
        let last = LastRefusal { number: self.refusals, message: message.to_owned() };
        self.last.insert(namespace.to_owned(), last);
        let (behind, rest): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|waiting| waiting.namespace == namespace && !waiting.may_exist);
        self.waiting = rest;
        refused.extend(behind.iter().map(|behind| self.refuse(&behind.launch, message.to_owned())));
        refused
    }

    fn refuse(&mut self, launch: &Launch, message: String) -> Refused {
        self.refusals += 1;
        let before = launch.pod.as_ref().map_or(0, |pod| pod.refusals);
        Refused { handle: launch.handle.clone(), refusal: before.saturating_add(1), message }
    }

    /// Takes one out; true if it was there.
    pub(crate) fn remove(&mut self, handle: &Handle) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.launch.handle != *handle);
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
            assert_eq!(queue.push((*namespace).to_owned(), chosen(&index.to_string(), 0)), None);
        }
        queue
    }

    /// An attempt that was chosen when so many refusals were known.
    fn chosen(task: &str, knows: u64) -> Launch {
        let mut launch = launch();
        launch.handle.task = task.to_owned();
        launch.pod.as_mut().unwrap().knows_refusals = knows;
        launch
    }

    fn next(queue: &mut CreationQueue) -> Option<String> {
        queue.next().map(|launch| launch.handle.task)
    }

    fn refuse(queue: &mut CreationQueue, namespace: &str, task: &str) -> Vec<String> {
        let refused = queue.observe_refusal(namespace, &chosen(task, 0), "exceeded quota: q");
        refused.into_iter().map(|it| it.handle.task).collect()
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
        assert_eq!(refuse(&mut queue, "n", "0"), ["0", "1", "3"]);
        assert_eq!(next(&mut queue).as_deref(), Some("2"));
    }

    #[test]
    fn a_refusal_holds_for_what_comes_later_and_was_chosen_before_it_was_known() {
        let mut queue = queue(&["n", "n"]);
        assert_eq!(next(&mut queue).as_deref(), Some("0"));
        assert_eq!(refuse(&mut queue, "n", "0"), ["0", "1"]);
        let late = queue.push("n".to_owned(), chosen("2", 0)).expect("it is refused without being asked for");
        assert_eq!((late.handle.task.as_str(), late.message.as_str()), ("2", "exceeded quota: q"));
        assert_eq!(queue.push("m".to_owned(), chosen("3", 0)), None, "another namespace has another quota");
        assert_eq!(next(&mut queue).as_deref(), Some("3"));
    }

    #[test]
    fn what_is_chosen_anew_with_the_refusal_in_mind_is_asked_for() {
        let mut queue = queue(&["n", "n"]);
        assert_eq!(next(&mut queue).as_deref(), Some("0"));
        refuse(&mut queue, "n", "0");
        // Who chose has heard of the first refusal, and of the one behind it not yet.
        assert_eq!(queue.push("n".to_owned(), chosen("0", 1)), None);
        assert_eq!(next(&mut queue).as_deref(), Some("0"));
    }

    #[test]
    fn an_attempt_whose_pod_may_be_there_is_never_refused_without_asking() {
        let mut queue = queue(&["n"]);
        queue.push_adopted("n".to_owned(), chosen("adopted", 0));
        assert_eq!(next(&mut queue).as_deref(), Some("0"));
        assert_eq!(refuse(&mut queue, "n", "0"), ["0"]);
        assert_eq!(next(&mut queue).as_deref(), Some("adopted"));
    }

    #[test]
    fn refusals_of_an_attempt_are_numbered() {
        let mut queue = CreationQueue::default();
        let mut launch = launch();
        launch.pod.as_mut().unwrap().refusals = 4;
        assert_eq!(queue.observe_refusal("n", &launch, "no")[0].refusal, 5);
    }

    #[test]
    fn what_is_taken_out_is_not_asked_for() {
        let mut queue = queue(&["n"]);
        let handle = Handle { task: "0".into(), attempt: 2 };
        assert!(queue.remove(&handle) && !queue.remove(&handle));
        assert_eq!(next(&mut queue), None);
    }
}
