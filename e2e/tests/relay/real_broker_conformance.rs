//! Real brokers do what every place for messages must do.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use muster_e2e::brokers::{Mosquitto, Rabbit, Redis};
use muster_e2e::lines::Lines;
use muster_egress::EgressPolicy;
use muster_ports::publisher::conformance::{Subject, all};
use muster_ports::publisher::{Journal as _, Publisher};
use muster_relay_sinks::address::Address;
use muster_relay_sinks::amqp::{AmqpPublisher, Consumer};
use muster_relay_sinks::{MqttPublisher, RedisKey};
use tokio::sync::Mutex;

/// A broker, and somebody who listens.
struct Queue {
    publisher: AmqpPublisher,
    consumer: Mutex<(Consumer, Vec<String>)>,
}

impl Subject for Queue {
    fn publisher(&self) -> Arc<dyn Publisher> {
        Arc::new(self.publisher.clone())
    }

    async fn arrived(&self, least: usize) -> Vec<String> {
        let mut held = self.consumer.lock().await;
        let (consumer, ids) = &mut *held;
        // What is on its way comes soon; what must come is waited for.
        loop {
            let patience =
                if ids.len() < least { Duration::from_secs(30) } else { Duration::from_millis(300) };
            match tokio::time::timeout(patience, consumer.next()).await {
                Ok(delivery) => {
                    let delivery = delivery.expect("a message");
                    consumer.acknowledge(delivery.tag, false).await.expect("it is acknowledged");
                    ids.push(delivery.id);
                }
                Err(_) => return ids.clone(),
            }
        }
    }
}

#[tokio::test]
async fn rabbitmq_does_what_every_publisher_must() {
    let rabbit = Rabbit::start();
    let address = Address::parse(&rabbit.url()).unwrap();
    let consumer = Consumer::open(&address, "e", "q", &["cds.#"], 1000).await.unwrap();
    let publisher = AmqpPublisher::new(address, "e", EgressPolicy::unrestricted().into());
    all(&Queue { publisher, consumer: Mutex::new((consumer, Vec::new())) }).await;
}

/// A broker, and a program of others that listens.
struct Topic {
    publisher: MqttPublisher,
    lines: std::sync::Mutex<(Lines, Vec<String>)>,
}

impl Subject for Topic {
    fn publisher(&self) -> Arc<dyn Publisher> {
        Arc::new(self.publisher.clone())
    }

    async fn arrived(&self, least: usize) -> Vec<String> {
        let mut held = self.lines.lock().expect("nobody failed");
        let (lines, ids) = &mut *held;
        loop {
            let patience =
                if ids.len() < least { Duration::from_secs(30) } else { Duration::from_millis(300) };
            let Some(line) = lines.next_within(patience) else { return ids.clone() };
            let (topic, body) = line.split_once(' ').expect("topic and body");
            assert_eq!(topic, "a/b/cds.job.success");
            let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
            ids.push(body["job-id"].as_str().expect("an id").to_owned());
        }
    }
}

#[tokio::test]
async fn mosquitto_does_what_every_publisher_must() {
    let mosquitto = Mosquitto::start();
    let port = mosquitto.port().to_string();
    let mut listener = Command::new("mosquitto_sub")
        .args(["-h", "127.0.0.1", "-p", &port, "-q", "1", "-t", "a/b/#", "-t", "ready", "-v"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("mosquitto-clients is installed");
    let mut lines = Lines::of(listener.stdout.take().expect("its output is piped"));
    // It listens when it hears.
    let mut heard = None;
    while heard.is_none() {
        let say = ["-h", "127.0.0.1", "-p", &port, "-t", "ready", "-m", "x"];
        assert!(Command::new("mosquitto_pub").args(say).status().expect("it runs").success());
        heard = lines.find_within(Duration::from_millis(200), |line| line.starts_with("ready"));
    }
    while lines.next_within(Duration::from_millis(300)).is_some() {}
    let address = Address::parse(&format!("mqtt://127.0.0.1:{port}")).unwrap();
    let publisher = MqttPublisher::new(address, "a/b", "muster-test", EgressPolicy::unrestricted().into());
    all(&Topic { publisher, lines: std::sync::Mutex::new((lines, Vec::new())) }).await;
    listener.kill().unwrap();
    listener.wait().unwrap();
}

#[tokio::test]
async fn redis_keeps_a_value_through_a_kill_and_its_absence_is_told() {
    let mut redis = Redis::start();
    let address = Address::parse(&redis.url()).unwrap();
    let key = RedisKey::new(address, "cdsreaper:most-recent-event", EgressPolicy::unrestricted().into());
    assert_eq!(key.read().await.unwrap(), None);
    key.write("41").await.unwrap();
    key.write("42").await.unwrap();
    redis.kill();
    let error = key.write("43").await.unwrap_err();
    assert!(error.to_string().starts_with("the journal cannot be used: "), "{error}");
    redis.restart();
    assert_eq!(key.read().await.unwrap().as_deref(), Some("42"));
}
