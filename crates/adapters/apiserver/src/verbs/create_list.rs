//! `POST` of a list: many new tasks, stored together or not at all.
//!
//! Kubernetes takes one object at a time. For thousands of tasks that is most of what they cost, so a `TaskList` is taken where a
//! task is, and answered with the list of what was stored.

use std::borrow::Cow;
use std::collections::HashSet;

use bytes::Bytes;
use hyper::{HeaderMap, StatusCode};
use memchr::memmem;
use muster_ports::store::{Batch, CommitError, Key, Precondition, Stored, Write};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::create;
use crate::call::Call;
use crate::encode::Encoded;
use crate::kind::{AnyObject, Decoded, Input};
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
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    #[serde(borrow, default)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

/// One item, as it came.
enum Item<'a> {
    /// Text.
    Json(&'a [u8]),
    /// Read already.
    Value(Value),
}

/// What of an item says what it is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Typed {
    api_version: Option<IgnoredAny>,
    kind: Option<IgnoredAny>,
}

/// The items of a list.
pub struct Items<'a> {
    /// What the list says of them.
    api_version: String,
    items: Vec<Item<'a>>,
}

/// The items, if a body is a list that is taken here.
pub fn items<'a>(call: &Call, body: &ObjectBody<'a>) -> Result<Option<Items<'a>>, Refusal> {
    if call.info().resource.as_str() != TASKS {
        return Ok(None);
    }
    let (api_version, items): (_, Vec<Item<'a>>) = match body {
        // Seen at a glance for a single task, which this must not slow down.
        ObjectBody::Json(json) if memmem::find(json, LIST.as_bytes()).is_none() => return Ok(None),
        ObjectBody::Json(json) => match serde_json::from_slice::<Listed<'a>>(json) {
            Ok(listed) if listed.kind == LIST => {
                let items = listed.items.into_iter().map(|item| Item::Json(item.get().as_bytes()));
                (listed.api_version.map(Cow::into_owned), items.collect())
            }
            Ok(_) | Err(_) => return Ok(None),
        },
        ObjectBody::Value(value) if value["kind"] == LIST => {
            let items = value["items"].as_array().cloned().unwrap_or_default();
            (value["apiVersion"].as_str().map(str::to_owned), items.into_iter().map(Item::Value).collect())
        }
        ObjectBody::Value(_) => return Ok(None),
    };
    if items.len() > MOST_ITEMS {
        let message = format!("the list has {} items; at most {MOST_ITEMS} are taken at once", items.len());
        return Err(Refusal::too_large(message));
    }
    let api_version = api_version.unwrap_or_else(|| call.info().api_version());
    Ok(Some(Items { api_version, items }))
}

/// One new task.
struct New {
    object: Box<dyn AnyObject>,
    key: Key,
    /// Its name was drawn, and can be drawn again.
    generated: bool,
}

/// Creates all of them.
pub async fn create_list(call: &mut Call, headers: &HeaderMap, items: Items<'_>) -> Result<Reply, Refusal> {
    let mut all = read_all(call, headers, items)?;
    draw_names(call, &mut all)?;
    if call.options.dry_run || all.is_empty() {
        return show_unstored(call, &mut all);
    }
    for _ in 0..create::NAME_TRIES {
        match call.api.store.commit(batch(call, &mut all)?).await {
            Ok(committed) => {
                let revision =
                    committed.objects.last().map(|last| last.revision.to_string()).unwrap_or_default();
                return show(call, committed.objects.iter().map(Stored::json), &revision);
            }
            // Somebody took a name between its drawing and now.
            Err(CommitError::Conflict { key, expected: Precondition::Absent, .. })
                if all.iter().any(|new| new.generated && new.key == key) =>
            {
                draw_names(call, &mut all)?;
            }
            Err(error) => return Err(refused(call, &error)),
        }
    }
    Err(Refusal::already_exists(call.info(), "items"))
}

fn refused(call: &Call, error: &CommitError) -> Refusal {
    match error {
        CommitError::Conflict { key, expected: Precondition::Exists, .. } => {
            let why = format!("{key}, which it needs, was deleted meanwhile");
            Refusal::conflict(call.info(), "", why)
        }
        CommitError::Conflict { key, .. } => Refusal::already_exists(call.info(), name_of(key)),
        CommitError::WrittenTwice(key) => {
            Refusal::bad_request(format!("items: \"{}\" is there twice", name_of(key)))
        }
        error => Refusal::of_commit(error, call.info(), ""),
    }
}

