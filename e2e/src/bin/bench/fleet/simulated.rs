//! Robots that are real connections and nothing else: they join, say that they are alive, and report every task as done at once.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use muster_fleet_mqtt::messages::{
    Action, ConnectionNews, Dispatch, Heartbeat, KnownAttempts, Register, Response, Status, VERSION,
};
use muster_fleet_mqtt::{Topics, joining_client};
use muster_types::Millis;
use muster_types::attempt::{Cause, Ending, Handle, Observation};
use muster_types::metadata::StringMap;
use muster_types::robot_status::DeviceInfo;
use rumqttc::mqttbytes::v5::{Packet, Publish};
use serde::Serialize;
use tokio::sync::{Mutex, Notify, Semaphore, watch};
use tokio::task::JoinSet;

use super::wire::{Hello, Wire};

/// Connections that are made at the same time.
const AT_ONCE: usize = 64;
/// Between the end of a connection that flaps and the next.
const AWAY: Duration = Duration::from_secs(1);
/// A flapping robot loses its connection after this time.
const FLAP_EVERY: Duration = Duration::from_secs(20);
/// The variable of a task that tells its number.
pub const NUMBER: &str = "BENCH_NUMBER";

/// What robots share.
pub struct Fleet {
    pub broker: SocketAddr,
    pub topics: Topics,
    pub heartbeat: Duration,
    /// The first so many lose their connection again and again, while that is so.
    pub flapping: usize,
    pub flap: watch::Sender<bool>,
    /// Robots that are cut for good when they are told.
    pub cuts: HashMap<usize, Arc<Notify>>,
    /// How often one was made.
    pub connections: AtomicUsize,
    pub reconnects: AtomicUsize,
    /// When tasks were asked for, by number.
    pub asked: Mutex<HashMap<usize, Instant>>,
    /// From being asked for to being started on a robot, in microseconds.
    pub started: Mutex<Vec<u32>>,
}

/// The name of a robot.
pub fn name(number: usize) -> String {
    format!("robot-{number:05}")
}

/// As many join with one token.
pub const ROBOTS_PER_TOKEN: usize = 1_000;

/// Lets robots join, each thousand with a token of their own, and answers with their credentials in order.
pub async fn join_all(
    fleet: &Arc<Fleet>,
    numbers: Range<usize>,
    tokens: &[String],
) -> anyhow::Result<Vec<String>> {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut joining = JoinSet::new();
    let first = numbers.start;
    let mut secrets = vec![String::new(); numbers.len()];
    for number in numbers {
        let permit = room.clone().acquire_owned().await?;
        let token = tokens.get(number / ROBOTS_PER_TOKEN).context("there are too few join tokens")?;
        let (fleet, token) = (fleet.clone(), token.clone());
        joining.spawn(async move {
            let secret = join(&fleet, number, &token).await;
            drop(permit);
            secret.map(|secret| (number, secret))
        });
    }
    while let Some(joined) = joining.join_next().await {
        let (number, secret) = joined??;
        secrets[number - first] = secret;
    }
    Ok(secrets)
}

async fn join(fleet: &Fleet, number: usize, token: &str) -> anyhow::Result<String> {
    let id = name(number);
    let hello = Hello {
        client: joining_client(&id),
        user: id.clone(),
        password: token.to_owned(),
        will: None,
        number,
    };
    let mut wire = Wire::open(fleet.broker, hello).await?;
    wire.subscribe(vec![fleet.topics.response(&id)]).await?;
    let asked = Register {
        version: VERSION,
        robot_id: id,
        token: token.to_owned(),
        device_info: device(),
        labels: StringMap::new(),
        max_tasks: Some(4),
    };
    let register = wire.publish(&fleet.topics.register(), serde_json::to_vec(&asked)?);
    wire.send([register]).await?;
    loop {
        if let Packet::Publish(publish) = wire.next().await? {
            wire.send([Wire::acknowledge(&publish)]).await?;
            let response: Response = serde_json::from_slice(&publish.payload)?;
            match (response.success, response.credential) {
                (_, Some(secret)) => return Ok(secret),
                // That it is Online may be said before.
                (true, None) => {}
                (false, None) => bail!("{}", response.message),
            }
        }
    }
}

