//! Other ways to speak: to the embedded broker over TLS and with MQTT 3.1.1, to a Mosquitto through web sockets.

use std::fs;
use std::process::Command;

use muster_e2e::agent::Agent;
use muster_e2e::brokers::{Mosquitto, free_port};
use muster_e2e::server::Server;
use muster_e2e::wait::wait_for;
use serde_json::{Value, json};

use crate::world::{API, Kind, SOON, World};

#[test]
fn robots_of_other_machines_come_over_tls_alone() {
    let port = free_port();
    let address = format!("0.0.0.0:{port}");
    let flags = ["--roles", "api,engine,bridge", "--slots", "2", "--mqtt-listen", &address, "--tls-generate"];
    let server = Server::start(&flags);
    let (http, token) = (server.http(), server.new_join_token("join"));
    let dir = tempfile::tempdir().unwrap();
    let authority = server.data().join("tls-ca.pem").display().to_string();
    let place = format!("mqtts://127.0.0.1:{port}");
    let start =
        |id: &str, url: &str, flags: &[&str]| Agent::start(id, url, &token, &dir.path().join(id), flags);
    let _robot = start("r1", &place, &["--ca-file", &authority]);
    let stranger = start("r2", &place, &[]);
    let plain = start("r3", &format!("mqtt://127.0.0.1:{port}"), &[]);
    let get = |path: &str| http.get(&format!("{API}/{path}")).json();
    wait_for("the robot is Online", SOON, || get("robots/r1")["status"]["phase"] == "Online");
    let task = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": "t"},
        "spec": {"runtime": "robot", "container": {"command": ["true"]}},
    });
    assert_eq!(http.post(&format!("{API}/tasks"), &task.to_string()).code, 201);
    wait_for("the task is done", SOON, || get("tasks/t")["status"]["state"] == "Succeeded");
    for agent in [stranger, plain] {
        let log = agent.work_dir.join("agent.log");
        wait_for("it is kept out", SOON, || {
            fs::read_to_string(&log).is_ok_and(|log| log.contains("no connection to the broker"))
        });
    }
    assert_eq!(
        (get("robots/r2")["code"].as_u64(), get("robots/r3")["code"].as_u64()),
        (Some(404), Some(404))
    );
}

/// With the clients of a real Mosquitto.
mod real_broker {
    use super::*;

    /// A robot made of programs that speak MQTT 3.1.1, with the words of the seed alone.
    struct OldRobot<'a> {
        world: &'a World,
        client: &'static str,
        secret: String,
    }

    impl OldRobot<'_> {
        fn run(&self, program: &str, rest: &[&str]) -> Vec<u8> {
            let port = self.world.port.to_string();
            let output = Command::new(program)
                .args(["-V", "mqttv311", "-h", "127.0.0.1", "-p", &port, "-q", "1", "-i", self.client])
                .args(["-u", "old", "-P", &self.secret])
                .args(rest)
                .output()
                .expect("the clients of Mosquitto are there");
            assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
            output.stdout
        }

        fn say(&self, topic: &str, message: &Value) {
            self.run("mosquitto_pub", &["-t", topic, "-m", &message.to_string()]);
        }

        /// Says something, and waits for what comes on another topic.
        fn ask(&self, topic: &str, message: &Value, answer: &str) -> Value {
            let rest = ["-t", topic, "-e", answer, "-m", &message.to_string(), "-W", "60"];
            serde_json::from_slice(&self.run("mosquitto_rr", &rest)).expect("JSON comes")
        }
    }

    #[test]
    fn robots_and_the_server_can_meet_through_web_sockets() {
        let port = free_port();
        let web = format!("allow_anonymous true\nlistener {port} 127.0.0.1\nprotocol websockets\n");
        let _broker = Mosquitto::start_with(|_, _| web);
        let url = format!("ws://127.0.0.1:{port}/mqtt");
        let server = Server::start(&["--roles", "api,engine,bridge", "--slots", "2", "--mqtt-url", &url]);
        let (http, token) = (server.http(), server.new_join_token("join"));
        let dir = tempfile::tempdir().unwrap();
        let _robot = Agent::start("r1", &url, &token, dir.path(), &[]);
        let get = |path: &str| http.get(&format!("{API}/{path}")).json();
        wait_for("the robot is Online", SOON, || get("robots/r1")["status"]["phase"] == "Online");
        let task = json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": "t"},
            "spec": {"runtime": "robot", "container": {"command": ["true"]}},
        });
        assert_eq!(http.post(&format!("{API}/tasks"), &task.to_string()).code, 201);
        wait_for("the task is done", SOON, || get("tasks/t")["status"]["state"] == "Succeeded");
    }

    #[test]
    fn a_robot_that_speaks_mqtt_3_is_served() {
        // Until it is let in, the answer is all that is said to it.
        let world = World::new(Kind::Embedded, &["--robot-approval", "manual"]);
        let token = world.server.new_join_token("old");
        let joining = OldRobot { world: &world, client: "join-old", secret: token.clone() };
        let asked = json!({"robotId": "old", "token": token});
        let answer = joining.ask("k8s4r/register", &asked, "k8s4r/robots/old/response");
        let secret = answer["credential"].as_str().expect("a credential").to_owned();
        let robot = OldRobot { world: &world, client: "old", secret: secret.clone() };
        let heartbeat = json!({"robotId": "old", "token": secret});
        robot.say("k8s4r/heartbeat", &heartbeat);
        world.told(&["robot", "approve", "old"]);
        world.wait_for_phase("old", "Online");
        world.task("t", "true", &json!({}));
        let dispatch = robot.ask("k8s4r/heartbeat", &heartbeat, "k8s4r/robots/old/tasks/dispatch");
        assert_eq!(dispatch["action"], "create");
        let uid = dispatch["taskUid"].as_str().expect("a uid");
        for state in ["running", "completed"] {
            let status = json!({"taskUid": uid, "robotName": "old", "state": state});
            robot.say(&format!("k8s4r/robots/old/tasks/{uid}/status"), &status);
        }
        world.wait_for_state("t", "Succeeded");
    }
}
