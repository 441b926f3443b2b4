//! Following the changes of a collection over lost connections and ended watches.
//!
//! A watch is resumed where it was, so every change is told once. If the server has forgotten that place,
//! [`News::Expired`] says so and the caller lists again. If it does not answer, [`News::Lost`] says so once,
//! [`News::Back`] says when it does again, and after [`MAX_FAILURES`] tries in a row the error is returned.

use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::{Client, Form, Selectors};
use crate::error::ClientError;
use crate::resource::{Resource, Scope};

/// Tries in a row before giving up.
pub const MAX_FAILURES: u32 = 10;
/// How long one watch lasts.
const LASTS: Duration = Duration::from_mins(5);
/// Silence after which a connection is taken to be dead.
const SILENT: Duration = Duration::from_secs(330);
/// A watch that ends sooner than this without any change counts as a failed try.
const SHORT: Duration = Duration::from_secs(1);
/// Longest pause between tries.
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// Longest line of a watch.
const MAX_LINE: usize = 64 * 1024 * 1024;

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is there, new or changed.
    Present,
    /// It is gone, or no longer selected.
    Deleted,
}

/// How much of each object is read. The server sends all of it; reading all is what costs a follower of thousands most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// All that is sent.
    Whole,
    /// Name, revision, whether it is suspended, and state.
    Outline,
}

/// What a follower is told.
#[derive(Debug)]
pub enum News {
    /// An object, in the form that was asked for.
    Changed(Change, Value),
    /// The connection is lost and will be tried again.
    Lost(ClientError),
    /// The connection that was lost is there again.
    Back,
    /// The place in the history is forgotten: list again, then [`Follow::resume_at`].
    Expired,
}

/// A place in the changes of a collection.
pub struct Follow<'a> {
    client: &'a Client,
    resource: &'a Resource,
    scope: Scope<'a>,
    selectors: Selectors,
    form: Form,
    depth: Depth,
    revision: String,
    open: Option<Lines>,
    failures: u32,
    /// It was told that the connection is lost.
    lost: bool,
}

/// A watch that is open.
struct Lines {
    body: Body,
    buffer: BytesMut,
    /// Bytes of the buffer in which there is no end of a line.
    searched: usize,
    since: Instant,
    spoke: bool,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    word: String,
    object: Value,
}

/// An event of which only the outline of the object is read.
#[derive(Deserialize)]
struct Outlined {
    #[serde(rename = "type")]
    word: String,
    object: Outline,
}

