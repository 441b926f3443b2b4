//! A join token in the wrong hands. It must let in as many robots as it was made for, and none of them is Online by its word alone.

use muster_e2e::brokers::free_port;
use muster_e2e::server::Server;
use muster_e2e::wait::{SOON, wait_for};
use muster_fleet_mqtt::messages::{Register, Response, VERSION};
use muster_fleet_mqtt::{BrokerUrl, Connection, Event, Login, Topics, joining_client};
use muster_types::metadata::StringMap;
use muster_types::robot_status::DeviceInfo;
use serde_json::json;

const ROBOTS: &str = "/apis/muster.dev/v1alpha1/namespaces/default/robots";

/// What a robot hears that asks to join; nothing if the broker does not let it in.
async fn join(address: &str, robot: &str, token: &str) -> Option<Response> {
    let (url, topics) =
        (BrokerUrl::parse(&format!("mqtt://{address}")).expect("an address"), Topics::new("k8s4r"));
    let login = Login { client: joining_client(robot), user: robot.to_owned(), password: token.to_owned() };
    let filters = vec![topics.response(robot)];
    let (connection, mut events) = Connection::open(&url, &login, None, filters, None);
    if !matches!(events.recv().await, Some(Event::Connected)) {
        return None;
    }
    let asked = Register {
        version: VERSION,
        robot_id: robot.to_owned(),
        token: token.to_owned(),
        device_info: DeviceInfo::default(),
        labels: StringMap::new(),
        max_tasks: Some(1),
    };
    let payload = serde_json::to_vec(&asked).expect("it is JSON");
    connection.publish_confirmed(&topics.register(), payload).await;
    while let Some(event) = events.recv().await {
        if let Event::Message { payload, .. } = event {
            return serde_json::from_slice(&payload).ok();
        }
    }
    None
}

#[test]
fn a_join_token_lets_in_as_many_robots_as_it_was_made_for_and_none_is_online_without_its_credential() {
    let address = format!("127.0.0.1:{}", free_port());
    let server = Server::start(&["--roles", "api,engine,bridge", "--mqtt-listen", &address]);
    let http = server.http();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let ask = |robot: &str, token: &str| {
        let asked =
            runtime.block_on(async { tokio::time::timeout(SOON, join(&address, robot, token)).await });
        asked.expect("the broker or the server answers")
    };
    let joins = |robot: &str, token: &str| ask(robot, token).is_some_and(|answer| answer.success);

    let one = server.new_token("one", "robot");
    assert!(joins("r1", &one));
    assert!(joins("r1", &one), "the answer may have been lost: the same robot joins again");
    assert!(!joins("r2", &one), "it was made for one robot");
    let two = server.new_token_of(&json!({"name": "two", "role": "robot", "uses": 2}));
    assert!(joins("r3", &two) && joins("r4", &two) && !joins("r5", &two));
    assert_eq!(http.get(&format!("{ROBOTS}/r2")).code, 404);
    assert_eq!(http.get(&format!("{ROBOTS}/r5")).code, 404);

    let tokens = http.get("/tokens").json();
    let token = |name: &str| {
        let items = tokens["items"].as_array().cloned().unwrap_or_default();
        items.into_iter().find(|token| token["name"] == name).unwrap_or_default()
    };
    assert_eq!((&token("one")["uses"], &token("one")["robots"]), (&json!(1), &json!(["r1"])));
    assert_eq!(token("two")["robots"], json!(["r3", "r4"]));
    assert!(token("one")["expires"].is_string(), "it ends by itself: {}", token("one"));

    // The engine has judged all robots once it has judged one that came later.
    let agent_token = server.new_token("agent", "robot");
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let url = format!("mqtt://{address}");
    let _agent = muster_e2e::agent::Agent::start("r6", &url, &agent_token, dir.path(), &[]);
    let phase = |robot: &str| http.get(&format!("{ROBOTS}/{robot}")).json()["status"]["phase"].clone();
    wait_for("a robot with its credential to be Online", SOON, || phase("r6") == "Online");
    for robot in ["r1", "r3", "r4"] {
        assert_ne!(phase(robot), "Online", "{robot} has not shown its credential");
    }
}

#[test]
fn limits_of_join_tokens_are_checked() {
    let server = Server::start(&["--roles", "api"]);
    let http = server.http();
    for wanted in [
        json!({"name": "a", "role": "robot", "uses": 0}),
        json!({"name": "a", "role": "robot", "uses": 1001}),
        json!({"name": "a", "role": "viewer", "uses": 1}),
    ] {
        let answer = http.post("/tokens", &wanted.to_string());
        assert_eq!(answer.code, 422, "{wanted}: {}", answer.text());
        assert!(answer.text().contains("uses"), "{}", answer.text());
    }
}
