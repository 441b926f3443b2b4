//! Where messages come from: a queue from which each message is taken by one, and stays until that one says it was dealt with.

use crate::publisher::{Boxed, PublishError};

/// A queue that can be listened to.
pub trait Inboxes: Send + Sync {
    /// Opens it: connects, and makes what must be there, also the place for what cannot be dealt with.
    fn open(&self) -> Boxed<'_, Result<Box<dyn Inbox>, PublishError>>;
}

/// An open queue. When it fails, what was taken and not answered comes again, here or elsewhere.
pub trait Inbox: Send {
    /// Waits for the next message. Dropping the future loses nothing.
    fn next(&mut self) -> Boxed<'_, Result<Delivered, PublishError>>;

    /// Says what became of a message.
    fn answer(&mut self, tag: u64, answer: Answer) -> Boxed<'_, Result<(), PublishError>>;
}

/// A message that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// Names it until it is answered.
    pub tag: u64,
    /// Its topic.
    pub topic: String,
    /// Its id.
    pub id: String,
    /// What it says.
    pub body: Vec<u8>,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It was dealt with.
    Done,
    /// It was not, and comes again.
    Again,
    /// It cannot be dealt with: it is set aside, and kept.
    SetAside,
}
