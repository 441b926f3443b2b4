//! Making many tasks at once, over connections that are kept.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use muster_client::{Client, Resource, Scope};
use serde_json::Value;

use super::array::{Member, Template};
use crate::output::progress::Progress;

/// Requests under way at once.
const AT_ONCE: usize = 4;
/// Tasks in one request, and roughly their bytes: a server takes some megabytes.
const IN_ONE: usize = 128;
const BYTES_IN_ONE: usize = 256 << 10;
/// Tries of one request.
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
    let path = &Resource::tasks().collection(Scope::Namespace(namespace));
    let mut progress = Progress::new("submitted", if manner.show { members.len() } else { 0 });
    let mut answers = Vec::new();
    let mut made = 0;
    let mut requests = stream::iter(parts(template, members))
        .map(|members| async move { (members, create_some(client, path, template, members).await) })
        .buffered(AT_ONCE);
    while let Some((members, answer)) = requests.next().await {
        match answer {
            Ok(answer) if manner.keep => answers.extend(listed(&answer)),
            Ok(_) => {}
            Err(error) => {
                progress.clear();
                return Err(Unfinished { error, made });
            }
        }
        made += members.len();
        progress.step(made);
    }
    progress.clear();
    Ok(answers)
}

/// What is sent in one request each.
fn parts<'a, 'b>(template: &Template, mut members: &'a [Member<'b>]) -> Vec<&'a [Member<'b>]> {
    let mut parts = Vec::new();
    while !members.is_empty() {
        let mut bytes = 0;
        let fits = members.iter().take(IN_ONE).take_while(|member| {
            bytes += template.size(member);
            bytes <= BYTES_IN_ONE
        });
        // One that is too long for any is sent alone.
        let (part, rest) = members.split_at(fits.count().max(1));
        parts.push(part);
        members = rest;
    }
    parts
}

/// The tasks of an answer.
fn listed(answer: &[u8]) -> Vec<Value> {
    let mut list: Value = serde_json::from_slice(answer).unwrap_or_default();
    list["items"].as_array_mut().map(std::mem::take).unwrap_or_default()
}

/// Makes some tasks, or none of them. Their names are their own, so a request whose answer was lost can be sent again.
async fn create_some(
    client: &Client,
    path: &str,
    template: &Template,
    members: &[Member<'_>],
) -> anyhow::Result<Vec<u8>> {
    let body = template.encode_list(members)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::TaskArgs;
    use crate::commands::new_task::NewTask;

    #[test]
    fn requests_have_a_bound_in_tasks_and_in_bytes() {
        let task = NewTask::of(&TaskArgs::default(), &["true".to_owned()]).unwrap();
        let template = Template::new(task, true).unwrap();
        let member = |length: usize| Member { index: 1, line: Some("x".repeat(length).into()) };
        let sizes = |members: &[Member<'_>]| -> Vec<usize> {
            parts(&template, members).iter().map(|part| part.len()).collect()
        };
        assert!(sizes(&[]).is_empty());
        assert_eq!(sizes(&vec![member(1); 300]), [128, 128, 44]);
        assert_eq!(sizes(&vec![member(100 << 10); 5]), [2, 2, 1]);
        assert_eq!(sizes(&[member(1), member(1 << 20), member(1)]), [1, 1, 1]);
    }
}