/// Connects robots, from a number on, and lets them work until they are dropped. Answers when all were connected once.
pub async fn connect_all(
    fleet: &Arc<Fleet>,
    first: usize,
    secrets: &[String],
    robots: &mut JoinSet<()>,
) -> anyhow::Result<()> {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let before = fleet.connections.load(Ordering::Relaxed);
    for (number, secret) in (first..).zip(secrets) {
        let permit = room.clone().acquire_owned().await?;
        let (fleet, secret) = (fleet.clone(), secret.clone());
        robots.spawn(async move {
            let mut permit = Some(permit);
            loop {
                if let Err(error) = live(&fleet, number, &secret, &mut permit).await {
                    eprintln!("{}: {error:#}", name(number));
                    tokio::time::sleep(AWAY).await;
                }
                fleet.reconnects.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    while fleet.connections.load(Ordering::Relaxed) < before + secrets.len() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

/// One connection of a robot, from its beginning to its end.
async fn live<P>(fleet: &Fleet, number: usize, secret: &str, permit: &mut Option<P>) -> anyhow::Result<()> {
    let (id, topics) = (name(number), &fleet.topics);
    let will = (topics.connection(&id), serde_json::to_vec(&ConnectionNews { connected: false })?);
    let hello =
        Hello { client: id.clone(), user: id.clone(), password: secret.to_owned(), will: Some(will), number };
    let mut wire = Wire::open(fleet.broker, hello).await?;
    wire.subscribe(topics.robot_filters(&id)).await?;
    let here = encode(&ConnectionNews { connected: true });
    let known = encode(&KnownAttempts { version: VERSION, attempts: Vec::new() });
    let heartbeat = encode(&Heartbeat {
        version: VERSION,
        robot_id: id.clone(),
        token: secret.to_owned(),
        device_info: device(),
        running: 0,
    });
    let first = [
        wire.publish(&topics.connection(&id), here),
        wire.publish(&topics.heartbeat(), heartbeat.clone()),
        wire.publish(&topics.state(&id), known),
    ];
    wire.send(first).await?;
    fleet.connections.fetch_add(1, Ordering::Relaxed);
    drop(permit.take());
    // Not all at the same moment.
    let phase = fleet.heartbeat.mul_f64(fraction(number));
    let mut beat = tokio::time::interval_at(tokio::time::Instant::now() + phase, fleet.heartbeat);
    let flap_at = FLAP_EVERY.mul_f64(0.1 + fraction(number * 7));
    let cut = fleet.cuts.get(&number).cloned();
    let mut flap = (number < fleet.flapping).then(|| fleet.flap.subscribe());
    let mut lost_at = None;
    let ended = loop {
        tokio::select! {
            packet = wire.next() => match packet {
                Ok(Packet::Publish(publish)) => answer(fleet, &id, &mut wire, &publish).await?,
                Ok(_) => {}
                Err(error) => break Err(error),
            },
            _ = beat.tick() => {
                let heartbeat = wire.publish(&topics.heartbeat(), heartbeat.clone());
                wire.send([heartbeat]).await?;
            }
            () = begun(flap.as_mut()), if lost_at.is_none() => {
                lost_at = Some(tokio::time::Instant::now() + flap_at);
            }
            () = until(lost_at) => break Ok(()),
            () = told(cut.as_ref()) => {
                drop(wire);
                std::future::pending::<()>().await;
                return Ok(());
            }
        }
    };
    drop(wire);
    tokio::time::sleep(AWAY).await;
    ended
}

async fn until(time: Option<tokio::time::Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

async fn begun(flap: Option<&mut watch::Receiver<bool>>) {
    let flaps = match flap {
        Some(flap) => flap.wait_for(|flaps| *flaps).await.is_ok(),
        None => false,
    };
    if !flaps {
        std::future::pending::<()>().await;
    }
}

async fn told(cut: Option<&Arc<Notify>>) {
    match cut {
        Some(cut) => cut.notified().await,
        None => std::future::pending().await,
    }
}

/// Does at once what a dispatch asks for.
async fn answer(fleet: &Fleet, id: &str, wire: &mut Wire, publish: &Publish) -> anyhow::Result<()> {
    let begun = Instant::now();
    let mut out = vec![Wire::acknowledge(publish)];
    if let Ok(dispatch) = serde_json::from_slice::<Dispatch>(&publish.payload)
        && dispatch.action == Action::Create
    {
        let handle = dispatch.handle();
        for status in reports(&handle, id) {
            out.push(wire.publish(&fleet.topics.status(id, &handle.task), encode(&status)));
        }
        wire.send(out).await?;
        let number = dispatch.task.iter().flat_map(|task| &task.containers).find_map(|container| {
            let set = container.env.iter().find(|(variable, _)| variable == NUMBER);
            set.and_then(|(_, value)| value.parse::<usize>().ok())
        });
        // A dispatch that comes again was counted before.
        if let Some(number) = number
            && let Some(asked) = fleet.asked.lock().await.remove(&number)
        {
            let micros = begun.saturating_duration_since(asked).as_micros();
            fleet.started.lock().await.push(u32::try_from(micros).unwrap_or(u32::MAX));
        }
        return Ok(());
    }
    wire.send(out).await
}

fn reports(handle: &Handle, id: &str) -> [Status; 3] {
    let now = Millis(jiff::Timestamp::now().as_millisecond());
    let ending = Ending::of_leader(0, Cause::Itself, now);
    let status = |sequence, seen: &Observation| Status::of(handle, id, sequence, Some(seen), now);
    [
        status(1, &Observation::Created),
        status(2, &Observation::Started),
        status(3, &Observation::Ended(ending)),
    ]
}

fn device() -> DeviceInfo {
    DeviceInfo {
        hostname: "simulated".to_owned(),
        platform: "linux".to_owned(),
        cpus: 4,
        memory: 4 << 30,
        ..DeviceInfo::default()
    }
}

fn encode(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).unwrap_or_default()
}

/// A number between 0 and 1 that looks like chance.
#[allow(clippy::cast_precision_loss, reason = "below 1000")]
fn fraction(number: usize) -> f64 {
    (number.wrapping_mul(7919) % 1000) as f64 / 1000.0
}
