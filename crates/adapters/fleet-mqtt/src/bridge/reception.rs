//! What robots say of themselves: that they want to join, that they live, that their connection came or went.
//!
//! Every server hears it, of an outside broker: wishes and signs of life go to one of them each, whichever that is, so what counts
//! is what is stored and not what one of them remembers. It writes that down at a bounded rate. It never chooses a robot, never
//! writes a phase or a task, and says nothing of attempts.

use std::sync::Arc;
use std::time::Duration;

use muster_ports::clock::{Clock, Millis};
use muster_ports::publisher::Boxed;
use muster_ports::store::{Batch, CommitError, Draft, Key, Precondition, ResourceName, Store, Write};
use muster_ports::telemetry::Telemetry;
use muster_ports::telemetry::catalog::ROBOT_MESSAGES;
use muster_types::robot_status::RobotStatus;
use muster_types::{JsonText, Robot, name_rules};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::departures::Departures;
use super::joining::join;
use super::pulse::Pulse;
use super::pulses::Pulses;
use super::{about, decode, encode};
use crate::connection::{Connection, Event, joining_client};
use crate::credentials::{Claim, Credentials};
use crate::link::{Link, Patience};
use crate::messages::{ConnectionNews, Heartbeat, Register, Response};
use crate::topics::Inbound;

/// Between two looks at what was not written down.
const TICK: Duration = Duration::from_millis(500);
/// Cut connections that are written down without waiting for the next look.
const AT_ONCE: usize = 50;
/// Sessions of deleted robots that are ended at once.
const ENDED_AT_ONCE: usize = 16;
/// Tries to write one robot down, while others write it too.
const TRIES: usize = 3;

/// How much is written down.
#[derive(Debug, Clone, Copy)]
pub struct ReceptionSettings {
    /// A sign of life is written down no more often than this, unless it says something new.
    pub write_every: Duration,
    /// Robots written down in a second, at most.
    pub writes_per_second: usize,
}

/// Hears what robots say of themselves.
pub struct Reception {
    link: Link,
    settings: ReceptionSettings,
    store: Store,
    clock: Arc<dyn Clock>,
    credentials: Credentials,
    telemetry: Telemetry,
    robots: ResourceName,
    pulses: Pulses,
    patience: Patience,
    /// How many more robots may be written down before the next look.
    at_once: usize,
    /// Sessions of deleted robots that may be ended now.
    ends: Arc<Semaphore>,
    /// Writes that are over.
    settled: (UnboundedSender<Settled>, UnboundedReceiver<Settled>),
}

/// A write of a robot is over.
struct Settled {
    robot: String,
    written: bool,
}

impl Reception {
    /// Hears robots through a broker.
    pub fn new(
        link: Link,
        settings: ReceptionSettings,
        store: Store,
        clock: Arc<dyn Clock>,
        credentials: Credentials,
        telemetry: Telemetry,
    ) -> Self {
        Self {
            link,
            settings,
            store,
            clock,
            credentials,
            telemetry,
            robots: ResourceName::new("robots.muster.dev"),
            pulses: Pulses::default(),
            patience: Patience::default(),
            at_once: AT_ONCE,
            ends: Arc::new(Semaphore::new(ENDED_AT_ONCE)),
            settled: unbounded_channel(),
        }
    }

