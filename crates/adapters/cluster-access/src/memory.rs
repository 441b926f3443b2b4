//! Answers that are remembered for a short time. Bounded.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Answers that are remembered; the oldest go first when there are more.
const MOST: usize = 10_000;

/// Remembers answers to questions.
pub(crate) struct Memory<Q, A> {
    lasts: Duration,
    answers: Mutex<HashMap<Q, (A, Instant)>>,
}

impl<Q: Hash + Eq, A: Clone> Memory<Q, A> {
    /// Remembers each answer for this long.
    pub(crate) fn new(lasts: Duration) -> Self {
        Self { lasts, answers: Mutex::default() }
    }

    pub(crate) fn recall(&self, question: &Q, now: Instant) -> Option<A> {
        let answers = self.answers.lock();
        let (answer, since) = answers.get(question)?;
        (now < *since + self.lasts).then(|| answer.clone())
    }

    pub(crate) fn keep(&self, question: Q, answer: A, now: Instant) {
        let mut answers = self.answers.lock();
        if answers.len() >= MOST {
            answers.retain(|_, (_, since)| now < *since + self.lasts);
        }
        if answers.len() >= MOST {
            answers.clear();
        }
        answers.insert(question, (answer, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_forgotten_after_its_time() {
        let (memory, now) = (Memory::new(Duration::from_secs(10)), Instant::now());
        memory.keep("may I", true, now);
        assert_eq!(memory.recall(&"may I", now + Duration::from_secs(9)), Some(true));
        assert_eq!(memory.recall(&"may I", now + Duration::from_secs(10)), None);
        assert_eq!(memory.recall(&"may you", now), None);
    }

    #[test]
    fn no_more_is_remembered_than_there_is_room_for() {
        let (memory, now) = (Memory::new(Duration::from_secs(10)), Instant::now());
        for question in 0..=MOST {
            memory.keep(question, (), now);
        }
        assert!(memory.answers.lock().len() <= MOST);
        assert_eq!(memory.recall(&MOST, now), Some(()), "the newest is there");
    }
}