#[derive(Deserialize)]
struct Outline {
    #[serde(default)]
    metadata: OutlineMetadata,
    #[serde(default)]
    spec: OutlineSpec,
    #[serde(default)]
    status: OutlineStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OutlineMetadata {
    name: String,
    resource_version: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OutlineSpec {
    suspend: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OutlineStatus {
    state: Option<String>,
}

impl Event {
    fn read(line: &[u8], depth: Depth) -> serde_json::Result<Self> {
        if depth == Depth::Outline
            && let Ok(Outlined { word, object }) = serde_json::from_slice::<Outlined>(line)
            && word != "ERROR"
        {
            let Outline { metadata, spec, status } = object;
            let object = json!({
                "metadata": {"name": metadata.name, "resourceVersion": metadata.resource_version},
                "spec": {"suspend": spec.suspend},
                "status": {"state": status.state},
            });
            return Ok(Self { word, object });
        }
        serde_json::from_slice(line)
    }
}

impl<'a> Follow<'a> {
    /// Follows the changes after `revision`.
    pub fn new(
        client: &'a Client,
        resource: &'a Resource,
        scope: Scope<'a>,
        selectors: Selectors,
        form: Form,
        revision: String,
    ) -> Self {
        let depth = Depth::Whole;
        Self {
            client,
            resource,
            scope,
            selectors,
            form,
            depth,
            revision,
            open: None,
            failures: 0,
            lost: false,
        }
    }

    /// Reads so much of each object.
    #[must_use]
    pub fn reading(mut self, depth: Depth) -> Self {
        self.depth = depth;
        self
    }

    /// Goes on after another revision.
    pub fn resume_at(&mut self, revision: String) {
        self.revision = revision;
        self.open = None;
    }

    /// Waits for the next news. An error is final.
    pub async fn next(&mut self) -> Result<News, ClientError> {
        loop {
            let Some(lines) = &mut self.open else {
                match self.connect().await? {
                    None => continue,
                    Some(news) => return Ok(news),
                }
            };
            let Some(event) = lines.next(self.depth).await else {
                let failed = !lines.spoke && lines.since.elapsed() < SHORT;
                self.open = None;
                if failed {
                    self.pause().await;
                }
                continue;
            };
            if event.word == "ERROR" {
                self.open = None;
                let error = self.client.transport().peer().refused_in_stream(&event.object);
                if let Some(news) = self.after_failure(error).await? {
                    return Ok(news);
                }
                continue;
            }
            lines.spoke = true;
            self.failures = 0;
            if let Some(news) = self.take(event) {
                return Ok(news);
            }
        }
    }

    /// Opens a watch. `None` is success of which there is nothing to tell.
    async fn connect(&mut self) -> Result<Option<News>, ClientError> {
        let opened = self
            .client
            .open_watch(self.resource, self.scope, &self.selectors, self.form, &self.revision, LASTS)
            .await;
        match opened {
            Ok(response) => {
                let body = response.into_body();
                let buffer = BytesMut::new();
                self.open = Some(Lines { body, buffer, searched: 0, since: Instant::now(), spoke: false });
                Ok(std::mem::take(&mut self.lost).then_some(News::Back))
            }
            Err(error) => self.after_failure(error).await,
        }
    }

    /// What a failed or broken watch means: list again, try again (told the first time), or give up.
    async fn after_failure(&mut self, error: ClientError) -> Result<Option<News>, ClientError> {
        if error.is_expired() {
            return Ok(Some(News::Expired));
        }
        if !error.is_transient() || self.failures >= MAX_FAILURES {
            return Err(error);
        }
        let first = !std::mem::replace(&mut self.lost, true);
        self.pause().await;
        Ok(first.then_some(News::Lost(error)))
    }

    async fn pause(&mut self) {
        let pause = Duration::from_millis(200).saturating_mul(1 << self.failures.min(8));
        self.failures = self.failures.saturating_add(1);
        tokio::time::sleep(pause.min(MAX_PAUSE)).await;
    }

    fn take(&mut self, event: Event) -> Option<News> {
        if let Some(revision) = revision_of(&event.object) {
            revision.clone_into(&mut self.revision);
        }
        match event.word.as_str() {
            "BOOKMARK" => None,
            "DELETED" => Some(News::Changed(Change::Deleted, event.object)),
            _ => Some(News::Changed(Change::Present, event.object)),
        }
    }
}

impl Lines {
    /// The next event; `None` if the watch ended, for whatever reason.
    async fn next(&mut self, depth: Depth) -> Option<Event> {
        loop {
            let found = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
            if let Some(found) = found {
                let line = self.buffer.split_to(self.searched + found);
                self.buffer.advance(1);
                self.searched = 0;
                match Event::read(&line, depth) {
                    Ok(event) => return Some(event),
                    Err(_) if line.iter().all(u8::is_ascii_whitespace) => continue,
                    // The stream is out of step; a new one is not.
                    Err(_) => return None,
                }
            }
            self.searched = self.buffer.len();
            if self.searched > MAX_LINE {
                return None;
            }
            let frame = tokio::time::timeout(SILENT, self.body.frame()).await.ok()??.ok()?;
            if let Ok(data) = frame.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }
}

/// The revision of an object, a table of one row, or a bookmark.
pub fn revision_of(object: &Value) -> Option<&str> {
    let places = ["/metadata/resourceVersion", "/rows/0/object/metadata/resourceVersion"];
    places.iter().find_map(|place| object.pointer(place)?.as_str().filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_revision_is_found_in_objects_and_in_rows() {
        assert_eq!(revision_of(&json!({"metadata": {"resourceVersion": "7"}})), Some("7"));
        let table = json!({
            "metadata": {"resourceVersion": ""},
            "rows": [{"object": {"metadata": {"resourceVersion": "8"}}}],
        });
        assert_eq!(revision_of(&table), Some("8"));
        assert_eq!(revision_of(&json!({})), None);
    }

    #[tokio::test]
    async fn lines_are_put_together_from_chunks_and_blank_ones_are_passed_over() {
        let text = b"\n{\"type\":\"ADDED\",\"object\":{}}\n{\"type\":\"DEL".to_vec();
        let mut lines = Lines {
            body: Body::from(text),
            buffer: BytesMut::new(),
            searched: 0,
            since: Instant::now(),
            spoke: false,
        };
        assert_eq!(lines.next(Depth::Whole).await.map(|event| event.word).as_deref(), Some("ADDED"));
        assert!(lines.next(Depth::Whole).await.is_none(), "a line without an end is not an event");
    }

    #[test]
    fn an_outline_says_of_a_task_what_the_whole_says_and_an_error_is_read_whole() {
        let task = json!({
            "metadata": {"name": "a", "resourceVersion": "7", "labels": {"name": "b"}},
            "spec": {"suspend": true, "container": {"name": "c"}},
            "status": {"state": "Running", "message": "d", "attempts": [{"state": "e"}]},
        });
        let line = |word: &str, object: &Value| json!({"type": word, "object": object}).to_string();
        let outline = Event::read(line("MODIFIED", &task).as_bytes(), Depth::Outline).unwrap().object;
        for place in ["/metadata/name", "/metadata/resourceVersion", "/spec/suspend", "/status/state"] {
            assert_eq!(outline.pointer(place), task.pointer(place), "{place}");
        }
        assert_eq!(outline.pointer("/status/message"), None);
        let bookmark = json!({"metadata": {"resourceVersion": "8"}});
        let read = Event::read(line("BOOKMARK", &bookmark).as_bytes(), Depth::Outline).unwrap();
        assert_eq!(revision_of(&read.object), Some("8"));
        let error = json!({"kind": "Status", "code": 410, "message": "too old"});
        let read = Event::read(line("ERROR", &error).as_bytes(), Depth::Outline).unwrap();
        assert_eq!((read.word.as_str(), read.object), ("ERROR", error));
        let deleted = json!({"kind": "Status", "status": "Failure", "code": 410});
        assert_eq!(Event::read(line("ERROR", &deleted).as_bytes(), Depth::Outline).unwrap().object, deleted);
    }
}
