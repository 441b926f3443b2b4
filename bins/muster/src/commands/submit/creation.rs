//! Making many tasks at once, over connections that are kept.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use muster_client::{Client, Resource, Scope};
use serde_json::Value;

use super::array::{Member, Template};
use crate::output::progress::Progress;

/// Requests under way at once.
const AT_ONCE: usize = 64;
/// Tries of one task.
const TRIES: u32 = 6;

/// An array that could not be made whole.
pub struct Unfinished {
    /// Why.
    pub error: anyhow::Error,
    /// Tasks that were made.
    pub made: usize,
}

/// What else is to be done.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// Keep what the server answers.
    pub keep: bool,
    /// Show how far it is.
    pub show: bool,
}

/// Makes every task of an array.
pub async fn create_all(
    client: &Client,
    namespace: &str,
    template: &Template,
    members: &[Member<'_>],
    manner: Manner,
) -> Result<Vec<Value>, Unfinished> {
    let path = Resource::tasks().collection(Scope::Namespace(namespace));
    let mut progress = Progress::new("submitted", if manner.show { members.len() } else { 0 });
    let mut answers = Vec::new();
    let mut made = 0;
    let mut requests = stream::iter(members)
        .map(|member| create_one(client, &path, template, member))
        .buffer_unordered(AT_ONCE);
    while let Some(answer) = requests.next().await {
        match answer {
            Ok(answer) if manner.keep => answers.push(serde_json::from_slice(&answer).unwrap_or_default()),
            Ok(_) => {}
            Err(error) => {
                progress.clear();
                return Err(Unfinished { error, made });
            }
        }
        made += 1;
        progress.step(made);
    }
    progress.clear();
    Ok(answers)
}

/// Makes one task. Its name is its own, so a request whose answer was lost can be sent again.
async fn create_one(
    client: &Client,
    path: &str,
    template: &Template,
    member: &Member<'_>,
) -> anyhow::Result<Vec<u8>> {
    let body = template.encode(member)?;
    let mut tries = 0;
    loop {
        let error = match client.create_encoded_at(path, body.clone()).await {
            Ok(answer) => return Ok(answer.to_vec()),
            Err(error) => error,
        };
        if tries > 0 && error.is_conflict() {
            return Ok(Vec::new());
        }
        tries += 1;
        if !error.is_transient() || tries >= TRIES {
            return Err(error.into());
        }
        tokio::time::sleep(Duration::from_millis(50 << tries)).await;
    }
}
