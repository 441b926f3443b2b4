//! What is to be looked at, each once, in the order it was asked for: nobody is passed over for ever.

use std::collections::{HashSet, VecDeque};

/// Uids to look at.
#[derive(Debug, Default)]
pub struct Queue {
    order: VecDeque<String>,
    queued: HashSet<String>,
}

impl Queue {
    /// Asks for a look.
    pub fn push(&mut self, uid: &str) {
        if self.queued.insert(uid.to_owned()) {
            self.order.push_back(uid.to_owned());
        }
    }

    /// The next to look at.
    pub fn pop(&mut self) -> Option<String> {
        let uid = self.order.pop_front()?;
        self.queued.remove(&uid);
        Some(uid)
    }

    /// True if nothing is to be looked at.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_looked_at_once_in_turn() {
        let mut queue = Queue::default();
        for uid in ["b", "a", "b"] {
            queue.push(uid);
        }
        assert_eq!(queue.pop().as_deref(), Some("b"));
        queue.push("b");
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some("a".into()), Some("b".into()), None]);
        assert!(queue.is_empty());
    }
}
