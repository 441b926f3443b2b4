//! `GET` with `watch`: what is there, if asked for, then every change, once and in order.
//!
//! A watch holds a position in the store's changes and nothing else. A client that does not read is not waited for:
//! its connection simply makes no more chunks, and if it comes back after its position was forgotten it is told to
//! list again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use muster_ports::clock::{Clock, Millis};
use muster_ports::store::{Change, ResourceName, Revision, Snapshot, Watch, WatchError, WatchScope};
use muster_ports::telemetry::Telemetry;
use muster_ports::telemetry::catalog::WATCH_LAG;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::call::Call;
use crate::continuation::{Position, revision_of};
use crate::filter::Filter;
use crate::options::VersionMatch;
use crate::refusal::Refusal;
use crate::render::Renderer;
use crate::respond::{self, Reply};
use crate::shares::Share;
use crate::shows::Shows;
use crate::shutdown::Shutdown;
use crate::verbs::list::look_at;

/// Changes that are put into one chunk.
const CHANGES: usize = 256;
/// Bytes of present objects in one chunk.
const CHUNK: usize = 128 * 1024;
/// How long a watch lasts unless the client says.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(45);
/// Longest time a client may ask for.
const MAX_TIMEOUT: Duration = Duration::from_hours(24);

/// A watch that is being served.
struct Serving {
    renderer: Renderer,
    shows: Box<dyn Shows>,
    watch: Watch,
    stage: Stage,
    bookmarks: bool,
    bookmark_every: Duration,
    next_bookmark: Instant,
    ends: Instant,
    shutdown: Shutdown,
    /// The columns of a table were sent.
    shown: bool,
    lag: Lag,
    _room: Share,
}

enum Stage {
    /// Objects that were there at the start, in order of kind and path.
    Initial { snapshots: Vec<Snapshot>, position: Position, say_when_done: bool },
    /// Changes since then.
    Changes,
    /// Nothing more comes.
    Ended,
}

/// Serves changes of the collection in the path.
pub fn watch(call: &Call) -> Result<Reply, Refusal> {
    let filter = Filter::new(call.kind.clone(), call.namespace.clone(), &call.options)?;
    watch_as(call, Box::new(filter))
}

/// Serves changes as they are to be shown.
pub fn watch_as(call: &Call, shows: Box<dyn Shows>) -> Result<Reply, Refusal> {
    let room = call.api.watches.take(&call.user.name)?;
    let resources = shows.resources();
    let (from, stage) = choose_start(call, &resources)?;
    let scope = match &*resources {
        [only] => WatchScope::Resource(only.clone()),
        _ => WatchScope::All,
    };
    let watch = call.api.store.watch(scope, from)?;
    let now = Instant::now();
    let timeout = call.options.timeout.filter(|timeout| !timeout.is_zero()).unwrap_or(DEFAULT_TIMEOUT);
    let bookmark_every = call.api.settings.bookmark_every;
    let serving = Serving {
        renderer: call.renderer(),
        shows,
        watch,
        stage,
        bookmarks: call.options.bookmarks,
        bookmark_every,
        next_bookmark: now + bookmark_every,
        ends: now + timeout.min(MAX_TIMEOUT),
        shutdown: call.api.shutdown.clone(),
        shown: false,
        lag: Lag::of(call),
        _room: room,
    };
    let chunks = stream::unfold(serving, |mut serving| async move {
        let chunk = serving.next_chunk().await?;
        Some((chunk, serving))
    });
    Ok(respond::stream("application/json", chunks))
}

/// The revision to watch from, and what to send before.
fn choose_start(call: &Call, resources: &[ResourceName]) -> Result<(Revision, Stage), Refusal> {
    let options = &call.options;
    if options.send_initial_events.is_some() && options.version_match != Some(VersionMatch::NotOlderThan) {
        return Err(Refusal::bad_request("sendInitialEvents requires resourceVersionMatch=NotOlderThan"));
    }
    if options.send_initial_events.is_none() && options.version_match.is_some() {
        return Err(Refusal::bad_request(
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is set",
        ));
    }
    let version = options.resource_version.unwrap_or_default();
    let snapshots = call.api.store.snapshots(resources);
    let revision = revision_of(&snapshots);
    if version > revision {
        let message = format!("Too large resource version: {version}, current: {revision}");
        return Err(Refusal::too_large_revision(message));
    }
    let initial = options.send_initial_events.unwrap_or(version == Revision::ZERO);
    Ok(match (initial, version) {
        (true, _) => {
            let say_when_done = options.send_initial_events == Some(true) && options.bookmarks;
            (revision, Stage::Initial { snapshots, position: Position::default(), say_when_done })
        }
        (false, Revision::ZERO) => (revision, Stage::Changes),
        (false, version) => (version, Stage::Changes),
    })
}

