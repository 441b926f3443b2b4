//! `GET` of a collection: all of it or pages of it, at one revision, made while it is sent.

use bytes::Bytes;
use futures_util::stream;
use hyper::StatusCode;
use muster_ports::store::{Revision, Snapshot, Stored};
use serde_json::{Value, json};

use crate::call::Call;
use crate::continuation::{Position, Token, revision_of};
use crate::filter::Filter;
use crate::negotiate::Form;
use crate::options::VersionMatch;
use crate::refusal::Refusal;
use crate::render::{Renderer, to_yaml};
use crate::respond::{self, Reply};
use crate::shows::Shows;

/// Bytes that are made before the client has to take some.
const CHUNK: usize = 128 * 1024;

/// A list that is being made.
struct Listing {
    renderer: Renderer,
    shows: Box<dyn Shows>,
    snapshots: Vec<Snapshot>,
    /// The last object that was looked at.
    position: Position,
    /// How many more objects the page takes.
    left: usize,
    paged: bool,
    stage: Stage,
}

#[derive(PartialEq, Eq)]
enum Stage {
    Head,
    Items { any: bool },
    Done,
}

/// Lists the collection in the path.
pub fn list(call: &Call) -> Result<Reply, Refusal> {
    list_as(call, Box::new(Filter::new(call.kind.clone(), call.namespace.clone(), &call.options)?))
}

/// Lists what is to be shown of the collection in the path.
pub fn list_as(call: &Call, shows: Box<dyn Shows>) -> Result<Reply, Refusal> {
    let (snapshots, position) = choose_snapshots(call, &*shows)?;
    let renderer = call.renderer();
    let content_type = renderer.content_type();
    if call.options.limit.is_some() {
        let now = call.api.clock.now();
        call.api.continuations.keep(&call.info().resource, &snapshots, now);
    }
    let mut listing = Listing {
        renderer,
        shows,
        snapshots,
        position,
        left: call.options.limit.unwrap_or(usize::MAX),
        paged: call.options.limit.is_some(),
        stage: Stage::Head,
    };
    if call.form == Form::Yaml {
        let mut whole = Vec::new();
        while let Some(chunk) = listing.next_chunk() {
            whole.extend_from_slice(&chunk);
        }
        let body =
            http_body_util::BodyExt::boxed_unsync(http_body_util::Full::new(Bytes::from(to_yaml(&whole)?)));
        return Ok(respond::with_type(StatusCode::OK, content_type, body));
    }
    let first = listing.next_chunk().unwrap_or_default();
    if listing.stage == Stage::Done {
        return Ok(respond::json(StatusCode::OK, first));
    }
    let chunks = stream::unfold((Some(first), listing), |(first, mut listing)| async move {
        let chunk = first.or_else(|| listing.next_chunk())?;
        Some((chunk, (None, listing)))
    });
    Ok(respond::stream(content_type, chunks))
}

/// The state the list is made of, and where it goes on.
fn choose_snapshots(call: &Call, shows: &dyn Shows) -> Result<(Vec<Snapshot>, Position), Refusal> {
    if let Some(token) = &call.options.continue_from {
        if call.options.resource_version.is_some_and(|version| version != Revision::ZERO) {
            return Err(Refusal::bad_request("resourceVersion must not be set when continue is set"));
        }
        let token = Token::decode(token)?;
        let snapshots = match token.at() {
            None => Some(call.api.store.snapshots(&shows.resources())),
            Some(revision) => find_snapshots(call, shows, revision),
        };
        return match snapshots {
            Some(snapshots) => Ok((snapshots, token.position)),
            None => Err(Refusal::expired_list(&Token::of_now(token.position).encode())),
        };
    }
    let snapshots = call.api.store.snapshots(&shows.resources());
    let revision = revision_of(&snapshots);
    let wanted = call.options.resource_version.unwrap_or_default();
    if wanted > revision {
        let message = format!("Too large resource version: {wanted}, current: {revision}");
        return Err(Refusal::too_large_revision(message));
    }
    match call.options.version_match {
        Some(_) if call.options.resource_version.is_none() => {
            Err(Refusal::bad_request("resourceVersionMatch is forbidden unless resourceVersion is provided"))
        }
        Some(VersionMatch::Exact) if wanted == Revision::ZERO => {
            Err(Refusal::bad_request("resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\""))
        }
        Some(VersionMatch::Exact) if wanted != revision => {
            let found = find_snapshots(call, shows, wanted);
            let found =
                found.ok_or_else(|| Refusal::expired(format!("revision {wanted} is no longer kept")))?;
            Ok((found, Position::default()))
        }
        Some(VersionMatch::Exact | VersionMatch::NotOlderThan) | None => Ok((snapshots, Position::default())),
    }
}