/// Reads all of them, and gives each what is its own but its name.
fn read_all(call: &mut Call, headers: &HeaderMap, items: Items<'_>) -> Result<Vec<New>, Refusal> {
    let mut all = Vec::with_capacity(items.items.len());
    for (at, item) in items.items.into_iter().enumerate() {
        let named = |refusal: Refusal| refusal.within(&format!("items[{at}]"));
        let mut object = decode(call, &items.api_version, item).map_err(named)?.object;
        create::begin(call, headers, &mut *object).map_err(named)?;
        let generated = create::complete(call, &mut *object).map_err(named)?;
        let key = Key::new(&call.info().resource, call.namespace(), &object.metadata().name);
        all.push(New { object, key, generated });
    }
    Ok(all)
}

/// Reads one item. An item of a list need not say what it is: it is what the list is of.
fn decode(call: &mut Call, api_version: &str, item: Item<'_>) -> Result<Decoded, Refusal> {
    match item {
        Item::Json(json) => {
            // Seen at a glance for an item that says it.
            let says = |field: &str| memmem::find(json, field.as_bytes()).is_some();
            if !(says("\"apiVersion\"") && says("\"kind\"")) {
                return decode_typed(call, api_version, json);
            }
            match call.decode(Input::Json(json)) {
                Err(_) if !says_its_type(json) => decode_typed(call, api_version, json),
                read => read,
            }
        }
        Item::Value(mut value) => {
            add_type(call, api_version, &mut value);
            call.decode(Input::Value(&value))
        }
    }
}

fn decode_typed(call: &mut Call, api_version: &str, json: &[u8]) -> Result<Decoded, Refusal> {
    match serde_json::from_slice::<Value>(json) {
        Ok(mut value) => {
            add_type(call, api_version, &mut value);
            call.decode(Input::Value(&value))
        }
        // The kind says what is wrong with it.
        Err(_) => call.decode(Input::Json(json)),
    }
}

fn says_its_type(json: &[u8]) -> bool {
    let typed = serde_json::from_slice::<Typed>(json);
    typed.is_ok_and(|typed| typed.api_version.is_some() && typed.kind.is_some())
}

fn add_type(call: &Call, api_version: &str, item: &mut Value) {
    let Value::Object(fields) = item else { return };
    fields.entry("apiVersion").or_insert_with(|| api_version.into());
    fields.entry("kind").or_insert_with(|| call.info().kind.as_str().into());
}

/// Draws names for all that have none, or one that is taken.
fn draw_names(call: &Call, all: &mut [New]) -> Result<(), Refusal> {
    let mut taken: HashSet<Key> =
        all.iter().filter(|new| !new.generated).map(|new| new.key.clone()).collect();
    for new in all.iter_mut().filter(|new| new.generated) {
        let is_free = |key: &Key| !taken.contains(key) && call.api.store.get(key).is_none();
        if new.object.metadata().name.is_empty() || !is_free(&new.key) {
            new.key = create::generate_name(call, &mut *new.object, |key| taken.contains(key))?;
        }
        taken.insert(new.key.clone());
    }
    Ok(())
}

/// Checks all of them, as they are to be stored.
fn batch(call: &Call, all: &mut [New]) -> Result<Batch, Refusal> {
    let mut batch = Batch::default();
    for (at, new) in all.iter_mut().enumerate() {
        let named = |refusal: Refusal| refusal.within(&format!("items[{at}]"));
        create::check(call, &mut *new.object).map_err(named)?;
        let draft = Encoded::new(&mut *new.object).map_err(named)?.into_draft();
        batch.checks.extend(call.kind.needs_at_start(&*new.object, &call.api.store));
        batch.writes.push(Write::Put { key: new.key.clone(), expect: Precondition::Absent, draft });
    }
    Ok(batch)
}

/// Checks all of them and answers as if they had been stored.
fn show_unstored(call: &Call, all: &mut [New]) -> Result<Reply, Refusal> {
    let mut shown = Vec::with_capacity(all.len());
    for (at, new) in all.iter_mut().enumerate() {
        let named = |refusal: Refusal| refusal.within(&format!("items[{at}]"));
        create::check(call, &mut *new.object).map_err(named)?;
        if call.api.store.get(&new.key).is_some() {
            return Err(Refusal::already_exists(call.info(), name_of(&new.key)));
        }
        shown.push(Encoded::new(&mut *new.object).map_err(named)?.at(None));
    }
    show(call, shown.iter().map(Vec::as_slice), "")
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
