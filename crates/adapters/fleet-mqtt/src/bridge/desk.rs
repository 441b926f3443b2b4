//! One loop over everything that goes between robots and the server.
//!
//! It forwards. What it remembers is only what is on its way: attempts whose end was not reported, and signs of life that were
//! not written down. After a restart it is given the attempts again and asks the robots how they stand, so nothing of it has to
//! be kept.
//!
//! A dispatch is repeated until the robot has acknowledged it. A robot that speaks of an attempt nobody waits for is told to
//! end it. A report counts if it comes from the robot the attempt was given to, on that robot's own topic, and is not older
//! than the last one.

mod hearing;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use muster_ports::clock::{Clock, Millis};
use muster_ports::runtime::{Fact, Handle, Launch, Observation};
use muster_ports::store::{Change, ResourceName, Store, WatchError, WatchScope};
use muster_types::Robot;
use muster_types::robot_status::Phase;
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::buckets::Buckets;
use super::pulses::{Pulse, Pulses, write};
use crate::connection::{Connection, Event};
use crate::credentials::Credentials;
use crate::log_store::LogStore;
use crate::messages::{Action, Dispatch, MAX_PAYLOAD, Response, VERSION};
use crate::runtime::RobotSettings;

/// Between two looks at what was not acknowledged and not written down.
const TICK: Duration = Duration::from_millis(500);
/// What was not acknowledged is sent again after this time, in milliseconds.
const PATIENCE: i64 = 5000;
/// A dispatch that was not delivered by then is not delivered at all; it is sent again anyway.
const EXPIRY: Duration = Duration::from_mins(10);
/// Cut connections that are written down without waiting for the next look.
const AT_ONCE: usize = 50;
/// Changes of robots looked at at once.
const CHANGES: usize = 256;

/// What the engine orders.
#[derive(Debug)]
pub(crate) enum Order {
    Start { launch: Box<Launch>, robot: String, ran: bool },
    Stop { handle: Handle, grace: Duration },
    Remove { handle: Handle, robot: String },
}

/// An attempt whose end was not reported.
#[derive(Debug)]
struct Open {
    robot: String,
    launch: Launch,
    /// The robot has it.
    acknowledged: bool,
    /// It runs, or ran.
    ran: bool,
    /// It is to end.
    stop: Option<Duration>,
    /// Place of the last report.
    sequence: u64,
    sent: Millis,
}

/// The bridge.
pub(crate) struct Desk {
    settings: RobotSettings,
    store: Store,
    clock: Arc<dyn Clock>,
    credentials: Credentials,
    logs: LogStore,
    facts: UnboundedSender<Fact>,
    robots: ResourceName,
    open: HashMap<Handle, Open>,
    by_robot: HashMap<String, BTreeSet<Handle>>,
    pulses: Pulses,
    buckets: Buckets,
    /// How many more robots may be written down before the next look.
    at_once: usize,
    /// Robots of which something could not be written down.
    unwritten: (UnboundedSender<String>, UnboundedReceiver<String>),
}

impl Desk {
    pub(crate) fn new(
        settings: RobotSettings,
        store: Store,
        clock: Arc<dyn Clock>,
        credentials: Credentials,
        logs: LogStore,
        facts: UnboundedSender<Fact>,
    ) -> Self {
        Self {
            settings,
            store,
            clock,
            credentials,
            logs,
            facts,
            robots: ResourceName::new("robots.muster.dev"),
            open: HashMap::new(),
            by_robot: HashMap::new(),
            pulses: Pulses::default(),
            buckets: Buckets::default(),
            at_once: AT_ONCE,
            unwritten: unbounded_channel(),
        }
    }

