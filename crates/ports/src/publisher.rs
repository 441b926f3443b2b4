//! Where messages go: brokers, web hooks, files.
//!
//! A [`Publisher`] opens a [`Session`]; a session sends messages and says of each what became of it. A message is confirmed only
//! when whoever took it keeps it. When a session fails, nobody knows what became of the rest: they are sent again in the next
//! one, under the same ids. Order: a message that is sent after another was confirmed arrives after it.

pub mod conformance;
mod journal;
mod memory_publisher;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use muster_types::{EventSink, Message};

pub use journal::{Journal, JournalError};
pub use memory_publisher::MemoryPublisher;

/// A future that can be sent between threads.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A way to one place where messages go.
pub trait Publisher: Send + Sync {
    /// Opens it: connects, checks who we are, makes what must be there.
    fn open(&self) -> Boxed<'_, Result<Box<dyn Session>, PublishError>>;
}

/// An open way.
pub trait Session: Send {
    /// Sends messages, in order, each under a number that the verdict on it will name. They are confirmed later.
    fn send<'a>(&'a mut self, messages: &'a [(u64, Arc<Message>)]) -> Boxed<'a, Result<(), PublishError>>;

    /// Waits for verdicts, at least one; or for the end of the session, even if nothing was sent. Dropping the future loses
    /// nothing.
    fn verdicts(&mut self) -> Boxed<'_, Result<Vec<(u64, Verdict)>, PublishError>>;
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is kept.
    Confirmed,
    /// It was not taken; it is tried again later, for ever or this often.
    Refused {
        /// Why.
        error: PublishError,
        /// After so many tries it is set aside; `None` is never.
        tries: Option<u32>,
    },
}

/// Why messages cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PublishError {
    /// One CamelCase word.
    pub reason: &'static str,
    /// What happened and what to do about it, without secrets.
    pub message: String,
}

impl PublishError {
    /// An error.
    pub fn new(reason: &'static str, message: impl fmt::Display) -> Self {
        Self { reason, message: message.to_string() }
    }
}

/// Makes what a sink asks for.
pub trait Sinks: Send + Sync {
    /// The way to where the messages of a sink go. Nothing is opened yet.
    fn publisher(&self, sink: &EventSink) -> Result<Arc<dyn Publisher>, PublishError>;

    /// The way to where messages go that were refused for good.
    fn dead_letters(&self, sink: &EventSink) -> Result<Arc<dyn Publisher>, PublishError>;

    /// Where it is written down how far messages were confirmed, if that is not the store alone.
    fn journal(&self, sink: &EventSink) -> Result<Option<Arc<dyn Journal>>, PublishError>;
}
