//! `DELETE` of an object or a collection: at once, or marked and left to whoever must agree.

use hyper::StatusCode;
use muster_ports::store::{Batch, CommitError, Precondition, Stored, Write};
use serde_json::{Value, json};

use crate::call::Call;
use crate::decode::read_value;
use crate::encode::Encoded;
use crate::filter::Filter;
use crate::garbage::{FOREGROUND, ORPHAN};
use crate::kind::{AnyObject, Input};
use crate::negotiate::parse_yaml;
use crate::options::{DeleteOptions, Propagation};
use crate::refusal::Refusal;
use crate::render::Renderer;
use crate::respond::{self, Reply};

/// Times a delete without a resource version is tried again because the object changed meanwhile.
const TRIES: usize = 8;

/// What deleting one object did.
pub enum Deleted {
    /// It is gone; this was its last version.
    Gone(Stored),
    /// It is marked and waits for its finalizers; its JSON.
    Marked(Vec<u8>),
    /// A dry run would have removed it.
    WouldGo,
}

/// Deletes the object in the path.
pub async fn delete_object(call: &mut Call, body: &[u8]) -> Result<Reply, Refusal> {
    let options = read_options(call, body)?;
    let name = call.name().to_owned();
    match delete_one(call, &name, call.namespace(), &options).await? {
        Deleted::Marked(json) => call.show_json(StatusCode::OK, &json),
        Deleted::Gone(last) => {
            Ok(respond::document(StatusCode::OK, &success(call, &name, &uid_of(last.json()))))
        }
        Deleted::WouldGo => Ok(respond::document(StatusCode::OK, &success(call, &name, &Value::Null))),
    }
}

/// Deletes every object that the selectors pass.
pub async fn delete_collection(call: &mut Call, body: &[u8]) -> Result<Reply, Refusal> {
    let options = read_options(call, body)?;
    let filter = Filter::new(call.kind.clone(), call.namespace.clone(), &call.options)?;
    let snapshot = call.api.store.snapshot(&call.info().resource);
    let limit = call.options.limit.unwrap_or(usize::MAX);
    let matching: Vec<_> = snapshot
        .range(filter.namespace.as_deref(), None)
        .filter(|stored| filter.passes(stored))
        .take(limit)
        .cloned()
        .collect();
    let renderer = call.renderer();
    let mut out = Vec::new();
    renderer.list_head(&mut out);
    let mut first = true;
    for stored in matching {
        match delete_one(call, stored.name(), stored.namespace(), &options).await {
            Ok(deleted) => {
                if !std::mem::take(&mut first) {
                    out.push(b',');
                }
                let json = match &deleted {
                    Deleted::Marked(json) => json,
                    Deleted::Gone(last) => last.json(),
                    Deleted::WouldGo => stored.json(),
                };
                renderer.item(json, &mut out);
            }
            // Somebody else deleted it: that is what was asked for.
            Err(refusal) if refusal.code == StatusCode::NOT_FOUND => {}
            Err(refusal) => return Err(refusal),
        }
    }
    Renderer::list_tail(&json!({"resourceVersion": call.api.store.revision().to_string()}), &mut out);
    Ok(respond::json(StatusCode::OK, out))
}

fn read_options(call: &Call, body: &[u8]) -> Result<DeleteOptions, Refusal> {
    let from_query = call.options.delete.clone();
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(from_query);
    }
    let value = parse_yaml(body)?;
    let (from_body, _) = read_value::<DeleteOptions>(&value)
        .map_err(|wrong| Refusal::bad_request(format!("the body is not a DeleteOptions: {wrong}")))?;
    if from_body.dry_run.iter().any(|word| word != "All") {
        return Err(Refusal::bad_request("dryRun: must be All"));
    }
    Ok(from_query.overlaid(from_body))
}

