//! Sinks that live by the dice: a broker is down for a while, cuts connections, takes messages and says so late or never, and
//! refuses some for now.

use std::collections::VecDeque;
use std::sync::Arc;

use muster_ports::publisher::{Boxed, Journal, PublishError, Publisher, Session, Sinks, Verdict};
use muster_types::{EventSink, Message};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::dice::Dice;
use crate::failing_log::Fate;
use crate::judge::history::{Delivery, What};
use crate::recorder::Recorder;

/// The broker that all sinks of a seed talk to. Clones are the same.
#[derive(Clone)]
pub struct FakeSinks(Arc<Broker>);

struct Broker {
    state: Mutex<State>,
    changed: Notify,
    recorder: Recorder,
    /// A server that was killed reaches nothing any more.
    fate: Fate,
}

struct State {
    dice: Dice,
    is_quiet: bool,
    /// Connections are refused.
    down: bool,
    /// Messages are taken, and their confirmation comes later.
    slow: bool,
    /// Grows when all connections are cut.
    era: u64,
}

impl FakeSinks {
    /// A broker that works.
    pub fn new(recorder: Recorder, fate: Fate, dice: Dice) -> Self {
        let state = Mutex::new(State { dice, is_quiet: false, down: false, slow: false, era: 0 });
        Self(Arc::new(Broker { state, changed: Notify::new(), recorder, fate }))
    }

    /// The broker goes down and comes back, cuts connections, is slow and catches up. How often that happened.
    pub fn break_something(&self, dice: &mut Dice) -> u32 {
        let mut state = self.0.state.lock();
        let mut faults = 0;
        if dice.once_in(if state.down { 8 } else { 50 }) {
            state.down = !state.down;
            state.era += 1;
            faults += u32::from(state.down);
        }
        if dice.once_in(35) {
            state.era += 1;
            faults += 1;
        }
        if dice.once_in(if state.slow { 6 } else { 25 }) {
            state.slow = !state.slow;
            faults += u32::from(state.slow);
        }
        drop(state);
        self.0.changed.notify_waiters();
        faults
    }

    /// From here on the broker works.
    pub fn calm_down(&self) {
        let mut state = self.0.state.lock();
        (state.is_quiet, state.down, state.slow) = (true, false, false);
        drop(state);
        self.0.changed.notify_waiters();
    }
}

impl Sinks for FakeSinks {
    fn publisher(&self, sink: &EventSink) -> Result<Arc<dyn Publisher>, PublishError> {
        let name = format!("{}/{}", sink.metadata.namespace, sink.metadata.name);
        Ok(Arc::new(FakePublisher { broker: self.0.clone(), name }))
    }

    fn dead_letters(&self, _: &EventSink) -> Result<Arc<dyn Publisher>, PublishError> {
        Err(PublishError::new("NoDeadLetters", "no message is ever refused for good"))
    }

    fn journal(&self, _: &EventSink) -> Result<Option<Arc<dyn Journal>>, PublishError> {
        Ok(None)
    }
}

struct FakePublisher {
    broker: Arc<Broker>,
    name: String,
}

struct FakeSession {
    broker: Arc<Broker>,
    name: String,
    era: u64,
    verdicts: VecDeque<(u64, Verdict)>,
}

fn gone() -> PublishError {
    PublishError::new("Disconnected", "the connection was cut")
}

impl Publisher for FakePublisher {
    fn open(&self) -> Boxed<'_, Result<Box<dyn Session>, PublishError>> {
        Box::pin(async {
            let state = self.broker.state.lock();
            if state.down || self.broker.fate.is_dead() {
                return Err(PublishError::new("Unreachable", "nobody listens"));
            }
            let (broker, name) = (self.broker.clone(), self.name.clone());
            let session = FakeSession { broker, name, era: state.era, verdicts: VecDeque::new() };
            Ok(Box::new(session) as Box<dyn Session>)
        })
    }
}

impl Session for FakeSession {
    fn send<'a>(&'a mut self, messages: &'a [(u64, Arc<Message>)]) -> Boxed<'a, Result<(), PublishError>> {
        Box::pin(async move {
            for (number, message) in messages {
                let mut state = self.broker.state.lock();
                let is_cut = state.era != self.era || !state.is_quiet && state.dice.once_in(400);
                if is_cut || self.broker.fate.is_dead() {
                    return Err(gone());
                }
                let is_refused = !state.is_quiet && state.dice.once_in(50);
                drop(state);
                let verdict = if is_refused {
                    let error = PublishError::new("Busy", "try again");
                    Verdict::Refused { error, tries: None }
                } else {
                    self.broker.recorder.note(What::Delivered(delivery(&self.name, message)));
                    Verdict::Confirmed
                };
                self.verdicts.push_back((*number, verdict));
            }
            Ok(())
        })
    }

    fn verdicts(&mut self) -> Boxed<'_, Result<Vec<(u64, Verdict)>, PublishError>> {
        Box::pin(async {
            loop {
                let changed = self.broker.changed.notified();
                let (era, slow) = {
                    let state = self.broker.state.lock();
                    (state.era, state.slow)
                };
                if era != self.era {
                    return Err(gone());
                }
                if !slow && !self.verdicts.is_empty() {
                    return Ok(self.verdicts.drain(..).collect());
                }
                changed.await;
            }
        })
    }
}

fn delivery(sink: &str, message: &Message) -> Delivery {
    Delivery {
        sink: sink.to_owned(),
        id: message.id.clone(),
        about: message.key.to_string(),
        topic: message.topic.clone(),
    }
}
