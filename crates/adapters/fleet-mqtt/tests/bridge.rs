//! The bridge between a real broker and a store: it forwards, writes down what robots say of themselves, and decides nothing.

use std::sync::Arc;
use std::time::Duration;

use muster_fleet_mqtt::messages::{
    Action, ConnectionNews, Dispatch, Heartbeat, Register, Response, StateWord, Status, VERSION,
};
use muster_fleet_mqtt::{
    BrokerSettings, BrokerUrl, Connection, Credentials, EmbeddedBroker, Event, Login, RobotRuntime,
    RobotSettings, Topics, joining_client,
};
use muster_ports::clock::{Clock as _, SystemClock};
use muster_ports::runtime::{Fact, Handle, Launch, LaunchContainer, Limits, Observation, Runtime as _};
use muster_ports::store::{History, Key, MemoryLog, ResourceName, Store};
use muster_types::Robot;
use muster_types::robot_launch::RobotLaunch;
use muster_types::robot_status::DeviceInfo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(30);
const TOKEN: &str = "let-me-in";

/// A bridge with its broker and store.
struct Yard {
    store: Store,
    runtime: RobotRuntime,
    facts: UnboundedReceiver<Fact>,
    address: std::net::SocketAddr,
    topics: Topics,
    _broker: EmbeddedBroker,
    _dir: TempDir,
}

/// A robot that says what a test wants.
struct Robotic {
    id: String,
    connection: Connection,
    events: Receiver<Event>,
    topics: Topics,
}

impl Yard {
    async fn new() -> Self {
        let store =
            Store::open(MemoryLog::default(), History::default(), SystemClock).expect("a store opens");
        let credentials = Credentials::new(store.clone(), "default", Arc::new(|secret| secret == TOKEN));
        let topics = Topics::new("k8s4r");
        let listen = "127.0.0.1:0".parse().expect("an address");
        let settings = BrokerSettings { listen, tls: None, topics: topics.clone(), max_clients: 100 };
        let broker = EmbeddedBroker::start(settings, credentials.clone()).await.expect("a broker starts");
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let (host, port) = (broker.inner.ip().to_string(), broker.inner.port());
        let settings = RobotSettings {
            broker: BrokerUrl { host, port, tls: false, login: None },
            login: broker.login.clone(),
            trust: None,
            topics: topics.clone(),
            namespace: "default".to_owned(),
            root: dir.path().to_owned(),
            log_max_bytes: 1 << 20,
            write_every: Duration::from_mins(1),
            writes_per_second: 100,
        };
        let (runtime, facts, bridge) =
            RobotRuntime::new(settings, store.clone(), Arc::new(SystemClock), credentials);
        tokio::spawn(bridge);
        let address = broker.address;
        Self { store, runtime, facts, address, topics, _broker: broker, _dir: dir }
    }

    fn connect(&self, id: &str, secret: &str, joined: bool) -> Robotic {
        let url = BrokerUrl::parse(&format!("mqtt://{}", self.address)).expect("an address");
        let client = if joined { id.to_owned() } else { joining_client(id) };
        let login = Login { client, user: id.to_owned(), password: secret.to_owned() };
        let filters = if joined { self.topics.robot_filters(id) } else { vec![self.topics.response(id)] };
        let (connection, events) = Connection::open(&url, &login, None, filters, None);
        Robotic { id: id.to_owned(), connection, events, topics: self.topics.clone() }
    }

    /// A robot that has joined, and its credential.
    async fn join(&self, id: &str) -> (Robotic, String) {
        let mut joining = self.connect(id, TOKEN, false);
        let secret = joining.register(TOKEN).await.credential.expect("a credential");
        drop(joining);
        (self.connect(id, &secret, true), secret)
    }

    fn robot(&self, id: &str) -> Option<Robot> {
        let key = Key::new(&ResourceName::new("robots.muster.dev"), "default", id);
        serde_json::from_slice(self.store.get(&key)?.json()).ok()
    }

    async fn fact(&mut self) -> Observation {
        timeout(SOON, self.facts.recv()).await.expect("something is observed").expect("the bridge runs").what
    }

    async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
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
    async fn say<T: Serialize>(&self, topic: &str, message: &T) {
        let payload = serde_json::to_vec(message).expect("it can be written");
        assert!(self.connection.publish_confirmed(topic, payload).await, "{topic} was not taken");
    }

    async fn hear<T: DeserializeOwned>(&mut self) -> T {
        loop {
            let event = timeout(SOON, self.events.recv()).await.expect("something comes");
            if let Some(Event::Message { payload, .. }) = event
                && let Ok(message) = serde_json::from_slice(&payload)
            {
                return message;
            }
        }
    }

    async fn connected(&mut self) {
        while !matches!(timeout(SOON, self.events.recv()).await, Ok(Some(Event::Connected))) {}
    }

    async fn register(&mut self, token: &str) -> Response {
        self.connected().await;
        let asked = Register {
            version: VERSION,
            robot_id: self.id.clone(),
            token: token.to_owned(),
            device_info: DeviceInfo { cpus: 2, ..DeviceInfo::default() },
            labels: [("zone".to_owned(), "a".to_owned())].into(),
            max_tasks: Some(3),
        };
        self.say(&self.topics.register(), &asked).await;
        self.hear().await
    }

    async fn report(&self, handle: &Handle, sequence: u64, seen: Option<&Observation>) {
        let status = Status::of(handle, &self.id, sequence, seen, SystemClock.now());
        self.say(&self.topics.status(&self.id, &handle.task), &status).await;
    }
}

