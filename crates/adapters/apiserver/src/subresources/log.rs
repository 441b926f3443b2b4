//! `log`: what the containers of a task wrote, while it runs and after.

use futures_util::stream;
use hyper::StatusCode;
use muster_ports::clock::Millis;
use muster_ports::logs::LogError;
use muster_types::{Task, Timestamp};

use super::containers::containers_of;
use super::log_follower::LogFollower;
use super::log_place::LogStart;
use super::{PartCall, Subresource};
use crate::options::refuse;
use crate::refusal::Refusal;
use crate::respond::{self, Reply};

/// Its line in the table.
pub const SUBRESOURCE: Subresource =
    Subresource { name: "log", kind: "TaskLog", verbs: &["get"], has_files: false };

const TEXT: &str = "text/plain; charset=utf-8";

/// Sends a log.
pub async fn answer(call: &PartCall) -> Result<Reply, Refusal> {
    let (_, task) = call.read()?;
    let container = call.query.text("container")?.map(str::to_owned);
    check_container(call, &task, container.as_deref())?;
    let mut follower = LogFollower::new(call, &task.metadata.uid)?;
    follower.container = container;
    follower.only = read_attempt(call, &task)?;
    follower.start = read_start(call)?;
    if let Some(most) = call.query.number::<u64>("limitBytes")? {
        follower.left = if most == 0 { return Err(refuse("limitBytes", "must be at least 1")) } else { most };
    }
    if call.query.flag("follow")? {
        follower.follow(call)?;
        return Ok(respond::stream(TEXT, stream::unfold(follower, next_chunk)));
    }
    send(follower).await
}

/// Sends the whole log of a container's latest attempt.
pub async fn whole(call: &PartCall, task: &Task, container: &str) -> Result<Reply, Refusal> {
    let mut follower = LogFollower::new(call, &task.metadata.uid)?;
    follower.container = Some(container.to_owned());
    send(follower).await
}

/// Sends what there is of a log. The first part is read before anything is answered, so that a log that cannot be read
/// is refused.
async fn send(mut follower: LogFollower) -> Result<Reply, Refusal> {
    let Some(first) = follower.next().await.map_err(|error| of_log(&error))? else {
        return Ok(respond::text(StatusCode::OK, ""));
    };
    let rest = stream::unfold(follower, next_chunk);
    let first = stream::iter([first]);
    Ok(respond::stream(TEXT, futures_util::StreamExt::chain(first, rest)))
}

async fn next_chunk(mut follower: LogFollower) -> Option<(bytes::Bytes, LogFollower)> {
    match follower.next().await {
        Ok(chunk) => chunk.map(|chunk| (chunk, follower)),
        Err(error) => {
            tracing::warn!(%error, "a log that is being sent cannot be read any more");
            None
        }
    }
}

/// 404 or 503, for a log that cannot be read.
fn of_log(error: &LogError) -> Refusal {
    match error {
        LogError::NotFound => Refusal::no_such_thing(error.to_string()),
        LogError::Io(_) | LogError::Blob(_) => Refusal::unavailable(error.to_string()),
    }
}

fn check_container(call: &PartCall, task: &Task, asked: Option<&str>) -> Result<(), Refusal> {
    let known = containers_of(&call.api.store, task, &call.api.settings.log_suffix);
    match asked {
        Some(asked) if !known.is_empty() && !known.iter().any(|name| name == asked) => Err(refuse(
            "container",
            &format!("task \"{}\" has no container \"{asked}\"; it has {}", call.name, known.join(", ")),
        )),
        _ => Ok(()),
    }
}

fn read_attempt(call: &PartCall, task: &Task) -> Result<Option<u32>, Refusal> {
    let latest = task.status.attempt;
    let asked = call.query.number::<u32>("attempt")?;
    match asked {
        Some(0) => Err(refuse("attempt", "attempts are counted from 1")),
        Some(asked) if asked > latest => {
            Err(refuse("attempt", &format!("attempt {asked} has not begun; the latest is {latest}")))
        }
        asked => Ok(asked),
    }
}

fn read_start(call: &PartCall) -> Result<LogStart, Refusal> {
    let tail = call.query.number("tailLines")?;
    let seconds = call.query.number::<u32>("sinceSeconds")?;
    let time = call
        .query
        .text("sinceTime")?
        .map(|text| text.parse::<Timestamp>().map_err(|error| refuse("sinceTime", &error.to_string())));
    let since = match (seconds, time.transpose()?) {
        (Some(_), Some(_)) => {
            return Err(Refusal::bad_request("sinceSeconds and sinceTime cannot both be given"));
        }
        (Some(seconds), None) => Some(Millis(call.api.clock.wall().0 - i64::from(seconds) * 1000)),
        (None, Some(time)) => Some(Millis(time.as_second().saturating_mul(1000))),
        (None, None) => None,
    };
    Ok(LogStart { tail, since })
}
