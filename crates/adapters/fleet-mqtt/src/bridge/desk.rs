//! One loop over everything that is about attempts: what the engine orders goes to robots, what they report goes to the engine.
//!
//! It runs beside the engine and forwards. What it remembers is only what is on its way: attempts whose end was not reported. After
//! a restart it is given the attempts again and asks the robots how they stand, so nothing of it has to be kept. It writes nothing
//! to the store.
//!
//! A dispatch is repeated until the robot has acknowledged it. A robot that speaks of an attempt nobody waits for is told to
//! end it. A report counts if it comes from the robot the attempt was given to, on that robot's own topic, and is not older
//! than the last one.

mod hearing;
mod says;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use muster_ports::clock::{Clock, Millis};
use muster_ports::runtime::{Fact, Handle, Launch, Observation};
use muster_ports::store::{Change, Key, ResourceName, Store, WatchError, WatchScope};
use muster_types::condition::{Condition, find_condition};
use muster_types::robot_status::{CONNECTED, Phase};
use muster_types::{JsonText, Robot};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;

use super::{about, encode};
use crate::connection::{Connection, Event};
use crate::link::{Link, Patience};
use crate::log_store::LogStore;
use crate::messages::{Action, Dispatch, MAX_PAYLOAD, Response, VERSION};
use says::{Says, may_act};

/// Between two looks at what was not acknowledged.
const TICK: Duration = Duration::from_millis(500);
/// What was not acknowledged is sent again after this time, in milliseconds.
const PATIENCE: i64 = 5000;
/// A dispatch that was not delivered by then is not delivered at all; it is sent again anyway.
const EXPIRY: Duration = Duration::from_mins(10);
/// Changes of robots looked at at once.
const CHANGES: usize = 256;
/// What the name of the connection ends in: the reception has the name itself.
const PART: &str = "-desk";

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
    /// It said that it ended before it had answered this server, and was asked once more.
    asked_again: bool,
    sent: Millis,
}

/// The part of the bridge that is about attempts.
pub(crate) struct Desk {
    link: Link,
    store: Store,
    clock: Arc<dyn Clock>,
    logs: LogStore,
    facts: UnboundedSender<Fact>,
    robots: ResourceName,
    open: HashMap<Handle, Open>,
    by_robot: HashMap<String, BTreeSet<Handle>>,
    patience: Patience,
    /// What is to be said once it is certain that this server may.
    says: Says,
    /// The same, while that is found out.
    asking: JoinSet<(Says, bool)>,
}

impl Desk {
    pub(crate) fn new(
        link: Link,
        store: Store,
        clock: Arc<dyn Clock>,
        logs: LogStore,
        facts: UnboundedSender<Fact>,
    ) -> Self {
        Self {
            link,
            store,
            clock,
            logs,
            facts,
            robots: ResourceName::new("robots.muster.dev"),
            open: HashMap::new(),
            by_robot: HashMap::new(),
            patience: Patience::default(),
            says: Says::default(),
            asking: JoinSet::new(),
        }
    }

