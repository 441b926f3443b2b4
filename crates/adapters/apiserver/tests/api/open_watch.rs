//! An open watch, and the events in it.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Frame;
use serde_json::Value;

use crate::server::{SOON, revision};

/// An event of a watch.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub word: String,
    pub object: Value,
}

impl Event {
    /// Its word, the name in it and its revision.
    pub fn brief(&self) -> (&str, &str, u64) {
        let name = self.object["metadata"]["name"].as_str().unwrap_or_default();
        (&self.word, name, revision(&self.object))
    }
}

/// An open watch.
pub struct Watching {
    body: UnsyncBoxBody<Bytes, Infallible>,
    unread: Vec<u8>,
    ended: bool,
}

impl Watching {
    /// A watch whose answer has begun.
    pub fn new(body: UnsyncBoxBody<Bytes, Infallible>) -> Self {
        Self { body, unread: Vec::new(), ended: false }
    }

    /// The next event.
    pub async fn next(&mut self) -> Event {
        self.next_or_end().await.expect("the watch goes on")
    }

    /// The next event, unless the watch ends.
    pub async fn next_or_end(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.take_line() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            let frame =
                tokio::time::timeout(SOON, self.body.frame()).await.expect("the watch says something");
            self.take_frame(frame.map(Result::unwrap));
        }
    }

    /// The events there are now.
    pub fn ready(&mut self) -> Vec<Event> {
        while !self.ended
            && let Some(frame) = tokio::task::unconstrained(self.body.frame()).now_or_never()
        {
            self.take_frame(frame.map(Result::unwrap));
        }
        std::iter::from_fn(|| self.take_line()).collect()
    }

    /// All events until the server ends the watch.
    pub async fn until_end(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next_or_end().await {
            events.push(event);
        }
        assert!(self.unread.is_empty(), "a watch ends behind a whole line");
        events
    }

    fn take_frame(&mut self, frame: Option<Frame<Bytes>>) {
        match frame {
            Some(frame) => self.unread.extend_from_slice(&frame.into_data().unwrap()),
            None => self.ended = true,
        }
    }

    fn take_line(&mut self) -> Option<Event> {
        let end = self.unread.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.unread.drain(..=end).collect();
        let mut event: Value = serde_json::from_slice(&line).unwrap();
        Some(Event { word: event["type"].as_str().unwrap().to_owned(), object: event["object"].take() })
    }
}
