//! A robot that was deleted and stays connected. It must hear nothing of what the robot is told that comes after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use muster_e2e::agent::Agent;
use muster_e2e::brokers::free_port;
use muster_e2e::server::Server;
use muster_e2e::wait::{SOON, wait_for};
use muster_fleet_mqtt::{BrokerUrl, Connection, Event, Login, Topics};
use serde_json::json;

const API: &str = "/apis/muster.dev/v1alpha1/namespaces/default";

/// What happened to somebody who listens with the credential of a robot.
#[derive(Default)]
struct Heard {
    connected: AtomicUsize,
    cut_off: AtomicUsize,
    messages: AtomicUsize,
}

/// Listens under the id of a robot until the runtime ends.
async fn listen(url: BrokerUrl, secret: String, heard: Arc<Heard>) {
    let login = Login { client: "r1".to_owned(), user: "r1".to_owned(), password: secret };
    let filters = Topics::new("k8s4r").robot_filters("r1");
    let (_connection, mut events) = Connection::open(&url, &login, None, filters, None);
    while let Some(event) = events.recv().await {
        let count = match event {
            Event::Connected => &heard.connected,
            Event::Disconnected { .. } => &heard.cut_off,
            Event::Message { .. } => &heard.messages,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_deleted_robot_loses_its_session_and_hears_nothing_of_its_successor() {
    let address = format!("127.0.0.1:{}", free_port());
    let server = Server::start(&["--roles", "api,engine,bridge", "--mqtt-listen", &address]);
    let (http, token) = (server.http(), server.new_join_token("join"));
    let url = format!("mqtt://{address}");
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let phase = || http.get(&format!("{API}/robots/r1")).json()["status"]["phase"].clone();
    let agent = Agent::start("r1", &url, &token, &dir.path().join("old"), &[]);
    wait_for("the first robot to be Online", SOON, || phase() == "Online");
    let credential = || std::fs::read_to_string(dir.path().join("old/credential")).unwrap_or_default();
    wait_for("it to keep its credential", SOON, || !credential().is_empty());
    let secret = credential();
    drop(agent);
    let heard = Arc::new(Heard::default());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    let broker = BrokerUrl::parse(&url).expect("an address");
    runtime.spawn(listen(broker, secret.trim().to_owned(), heard.clone()));
    wait_for("the attacker to listen", SOON, || heard.connected.load(Ordering::Relaxed) == 1);
    let (cut_off, messages) = (heard.cut_off.load(Ordering::Relaxed), heard.messages.load(Ordering::Relaxed));
    assert!(http.delete(&format!("{API}/robots/r1")).code < 300);
    wait_for("the attacker to be cut off", SOON, || heard.cut_off.load(Ordering::Relaxed) > cut_off);
    let _successor = Agent::start("r1", &url, &token, &dir.path().join("new"), &[]);
    wait_for("its successor to be Online", SOON, || phase() == "Online");
    let task = json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": "t"},
        "spec": {"runtime": "robot", "container": {"command": ["true"]}}});
    assert_eq!(http.post(&format!("{API}/tasks"), &task.to_string()).code, 201);
    let state = || http.get(&format!("{API}/tasks/t")).json()["status"]["state"].clone();
    wait_for("a task to end on it", SOON, || state() == "Succeeded");
    assert_eq!(heard.connected.load(Ordering::Relaxed), 1, "its credential opens nothing any more");
    assert_eq!(heard.messages.load(Ordering::Relaxed), messages, "it heard nothing");
}
