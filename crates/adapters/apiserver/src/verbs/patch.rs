//! `PATCH`: changing an object without knowing all of it.

use hyper::StatusCode;
use muster_merge::{Apply, ApplyError, PatchError, PatchKind, apply, patch};
use serde_json::{Value, json};

use crate::call::Call;
use crate::encode::MAX_OBJECT;
use crate::granted_change;
use crate::kind::{Input, Part};
use crate::negotiate::{PatchForm, parse_yaml, patch_form};
use crate::options::FieldValidation;
use crate::refusal::Refusal;
use crate::respond::Reply;
use crate::verbs::create::store_new;
use crate::verbs::update::{Outcome, Ownership, store_change};

/// Times a patch is applied again because somebody else was faster. Each time one of them has succeeded, so of as many at once as
/// this none is turned away.
const TRIES: usize = 128;

/// Applies the patch in the body.
pub async fn patch_object(call: &mut Call, body: &[u8]) -> Result<Reply, Refusal> {
    match patch_form(&call.headers)? {
        PatchForm::Change(kind) => change(call, kind, body).await,
        PatchForm::Apply => apply_object(call, body).await,
    }
}

async fn change(call: &mut Call, kind: PatchKind, body: &[u8]) -> Result<Reply, Refusal> {
    let change: Value = serde_json::from_slice(body)
        .map_err(|error| Refusal::bad_request(format!("the patch is not valid JSON: {error}")))?;
    for _ in 0..TRIES {
        let old = call.fetch()?;
        let before = parse_stored(old.json())?;
        let after = patch(kind, &before, &change, call.kind.schema(), MAX_OBJECT)
            .map_err(|error| of_patch(&error))?;
        let new = call.decode(Input::Value(&after))?.object;
        let version = &new.metadata().resource_version;
        if !version.is_empty() && *version != old.revision.to_string() {
            return Err(Refusal::modified(call.info(), call.name()));
        }
        if let Outcome::Done(reply) = store_change(call, &old, new, Ownership::Track).await? {
            return Ok(reply);
        }
        call.warnings.clear();
    }
    Err(Refusal::modified(call.info(), call.name()))
}

async fn apply_object(call: &mut Call, body: &[u8]) -> Result<Reply, Refusal> {
    let Some(manager) = call.options.field_manager.clone() else {
        return Err(Refusal::bad_request("query parameter fieldManager: is required for apply patch"));
    };
    let mut config = parse_yaml(body)?;
    check_config(call, &config)?;
    keep_part(call, &mut config);
    // A field the kind does not have cannot be owned.
    if call.options.field_validation != FieldValidation::Ignore {
        call.options.field_validation = FieldValidation::Strict;
    }
    call.decode(Input::Value(&config))?;
    for _ in 0..TRIES {
        let old = call.find();
        let before = old.as_ref().map(|old| parse_stored(old.json())).transpose()?;
        let request = Apply {
            live: before.as_ref(),
            config: &config,
            manager: &manager,
            force: call.options.force,
            subresource: (call.part == Part::Status).then_some("status"),
            schema: call.kind.schema(),
            api_version: &call.info().api_version(),
            now: &call.now().to_string(),
        };
        let merged = apply(request).map_err(|error| of_apply(call, error))?;
        let new = call.decode(Input::Value(&merged))?.object;
        let Some(old) = old else {
            if call.part == Part::Status {
                return Err(Refusal::not_found(call.info(), call.name()));
            }
            granted_change::check_create(&call.user, call.name())?;
            match store_new(call, new).await {
                // Somebody created it meanwhile: merge with that.
                Err(refusal) if refusal.code == StatusCode::CONFLICT && !call.options.dry_run => continue,
                outcome => return outcome,
            }
        };
        let version = &new.metadata().resource_version;
        if !version.is_empty() && *version != old.revision.to_string() {
            return Err(Refusal::modified(call.info(), call.name()));
        }
        if let Outcome::Done(reply) = store_change(call, &old, new, Ownership::Kept).await? {
            return Ok(reply);
        }
    }
    Err(Refusal::modified(call.info(), call.name()))
}

/// The applied document must be about the object in the path.
fn check_config(call: &Call, config: &Value) -> Result<(), Refusal> {
    let text = |pointer: &str| config.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    for (what, found, expected) in [
        ("name", text("/metadata/name"), call.name()),
        ("namespace", text("/metadata/namespace"), call.namespace()),
    ] {
        if !found.is_empty() && found != expected {
            return Err(Refusal::bad_request(format!(
                "the {what} of the object ({found}) does not match the {what} on the URL ({expected})"
            )));
        }
    }
    Ok(())
}

/// Leaves of the document what this path writes: nobody comes to own what was not written. The name is the path's.
fn keep_part(call: &Call, config: &mut Value) {
    let Some(object) = config.as_object_mut() else { return };
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if metadata.is_null() {
        *metadata = json!({});
    }
    if let Some(metadata) = metadata.as_object_mut() {
        if call.part == Part::Status {
            metadata.retain(|field, _| matches!(field.as_str(), "resourceVersion" | "uid" | "managedFields"));
        }
        metadata.insert("name".to_owned(), json!(call.name()));
    }
    match call.part {
        Part::Main if call.info().has_status => drop(object.remove("status")),
        Part::Main => {}
        Part::Status => object.retain(|field, _| field != "spec"),
    }
}

fn parse_stored(json: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(json).map_err(|error| Refusal::internal(error.to_string()))
}

fn of_patch(error: &PatchError) -> Refusal {
    match error {
        PatchError::Malformed(_)
        | PatchError::MalformedOperation { .. }
        | PatchError::TooDeep(_)
        | PatchError::TooManyOperations { .. } => Refusal::bad_request(error.to_string()),
        PatchError::TooLarge { .. } | PatchError::TooMuchWork { .. } => Refusal::too_large(error.to_string()),
        PatchError::TestFailed { .. } | PatchError::OperationFailed { .. } | PatchError::Invalid { .. } => {
            Refusal::unprocessable(error.to_string())
        }
    }
}

fn of_apply(call: &Call, error: ApplyError) -> Refusal {
    match error {
        ApplyError::Conflicts(conflicts) => {
            let listed: Vec<_> =
                conflicts.iter().map(|conflict| (conflict.path.clone(), conflict.to_string())).collect();
            let fields: Vec<_> =
                listed.iter().map(|(field, message)| format!("{message}: {field}")).collect();
            let count = listed.len();
            let noun = if count == 1 { "conflict" } else { "conflicts" };
            let message = format!("Apply failed with {count} {noun}: {}", fields.join("; "));
            Refusal::apply_conflict(message, listed)
        }
        ApplyError::Invalid(message) => Refusal::bad_request(format!(
            "{} \"{}\" cannot be applied: {message}",
            call.info().kind,
            call.name()
        )),
    }
}
