//! Robots that say too much, too large things, or have the wrong time: each harms itself at most.

use std::time::Duration;

use bytes::BytesMut;
use muster_fleet_mqtt::messages::Dispatch;
use muster_fleet_mqtt::messages::Status;
use muster_ports::clock::{Clock as _, Millis, SystemClock};
use muster_ports::runtime::{Handle, Observation, Runtime as _};
use muster_types::attempt::{Cause, Ending};
use rumqttc::mqttbytes::QoS;
use rumqttc::mqttbytes::v5::{Connect, ConnectAuth, Packet, Publish};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::yard::{Robotic, SOON, Yard, launch};

/// Work goes to a robot and comes back.
async fn is_served(yard: &mut Yard, robot: &mut Robotic, attempt: u32) {
    yard.runtime.start(launch(&robot.id, attempt));
    let dispatch: Dispatch = robot.hear().await;
    robot.report(&dispatch.handle(), 1, Some(&Observation::Started)).await;
    assert_eq!(yard.fact().await, Observation::Started);
}

#[tokio::test]
async fn a_flood_of_one_robot_does_not_drown_another() {
    let mut yard = Yard::new().await;
    let (mut loud, _) = yard.join("loud").await;
    let (mut quiet, secret) = yard.join("quiet").await;
    loud.connected().await;
    quiet.connected().await;
    let stray = Handle { task: "0190c000-0000-7000-8000-00000000000f".to_owned(), attempt: 1 };
    let report = Status::of(&stray, "loud", 1, Some(&Observation::Started), SystemClock.now());
    let payload = serde_json::to_vec(&report).unwrap();
    let (connection, topic) = (loud.connection.clone(), yard.topics.status("loud", &stray.task));
    let flood = tokio::spawn(async move {
        loop {
            connection.publish(&topic, payload.clone(), None).await;
        }
    });
    quiet.beat(&secret, 5).await;
    yard.until("the quiet one is heard", |yard| {
        yard.robot("quiet").is_some_and(|robot| robot.status.device_info.cpus == 5)
    })
    .await;
    is_served(&mut yard, &mut quiet, 1).await;
    assert!(!flood.is_finished(), "it was flooded all the while");
    flood.abort();
}

#[tokio::test]
async fn a_message_that_is_too_large_costs_its_robot_the_connection_and_nobody_else() {
    let mut yard = Yard::new().await;
    let (_, secret) = yard.join("large").await;
    let (mut other, _) = yard.join("other").await;
    other.connected().await;
    let mut stream = TcpStream::connect(yard.address).await.unwrap();
    let connect =
        Connect { keep_alive: 60, client_id: "large".to_owned(), clean_start: true, properties: None };
    let auth =
        ConnectAuth::UsernamePassword { username: "large".to_owned(), password: secret.into_bytes().into() };
    let mut publish =
        Publish::new("k8s4r/robots/large/tasks/u/log", QoS::AtLeastOnce, vec![b'x'; 4 << 20], None);
    publish.pkid = 1;
    let mut out = BytesMut::new();
    Packet::Connect(connect, None, auth).write(&mut out, None).unwrap();
    Packet::Publish(publish).write(&mut out, None).unwrap();
    // The broker hangs up in the middle of it, or after it.
    drop(stream.write_all(&out).await);
    let mut answer = Vec::new();
    let ended = timeout(SOON, stream.read_to_end(&mut answer)).await;
    assert!(ended.is_ok(), "the broker goes on listening to it");
    is_served(&mut yard, &mut other, 1).await;
}

#[tokio::test]
async fn the_clock_of_a_robot_is_not_believed() {
    let mut yard = Yard::new().await;
    let (mut robot, secret) = yard.join("r1").await;
    robot.connected().await;
    robot.beat(&secret, 1).await;
    for (attempt, hours) in [(1, 5), (2, -5)] {
        yard.runtime.start(launch("r1", attempt));
        let handle = robot.hear::<Dispatch>().await.handle();
        let before = SystemClock.now();
        let skew = i64::try_from(Duration::from_hours(1).as_millis()).unwrap() * hours;
        let its_time = Millis(before.0 + skew);
        let ending = Ending::of_leader(0, Cause::Itself, its_time);
        let status = Status::of(&handle, "r1", 1, Some(&Observation::Ended(ending)), its_time);
        robot.say(&yard.topics.status("r1", &handle.task), &status).await;
        match yard.fact().await {
            Observation::Ended(ending) => assert!(
                (before.0..=SystemClock.now().0).contains(&ending.at.0),
                "{} hours off: {:?}",
                hours,
                ending.at
            ),
            other => panic!("{other:?}"),
        }
    }
    let heard = |yard: &Yard| yard.robot("r1").and_then(|robot| robot.status.last_heartbeat_time);
    yard.until("a sign of life is written down", |yard| heard(yard).is_some()).await;
    let heard = heard(&yard);
    assert!(heard.is_some_and(|heard| heard <= SystemClock.now().to_timestamp()), "{heard:?}");
}
