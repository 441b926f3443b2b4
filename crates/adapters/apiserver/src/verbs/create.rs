//! `POST`: storing a new object.

use hyper::{HeaderMap, StatusCode};
use muster_ports::store::{Batch, CommitError, Key, Precondition, Write};

use muster_tasks::trace_context::is_traceparent;
use muster_types::metadata::TRACEPARENT;
use muster_types::name_rules;

use super::create_list;
use crate::call::Call;
use crate::encode::Encoded;
use crate::ids;
use crate::kind::{AnyObject, Input};
use crate::metadata_rules;
use crate::negotiate::{ObjectBody, object_body};
use crate::refusal::{Causes, Refusal};
use crate::respond::Reply;

/// Times an object is stored under a generated name before the client has to.
pub(super) const NAME_TRIES: usize = 8;
/// Names that are drawn for one of these times, as long as they are taken.
const NAME_DRAWS: usize = 32;

/// Creates the object in the body.
pub async fn create(call: &mut Call, body: &[u8]) -> Result<Reply, Refusal> {
    let headers = std::mem::take(&mut call.headers);
    let body = object_body(&headers, body)?;
    if let Some(items) = create_list::items(call, &body)? {
        return create_list::create_list(call, &headers, items).await;
    }
    let decoded = match body {
        ObjectBody::Json(json) => call.decode(Input::Json(json))?,
        ObjectBody::Value(value) => call.decode(Input::Value(&value))?,
    };
    let mut object = decoded.object;
    begin(call, &headers, &mut *object)?;
    store_new(call, object).await
}

/// What is the same for every object that a client sends.
pub(super) fn begin(call: &Call, headers: &HeaderMap, object: &mut dyn AnyObject) -> Result<(), Refusal> {
    if !object.metadata().resource_version.is_empty() {
        return Err(Refusal::bad_request(
            "metadata.resourceVersion: must not be set on an object to be created",
        ));
    }
    // Ownership of fields is kept from the first server-side apply on.
    object.metadata_mut().managed_fields = None;
    let given = headers.get("traceparent").and_then(|value| value.to_str().ok());
    if let Some(context) = given.filter(|text| is_traceparent(text) && is_work(call)) {
        let annotations = &mut object.metadata_mut().annotations;
        annotations.entry(TRACEPARENT.to_owned()).or_insert_with(|| context.to_owned());
    }
    Ok(())
}

/// True for what runs, and so is traced.
fn is_work(call: &Call) -> bool {
    ["tasks.muster.dev", "taskgroups.muster.dev", "jobs.muster.dev"].contains(&call.info().resource.as_str())
}

/// Completes, checks and stores a new object.
pub async fn store_new(call: &Call, mut object: Box<dyn AnyObject>) -> Result<Reply, Refusal> {
    let generated = complete(call, &mut *object)?;
    for _ in 0..NAME_TRIES {
        if generated {
            generate_name(call, &mut *object, |_| false)?;
        }
        check(call, &mut *object)?;
        let name = object.metadata().name.clone();
        let encoded = Encoded::new(&mut *object)?;
        let key = Key::new(&call.info().resource, call.namespace(), &name);
        if call.options.dry_run {
            if call.api.store.get(&key).is_some() {
                return Err(Refusal::already_exists(call.info(), &name));
            }
            return call.show_json(StatusCode::CREATED, &encoded.at(None));
        }
        let checks = call.kind.needs_at_start(&*object, &call.api.store);
        let write = Write::Put { key, expect: Precondition::Absent, draft: encoded.into_draft() };
        match call.api.store.commit(Batch { checks, writes: vec![write] }).await {
            Ok(committed) => {
                let stored =
                    committed.objects.first().ok_or_else(|| Refusal::internal("nothing was stored"))?;
                return call.show(StatusCode::CREATED, stored);
            }
            Err(CommitError::Conflict { key, expected: Precondition::Exists, .. }) => {
                let why = format!("{key}, which it needs, was deleted meanwhile");
                return Err(Refusal::conflict(call.info(), &name, why));
            }
            Err(CommitError::Conflict { .. }) if generated => {}
            Err(CommitError::Conflict { .. }) => return Err(Refusal::already_exists(call.info(), &name)),
            Err(error) => return Err(Refusal::of_commit(&error, call.info(), &name)),
        }
    }
    Err(Refusal::already_exists(call.info(), &object.metadata().generate_name))
}

/// Gives a new object all that is its own but its name. True if that is to be generated.
pub(super) fn complete(call: &Call, object: &mut dyn AnyObject) -> Result<bool, Refusal> {
    place(call, object)?;
    let generated = object.metadata().name.is_empty();
    if generated && object.metadata().generate_name.is_empty() {
        let mut causes = Causes::default();
        causes.required("metadata.name", "name or generateName is required");
        return Err(Refusal::invalid(call.info(), "", causes));
    }
    let metadata = object.metadata_mut();
    metadata.uid = ids::uid(call.api.clock.now());
    let on_wall = call.kind.follows_wall_clock();
    metadata.creation_timestamp =
        Some(if on_wall { call.api.clock.wall().to_timestamp() } else { call.now() });
    metadata.deletion_timestamp = None;
    metadata.deletion_grace_period_seconds = None;
    Ok(generated)
}

/// Gives it a name that neither a stored object has nor one that is `taken` otherwise.
pub(super) fn generate_name(
    call: &Call,
    object: &mut dyn AnyObject,
    taken: impl Fn(&Key) -> bool,
) -> Result<Key, Refusal> {
    let metadata = object.metadata_mut();
    for _ in 0..NAME_DRAWS {
        let name = name_rules::generated_name(&metadata.generate_name, &ids::name_suffix()?);
        let key = Key::new(&call.info().resource, call.namespace(), &name);
        if !taken(&key) && call.api.store.get(&key).is_none() {
            metadata.name = name;
            return Ok(key);
        }
    }
    Err(Refusal::already_exists(call.info(), &metadata.generate_name))
}

/// Refuses what may not be stored.
pub(super) fn check(call: &Call, object: &mut dyn AnyObject) -> Result<(), Refusal> {
    let mut causes = Causes::default();
    call.kind.prepare_create(object, call.writing(), &mut causes);
    metadata_rules::validate(object.metadata(), &mut causes);
    if causes.is_empty() {
        call.kind.admit(object, &call.api.store.snapshot(&call.info().resource), &mut causes);
    }
    if causes.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid(call.info(), &object.metadata().name, causes))
}

/// Puts the object into the namespace of the request.
fn place(call: &Call, object: &mut dyn AnyObject) -> Result<(), Refusal> {
    let metadata = object.metadata_mut();
    if call.info().namespaced && call.namespace().is_empty() {
        return Err(Refusal::bad_request(format!(
            "an empty namespace may not be set during creation; create {} under /apis/{}/namespaces/NAMESPACE/{}",
            call.info().plural,
            call.info().api_version(),
            call.info().plural
        )));
    }
    if metadata.namespace.is_empty() {
        call.namespace().clone_into(&mut metadata.namespace);
    } else if metadata.namespace != call.namespace() {
        return Err(Refusal::bad_request(format!(
            "the namespace of the provided object does not match the namespace sent on the request: \
             \"{}\" is not \"{}\"",
            metadata.namespace,
            call.namespace()
        )));
    }
    Ok(())
}
