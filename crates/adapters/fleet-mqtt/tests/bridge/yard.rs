//! A bridge with its broker and store, and robots that say what a test wants.

use std::sync::Arc;
use std::time::Duration;

use muster_fleet_mqtt::messages::{Heartbeat, Register, Response, Status, VERSION};
use muster_fleet_mqtt::{
    BrokerSettings, BrokerUrl, Connection, Credentials, EmbeddedBroker, Event, Link, Login, Reception,
    ReceptionSettings, RobotRuntime, RobotSettings, Topics, joining_client,
};
use muster_ports::clock::{Clock as _, SystemClock};
use muster_ports::runtime::{Fact, Handle, Launch, LaunchContainer, Limits, Observation};
use muster_ports::store::{Batch, History, Key, MemoryLog, Precondition, ResourceName, Store, Write};
use muster_ports::telemetry::Telemetry;
use muster_types::Robot;
use muster_types::robot_launch::RobotLaunch;
use muster_types::robot_status::DeviceInfo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};
use tokio::time::timeout;

pub const SOON: Duration = Duration::from_secs(30);
/// After this time it is asked again.
const AGAIN: Duration = Duration::from_millis(200);
pub const TOKEN: &str = "let-me-in";

/// A bridge with its broker and store.
pub struct Yard {
    pub store: Store,
    pub runtime: RobotRuntime,
    facts: UnboundedReceiver<Fact>,
    pub address: std::net::SocketAddr,
    pub topics: Topics,
    _broker: EmbeddedBroker,
    _dir: TempDir,
}

/// A robot that says what a test wants.
pub struct Robotic {
    pub id: String,
    pub connection: Connection,
    events: Receiver<Event>,
    topics: Topics,
}

impl Yard {
    pub async fn new() -> Self {
        let store =
            Store::open(MemoryLog::default(), History::default(), SystemClock).expect("a store opens");
        let credentials = Credentials::new(store.clone(), "default", Arc::new(Some(TOKEN)));
        let topics = Topics::new("k8s4r");
        let listen = "127.0.0.1:0".parse().expect("an address");
        let settings = BrokerSettings { listen, tls: None, topics: topics.clone(), max_clients: 100 };
        let broker = EmbeddedBroker::start(settings, credentials.clone()).await.expect("a broker starts");
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let (host, port) = (broker.inner.ip().to_string(), broker.inner.port());
        let link = Link {
            broker: BrokerUrl::plain(&host, port),
            login: broker.login.clone(),
            trust: None,
            topics: topics.clone(),
            namespace: "default".to_owned(),
            is_embedded: true,
        };
        let settings = RobotSettings { root: dir.path().to_owned(), log_max_bytes: 1 << 20 };
        let clock = Arc::new(SystemClock);
        let (runtime, facts, desk) = RobotRuntime::new(link.clone(), settings, store.clone(), clock.clone());
        let settings = ReceptionSettings { write_every: Duration::from_mins(1), writes_per_second: 100 };
        let telemetry = Telemetry::default();
        let reception = Reception::new(link, settings, store.clone(), clock, credentials, telemetry);
        tokio::spawn(desk);
        tokio::spawn(reception.run());
        let address = broker.address;
        let yard = Self { store, runtime, facts, address, topics, _broker: broker, _dir: dir };
        yard.until_the_bridge_listens().await;
        yard
    }

    /// Somebody asks to join with a wrong token until that is refused.
    async fn until_the_bridge_listens(&self) {
        let mut stranger = self.connect("stranger", TOKEN, false);
        stranger.connected().await;
        let asked = stranger.wish("guess");
        let answer = async {
            loop {
                stranger.say(&self.topics.register(), &asked).await;
                if timeout(AGAIN, stranger.hear::<Response>()).await.is_ok() {
                    return;
                }
            }
        };
        timeout(SOON, answer).await.expect("the bridge answers");
    }

    pub fn connect(&self, id: &str, secret: &str, joined: bool) -> Robotic {
        let url = BrokerUrl::parse(&format!("mqtt://{}", self.address)).expect("an address");
        let client = if joined { id.to_owned() } else { joining_client(id) };
        let login = Login { client, user: id.to_owned(), password: secret.to_owned() };
        let filters = if joined { self.topics.robot_filters(id) } else { vec![self.topics.response(id)] };
        let (connection, events) = Connection::open(&url, &login, None, filters, None);
        Robotic { id: id.to_owned(), connection, events, topics: self.topics.clone() }
    }

