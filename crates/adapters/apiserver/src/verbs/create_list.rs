//! `POST` of a list: many new tasks, stored together or not at all.
//!
//! Kubernetes takes one object at a time. For thousands of tasks that is most of what they cost, so a `TaskList` is taken where a
//! task is, and answered with the list of what was stored.

use std::borrow::Cow;

use bytes::Bytes;
use hyper::{HeaderMap, StatusCode};
use memchr::memmem;
use muster_ports::store::{Batch, CommitError, Key, Precondition, Stored, Write};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::create;
use crate::call::Call;
use crate::encode::Encoded;
use crate::kind::{AnyObject, Input};
use crate::negotiate::{Form, ObjectBody};
use crate::refusal::Refusal;
use crate::render::{Renderer, to_yaml};
use crate::respond::{self, Reply};

/// What lists are taken of.
const TASKS: &str = "tasks.muster.dev";
const LIST: &str = "TaskList";
/// Most tasks that are stored together.
const MOST_ITEMS: usize = 1000;

#[derive(Deserialize)]
struct Listed<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

/// One item, as it came.
pub enum Item<'a> {
    /// Text.
    Json(&'a [u8]),
    /// Read already.
    Value(Value),
}

/// The items, if a body is a list that is taken here.
pub fn items<'a>(call: &Call, body: &ObjectBody<'a>) -> Result<Option<Vec<Item<'a>>>, Refusal> {
    if call.info().resource.as_str() != TASKS {
        return Ok(None);
    }
    let items: Vec<Item<'a>> = match body {
        // Seen at a glance for a single task, which this must not slow down.
        ObjectBody::Json(json) if memmem::find(json, LIST.as_bytes()).is_none() => return Ok(None),
        ObjectBody::Json(json) => match serde_json::from_slice::<Listed<'a>>(json) {
            Ok(listed) if listed.kind == LIST => {
                listed.items.into_iter().map(|item| Item::Json(item.get().as_bytes())).collect()
            }
            Ok(_) | Err(_) => return Ok(None),
        },
        ObjectBody::Value(value) if value["kind"] == LIST => {
            let items = value["items"].as_array().cloned().unwrap_or_default();
            items.into_iter().map(Item::Value).collect()
        }
        ObjectBody::Value(_) => return Ok(None),
    };
    if items.len() > MOST_ITEMS {
        let message = format!("the list has {} items; at most {MOST_ITEMS} are taken at once", items.len());
        return Err(Refusal::too_large(message));
    }
    Ok(Some(items))
}

/// Creates all of them.
pub async fn create_list(
    call: &mut Call,
    headers: &HeaderMap,
    items: Vec<Item<'_>>,
) -> Result<Reply, Refusal> {
    let (mut checks, mut writes, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    for (at, item) in items.into_iter().enumerate() {
        let named = |refusal: Refusal| refusal.within(&format!("items[{at}]"));
        let decoded = match &item {
            Item::Json(json) => call.decode(Input::Json(json)),
            Item::Value(value) => call.decode(Input::Value(value)),
        };
        let mut object = decoded.map_err(named)?.object;
        create::begin(call, headers, &mut *object).map_err(named)?;
        let key = complete(call, &mut *object).map_err(named)?;
        let encoded = Encoded::new(&mut *object).map_err(named)?;
        if call.options.dry_run {
            if call.api.store.get(&key).is_some() {
                return Err(Refusal::already_exists(call.info(), name_of(&key)));
            }
            shown.push(encoded.at(None));
        } else {
            checks.extend(call.kind.needs_at_start(&*object, &call.api.store));
            writes.push(Write::Put { key, expect: Precondition::Absent, draft: encoded.into_draft() });
        }
    }
    if writes.is_empty() {
        return show(call, shown.iter().map(Vec::as_slice), "");
    }
    match call.api.store.commit(Batch { checks, writes }).await {
        Ok(committed) => {
            let revision = committed.objects.last().map(|last| last.revision.to_string()).unwrap_or_default();
            show(call, committed.objects.iter().map(Stored::json), &revision)
        }
        Err(CommitError::Conflict { key, expected: Precondition::Exists, .. }) => {
            let why = format!("{key}, which it needs, was deleted meanwhile");
            Err(Refusal::conflict(call.info(), "", why))
        }
        Err(CommitError::Conflict { key, .. }) => Err(Refusal::already_exists(call.info(), name_of(&key))),
        Err(CommitError::WrittenTwice(key)) => {
            Err(Refusal::bad_request(format!("items: \"{}\" is there twice", name_of(&key))))
        }
        Err(error) => Err(Refusal::of_commit(&error, call.info(), "")),
    }
}

/// Completes and checks one.
fn complete(call: &Call, object: &mut dyn AnyObject) -> Result<Key, Refusal> {
    if create::complete(call, object)? {
        create::generate_name(object)?;
    }
    create::check(call, object)?;
    Ok(Key::new(&call.info().resource, call.namespace(), &object.metadata().name))
}

fn name_of(key: &Key) -> &str {
    key.path.rsplit('/').next().unwrap_or_default()
}

/// Answers with the list of them.
fn show<'a>(call: &Call, items: impl Iterator<Item = &'a [u8]>, revision: &str) -> Result<Reply, Refusal> {
    let renderer = call.renderer();
    let mut out = Vec::new();
    renderer.list_head(&mut out);
    for (at, json) in items.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        renderer.item(json, &mut out);
    }
    Renderer::list_tail(&json!({ "resourceVersion": revision }), &mut out);
    let whole = if call.form == Form::Yaml { to_yaml(&out)? } else { out };
    Ok(respond::with_type(
        StatusCode::CREATED,
        renderer.content_type(),
        http_body_util::BodyExt::boxed_unsync(http_body_util::Full::new(Bytes::from(whole))),
    ))
}
