//! What attempts write, sent on: one loop for all of them, which begins with the first attempt and rests when there is none.
//!
//! A piece counts as sent when the broker has confirmed it; one that was not confirmed is sent again, and the server skips what
//! it has.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use muster_fleet_mqtt::messages::{LOG_PIECE, LogPiece, VERSION};
use muster_fleet_mqtt::{Connection, Topics};
use muster_ports::logs::Logs;
use muster_runtime_process::LiveLogs;
use muster_types::attempt::Handle;
use tokio::sync::mpsc;

use crate::sent_places::{Places, SentPlaces};

/// Between two looks at what attempts wrote.
const TICK: Duration = Duration::from_millis(200);
/// Pieces in a row after which others have their turn.
const TURN: usize = 16;

/// What the loop is told.
#[derive(Debug)]
pub enum Upload {
    /// The logs of an attempt are sent from these places on, by container.
    Follow(Handle, Places),
    /// An attempt ended: what is left is sent, then that is said, with the number that came with it.
    Finish(Handle, u32),
}

struct Followed {
    /// Up to where each container's log was sent.
    sent: Places,
    /// The number that is said when all of it was sent, once the attempt ended.
    ended: Option<u32>,
}

/// Sends logs until the agent ends. Says of each attempt that ended when all of its log was sent.
pub async fn upload(
    robot: String,
    topics: Topics,
    connection: Connection,
    logs: LiveLogs,
    places: SentPlaces,
    mut told: mpsc::UnboundedReceiver<Upload>,
    done: mpsc::UnboundedSender<(Handle, u32)>,
) {
    let mut followed: BTreeMap<Handle, Followed> = BTreeMap::new();
    loop {
        let wait = if followed.is_empty() { Duration::MAX } else { TICK };
        tokio::select! {
            upload = told.recv() => match upload {
                Some(Upload::Follow(handle, sent)) => {
                    let ended = followed.get(&handle).and_then(|attempt| attempt.ended);
                    followed.insert(handle, Followed { sent, ended });
                }
                Some(Upload::Finish(handle, number)) => match followed.get_mut(&handle) {
                    Some(attempt) => attempt.ended = Some(number),
                    None => drop(done.send((handle, number))),
                },
                None => return,
            },
            () = rest(wait) => {}
        }
        let handles: Vec<Handle> = followed.keys().cloned().collect();
        for handle in handles {
            let Some(attempt) = followed.get_mut(&handle) else { continue };
            let topic = topics.log(&robot, &handle.task);
            let before = attempt.sent.clone();
            let is_all = send_some(&handle, attempt, &topic, &connection, &logs).await;
            if attempt.sent != before {
                places.put(&handle, &attempt.sent);
            }
            if let Some(number) = attempt.ended.filter(|_| is_all) {
                followed.remove(&handle);
                places.forget(&handle);
                drop(done.send((handle, number)));
            }
        }
    }
}

async fn rest(time: Duration) {
    if time == Duration::MAX {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(time).await;
}

/// Sends what an attempt wrote since. True if that was all.
async fn send_some(
    handle: &Handle,
    attempt: &mut Followed,
    topic: &str,
    connection: &Connection,
    logs: &LiveLogs,
) -> bool {
    let mut all = true;
    for (container, sent) in &mut attempt.sent {
        let mut caught_up = false;
        for _ in 0..TURN {
            // A log that is not there yet has nothing to send.
            let part = logs.read(handle, container, *sent, LOG_PIECE).unwrap_or_default();
            if part.bytes.is_empty() {
                caught_up = true;
                break;
            }
            let end = part.offset + part.bytes.len() as u64;
            let piece = LogPiece {
                version: VERSION,
                attempt: handle.attempt,
                container: container.clone(),
                offset: part.offset,
                data: BASE64_STANDARD.encode(&part.bytes),
            };
            let payload = serde_json::to_vec(&piece).unwrap_or_default();
            if !connection.publish_confirmed(topic, payload).await {
                return false;
            }
            *sent = end;
        }
        all &= caught_up;
    }
    all
}