    /// Hears them until it is dropped. The broker then gives to others what it would have heard.
    pub fn run(self) -> Boxed<'static, ()> {
        Box::pin(self.listen())
    }

    async fn listen(mut self) {
        let (connection, mut events) = self.link.open("", self.link.topics.reception_filters());
        let mut departures = Departures::new(self.store.clone(), self.robots.clone(), &self.link.namespace);
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => self.take(event, &connection),
                    None => return,
                },
                Some(Settled { robot, written }) = self.settled.1.recv() => self.pulses.settle(&robot, written),
                gone = departures.next() => gone.into_iter().for_each(|robot| self.end_sessions(robot)),
                _ = tick.tick() => self.look(),
            }
        }
    }

    fn take(&mut self, event: Event, connection: &Connection) {
        match event {
            Event::Connected => tracing::info!("listening to robots"),
            Event::Disconnected { why, .. } => {
                tracing::warn!(%why, "no connection to the broker of robots; trying again");
            }
            Event::Message { topic, payload } => {
                if let Some(about) = about(&self.link.topics, &topic, &payload) {
                    self.hear(about, &payload, connection);
                }
            }
        }
    }

    fn hear(&mut self, about: Inbound<'_>, payload: &[u8], connection: &Connection) {
        match about {
            Inbound::Register => {
                if let Some(asked) = decode::<Register>(payload)
                    && self.hears("register", &asked.robot_id)
                {
                    self.register(asked, connection);
                }
            }
            Inbound::Heartbeat => {
                if let Some(heartbeat) = decode::<Heartbeat>(payload)
                    && self.hears("heartbeat", &heartbeat.robot_id)
                {
                    self.hear_heartbeat(heartbeat);
                }
            }
            Inbound::Connection { robot } => {
                if let Some(news) = decode::<ConnectionNews>(payload)
                    && self.hears("connection", robot)
                {
                    self.hear_connection(robot, news.connected);
                }
            }
            // The desk hears these.
            Inbound::State { .. } | Inbound::Status { .. } | Inbound::Log { .. } => {}
        }
    }

    fn hears(&mut self, sort: &str, robot: &str) -> bool {
        self.telemetry.count(ROBOT_MESSAGES, &[sort], 1);
        self.patience.hears(robot, self.clock.now())
    }

    fn register(&self, asked: Register, connection: &Connection) {
        let (store, robots, credentials) =
            (self.store.clone(), self.robots.clone(), self.credentials.clone());
        let (link, connection, now) = (self.link.clone(), connection.clone(), self.clock.now());
        tokio::spawn(async move {
            // Its token may have been made by another server a moment ago.
            if let Err(error) = store.catch_up().await {
                tracing::debug!(%error, "a robot that wants to join is held against what is known here");
            }
            let mut answer = join(&store, &robots, &link.namespace, &credentials, &asked, now).await;
            // What is said to a robot is heard by who has its id. On other brokers one that wants to join may have it already.
            if answer.credential.is_some() && link.is_embedded && !link.end_session(&asked.robot_id).await {
                let message = "a former session of this id could not be ended; try again".to_owned();
                answer = Response { success: false, message, credential: None, ..answer };
            }
            if !answer.success {
                tracing::warn!(robot = asked.robot_id, why = answer.message, "a robot was not let in");
            }
            if name_rules::dns1123_label(&asked.robot_id).is_ok() {
                connection.publish(&link.topics.response(&asked.robot_id), encode(&answer), None).await;
            }
        });
    }

    /// Ends what a deleted robot has at the broker: the session it works with, and the one it may have joined with.
    fn end_sessions(&self, robot: String) {
        let (link, ends) = (self.link.clone(), self.ends.clone());
        tokio::spawn(async move {
            let Ok(_turn) = ends.acquire().await else { return };
            for client in [joining_client(&robot), robot] {
                if !link.end_session(&client).await {
                    tracing::warn!(
                        client,
                        "the session of a deleted robot could not be ended; delete its user at the broker"
                    );
                }
            }
        });
    }

    fn hear_heartbeat(&mut self, heartbeat: Heartbeat) {
        let Heartbeat { robot_id: robot, token, device_info, running, .. } = heartbeat;
        if self.credentials.check(&robot, &token) != Claim::Robot {
            return tracing::debug!(robot, "a sign of life with a wrong credential is ignored");
        }
        self.note(&robot, Pulse::of_beat(self.clock.now(), running, device_info));
    }

    /// A robot that is cut off is to be given nothing: that is written down at once, unless many are.
    fn hear_connection(&mut self, robot: &str, connected: bool) {
        self.note(robot, Pulse::of_connection(connected));
        if !connected
            && self.at_once > 0
            && let Some(pulse) = self.pulses.take(robot)
        {
            self.at_once -= 1;
            self.write_down(robot.to_owned(), pulse);
        }
    }

    /// Takes note of what was heard of a robot that is known.
    fn note(&mut self, robot: &str, pulse: Pulse) {
        if let Some(status) = self.stored(robot) {
            self.pulses.hear(robot, pulse, &status, self.settings.write_every, self.clock.now());
        }
    }

    fn stored(&self, robot: &str) -> Option<RobotStatus> {
        let stored = self.store.get(&self.key(robot))?;
        Some(Robot::from_json(stored.json()).ok()?.status)
    }

    fn key(&self, robot: &str) -> Key {
        Key::new(&self.robots, &self.link.namespace, robot)
    }

    /// Writes down what was heard.
    fn look(&mut self) {
        self.at_once = AT_ONCE;
        let most = (self.settings.writes_per_second / 2).max(1);
        for (robot, pulse) in self.pulses.take_due(most) {
            self.write_down(robot, pulse);
        }
    }

    /// Writes down what was heard of a robot, while other work goes on.
    fn write_down(&self, robot: String, pulse: Pulse) {
        let (store, key, every) = (self.store.clone(), self.key(&robot), self.settings.write_every);
        let (settled, now) = (self.settled.0.clone(), self.clock.now());
        tokio::spawn(async move {
            let written = write(&store, &key, &pulse, every, now).await;
            // Nobody listens when the server is ending.
            drop(settled.send(Settled { robot, written }));
        });
    }
}

/// Writes down what was heard of a robot, unless what is stored says as much by now. What is not there any more is not made again.
/// False if it is there and says something else.
async fn write(store: &Store, key: &Key, pulse: &Pulse, every: Duration, now: Millis) -> bool {
    for _ in 0..TRIES {
        let Some(stored) = store.get(key) else { return true };
        let Ok(mut robot) = Robot::from_json(stored.json()) else { return true };
        if pulse.urgency(&robot.status, every, now).is_none() {
            return true;
        }
        pulse.fold_into(&mut robot.status, every, now);
        robot.metadata.resource_version.clear();
        let draft = robot.to_json().ok().and_then(Draft::of_object);
        let Some(draft) = draft else { return true };
        let write = Write::Put { key: key.clone(), expect: Precondition::At(stored.revision), draft };
        match store.commit(Batch::of(write)).await {
            Err(CommitError::Conflict { .. }) => {}
            Ok(_) => return true,
            Err(error) => {
                tracing::warn!(%key, %error, "a sign of life could not be written down");
                return false;
            }
        }
    }
    false
}
