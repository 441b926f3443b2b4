//! What goes between robots and the server over MQTT.

use std::fmt::Debug;

use muster_fleet_mqtt::messages::{
    ConnectionNews, Dispatch, Heartbeat, KnownAttempts, LogPiece, Register, Response, Status,
};
use muster_fleet_mqtt::{Inbound, Topics};
use muster_types::Millis;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Target;
use crate::api_objects::first_line;

pub const MESSAGES: Target = Target {
    name: "mqtt",
    property: "a topic that is understood is written the same again, a payload that is read is written and read back as the same, and \
               what a robot says it saw comes through whole",
    run: message,
};

/// A line with a topic; the rest is the payload.
fn message(input: &[u8]) {
    let (topic, payload) = first_line(input);
    let topics = Topics::new("k8s4r");
    let inbound = topics.parse(&topic);
    match inbound {
        None => {
            reads_back::<Dispatch>(payload);
            reads_back::<Response>(payload);
        }
        Some(Inbound::Register) => {
            assert_eq!(topics.register(), topic);
            reads_back::<Register>(payload);
        }
        Some(Inbound::Heartbeat) => {
            assert_eq!(topics.heartbeat(), topic);
            reads_back::<Heartbeat>(payload);
        }
        Some(Inbound::Connection { robot }) => {
            assert_eq!(topics.connection(robot), topic);
            reads_back::<ConnectionNews>(payload);
        }
        Some(Inbound::State { robot }) => {
            assert_eq!(topics.state(robot), topic);
            reads_back::<KnownAttempts>(payload);
        }
        Some(Inbound::Status { robot, task }) => {
            assert_eq!(topics.status(robot, task), topic);
            if let Some(status) = reads_back::<Status>(payload) {
                comes_through(&status);
            }
        }
        Some(Inbound::Log { robot, task }) => {
            assert_eq!(topics.log(robot, task), topic);
            reads_back::<LogPiece>(payload);
        }
    }
    for robot in ["r1", "r2"] {
        let named = match inbound {
            Some(
                Inbound::Connection { robot }
                | Inbound::State { robot }
                | Inbound::Status { robot, .. }
                | Inbound::Log { robot, .. },
            ) => Some(robot),
            _ => None,
        };
        let may = topics.may_publish(robot, true, &topic);
        assert!(!may || named.is_none_or(|named| named == robot), "{robot} may publish on {topic}");
        assert!(
            !topics.may_publish(robot, false, &topic) || topic == topics.register(),
            "a stranger may publish on {topic}"
        );
        let own = [topics.response(robot), topics.dispatch(robot)];
        assert_eq!(topics.may_subscribe(robot, true, &topic), own.contains(&topic), "{topic}");
    }
}

fn reads_back<T: DeserializeOwned + Serialize + PartialEq>(payload: &[u8]) -> Option<T> {
    let read: T = serde_json::from_slice(payload).ok()?;
    let written = serde_json::to_vec(&read).expect("what was read can be written");
    let again = serde_json::from_slice::<T>(&written);
    let again = again.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&written)));
    assert!(again == read, "it reads back otherwise: {}", String::from_utf8_lossy(&written));
    Some(read)
}

/// What was seen is told in other words and is still the same.
fn comes_through(status: &Status) {
    let now = Millis(1_763_000_000_000);
    let seen = status.seen(now);
    let told = Status::of(&status.handle(), &status.robot_name, status.sequence, seen.as_ref(), now);
    let text = serde_json::to_vec(&told).expect("it can be written");
    let heard: Status = serde_json::from_slice(&text).expect("it can be read");
    assert_same(&heard.seen(now), &seen);
    assert_eq!(heard.handle(), status.handle());
}

fn assert_same<T: PartialEq + Debug>(one: &T, other: &T) {
    assert_eq!(one, other, "what was seen did not come through");
}
