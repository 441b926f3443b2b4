//! Orders that wait to be carried out, and when those that failed are tried again. Decides by values alone.
//!
//! Two sorts of failure are told apart. If the place where files are kept is away, all orders would fail: none is tried until a pause
//! is over, which grows while it stays away. Any other failure is of one order: only that one waits, and the others go on.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::Order;

/// The pauses of orders, and of all of them while the place is away.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// An order on its way, which comes back if it failed.
#[derive(Debug)]
pub struct Entry {
    /// What is to be done.
    pub order: Order,
    /// How long it waited after it failed last; none if it never did.
    pause: Option<Duration>,
}

impl Entry {
    /// True if this was not tried before.
    pub fn is_new(&self) -> bool {
        self.pause.is_none()
    }
}

/// Whose fault a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The place where files are kept cannot be used.
    Away,
    /// Something about this order.
    OfOrder,
}

/// The place where files are kept cannot be used.
#[derive(Debug)]
struct Away {
    until: Instant,
    pause: Duration,
}

/// What waits.
#[derive(Debug, Default)]
pub struct Backlog {
    ready: VecDeque<Entry>,
    /// By when they are tried again; the number tells those of one moment apart.
    later: BTreeMap<(Instant, u64), Entry>,
    number: u64,
    away: Option<Away>,
    /// Tasks that are to be forgotten: their logs are not stored any more.
    forgotten: HashMap<String, u32>,
}

impl Backlog {
    /// Takes in an order.
    pub fn push(&mut self, order: Order) {
        if let Order::Forget { task, .. } = &order {
            *self.forgotten.entry(task.clone()).or_default() += 1;
        }
        self.ready.push_back(Entry { order, pause: None });
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.ready.len() + self.later.len()
    }

    /// True if the place where files are kept was away when it was tried last.
    pub fn is_away(&self) -> bool {
        self.away.is_some()
    }

    /// The next order to be tried; none if all have to wait.
    pub fn next(&mut self, now: Instant) -> Option<Entry> {
        if self.away.as_ref().is_some_and(|away| away.until > now) {
            return None;
        }
        while let Some(first) = self.later.first_entry().filter(|first| first.key().0 <= now) {
            let entry = first.remove();
            self.ready.push_back(entry);
        }
        self.next_ready()
    }

    /// The next order that never failed.
    pub fn next_ready(&mut self) -> Option<Entry> {
        loop {
            let entry = self.ready.pop_front()?;
            let is_in_vain = match &entry.order {
                Order::Retire { handle, .. } => self.forgotten.contains_key(&handle.task),
                Order::Forget { .. } => false,
            };
            if !is_in_vain {
                return Some(entry);
            }
        }
    }

    /// How long nothing is to be done; `None` if nothing waits.
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        let later = self.later.keys().next().map(|(at, _)| *at);
        let first = if self.ready.is_empty() { later? } else { now };
        let at = self.away.as_ref().map_or(first, |away| away.until.max(first));
        Some(at.saturating_duration_since(now))
    }

    /// An order was carried out. True if the place where files are kept was away until now.
    pub fn succeeded(&mut self, entry: &Entry) -> bool {
        if let Order::Forget { task, .. } = &entry.order
            && let Some(count) = self.forgotten.get_mut(task)
        {
            *count -= 1;
            if *count == 0 {
                self.forgotten.remove(task);
            }
        }
        self.away.take().is_some()
    }

    /// An order failed and waits. True if people should hear of it: it failed for the first time, and the place was not away before.
    pub fn failed(&mut self, entry: Entry, failure: Failure, now: Instant) -> bool {
        let was_away = self.away.is_some();
        let is_new = entry.is_new();
        if failure == Failure::Away {
            let pause = self.away.as_ref().map_or(FIRST_PAUSE, |away| longer(away.pause));
            self.away = Some(Away { until: now + pause, pause });
            // The others are tried before it, so that one that can never be stored does not stand for the whole place.
            self.ready.push_back(Entry { pause: entry.pause.or(Some(FIRST_PAUSE)), ..entry });
            return !was_away;
        }
        let pause = entry.pause.map_or(FIRST_PAUSE, longer);
        self.number += 1;
        self.later.insert((now + pause, self.number), Entry { pause: Some(pause), ..entry });
        is_new
    }
}

fn longer(pause: Duration) -> Duration {
    (pause * 2).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use muster_ports::runtime::Handle;
    use muster_ports::store::Pins;

    use super::*;

    fn retire(task: &str) -> Order {
        let handle = Handle { task: task.to_owned(), attempt: 1 };
        Order::Retire { pin: Pins::default().pin(handle.clone(), Vec::new()), handle }
    }

    fn forget(task: &str) -> Order {
        Order::Forget { task: task.to_owned(), attempts: 1 }
    }

    fn of(orders: Vec<Order>) -> Backlog {
        let mut backlog = Backlog::default();
        for order in orders {
            backlog.push(order);
        }
        backlog
    }

    fn name(entry: &Entry) -> &str {
        match &entry.order {
            Order::Retire { handle, .. } => &handle.task,
            Order::Forget { task, .. } => task,
        }
    }

    #[test]
    fn while_the_place_is_away_one_order_is_tried_after_each_pause_and_then_all_go_on() {
        let mut backlog = of(vec![retire("a"), retire("b"), retire("c")]);
        let mut now = Instant::now();
        let mut tried = Vec::new();
        for pause in [250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000] {
            let entry = backlog.next(now).expect("one is tried");
            tried.push(name(&entry).to_owned());
            let is_said = backlog.failed(entry, Failure::Away, now);
            assert_eq!(is_said, tried.len() == 1, "it is said once");
            assert!(backlog.next(now).is_none());
            assert_eq!(backlog.wait(now), Some(Duration::from_millis(pause)));
            now += Duration::from_millis(pause);
        }
        assert_eq!(tried, ["a", "b", "c", "a", "b", "c", "a", "b"]);
        let entry = backlog.next(now).expect("one is tried");
        assert!(backlog.succeeded(&entry), "it is back");
        assert_eq!(backlog.next(now).as_ref().map(name), Some("a"), "nothing waits any more");
        assert_eq!(backlog.next(now).as_ref().map(name), Some("b"));
        assert_eq!(backlog.len(), 0);
    }

    #[test]
    fn an_order_that_fails_by_itself_holds_up_no_other() {
        let mut backlog = of(vec![retire("bad"), retire("good")]);
        let now = Instant::now();
        let bad = backlog.next(now).expect("it is first");
        assert!(backlog.failed(bad, Failure::OfOrder, now));
        assert_eq!(backlog.next(now).as_ref().map(name), Some("good"));
        assert!(backlog.next(now).is_none());
        let bad = backlog.next(now + FIRST_PAUSE).expect("it is tried again");
        assert!(!backlog.failed(bad, Failure::OfOrder, now), "it was said before");
        assert_eq!(backlog.wait(now), Some(FIRST_PAUSE * 2));
    }

    #[test]
    fn logs_of_a_task_that_is_to_be_forgotten_are_stored_no_more() {
        let mut backlog = of(vec![retire("gone"), retire("stays"), forget("gone")]);
        let now = Instant::now();
        let names: Vec<_> = std::iter::from_fn(|| backlog.next(now)).collect();
        assert_eq!(names.iter().map(name).collect::<Vec<_>>(), ["stays", "gone"]);
        assert!(matches!(names[1].order, Order::Forget { .. }));
        assert!(!backlog.succeeded(&names[1]));
        backlog.push(retire("gone"));
        assert!(backlog.next(now).is_some(), "what comes later is its own");
    }
}
