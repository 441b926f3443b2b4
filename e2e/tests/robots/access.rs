//! Who gets in, what they may say, and what becomes of nonsense.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use muster_e2e::brokers::{Mosquitto, free_port};
use muster_e2e::wait::wait_for;
use muster_fleet_mqtt::{BrokerUrl, Connection, Event, Login, joining_client};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::world::{Kind, SOON, World};

/// The lines of the ready-made configuration that say where it listens.
const FOR_ROBOTS: &str = "listener 1883 127.0.0.1";
const FOR_SERVERS: &str = "listener 1884 127.0.0.1";

/// A client that says whatever it likes.
struct Stranger {
    runtime: Runtime,
    connection: Connection,
    refused: bool,
}

impl Stranger {
    fn connect(world: &World, id: &str, password: &str) -> Self {
        Self::connect_as(world, id, id, password)
    }

    /// As a robot that wants to join.
    fn join(world: &World, id: &str, token: &str) -> Self {
        Self::connect_as(world, &joining_client(id), id, token)
    }

    fn connect_as(world: &World, client: &str, id: &str, password: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let url = BrokerUrl::parse(&format!("mqtt://127.0.0.1:{}", world.port)).expect("an address");
        let login = Login { client: client.to_owned(), user: id.to_owned(), password: password.to_owned() };
        let (connection, refused) = runtime.block_on(async {
            let (connection, mut events) = Connection::open(&url, &login, None, Vec::new(), None);
            let first = tokio::time::timeout(SOON, events.recv()).await.expect("the broker answers");
            tokio::spawn(async move { while events.recv().await.is_some() {} });
            (connection, !matches!(first, Some(Event::Connected)))
        });
        Self { runtime, connection, refused }
    }

    fn say(&self, topic: &str, payload: &[u8]) {
        self.runtime.block_on(async {
            let said = self.connection.publish_confirmed(topic, payload.to_vec());
            drop(tokio::time::timeout(Duration::from_secs(5), said).await);
        });
    }
}

#[test]
fn nobody_gets_into_the_embedded_broker_without_a_valid_secret() {
    let world = World::new(Kind::Embedded, &[]);
    let admin = world.server.admin_token();
    for (id, password) in [("r1", "wrong"), ("r1", admin.as_str()), ("$bridge", "guess"), ("", "")] {
        assert!(Stranger::connect(&world, id, password).refused, "{id} {password}");
    }
}