fn launch(robot: &str, attempt: u32) -> Launch {
    Launch {
        handle: Handle { task: "0190c000-0000-7000-8000-000000000001".to_owned(), attempt },
        containers: vec![LaunchContainer {
            name: "addon".to_owned(),
            command: vec!["true".to_owned()],
            env: vec![],
        }],
        timeout: None,
        kill_timeout: Duration::from_secs(1),
        limits: Limits::default(),
        pod: None,
        robot: Some(Box::new(RobotLaunch {
            robot: robot.to_owned(),
            task: "default/a".to_owned(),
            artifacts: vec![],
            stop_after_silence: None,
        })),
    }
}

#[tokio::test]
async fn a_robot_that_joins_is_written_down_without_a_phase() {
    let yard = Yard::new().await;
    let (mut robot, secret) = yard.join("r1").await;
    let stored = yard.robot("r1").expect("it is written down");
    assert_eq!(stored.status.phase, None, "the phase is the engine's");
    assert_eq!((stored.spec.max_tasks, stored.spec.labels["zone"].as_str()), (Some(3), "a"));
    assert_eq!((stored.spec.approved, stored.spec.unschedulable), (None, false));
    robot.connected().await;
    let beat = Heartbeat {
        version: VERSION,
        robot_id: "r1".to_owned(),
        token: secret,
        device_info: DeviceInfo { cpus: 8, ..DeviceInfo::default() },
        running: 1,
    };
    robot.say(&yard.topics.heartbeat(), &beat).await;
    yard.until("the device is written down", |yard| {
        yard.robot("r1").is_some_and(|robot| robot.status.device_info.cpus == 8)
    })
    .await;
    robot.say(&yard.topics.connection("r1"), &ConnectionNews { connected: false }).await;
    yard.until("the cut is written down", |yard| {
        let robot = yard.robot("r1");
        robot.is_some_and(|robot| robot.status.conditions.iter().any(|it| !it.is_true()))
    })
    .await;
    let stored = yard.robot("r1").expect("it is there");
    assert_eq!(stored.status.phase, None, "neither a sign of life nor a cut changes a phase");
}

#[tokio::test]
async fn a_wrong_token_is_refused_in_words() {
    let yard = Yard::new().await;
    let mut robot = yard.connect("r1", TOKEN, false);
    let answer = robot.register("guess").await;
    assert!(
        !answer.success
            && answer.credential.is_none()
            && answer.message.contains("muster robot token create")
    );
    assert!(yard.robot("r1").is_none());
}

#[tokio::test]
async fn an_attempt_goes_to_its_robot_and_its_reports_come_back_once_and_in_order() {
    let mut yard = Yard::new().await;
    let (mut robot, _) = yard.join("r1").await;
    robot.connected().await;
    let handle = launch("r1", 1).handle;
    yard.runtime.start(launch("r1", 1));
    let dispatch: Dispatch = robot.hear().await;
    assert_eq!((dispatch.action, dispatch.handle()), (Action::Create, handle.clone()));
    robot.report(&handle, 1, None).await;
    robot.report(&handle, 2, Some(&Observation::Started)).await;
    robot.report(&handle, 2, Some(&Observation::Started)).await;
    robot
        .report(&handle, 1, Some(&Observation::Lost { reason: "Old".to_owned(), message: String::new() }))
        .await;
    assert_eq!(yard.fact().await, Observation::Started);
    let lost = Observation::Lost { reason: "New".to_owned(), message: String::new() };
    robot.report(&handle, 3, Some(&lost)).await;
    assert_eq!(yard.fact().await, lost, "what came twice or late was left out");
    // The end is kept until the engine lets go of it; then the robot may forget it.
    assert_eq!(yard.runtime.stored().expect("a list"), [handle.clone()]);
    yard.runtime.remove(&handle).expect("it can be removed");
    let dispatch: Dispatch = robot.hear().await;
    assert_eq!((dispatch.action, dispatch.handle()), (Action::Delete, handle));
    // Of all this the bridge wrote nothing but the robot itself.
    let resource = ResourceName::new("tasks.muster.dev");
    assert_eq!(yard.store.snapshot(&resource).len(), 0, "the bridge writes no task");
}

#[tokio::test]
async fn a_robot_that_speaks_of_what_nobody_wants_is_told_to_end_it() {
    let yard = Yard::new().await;
    let (mut robot, _) = yard.join("r1").await;
    robot.connected().await;
    let stray = Handle { task: "0190c000-0000-7000-8000-00000000000f".to_owned(), attempt: 4 };
    robot.report(&stray, 1, Some(&Observation::Started)).await;
    let dispatch: Dispatch = robot.hear().await;
    assert_eq!((dispatch.action, dispatch.handle()), (Action::Delete, stray));
}

#[tokio::test]
async fn a_dispatch_is_repeated_until_it_is_acknowledged() {
    let mut yard = Yard::new().await;
    let (mut robot, secret) = yard.join("r1").await;
    robot.connected().await;
    let beat = Heartbeat {
        version: VERSION,
        robot_id: "r1".to_owned(),
        token: secret,
        device_info: DeviceInfo::default(),
        running: 0,
    };
    robot.say(&yard.topics.heartbeat(), &beat).await;
    yard.runtime.start(launch("r1", 1));
    let first: Dispatch = robot.hear().await;
    let second: Dispatch = robot.hear().await;
    assert_eq!(first, second);
    // The words of the seed are enough.
    let handle = first.handle();
    let status = Status {
        observation: None,
        state: StateWord::Running,
        ..Status::of(&handle, "r1", 1, None, SystemClock.now())
    };
    robot.say(&yard.topics.status("r1", &handle.task), &status).await;
    assert_eq!(yard.fact().await, Observation::Started);
}
