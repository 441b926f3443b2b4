//! What took how long, handed to whoever shows it. Traces are for people: one that finds no room is counted and let go.

use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::clock::Millis;

/// Spans that may wait to be sent.
const ROOM: usize = 8192;

/// Something that took time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The trace it belongs to.
    pub trace: u128,
    /// Its own number.
    pub id: u64,
    /// The span it is part of.
    pub parent: Option<u64>,
    /// What it is called.
    pub name: String,
    /// When it began.
    pub start: Millis,
    /// When it was over.
    pub end: Millis,
    /// What else is known of it.
    pub attributes: Vec<(&'static str, String)>,
    /// Why it went wrong, if it did.
    pub error: Option<String>,
}

/// Takes spans, or does nothing if nobody wants them.
#[derive(Debug, Clone, Default)]
pub struct Tracer(Option<Sender<Span>>);

impl Tracer {
    /// A tracer, and where its spans arrive.
    pub fn new() -> (Self, Receiver<Span>) {
        let (sender, receiver) = channel(ROOM);
        (Self(Some(sender)), receiver)
    }

    /// True if somebody wants spans.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Hands on a span. False if there was no room for it.
    pub fn record(&self, span: Span) -> bool {
        self.0.as_ref().is_none_or(|sender| sender.try_send(span).is_ok())
    }
}