    /// Forwards until the server ends.
    pub(crate) async fn run(mut self, mut orders: UnboundedReceiver<Order>) {
        let settings = self.settings.clone();
        let filters = settings.topics.inbound_filters();
        let (connection, mut events) =
            Connection::open(&settings.broker, &settings.login, None, filters, settings.trust);
        let scope = WatchScope::Resource(self.robots.clone());
        let mut watch = match self.store.watch(scope.clone(), self.store.revision()) {
            Ok(watch) => watch,
            Err(error) => return tracing::error!(%error, "the bridge cannot watch robots"),
        };
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                order = orders.recv() => match order {
                    Some(order) => self.carry_out(order, &connection).await,
                    None => return,
                },
                event = events.recv() => match event {
                    Some(event) => self.take(event, &connection).await,
                    None => return,
                },
                changes = watch.next(CHANGES) => match changes {
                    Ok(changes) => {
                        for change in changes {
                            self.observe_robot(&change, &connection).await;
                        }
                    }
                    Err(WatchError::Closed) => return,
                    Err(_) => match self.store.watch(scope.clone(), self.store.revision()) {
                        Ok(anew) => watch = anew,
                        Err(_) => return,
                    },
                },
                _ = tick.tick() => self.look(&connection).await,
            }
        }
    }

    async fn carry_out(&mut self, order: Order, connection: &Connection) {
        match order {
            Order::Start { launch, robot, ran } => {
                let handle = launch.handle.clone();
                if self.open.contains_key(&handle) {
                    return;
                }
                self.by_robot.entry(robot.clone()).or_default().insert(handle.clone());
                let open = Open {
                    robot,
                    launch: *launch,
                    acknowledged: false,
                    ran,
                    stop: None,
                    sequence: 0,
                    sent: self.clock.now(),
                };
                self.open.insert(handle.clone(), open);
                self.send(&handle, connection).await;
            }
            Order::Stop { handle, grace } => {
                if let Some(open) = self.open.get_mut(&handle) {
                    open.stop = Some(grace);
                    open.sent = self.clock.now();
                    self.send(&handle, connection).await;
                }
            }
            Order::Remove { handle, robot } => {
                self.close(&handle);
                self.tell_to_delete(&robot, &handle, None, connection).await;
            }
        }
    }

    /// Tells a robot what the engine wants of an attempt.
    async fn send(&mut self, handle: &Handle, connection: &Connection) {
        let Some(open) = self.open.get(handle) else { return };
        if open.stop.is_some() {
            return self.tell_to_delete(&open.robot, handle, open.stop, connection).await;
        }
        let dispatch = Dispatch {
            version: VERSION,
            action: Action::Create,
            task_uid: handle.task.clone(),
            attempt: handle.attempt,
            task: Some(open.launch.clone()),
            ran: open.ran,
            log_offsets: self.log_offsets(&open.launch),
            grace: None,
        };
        let payload = encode(&dispatch);
        if payload.len() > MAX_PAYLOAD {
            let message = format!("it takes {} bytes to describe, of which {MAX_PAYLOAD} fit", payload.len());
            let what = Observation::StartFailed { reason: "TooLarge".to_owned(), message, transient: false };
            self.report(handle.clone(), what);
            return;
        }
        connection.publish(&self.settings.topics.dispatch(&open.robot), payload, Some(EXPIRY)).await;
    }

    /// Up to where the log of each container is here.
    fn log_offsets(&self, launch: &Launch) -> BTreeMap<String, u64> {
        let names = launch.containers.iter().map(|container| &container.name);
        let found =
            names.filter_map(|name| Some((name.clone(), self.logs.find(&launch.handle, name).ok()??.end)));
        found.collect()
    }

    async fn tell_to_delete(
        &self,
        robot: &str,
        handle: &Handle,
        grace: Option<Duration>,
        connection: &Connection,
    ) {
        let dispatch = Dispatch {
            version: VERSION,
            action: Action::Delete,
            task_uid: handle.task.clone(),
            attempt: handle.attempt,
            task: None,
            ran: false,
            log_offsets: BTreeMap::new(),
            grace,
        };
        connection.publish(&self.settings.topics.dispatch(robot), encode(&dispatch), None).await;
    }

    async fn take(&mut self, event: Event, connection: &Connection) {
        match event {
            Event::Connected => {
                tracing::info!("connected to the broker of robots");
                // What robots said meanwhile may be lost: they are asked again.
                let open: Vec<Handle> = self.open.keys().cloned().collect();
                for handle in open {
                    self.send(&handle, connection).await;
                }
            }
            Event::Disconnected { why, .. } => {
                tracing::warn!(%why, "no connection to the broker of robots; trying again");
            }
            Event::Message { topic, payload } => {
                let topics = self.settings.topics.clone();
                let Some(about) = topics.parse(&topic) else { return };
                if payload.len() > MAX_PAYLOAD {
                    return tracing::debug!(topic, "a message is too large and is ignored");
                }
                self.hear(about, &payload, connection).await;
            }
        }
    }

    /// Tells the engine what was seen.
    fn report(&mut self, handle: Handle, what: Observation) {
        let ends = match what {
            Observation::Created | Observation::Waiting { .. } | Observation::Started => false,
            Observation::Blocked { .. }
            | Observation::StartFailed { .. }
            | Observation::Ended(_)
            | Observation::Lost { .. } => true,
        };
        if ends {
            self.close(&handle);
            if let Err(error) = self.logs.end(&handle) {
                tracing::warn!(%handle, %error, "cannot write down that an attempt ended");
            }
        }
        // Nobody listens when the server is ending.
        drop(self.facts.send(Fact { handle, at: self.clock.now(), what }));
    }

    /// A robot that was let in is told so; one that is gone is forgotten.
    async fn observe_robot(&mut self, change: &Change, connection: &Connection) {
        let name = change.object.path.rsplit('/').next().unwrap_or_default().to_owned();
        if change.deleted {
            self.pulses.forget(&name);
            return;
        }
        let phase =
            |json: &[u8]| serde_json::from_slice::<Robot>(json).ok().map(|robot| robot.status.phase());
        let before = change.previous.as_ref().and_then(|before| phase(before.json()));
        let after = phase(change.object.json());
        if after == Some(Phase::Online) && before != after {
            let response = Response {
                version: VERSION,
                success: true,
                message: "Online".to_owned(),
                robot_id: name.clone(),
                credential: None,
            };
            connection.publish(&self.settings.topics.response(&name), encode(&response), Some(EXPIRY)).await;
        }
    }

    /// Sends again what was not acknowledged, and writes down what was heard.
    async fn look(&mut self, connection: &Connection) {
        let now = self.clock.now();
        let late: Vec<Handle> = self
            .open
            .iter()
            .filter(|(_, open)| !open.acknowledged || open.stop.is_some())
            .filter(|(_, open)| now.0 - open.sent.0 >= PATIENCE && self.pulses.is_connected(&open.robot))
            .map(|(handle, _)| handle.clone())
            .collect();
        for handle in late {
            if let Some(open) = self.open.get_mut(&handle) {
                open.sent = now;
            }
            self.send(&handle, connection).await;
        }
        while let Ok(robot) = self.unwritten.1.try_recv() {
            self.pulses.doubt(&robot);
        }
        let most = (self.settings.writes_per_second / 2).max(1);
        self.at_once = AT_ONCE;
        let due = self.pulses.take_due(self.settings.write_every, most, now);
        for (robot, pulse) in due {
            self.write_down(robot, pulse, now);
        }
    }

    /// Writes down what was heard of a robot, while other work goes on.
    fn write_down(&self, robot: String, pulse: Pulse, now: Millis) {
        let (store, robots) = (self.store.clone(), self.robots.clone());
        let (path, unwritten) = (format!("{}/{robot}", self.settings.namespace), self.unwritten.0.clone());
        tokio::spawn(async move {
            if !write(&store, &robots, &path, &pulse, now).await {
                // Nobody listens when the server is ending.
                drop(unwritten.send(robot));
            }
        });
    }

    fn close(&mut self, handle: &Handle) {
        if let Some(open) = self.open.remove(handle)
            && let Some(handles) = self.by_robot.get_mut(&open.robot)
        {
            handles.remove(handle);
            if handles.is_empty() {
                self.by_robot.remove(&open.robot);
            }
        }
    }
}

fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    serde_json::to_vec(message).unwrap_or_default()
}
