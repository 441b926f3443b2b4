//! Messages that were made and not confirmed, and up to where everything was told.
//!
//! Invariants: of one object at most one message is under way, and the next follows only when it was confirmed, so the order
//! of an object's messages holds whatever is refused, lost or sent again. The cursor never passes a change of which a message
//! is not confirmed. A message is dropped only when somebody says so.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use muster_types::Message;

/// Names a message while it is here; grows in the order messages came.
pub type Ticket = u64;

/// The window.
#[derive(Debug)]
pub struct Window {
    /// Messages that may be under way at once.
    size: usize,
    /// Everything up to here came in.
    upto: u64,
    next: Ticket,
    open: BTreeMap<Ticket, Entry>,
    /// Messages that may be sent.
    ready: BTreeSet<Ticket>,
    under_way: BTreeSet<Ticket>,
    /// Messages that were refused and rest before they are sent again.
    resting: BTreeSet<Ticket>,
    /// The messages of each object that are here, the first of which is ready, under way or resting.
    lines: BTreeMap<Arc<str>, VecDeque<Ticket>>,
}

#[derive(Debug)]
struct Entry {
    revision: u64,
    message: Arc<Message>,
    /// How often it was refused.
    refused: u32,
}

impl Window {
    /// An empty window, behind a place up to which everything was told.
    pub fn new(size: usize, upto: u64) -> Self {
        Self {
            size: size.max(1),
            upto,
            next: 0,
            open: BTreeMap::new(),
            ready: BTreeSet::new(),
            under_way: BTreeSet::new(),
            resting: BTreeSet::new(),
            lines: BTreeMap::new(),
        }
    }

    /// Takes in the messages of the change at a place, which is behind all others.
    pub fn take_in(&mut self, revision: u64, messages: impl IntoIterator<Item = Message>) {
        for message in messages {
            let ticket = self.next;
            self.next += 1;
            let line = self.lines.entry(message.key.clone()).or_default();
            line.push_back(ticket);
            if line.len() == 1 {
                self.ready.insert(ticket);
            }
            self.open.insert(ticket, Entry { revision, message: Arc::new(message), refused: 0 });
        }
        self.pass(revision);
    }

    /// Nothing is to be told of anything up to here but what came in.
    pub fn pass(&mut self, revision: u64) {
        self.upto = self.upto.max(revision);
    }

    /// What may be sent now, in order; it is under way from now on.
    pub fn send(&mut self) -> Vec<(Ticket, Arc<Message>)> {
        let mut sent = Vec::new();
        while self.under_way.len() < self.size
            && let Some(ticket) = self.ready.pop_first()
        {
            let Some(entry) = self.open.get(&ticket) else { continue };
            sent.push((ticket, entry.message.clone()));
            self.under_way.insert(ticket);
        }
        sent
    }

    /// A message was confirmed. False if it was not under way.
    pub fn confirm(&mut self, ticket: Ticket) -> bool {
        self.under_way.contains(&ticket) && self.close(ticket).is_some()
    }

    /// A message is given up; the next of its object may go.
    pub fn drop_one(&mut self, ticket: Ticket) -> Option<Arc<Message>> {
        self.close(ticket)
    }

    /// A message was not taken: it rests, and is to be sent again. How often that happened so far.
    pub fn refuse(&mut self, ticket: Ticket) -> u32 {
        if self.under_way.remove(&ticket) {
            self.resting.insert(ticket);
        }
        let Some(entry) = self.open.get_mut(&ticket) else { return 0 };
        entry.refused = entry.refused.saturating_add(1);
        entry.refused
    }

    /// What rested may be sent again. False if nothing did.
    pub fn wake(&mut self) -> bool {
        let rested = !self.resting.is_empty();
        self.ready.append(&mut self.resting);
        rested
    }

    /// True if messages rest.
    pub fn is_resting(&self) -> bool {
        !self.resting.is_empty()
    }

    /// The connection is gone: whatever was under way is to be sent again.
    pub fn lose(&mut self) {
        self.ready.append(&mut self.under_way);
    }

    /// Everything up to here was told, and that was confirmed.
    pub fn cursor(&self) -> u64 {
        self.open.first_key_value().map_or(self.upto, |(_, entry)| entry.revision.saturating_sub(1))
    }

    /// Messages that are not confirmed.
    pub fn backlog(&self) -> usize {
        self.open.len()
    }

    /// True if messages wait to be sent and there is room.
    pub fn can_send(&self) -> bool {
        !self.ready.is_empty() && self.under_way.len() < self.size
    }

    /// True if something was sent of which nobody knows yet what became.
    pub fn is_waiting(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// True if no more should be taken in for now.
    pub fn is_full(&self) -> bool {
        self.open.len() >= self.size.saturating_mul(2)
    }

    fn close(&mut self, ticket: Ticket) -> Option<Arc<Message>> {
        let entry = self.open.remove(&ticket)?;
        self.under_way.remove(&ticket);
        self.ready.remove(&ticket);
        self.resting.remove(&ticket);
        let key = &entry.message.key;
        let line = self.lines.get_mut(key)?;
        line.retain(|waiting| *waiting != ticket);
        match line.front() {
            Some(next) if self.under_way.contains(next) || self.resting.contains(next) => {}
            Some(next) => drop(self.ready.insert(*next)),
            None => drop(self.lines.remove(key)),
        }
        Some(entry.message)
    }
}