#[test]
fn a_robot_cannot_speak_for_another_and_a_name_that_is_used_is_taken() {
    let world = World::new(Kind::Embedded, &[]);
    let _victim = world.robot("r1", &[]);
    let attacker = world.robot("r2", &[]);
    world.waiting_task("wanted", &json!({"targetRobot": "r1"}));
    world.wait_for_begun("wanted", 1);
    let task = world.wait_for_state("wanted", "Running");
    let uid = task["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let secret = std::fs::read_to_string(attacker.work_dir.join("credential")).expect("it has joined");
    drop(attacker);
    let stranger = Stranger::connect(&world, "r2", &secret);
    assert!(!stranger.refused);
    let lie = json!({
        "taskUid": uid, "robotName": "r1", "attempt": 1, "sequence": 99, "state": "completed", "exitCode": 0,
    });
    stranger.say(&format!("k8s4r/robots/r1/tasks/{uid}/status"), lie.to_string().as_bytes());
    let own = json!({
        "taskUid": uid, "robotName": "r2", "attempt": 1, "sequence": 99, "state": "completed", "exitCode": 0,
    });
    let stranger = Stranger::connect(&world, "r2", &secret);
    stranger.say(&format!("k8s4r/robots/r2/tasks/{uid}/status"), own.to_string().as_bytes());
    // A join token does not open a name that is used.
    let token = world.server.new_join_token("another");
    assert!(Stranger::join(&world, "r1", &token).refused);
    assert!(Stranger::connect(&world, "r1", &token).refused);
    world.let_go("wanted");
    let ended = world.wait_for_state("wanted", "Succeeded");
    assert_eq!((&ended["status"]["attempt"], world.times("wanted", "ended")), (&json!(1), 1));
}

#[test]
fn a_robot_waits_for_approval_where_that_is_asked_for() {
    let world = World::new(Kind::Embedded, &["--robot-approval", "manual"]);
    let _robot = world.start_robot("r1", world.port, &[]);
    wait_for("the robot has joined", SOON, || {
        world.get("robots/r1")["status"]["message"].as_str().is_some_and(|it| it.contains("approve"))
    });
    assert_eq!(world.get("robots/r1")["status"]["phase"], "Pending");
    world.told(&["robot", "approve", "r1"]);
    world.wait_for_phase("r1", "Online");
    world.wait_for_connection("r1", "True");
    let listed = world.told(&["robot", "list"]);
    assert!(listed.contains("r1") && listed.contains("Online"), "{listed}");
    assert!(world.told(&["robot", "describe", "r1"]).contains("Connected"));
}

#[test]
fn a_join_token_is_made_on_the_command_line() {
    let world = World::new(Kind::Embedded, &[]);
    let secret = world.told(&["robot", "token", "create", "line-seven", "--ttl", "1h"]);
    assert!(secret.starts_with("muster_"), "{secret}");
    assert!(world.told(&["token", "list"]).contains("robot"));
    assert!(!Stranger::join(&world, "r5", secret.trim()).refused);
}

/// With a real Mosquitto.
mod real_broker {
    use super::*;

    /// Nonsense of every sort is said to a bridge whose broker lets everybody in; work goes on.
    #[test]
    fn nonsense_and_lies_harm_nobody() {
        let world = World::new(Kind::Mosquitto, &[]);
        let _robot = world.robot("r1", &["--max-tasks", "2"]);
        world.waiting_task("steady", &json!({}));
        world.wait_for_begun("steady", 1);
        let uid = world.wait_for_state("steady", "Running")["metadata"]["uid"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let stranger = Stranger::connect(&world, "stranger", "x");
        let status = format!("k8s4r/robots/r1/tasks/{uid}/status");
        let report = |robot: &str, attempt: u32, state: &str| {
            json!({"taskUid": uid, "robotName": robot, "attempt": attempt, "sequence": 50, "state": state})
                .to_string()
        };
        let huge = format!("{{\"taskUid\":\"{}\"}}", "x".repeat(200_000));
        for (topic, payload) in [
            ("k8s4r/register", b"{".to_vec()),
            ("k8s4r/register", json!({"robotId": "../etc", "token": "x"}).to_string().into_bytes()),
            ("k8s4r/register", json!({"robotId": "r9", "token": "wrong"}).to_string().into_bytes()),
            (
                "k8s4r/heartbeat",
                json!({"robotId": "r1", "token": "wrong", "running": 77}).to_string().into_bytes(),
            ),
            ("k8s4r/heartbeat", vec![0xff; 100]),
            (status.as_str(), huge.into_bytes()),
            (status.as_str(), report("r2", 1, "completed").into_bytes()),
            (status.as_str(), report("r1", 7, "completed").into_bytes()),
            (status.as_str(), report("r1", 1, "banana").into_bytes()),
            ("k8s4r/robots/r1/tasks/no-such-task/status", report("r1", 1, "completed").into_bytes()),
            (
                "k8s4r/robots/r2/tasks/state",
                json!({"attempts": [{"task": uid, "attempt": 1}]}).to_string().into_bytes(),
            ),
        ] {
            stranger.say(topic, &payload);
        }
        // Work goes on, and the robot is not said to run what a stranger claimed.
        world.task("after", "true", &json!({}));
        world.wait_for_state("after", "Succeeded");
        assert_ne!(world.get("robots/r1")["status"]["running"], 77);
        assert_eq!(world.get("robots/r9")["code"], 404);
        world.let_go("steady");
        let ended = world.wait_for_state("steady", "Succeeded");
        assert_eq!(ended["status"]["attempt"], 1);
    }

    #[test]
    fn the_ready_made_configuration_of_mosquitto_keeps_robots_apart() {
        let ready_made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/mosquitto");
        let for_servers = free_port();
        let broker = Mosquitto::start_with(|_, dir| {
            let here = format!("{}/", dir.display());
            let acl = std::fs::read_to_string(ready_made.join("muster.acl")).expect("it is there");
            std::fs::write(dir.join("muster.acl"), acl).expect("a file can be written");
            for (file, users) in [("robots.passwd", &["r1", "r2"][..]), ("servers.passwd", &["muster"])] {
                std::fs::write(dir.join(file), "").expect("a file can be written");
                for user in users {
                    let made = Command::new("mosquitto_passwd")
                        .arg("-b")
                        .arg(dir.join(file))
                        .args([*user, &format!("pw-{user}")])
                        .output()
                        .expect("mosquitto_passwd comes with Mosquitto");
                    assert!(made.status.success(), "{made:?}");
                }
            }
            let config = std::fs::read_to_string(ready_made.join("mosquitto.conf")).expect("it is there");
            assert!(config.contains(FOR_ROBOTS) && config.contains(FOR_SERVERS));
            // The harness gives the first listener; a broker that is started as root becomes somebody who cannot read a directory
            // of ours.
            let config = config
                .replace(FOR_ROBOTS, "")
                .replace(FOR_SERVERS, &format!("listener {for_servers} 127.0.0.1"))
                .replace("/etc/mosquitto/", &here);
            format!("user root\npersistence_location {here}\n{config}")
        });
        let world = World::around(Some(broker), Some(for_servers), &[]);
        let _victim = world.robot("r1", &[]);
        world.waiting_task("wanted", &json!({"targetRobot": "r1"}));
        world.wait_for_begun("wanted", 1);
        let uid = world.wait_for_state("wanted", "Running")["metadata"]["uid"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(Stranger::connect(&world, "r2", "wrong").refused);
        assert!(Stranger::connect(&world, "muster", "pw-muster").refused, "servers have a door of their own");
        let stranger = Stranger::connect(&world, "r2", "pw-r2");
        assert!(!stranger.refused);
        let lie =
            json!({"taskUid": uid, "robotName": "r1", "attempt": 1, "sequence": 99, "state": "completed"});
        stranger.say(&format!("k8s4r/robots/r1/tasks/{uid}/status"), lie.to_string().as_bytes());
        world.task("next", "true", &json!({"runtime": "process"}));
        world.wait_for_state("next", "Succeeded");
        assert_eq!(world.get("tasks/wanted")["status"]["state"], "Running");
        world.let_go("wanted");
        world.wait_for_state("wanted", "Succeeded");
        assert_eq!(world.log("wanted"), "begun\nended\n");
    }
}