/// Tells how late changes are handed on.
struct Lag {
    clock: Arc<dyn Clock>,
    telemetry: Telemetry,
    /// What was committed before is caught up with, not late.
    since: Millis,
}

impl Lag {
    fn of(call: &Call) -> Self {
        let (clock, telemetry) = (call.api.clock.clone(), call.api.parts.telemetry.clone());
        Self { since: clock.now(), clock, telemetry }
    }

    fn tell(&self, committed: Option<Millis>) {
        let Some(at) = committed.filter(|at| *at >= self.since) else { return };
        let millis = u32::try_from((self.clock.now().0 - at.0).max(0)).unwrap_or(u32::MAX);
        self.telemetry.observe(WATCH_LAG, &[], f64::from(millis) / 1000.0);
    }
}

impl Serving {
    async fn next_chunk(&mut self) -> Option<Bytes> {
        match self.stage {
            Stage::Initial { .. } => Some(self.initial_chunk()),
            Stage::Changes => self.changes_chunk().await,
            Stage::Ended => None,
        }
    }

    fn initial_chunk(&mut self) -> Bytes {
        let mut out = Vec::with_capacity(4096);
        let Stage::Initial { snapshots, position, say_when_done } =
            std::mem::replace(&mut self.stage, Stage::Changes)
        else {
            return Bytes::new();
        };
        let mut last = None;
        let mut full = false;
        let (renderer, shown) = (&self.renderer, &mut self.shown);
        for (part, stored) in look_at(&snapshots, &*self.shows, &position) {
            if out.len() >= CHUNK {
                full = true;
                break;
            }
            last = Some(Position { part, after: Some(stored.path.to_string()) });
            self.shows.show(stored, &mut |json| write_event("ADDED", json, renderer, shown, &mut out));
        }
        if full {
            let position = last.unwrap_or(position);
            self.stage = Stage::Initial { snapshots, position, say_when_done };
        } else if say_when_done {
            self.write_bookmark(revision_of(&snapshots), true, &mut out);
        }
        out.into()
    }

    async fn changes_chunk(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        while out.is_empty() {
            tokio::select! {
                biased;
                () = self.shutdown.requested() => return self.end(out),
                changes = self.watch.next(CHANGES) => match changes {
                    Ok(changes) => {
                        for change in &changes {
                            self.write_change(change, &mut out);
                        }
                        self.lag.tell(changes.first().map(|change| change.at));
                    }
                    Err(WatchError::Closed) => return None,
                    Err(error) => return Some(self.fail(&error.into(), out)),
                },
                () = tokio::time::sleep_until(self.ends) => return self.end(out),
                () = tokio::time::sleep_until(self.next_bookmark), if self.bookmarks => {
                    self.next_bookmark = Instant::now() + self.bookmark_every;
                    self.write_bookmark(self.watch.position(), false, &mut out);
                }
            }
        }
        Some(out.into())
    }

    /// The last words of a watch that ends in order: where it was.
    fn end(&mut self, mut out: Vec<u8>) -> Option<Bytes> {
        self.stage = Stage::Ended;
        if self.bookmarks {
            self.write_bookmark(self.watch.position(), false, &mut out);
        }
        (!out.is_empty()).then(|| out.into())
    }

    fn fail(&mut self, refusal: &Refusal, mut out: Vec<u8>) -> Bytes {
        self.stage = Stage::Ended;
        write_line("ERROR", &refusal.status(), &mut out);
        out.into()
    }

    fn write_change(&mut self, change: &Change, out: &mut Vec<u8>) {
        let (renderer, shown) = (&self.renderer, &mut self.shown);
        self.shows.show_change(change, &mut |word, json| write_event(word, json, renderer, shown, out));
    }

    fn write_bookmark(&self, revision: Revision, initial_events_end: bool, out: &mut Vec<u8>) {
        let mut metadata = json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if initial_events_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        write_line("BOOKMARK", &self.renderer.bookmark(&metadata), out);
    }
}

fn write_event(word: &str, json: &[u8], renderer: &Renderer, shown: &mut bool, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"type":""#);
    out.extend_from_slice(word.as_bytes());
    out.extend_from_slice(br#"","object":"#);
    renderer.event_object(json, !std::mem::replace(shown, true), out);
    out.extend_from_slice(b"}\n");
}

fn write_line(word: &str, object: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{}\n", json!({"type": word, "object": object})).as_bytes());
}