async fn delete_one(
    call: &Call,
    name: &str,
    namespace: &str,
    options: &DeleteOptions,
) -> Result<Deleted, Refusal> {
    let info = call.info();
    let key = muster_ports::store::Key::new(&info.resource, namespace, name);
    let dry_run = call.options.dry_run || !options.dry_run.is_empty();
    for _ in 0..TRIES {
        let stored = call.api.store.get(&key).ok_or_else(|| Refusal::not_found(info, name))?;
        let mut object = call.kind.decode(Input::Json(stored.json()))?.object;
        check_preconditions(call, &stored, &*object, options)?;
        let was_marked = object.metadata().deletion_timestamp.is_some();
        let changed = mark(call, &mut *object, options)?;
        let expect = Precondition::At(stored.revision);
        let waits = !object.metadata().finalizers.is_empty();
        if !(was_marked && waits)
            && let Some(why) = call.kind.held_back(&*object, &call.api.store)
        {
            return Err(Refusal::conflict(info, name, why));
        }
        let write = match (waits, changed) {
            (true, false) => return Ok(Deleted::Marked(stored.json().to_vec())),
            (true, true) => {
                let encoded = Encoded::new(&mut *object)?;
                if dry_run {
                    return Ok(Deleted::Marked(encoded.at(Some(stored.revision))));
                }
                Write::Put { key: key.clone(), expect, draft: encoded.into_draft() }
            }
            (false, _) if dry_run => return Ok(Deleted::WouldGo),
            (false, _) => Write::Delete { key: key.clone(), expect },
        };
        let checks = if waits { Vec::new() } else { call.kind.needs_at_end(&*object) };
        match call.api.store.commit(Batch { checks, writes: vec![write] }).await {
            Ok(committed) => {
                let last = committed.objects.into_iter().next();
                let last = last.ok_or_else(|| Refusal::internal("nothing was deleted"))?;
                return Ok(if waits { Deleted::Marked(last.json().to_vec()) } else { Deleted::Gone(last) });
            }
            // Preconditions are checked again on the new version.
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(Refusal::of_commit(&error, info, name)),
        }
    }
    Err(Refusal::modified(info, name))
}

fn check_preconditions(
    call: &Call,
    stored: &Stored,
    object: &dyn AnyObject,
    options: &DeleteOptions,
) -> Result<(), Refusal> {
    let Some(wanted) = &options.preconditions else { return Ok(()) };
    let metadata = object.metadata();
    let refuse = |what: &str, wanted: &str, found: &str| {
        let why =
            format!("Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}");
        Err(Refusal::conflict(call.info(), stored.name(), why))
    };
    match (&wanted.uid, &wanted.resource_version) {
        (Some(uid), _) if *uid != metadata.uid => refuse("UID", uid, &metadata.uid),
        (_, Some(version)) if *version != metadata.resource_version => {
            refuse("ResourceVersion", version, &metadata.resource_version)
        }
        _ => Ok(()),
    }
}

/// Marks the object as being deleted and says which dependents wait. True if that changed it.
fn mark(call: &Call, object: &mut dyn AnyObject, options: &DeleteOptions) -> Result<bool, Refusal> {
    let propagation = options.propagation()?;
    let (now, in_order) = (call.now(), call.kind.ends_in_order());
    let goes_last = call.kind.goes_last(object);
    let metadata = object.metadata_mut();
    let before = (metadata.finalizers.clone(), metadata.deletion_timestamp);
    let explicit = options.propagation_policy.is_some() || options.orphan_dependents.is_some();
    // A second delete without a policy leaves the first one's in place.
    if explicit || metadata.deletion_timestamp.is_none() {
        metadata.finalizers.retain(|finalizer| finalizer != FOREGROUND && finalizer != ORPHAN);
        match propagation {
            Propagation::Background if !goes_last => {}
            Propagation::Foreground if in_order => {}
            Propagation::Background | Propagation::Foreground => {
                metadata.finalizers.push(FOREGROUND.to_owned());
            }
            Propagation::Orphan => metadata.finalizers.push(ORPHAN.to_owned()),
        }
    }
    if metadata.deletion_timestamp.is_none() {
        metadata.deletion_timestamp = Some(now);
        metadata.deletion_grace_period_seconds = Some(options.grace_period_seconds.unwrap_or(0).max(0));
        metadata.generation += 1;
        call.kind.mark_deleted(object, &call.api.store, now);
    }
    let metadata = object.metadata();
    Ok(before != (metadata.finalizers.clone(), metadata.deletion_timestamp))
}

fn uid_of(json: &[u8]) -> Value {
    serde_json::from_slice::<Value>(json)
        .ok()
        .and_then(|object| object.pointer("/metadata/uid").cloned())
        .unwrap_or_default()
}

fn success(call: &Call, name: &str, uid: &Value) -> Value {
    let info = call.info();
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": { "name": name, "group": info.group, "kind": info.plural, "uid": uid },
    })
}
