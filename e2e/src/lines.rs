//! Lines of a stream that does not end by itself.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Lines of a stream. It is read to its end whether or not anybody takes them, so its writer is never held up.
pub struct Lines {
    receiver: Receiver<String>,
    seen: Vec<String>,
}

impl Lines {
    /// Reads a stream from now on.
    pub fn of(stream: impl Read + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                drop(sender.send(line));
            }
        });
        Self { receiver, seen: Vec::new() }
    }

    /// The next line; `None` if none comes in time or the stream has ended.
    pub fn next_within(&mut self, deadline: Duration) -> Option<String> {
        let line = self.receiver.recv_timeout(deadline).ok()?;
        self.seen.push(line.clone());
        Some(line)
    }

    /// The first of the lines to come that is wanted; `None` if none is in time.
    pub fn find_within(&mut self, deadline: Duration, wanted: impl Fn(&str) -> bool) -> Option<String> {
        let end = Instant::now() + deadline;
        loop {
            let line = self.next_within(end.saturating_duration_since(Instant::now()))?;
            if wanted(&line) {
                return Some(line);
            }
        }
    }

    /// All lines taken so far.
    pub fn seen(&self) -> &[String] {
        &self.seen
    }
}
