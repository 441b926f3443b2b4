//! `PUT`, and what every change of a stored object has in common.

use hyper::StatusCode;
use muster_merge::{Update, track_update};
use muster_ports::store::{Batch, CommitError, Precondition, Stored, Write};
use serde_json::Value;

use crate::call::Call;
use crate::encode::Encoded;
use crate::granted_change;
use crate::kind::{AnyObject, Input, Part};
use crate::metadata_rules;
use crate::negotiate::{ObjectBody, object_body};
use crate::refusal::{Causes, Refusal};
use crate::respond::Reply;

/// What becomes of a changed object.
pub enum Outcome {
    /// Answer the client.
    Done(Reply),
    /// Somebody else changed the object meanwhile.
    Raced,
}

/// Who keeps the books of who owns which field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// This change is recorded for its writer.
    Track,
    /// The change already carries the new books.
    Kept,
}

/// Replaces the object with the one in the body.
pub async fn replace(call: &mut Call, body: &[u8]) -> Result<Reply, Refusal> {
    let headers = call.headers.clone();
    let new = match object_body(&headers, body)? {
        ObjectBody::Json(json) => call.decode(Input::Json(json))?,
        ObjectBody::Value(value) => call.decode(Input::Value(&value))?,
    };
    let old = call.fetch()?;
    let version = new.object.metadata().resource_version.clone();
    if version.is_empty() {
        let mut causes = Causes::default();
        causes.invalid("metadata.resourceVersion", "", "must be specified for an update");
        return Err(Refusal::invalid(call.info(), call.name(), causes));
    }
    if version != old.revision.to_string() {
        return Err(Refusal::modified(call.info(), call.name()));
    }
    match store_change(call, &old, new.object, Ownership::Track).await? {
        Outcome::Done(reply) => Ok(reply),
        Outcome::Raced => Err(Refusal::modified(call.info(), call.name())),
    }
}

/// Completes, checks and stores a new version of an object.
pub async fn store_change(
    call: &Call,
    old: &Stored,
    mut new: Box<dyn AnyObject>,
    ownership: Ownership,
) -> Result<Outcome, Refusal> {
    let info = call.info();
    let old_object = call.kind.decode(Input::Json(old.json()))?.object;
    same_identity(call, &mut *new)?;
    let mut causes = Causes::default();
    call.kind.prepare_update(&*old_object, &mut *new, call.part, call.writing(), &mut causes);
    metadata_rules::keep_fixed(old_object.metadata(), new.metadata_mut(), &mut causes);
    metadata_rules::validate(new.metadata(), &mut causes);
    let changed = new.metadata().generation != old_object.metadata().generation;
    if causes.is_empty() && changed {
        call.kind.admit(&*new, &call.api.store.snapshot(&info.resource), &mut causes);
    }
    if !causes.is_empty() {
        return Err(Refusal::invalid(info, call.name(), causes));
    }
    granted_change::check_change(&call.user, &*old_object, &*new)?;
    if ownership == Ownership::Track {
        record_owner(call, old, &*old_object, &mut *new)?;
    }
    let encoded = Encoded::new(&mut *new)?;
    if encoded.same_as(old) || call.options.dry_run {
        return call.show_json(StatusCode::OK, &encoded.at(Some(old.revision))).map(Outcome::Done);
    }
    let (key, expect) = (call.key(), Precondition::At(old.revision));
    let metadata = new.metadata();
    // Nobody has to agree any more: it goes, and the answer shows what was asked for.
    let goes = metadata.deletion_timestamp.is_some() && metadata.finalizers.is_empty();
    let (write, last, checks) = if goes {
        (Write::Delete { key, expect }, Some(encoded), call.kind.needs_at_end(&*new))
    } else {
        (Write::Put { key, expect, draft: encoded.into_draft() }, None, Vec::new())
    };
    match call.api.store.commit(Batch { checks, writes: vec![write] }).await {
        Ok(committed) => {
            let stored = committed.objects.first().ok_or_else(|| Refusal::internal("nothing was stored"))?;
            let reply = match last {
                Some(last) => call.show_json(StatusCode::OK, &last.at(Some(stored.revision))),
                None => call.show(StatusCode::OK, stored),
            };
            reply.map(Outcome::Done)
        }
        Err(CommitError::Conflict { expected: Precondition::NoneOfKind, .. }) => {
            let why = call.kind.held_back(&*new, &call.api.store);
            Err(Refusal::conflict(info, call.name(), why.unwrap_or_else(|| "something needs it".to_owned())))
        }
        Err(CommitError::Conflict { .. }) => Ok(Outcome::Raced),
        Err(error) => Err(Refusal::of_commit(&error, info, call.name())),
    }
}

fn same_identity(call: &Call, new: &mut dyn AnyObject) -> Result<(), Refusal> {
    let metadata = new.metadata_mut();
    if metadata.name.is_empty() {
        call.name().clone_into(&mut metadata.name);
    }
    if metadata.namespace.is_empty() {
        call.namespace().clone_into(&mut metadata.namespace);
    }
    for (what, found, expected) in
        [("name", &metadata.name, call.name()), ("namespace", &metadata.namespace, call.namespace())]
    {
        if found != expected {
            return Err(Refusal::bad_request(format!(
                "the {what} of the object ({found}) does not match the {what} on the URL ({expected})"
            )));
        }
    }
    Ok(())
}

/// Records who owns the changed fields, if anybody ever applied the object.
fn record_owner(
    call: &Call,
    old: &Stored,
    old_object: &dyn AnyObject,
    new: &mut dyn AnyObject,
) -> Result<(), Refusal> {
    if old_object.metadata().managed_fields.is_none() {
        // Ownership is kept from the first server-side apply on.
        new.metadata_mut().managed_fields = None;
        return Ok(());
    }
    let internal = |error: serde_json::Error| Refusal::internal(error.to_string());
    let before: Value = serde_json::from_slice(old.json()).map_err(internal)?;
    let after: Value = serde_json::from_slice(&new.encode().map_err(internal)?).map_err(internal)?;
    let tracked = track_update(Update {
        old: Some(&before),
        new: &after,
        manager: &call.manager(),
        subresource: (call.part == Part::Status).then_some("status"),
        schema: call.kind.schema(),
        api_version: &call.info().api_version(),
        now: &call.now().to_string(),
    })
    .map_err(|error| Refusal::bad_request(error.to_string()))?;
    new.metadata_mut().managed_fields = tracked.pointer("/metadata/managedFields").cloned();
    Ok(())
}
