//! Several servers of one database listen to robots at one broker: any of them lets robots in and hears that they live, one of them
//! gives them work.

use std::fs;
use std::time::{Duration, Instant};

use muster_e2e::databases::Postgres;
use muster_e2e::server::Server;
use muster_e2e::wait::{holds_within, wait_for};
use muster_fleet_mqtt::messages::{Heartbeat, Register, Response, VERSION};
use muster_fleet_mqtt::{BrokerUrl, Connection, DEFAULT_PREFIX, Event, Login, Topics};
use muster_types::robot_status::DeviceInfo;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::world::{API, SOON, World};

/// Robots of a fleet.
const ROBOTS: usize = 50;
/// Between two signs of life of one of them.
const BEAT: Duration = Duration::from_millis(500);
/// Seconds of silence after which a robot is Offline; what is written down is a quarter of that apart.
const OFFLINE_AFTER: u64 = 12;
const WRITE_EVERY: u64 = OFFLINE_AFTER / 4;

/// Robots that join and live, and do nothing else.
struct Fleet {
    _runtime: Runtime,
    _ends: watch::Sender<()>,
}

impl Fleet {
    /// Starts them; each joins with a token at whichever server hears it.
    fn join(port: u16, token: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let (ends, ended) = watch::channel(());
        for number in 0..ROBOTS {
            let (token, mut ended) = (token.to_owned(), ended.clone());
            runtime.spawn(async move {
                tokio::select! { () = live(port, format!("r{number}"), token) => {}, _ = ended.changed() => {} }
            });
        }
        Self { _runtime: runtime, _ends: ends }
    }
}

/// One robot, as long as it is let.
async fn live(port: u16, id: String, token: String) {
    let topics = Topics::new(DEFAULT_PREFIX);
    let url = BrokerUrl::parse(&format!("mqtt://127.0.0.1:{port}")).expect("an address");
    let login = Login { client: id.clone(), user: id.clone(), password: String::new() };
    let (connection, mut events) = Connection::open(&url, &login, None, topics.robot_filters(&id), None);
    let register = Register {
        version: VERSION,
        robot_id: id.clone(),
        token,
        device_info: DeviceInfo::default(),
        labels: [].into(),
        max_tasks: Some(1),
    };
    let register = serde_json::to_vec(&register).expect("it can be written");
    let mut credential = None;
    let mut beat = tokio::time::interval(BEAT);
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(Event::Connected) if credential.is_none() => {
                    connection.publish(&topics.register(), register.clone(), None).await;
                }
                Some(Event::Message { payload, .. }) => {
                    let answer = serde_json::from_slice::<Response>(&payload).ok();
                    credential = answer.and_then(|answer| answer.credential).or(credential);
                }
                Some(_) => {}
                None => return,
            },
            _ = beat.tick() => if let Some(credential) = &credential {
                let heartbeat = Heartbeat {
                    version: VERSION,
                    robot_id: id.clone(),
                    token: credential.clone(),
                    device_info: DeviceInfo::default(),
                    running: 0,
                };
                let payload = serde_json::to_vec(&heartbeat).expect("it can be written");
                connection.publish(&topics.heartbeat(), payload, None).await;
            },
        }
    }
}

/// A number that a server tells.
fn told(server: &Server, name: &str) -> u64 {
    let metrics = server.http().get("/metrics").text();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it counts messages")]
    line.map_or(0, |value| value as u64)
}

fn heard(server: &Server, sort: &str) -> u64 {
    told(server, &format!("muster_robot_messages_total{{sort=\"{sort}\"}}"))
}

fn robots(world: &World) -> Vec<Value> {
    let list = world.http.get(&format!("{API}/robots")).json();
    list["items"].as_array().cloned().unwrap_or_default()
}

fn leads(server: &Server) -> bool {
    leads_since(server, 0)
}

/// What it said of that from some place of its log on: a server that was killed did not say that it no longer leads.
fn leads_since(server: &Server, place: usize) -> bool {
    let log = fs::read_to_string(server.log()).unwrap_or_default();
    let last = log.get(place..).and_then(|log| log.lines().rfind(|line| line.contains("this server leads")));
    last.is_some_and(|line| !line.contains("no longer"))
}

/// The world with the server that leads, and the other one.
fn pair(postgres: &Postgres, flags: &[&str]) -> (World, Server) {
    let (mut world, mut other) = World::pair(&postgres.url(), flags);
    wait_for("one of them leads", SOON, || leads(&world.server) || leads(&other));
    if leads(&other) {
        other = world.turn_to(other);
    }
    (world, other)
}