    /// Forwards until the engine ends.
    pub(crate) async fn run(mut self, mut orders: UnboundedReceiver<Order>) {
        let (connection, mut events) = self.link.open(PART, self.link.topics.desk_filters());
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
                    Some(event) => self.take(event),
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
                Some(Ok((says, may))) = self.asking.join_next() => {
                    if may { self.say(says, &connection).await } else { self.says.absorb(says) }
                },
                _ = tick.tick() => self.look(),
            }
            self.ask_whether_to_say(&connection).await;
        }
    }

    /// Says what is to be said, or finds out whether this server may.
    async fn ask_whether_to_say(&mut self, connection: &Connection) {
        if self.says.is_empty() || !self.asking.is_empty() {
            return;
        }
        let says = std::mem::take(&mut self.says);
        if !self.store.is_shared() {
            return self.say(says, connection).await;
        }
        let store = self.store.clone();
        self.asking.spawn(async move {
            let may = may_act(&store).await;
            (says, may)
        });
    }

    async fn say(&mut self, says: Says, connection: &Connection) {
        let (again, strays) = says.into_parts();
        for handle in again {
            self.send(&handle, connection).await;
        }
        for (robot, handle) in strays {
            if !self.is_of(&handle, &robot) {
                self.tell_to_end(&robot, &handle, None, BTreeMap::new(), connection).await;
            }
        }
    }

    /// True if an attempt was given to a robot and its end was not reported.
    fn is_of(&self, handle: &Handle, robot: &str) -> bool {
        self.open.get(handle).is_some_and(|open| open.robot == robot)
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
                    asked_again: false,
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
                self.tell_to_end(&robot, &handle, None, BTreeMap::new(), connection).await;
            }
        }
    }

    /// Tells a robot what the engine wants of an attempt.
    async fn send(&mut self, handle: &Handle, connection: &Connection) {
        let Some(open) = self.open.get(handle) else { return };
        if open.stop.is_some() {
            let sent = self.log_offsets(open);
            return self.tell_to_end(&open.robot, handle, open.stop, sent, connection).await;
        }
        let dispatch = Dispatch {
            version: VERSION,
            action: Action::Create,
            task_uid: handle.task.clone(),
            attempt: handle.attempt,
            task: Some(open.launch.clone()),
            ran: open.ran,
            log_offsets: self.log_offsets(open),
            grace: None,
        };
        let payload = encode(&dispatch);
        if payload.len() > MAX_PAYLOAD {
            let message = format!("it takes {} bytes to describe, of which {MAX_PAYLOAD} fit", payload.len());
            let what = Observation::StartFailed { reason: "TooLarge".to_owned(), message, transient: false };
            self.report(handle.clone(), what);
            return;
        }
        connection.publish(&self.link.topics.dispatch(&open.robot), payload, Some(EXPIRY)).await;
    }

    /// Up to where the log of each container is here. What the robot sent before it answered may lack its beginning, which a former
    /// leader has.
    fn log_offsets(&self, open: &Open) -> BTreeMap<String, u64> {
        let names = open.launch.containers.iter().map(|container| &container.name);
        let found = names.filter_map(|name| {
            let found = self.logs.find(&open.launch.handle, name).ok()??;
            let is_whole = open.acknowledged || found.base == 0;
            Some((name.clone(), if is_whole { found.end } else { 0 }))
        });
        found.collect()
    }

    /// Tells a robot to end an attempt within a grace and to say how it ended; without one, to let go of it.
    async fn tell_to_end(
        &self,
        robot: &str,
        handle: &Handle,
        grace: Option<Duration>,
        log_offsets: BTreeMap<String, u64>,
        connection: &Connection,
    ) {
        let dispatch = Dispatch {
            version: VERSION,
            action: Action::Delete,
            task_uid: handle.task.clone(),
            attempt: handle.attempt,
            task: None,
            ran: false,
            log_offsets,
            grace,
        };
        connection.publish(&self.link.topics.dispatch(robot), encode(&dispatch), None).await;
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Connected => {
                tracing::info!("connected to the broker of robots");
                // What robots said meanwhile may be lost: they are asked again.
                for handle in self.open.keys() {
                    self.says.say_again(handle.clone());
                }
            }
            Event::Disconnected { why, .. } => {
                tracing::warn!(%why, "no connection to the broker of robots; trying again");
            }
            Event::Message { topic, payload } => {
                if let Some(about) = about(&self.link.topics, &topic, &payload) {
                    self.hear(about, &payload);
                }
            }
        }
    }

    /// Tells the engine what was seen.
    fn report(&mut self, handle: Handle, what: Observation) {
        if ends(&what) {
            self.close(&handle);
            if let Err(error) = self.logs.end(&handle) {
                tracing::warn!(%handle, %error, "cannot write down that an attempt ended");
            }
        }
        // Nobody listens when the server is ending.
        drop(self.facts.send(Fact { handle, at: self.clock.wall(), what }));
    }

    /// A robot that was let in is told so.
    async fn observe_robot(&self, change: &Change, connection: &Connection) {
        if change.deleted {
            return;
        }
        let name = change.object.path.rsplit('/').next().unwrap_or_default().to_owned();
        let phase = |json: &[u8]| Robot::from_json(json).ok().map(|robot| robot.status.phase());
        let before = change.previous.as_ref().and_then(|before| phase(before.json()));
        let after = phase(change.object.json());
        if after == Some(Phase::Online) && before != after {
            let topic = self.link.topics.response(&name);
            let response = Response {
                version: VERSION,
                success: true,
                message: "Online".to_owned(),
                robot_id: name,
                credential: None,
            };
            connection.publish(&topic, encode(&response), Some(EXPIRY)).await;
        }
    }

    /// What was not acknowledged is said again, to robots that are there. Others say what they know when they are back.
    fn look(&mut self) {
        let now = self.clock.now();
        let mut late = Vec::new();
        for (handle, open) in &mut self.open {
            if (!open.acknowledged || open.stop.is_some()) && now.0 - open.sent.0 >= PATIENCE {
                open.sent = now;
                late.push((handle.clone(), open.robot.clone()));
            }
        }
        for (handle, robot) in late {
            if self.is_connected(&robot) {
                self.says.say_again(handle);
            }
        }
    }

    /// Whether a robot is connected, as far as is stored.
    fn is_connected(&self, robot: &str) -> bool {
        let stored = self.store.get(&Key::new(&self.robots, &self.link.namespace, robot));
        let robot = stored.and_then(|stored| Robot::from_json(stored.json()).ok());
        robot.is_some_and(|robot| {
            find_condition(&robot.status.conditions, CONNECTED).is_some_and(Condition::is_true)
        })
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

/// Whether nothing follows it.
fn ends(what: &Observation) -> bool {
    match what {
        Observation::Created | Observation::Waiting { .. } | Observation::Started | Observation::Removed => {
            false
        }
        Observation::Blocked { .. }
        | Observation::Returned { .. }
        | Observation::StartFailed { .. }
        | Observation::Ended(_)
        | Observation::Lost { .. } => true,
    }
}
