//! Messages with QoS 1 from many publishers to as many subscribers, through a broker and nothing else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use muster_fleet_mqtt::{BrokerSettings, Credentials, EmbeddedBroker, Topics};
use muster_ports::clock::SystemClock;
use muster_ports::store::{History, MemoryLog, Store};
use rumqttc::mqttbytes::v5::Packet;
use tokio::task::JoinSet;

use super::wire::{Hello, Wire};

/// The argument that makes this program an embedded broker.
pub const RAW_BROKER: &str = "raw-broker";
/// What it prints before where it is.
pub const READY: &str = "BROKER ";
/// Publishers, and subscribers.
const PAIRS: usize = 20;
/// Messages of one publisher that were not acknowledged.
const WINDOW: usize = 20;
const PAYLOAD: usize = 256;

/// The embedded broker of the product, alone in a process, until that is killed.
pub fn raw_broker() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = Store::open(MemoryLog::default(), History::default(), SystemClock)?;
        let credentials = Credentials::new(store, "default", Arc::new(None));
        let settings = BrokerSettings {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            tls: None,
            topics: Topics::new("k8s4r"),
            max_clients: 1000,
        };
        let broker = EmbeddedBroker::start(settings, credentials).await?;
        println!("{READY}{} {} {}", broker.address, broker.login.user, broker.login.password);
        std::future::pending::<()>().await;
        Ok(())
    })
}

/// Messages per second that reached their subscriber.
pub async fn rate(broker: SocketAddr, user: &str, password: &str, count: usize) -> anyhow::Result<f64> {
    let each = count / PAIRS;
    let hello = |client: String, number: usize| Hello {
        client,
        user: user.to_owned(),
        password: password.to_owned(),
        will: None,
        number,
    };
    let mut wires = Vec::new();
    for number in 0..PAIRS {
        let mut subscriber = Wire::open(broker, hello(format!("raw-sub-{number}"), number)).await?;
        subscriber.subscribe(vec![topic(number)]).await?;
        wires.push((subscriber, Wire::open(broker, hello(format!("raw-pub-{number}"), number)).await?));
    }
    let begun = Instant::now();
    let mut working = JoinSet::new();
    for (number, (subscriber, publisher)) in wires.into_iter().enumerate() {
        working.spawn(take(subscriber, each));
        working.spawn(give(publisher, topic(number), each));
    }
    while let Some(ended) = working.join_next().await {
        ended?.context("a raw client ended badly")?;
    }
    #[allow(clippy::cast_precision_loss, reason = "counts are small")]
    Ok((each * PAIRS) as f64 / begun.elapsed().as_secs_f64())
}

fn topic(number: usize) -> String {
    format!("raw/{number}")
}

async fn give(mut wire: Wire, topic: String, count: usize) -> anyhow::Result<()> {
    let payload = bytes::Bytes::from(vec![b'x'; PAYLOAD]);
    let (mut sent, mut confirmed) = (0, 0);
    while confirmed < count {
        let more = (confirmed + WINDOW).min(count) - sent;
        let packets: Vec<Packet> = (0..more).map(|_| wire.publish(&topic, payload.clone())).collect();
        if !packets.is_empty() {
            wire.send(packets).await?;
            sent += more;
        }
        if matches!(wire.next().await?, Packet::PubAck(_)) {
            confirmed += 1;
        }
    }
    Ok(())
}

async fn take(mut wire: Wire, count: usize) -> anyhow::Result<()> {
    let mut taken = 0;
    while taken < count {
        if let Packet::Publish(publish) = wire.next().await? {
            wire.send([Wire::acknowledge(&publish)]).await?;
            taken += 1;
        }
    }
    Ok(())
}