#[test]
fn servers_share_what_a_fleet_says_and_the_end_of_one_takes_nobody_offline() {
    let postgres = Postgres::start();
    let (mut world, other) = pair(&postgres, &["--robot-offline-after", &format!("{OFFLINE_AFTER}s")]);
    let _fleet = Fleet::join(world.port, world.join_token());
    let is_online = |robot: &Value| robot["status"]["phase"] == "Online";
    wait_for("all robots are Online", SOON, || {
        let robots = robots(&world);
        robots.len() == ROBOTS && robots.iter().all(is_online)
    });
    for server in [&world.server, &other] {
        assert!(heard(server, "register") > 0, "each of them let robots in");
    }

    // Each hears its share, and what they write down together is what one of them would.
    let heartbeats = |server: &Server| heard(server, "heartbeat");
    let (before, began) = ([heartbeats(&world.server), heartbeats(&other)], Instant::now());
    let written = told(&world.server, "muster_store_revision");
    let share = u64::try_from(ROBOTS).expect("it is small") * 12;
    wait_for("each has heard its share", SOON, || {
        heartbeats(&world.server) > before[0] + share && heartbeats(&other) > before[1] + share
    });
    let written = told(&world.server, "muster_store_revision") - written;
    let seconds = began.elapsed().as_secs() + 1;
    let robots_written = u64::try_from(ROBOTS).expect("it is small") * (seconds / WRITE_EVERY + 2);
    // The lease is renewed three times in its four seconds.
    let bound = robots_written + 2 * seconds + 10;
    assert!(written <= bound, "{written} writes in {seconds} s are more than {bound}");

    // The leader is gone; its share goes to the other one.
    let mut gone = world.turn_to(other);
    gone.kill();
    let killed = Instant::now();
    let mut offline = Vec::new();
    let heard_for_long = holds_within(SOON, || {
        let robots = robots(&world);
        offline.extend(robots.iter().filter(|robot| !is_online(robot)).cloned());
        !offline.is_empty() || killed.elapsed() > Duration::from_secs(OFFLINE_AFTER + WRITE_EVERY)
    });
    assert!(heard_for_long && offline.is_empty(), "{offline:#?}");
    wait_for("the other one leads", SOON, || leads(&world.server));
    assert!(robots(&world).iter().all(is_online));
}

#[test]
fn a_task_ends_once_although_the_leader_is_killed_in_the_middle_of_it() {
    let postgres = Postgres::start();
    let (mut world, mut other) = pair(&postgres, &[]);
    let robot = world.robot("r1", &["--max-tasks", "3"]);
    for name in ["during", "after"] {
        world.waiting_task(name, &json!({}));
        world.wait_for_begun(name, 1);
        world.wait_for_state(name, "Running");
    }
    other = world.turn_to(other);
    other.kill();
    // One ends while nobody leads, one when the other server does; a third one is asked for meanwhile.
    world.let_go("during");
    world.task("meanwhile", "true", &json!({}));
    wait_for("the other one leads", SOON, || leads(&world.server));
    world.let_go("after");
    for name in ["during", "after", "meanwhile"] {
        let ended = world.wait_for_state(name, "Succeeded");
        assert_eq!(ended["status"]["attempt"], 1, "{ended:#}");
    }
    for name in ["during", "after"] {
        assert_eq!((world.times(name, "begun"), world.times(name, "ended")), (1, 1));
    }
    assert_eq!(world.log("after"), "begun\nended\n");

    // Told to stop, a leader hands over what runs.
    let said = fs::read_to_string(other.log()).unwrap_or_default().len();
    other.restart();
    world.waiting_task("handed-over", &json!({}));
    world.wait_for_begun("handed-over", 1);
    let mut former = world.turn_to(other);
    former.stop();
    wait_for("the first one leads again", SOON, || leads_since(&world.server, said));
    world.let_go("handed-over");
    let ended = world.wait_for_state("handed-over", "Succeeded");
    assert_eq!((&ended["status"]["attempt"], world.times("handed-over", "begun")), (&json!(1), 1));
    drop(robot);
}

#[test]
fn a_leader_that_was_paused_ends_nothing_that_its_successor_began() {
    let postgres = Postgres::start();
    let (mut world, other) = pair(&postgres, &[]);
    let _robot = world.robot("r1", &["--max-tasks", "2"]);
    world.task("before", "true", &json!({}));
    world.wait_for_state("before", "Succeeded");
    let paused = world.turn_to(other);
    paused.signal(Signal::STOP);
    wait_for("the other one leads", SOON, || leads(&world.server));
    world.waiting_task("steady", &json!({}));
    world.wait_for_begun("steady", 1);
    world.wait_for_state("steady", "Running");
    // It wakes up with everything in its ears that the robot said of what it does not know.
    paused.signal(Signal::CONT);
    wait_for("it knows that it does not lead", SOON, || !leads(&paused));
    world.let_go("steady");
    let ended = world.wait_for_state("steady", "Succeeded");
    assert_eq!(ended["status"]["attempt"], 1, "{ended:#}");
    assert_eq!((world.times("steady", "begun"), world.times("steady", "ended")), (1, 1));
}