/// What was there at a revision: kept since the first page, or made again from the changes since.
fn find_snapshots(call: &Call, shows: &dyn Shows, revision: Revision) -> Option<Vec<Snapshot>> {
    let kept = call.api.continuations.find(&call.info().resource, revision, call.api.clock.now());
    kept.or_else(|| call.api.store.snapshots_at(&shows.resources(), revision).ok())
}

impl Listing {
    fn next_chunk(&mut self) -> Option<Bytes> {
        let mut out = Vec::with_capacity(4096);
        let mut any = match self.stage {
            Stage::Head => {
                self.renderer.list_head(&mut out);
                false
            }
            Stage::Items { any } => any,
            Stage::Done => return None,
        };
        let mut last = None;
        let mut full = false;
        let (renderer, left) = (&self.renderer, &mut self.left);
        for (part, stored) in look_at(&self.snapshots, &*self.shows, &self.position) {
            if *left == 0 || out.len() >= CHUNK {
                full = true;
                break;
            }
            last = Some((part, stored.path.clone()));
            self.shows.show(stored, &mut |json| {
                if std::mem::replace(&mut any, true) {
                    out.push(b',');
                }
                renderer.item(json, &mut out);
                *left = left.saturating_sub(1);
            });
        }
        if let Some((part, after)) = last {
            self.position = Position { part, after: Some(after.to_string()) };
        }
        if full && self.left > 0 {
            self.stage = Stage::Items { any };
            return Some(out.into());
        }
        Renderer::list_tail(&self.metadata(full), &mut out);
        self.stage = Stage::Done;
        Some(out.into())
    }

    /// The metadata of the list; it ends with a page that is full.
    fn metadata(&self, more: bool) -> Value {
        let revision = revision_of(&self.snapshots);
        if more && self.paged && self.any_left() {
            let token = Token { revision: revision.0, position: self.position.clone() };
            return json!({"resourceVersion": revision.to_string(), "continue": token.encode()});
        }
        json!({"resourceVersion": revision.to_string()})
    }

    fn any_left(&self) -> bool {
        let mut any = false;
        let mut rest = look_at(&self.snapshots, &*self.shows, &self.position);
        rest.any(|(_, stored)| {
            self.shows.show(stored, &mut |_| any = true);
            any
        })
    }
}

/// The stored objects of which something may be shown, behind a position, each with the snapshot it is in.
pub fn look_at<'a>(
    snapshots: &'a [Snapshot],
    shows: &'a dyn Shows,
    position: &'a Position,
) -> impl Iterator<Item = (usize, &'a Stored)> {
    let parts = snapshots.iter().enumerate().skip(position.part);
    parts.flat_map(move |(part, snapshot)| {
        let after = if part == position.part { position.after.as_deref() } else { None };
        let found: Box<dyn Iterator<Item = &'a Stored>> = match shows.only() {
            Some(path) if after.is_some_and(|after| after >= path) => Box::new(std::iter::empty()),
            Some(path) => Box::new(snapshot.get(path).into_iter()),
            None => Box::new(snapshot.range(shows.namespace(), after)),
        };
        found.map(move |stored| (part, stored))
    })
}