    /// A robot that has joined, and its credential.
    pub async fn join(&self, id: &str) -> (Robotic, String) {
        let mut joining = self.connect(id, TOKEN, false);
        let secret = joining.register(TOKEN).await.credential.expect("a credential");
        drop(joining);
        (self.connect(id, &secret, true), secret)
    }

    pub fn robot(&self, id: &str) -> Option<Robot> {
        let key = Key::new(&ResourceName::new("robots.muster.dev"), "default", id);
        serde_json::from_slice(self.store.get(&key)?.json()).ok()
    }

    /// Deletes a robot, as a person does.
    pub async fn delete(&self, id: &str) {
        let key = Key::new(&ResourceName::new("robots.muster.dev"), "default", id);
        let write = Write::Delete { key, expect: Precondition::Exists };
        self.store.commit(Batch::of(write)).await.expect("a commit");
    }

    pub async fn fact(&mut self) -> Observation {
        timeout(SOON, self.facts.recv()).await.expect("something is observed").expect("the bridge runs").what
    }

    pub async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let mut watch = self
            .store
            .watch(muster_ports::store::WatchScope::All, self.store.revision())
            .expect("the store can be watched");
        let waited = timeout(SOON, async {
            while !holds(self) {
                watch.next(100).await.expect("the store is open");
            }
        });
        assert!(waited.await.is_ok(), "waited in vain until {what}");
    }
}

impl Robotic {
    pub async fn say<T: Serialize>(&self, topic: &str, message: &T) {
        let payload = serde_json::to_vec(message).expect("it can be written");
        assert!(self.connection.publish_confirmed(topic, payload).await, "{topic} was not taken");
    }

    pub async fn hear<T: DeserializeOwned>(&mut self) -> T {
        loop {
            let event = timeout(SOON, self.events.recv()).await.expect("something comes");
            if let Some(Event::Message { payload, .. }) = event
                && let Ok(message) = serde_json::from_slice(&payload)
            {
                return message;
            }
        }
    }

    pub async fn cut_off(&mut self) {
        while !matches!(timeout(SOON, self.events.recv()).await, Ok(Some(Event::Disconnected { .. }))) {}
    }

    /// Everything that came meanwhile and is a message.
    pub fn messages(&mut self) -> usize {
        let mut messages = 0;
        while let Ok(event) = self.events.try_recv() {
            messages += usize::from(matches!(event, Event::Message { .. }));
        }
        messages
    }

    pub async fn connected(&mut self) {
        while !matches!(timeout(SOON, self.events.recv()).await, Ok(Some(Event::Connected))) {}
    }

    fn wish(&self, token: &str) -> Register {
        Register {
            version: VERSION,
            robot_id: self.id.clone(),
            token: token.to_owned(),
            device_info: DeviceInfo { cpus: 2, ..DeviceInfo::default() },
            labels: [("zone".to_owned(), "a".to_owned())].into(),
            max_tasks: Some(3),
        }
    }

    pub async fn register(&mut self, token: &str) -> Response {
        self.connected().await;
        let asked = self.wish(token);
        self.say(&self.topics.register(), &asked).await;
        self.hear().await
    }

    /// A sign of life with its credential.
    pub async fn beat(&self, secret: &str, cpus: u32) {
        let beat = Heartbeat {
            version: VERSION,
            robot_id: self.id.clone(),
            token: secret.to_owned(),
            device_info: DeviceInfo { cpus, ..DeviceInfo::default() },
            running: 1,
        };
        self.say(&self.topics.heartbeat(), &beat).await;
    }

    pub async fn report(&self, handle: &Handle, sequence: u64, seen: Option<&Observation>) {
        let status = Status::of(handle, &self.id, sequence, seen, SystemClock.now());
        self.say(&self.topics.status(&self.id, &handle.task), &status).await;
    }
}

pub fn launch(robot: &str, attempt: u32) -> Launch {
    Launch {
        handle: Handle { task: "0190c000-0000-7000-8000-000000000001".to_owned(), attempt },
        containers: vec![LaunchContainer {
            name: "addon".to_owned(),
            command: vec!["true".to_owned()],
            env: vec![],
        }],
        timeout: None,
        kill_timeout: Duration::from_secs(1),
        priority: 0,
        prefetch: 0,
        limits: Limits::default(),
        pod: None,
        robot: Some(Box::new(RobotLaunch {
            robot: robot.to_owned(),
            task: "default/a".to_owned(),
            user: String::new(),
            artifacts: vec![],
            stop_after_silence: None,
        })),
        image: None,
        data: None,
    }
}
