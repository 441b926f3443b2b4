//! A broker in memory, which can be told to misbehave.

use std::collections::VecDeque;
use std::sync::Arc;

use muster_types::Message;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Boxed, PublishError, Publisher, Session, Verdict};

/// A broker in memory. Clones are the same broker.
#[derive(Debug, Clone, Default)]
pub struct MemoryPublisher(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    kept: Vec<Arc<Message>>,
    /// Connections are refused.
    down: bool,
    /// Grows when all connections are cut.
    era: u64,
    /// Messages with these topics are not taken, and set aside after so many tries.
    unwanted: Vec<(String, Option<u32>)>,
    /// Messages are kept, but nobody is told so.
    silent: bool,
}

impl MemoryPublisher {
    /// What arrived, in order.
    pub fn kept(&self) -> Vec<Arc<Message>> {
        self.0.state.lock().kept.clone()
    }

    /// Cuts all connections and refuses new ones, or takes them again.
    pub fn set_down(&self, down: bool) {
        let mut state = self.0.state.lock();
        state.down = down;
        state.era += 1;
        drop(state);
        self.0.changed.notify_waiters();
    }

    /// Takes no messages with this topic, or all of them again.
    pub fn refuse_topic(&self, topic: Option<(&str, Option<u32>)>) {
        let unwanted = topic.map(|(topic, tries)| (topic.to_owned(), tries));
        self.0.state.lock().unwanted = unwanted.into_iter().collect();
    }

    /// Confirms nothing any more, or again.
    pub fn set_silent(&self, silent: bool) {
        self.0.state.lock().silent = silent;
    }
}

struct MemorySession {
    broker: Arc<Shared>,
    era: u64,
    verdicts: VecDeque<(u64, Verdict)>,
}

fn gone() -> PublishError {
    PublishError::new("Disconnected", "the connection was cut")
}

impl Publisher for MemoryPublisher {
    fn open(&self) -> Boxed<'_, Result<Box<dyn Session>, PublishError>> {
        Box::pin(async {
            let state = self.0.state.lock();
            if state.down {
                return Err(PublishError::new("Unreachable", "nobody listens"));
            }
            let session = MemorySession { broker: self.0.clone(), era: state.era, verdicts: VecDeque::new() };
            Ok(Box::new(session) as Box<dyn Session>)
        })
    }
}

impl Session for MemorySession {
    fn send<'a>(&'a mut self, messages: &'a [(u64, Arc<Message>)]) -> Boxed<'a, Result<(), PublishError>> {
        Box::pin(async move {
            let mut state = self.broker.state.lock();
            if state.era != self.era {
                return Err(gone());
            }
            for (number, message) in messages {
                let unwanted = state.unwanted.iter().find(|(topic, _)| *topic == message.topic);
                let verdict = if let Some((topic, tries)) = unwanted {
                    let error = PublishError::new("Unroutable", format!("nobody wants {topic}"));
                    Verdict::Refused { error, tries: *tries }
                } else {
                    state.kept.push(message.clone());
                    Verdict::Confirmed
                };
                if !state.silent {
                    self.verdicts.push_back((*number, verdict));
                }
            }
            Ok(())
        })
    }

    fn verdicts(&mut self) -> Boxed<'_, Result<Vec<(u64, Verdict)>, PublishError>> {
        Box::pin(async {
            loop {
                let changed = self.broker.changed.notified();
                if self.broker.state.lock().era != self.era {
                    return Err(gone());
                }
                if !self.verdicts.is_empty() {
                    return Ok(self.verdicts.drain(..).collect());
                }
                changed.await;
            }
        })
    }
}
