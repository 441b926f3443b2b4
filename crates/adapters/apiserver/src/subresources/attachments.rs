//! `attachments`: files kept with a task and listed in its status. Logs of containers are among them.

use hyper::StatusCode;
use muster_ports::blobs::{BlobError, BlobKey};
use muster_types::Task;
use muster_types::task_status::Attachment;
use serde_json::json;

use super::containers::containers_of;
use super::files::{blobs, of_blob, on_thread, receive, send};
use super::{PartCall, RequestBody, Subresource, log};
use crate::options::refuse;
use crate::refusal::Refusal;
use crate::respond::{self, Reply};

/// Its line in the table.
pub const SUBRESOURCE: Subresource = Subresource {
    name: "attachments",
    kind: "TaskAttachment",
    verbs: &["get", "update", "delete"],
    has_files: true,
};

/// Most files of a task.
const MAX_FILES: usize = 256;

/// Lists the files, or gets, keeps or deletes one.
pub async fn answer(call: &PartCall, body: RequestBody) -> Result<Reply, Refusal> {
    match (call.verb, call.rest.as_slice()) {
        ("get", []) => {
            let (_, task) = call.read()?;
            Ok(respond::document(StatusCode::OK, &json!({ "items": task.status.attached })))
        }
        ("get", [name]) => get(call, name).await,
        ("update", [name]) => put(call, name, body).await,
        ("delete", [name]) => delete(call, name).await,
        (_, []) => Err(Refusal::method_not_allowed()),
        _ => Err(Refusal::no_such_path()),
    }
}

async fn get(call: &PartCall, name: &str) -> Result<Reply, Refusal> {
    let (_, task) = call.read()?;
    let suffix = call.api.settings.log_suffix.as_str();
    if let Some(container) = name.strip_suffix(suffix)
        && containers_of(&call.api.store, &task, suffix).iter().any(|known| known == container)
    {
        return log::whole(call, &task, container).await;
    }
    let missing = || Refusal::no_such_thing(format!("task \"{}\" has no attachment \"{name}\"", call.name));
    if !task.status.attached.iter().any(|file| file.name == name) {
        return Err(missing());
    }
    let (blobs, key) = (blobs(call)?, key_of(&task, name)?);
    let (reader, at) = (blobs.clone(), key.clone());
    let size = on_thread(move || match reader.size(&at) {
        Err(BlobError::NotFound(_)) => Ok(None),
        size => size.map(Some),
    });
    Ok(send(blobs, key, size.await?.ok_or_else(missing)?))
}

async fn put(call: &PartCall, name: &str, body: RequestBody) -> Result<Reply, Refusal> {
    refuse_log(call, name)?;
    let activity = call.query.number::<u32>("activity")?;
    if activity == Some(0) {
        return Err(refuse("activity", "lines are counted from 1"));
    }
    let (_, task) = call.read()?;
    let uid = task.metadata.uid.clone();
    check_room(call, &task, name)?;
    let key = key_of(&task, name)?;
    let size = receive(call, body, key.clone()).await?;
    let file = Attachment { name: name.to_owned(), size, activity };
    let kept = call.change(|task: &mut Task| {
        if task.metadata.uid != uid {
            return Err(Refusal::not_found(call.info(), &call.name));
        }
        check_room(call, task, name)?;
        let attached = &mut task.status.attached;
        if let Some(known) = attached.iter_mut().find(|known| known.name == name) {
            known.clone_from(&file);
            return Ok(StatusCode::OK);
        }
        attached.push(file.clone());
        Ok(StatusCode::CREATED)
    });
    match kept.await {
        Ok((_, code)) => Ok(respond::document(code, &json!(file))),
        Err(refusal) => {
            // Nobody will ever find the file again.
            let blobs = blobs(call)?;
            on_thread(move || blobs.delete(&key)).await?;
            Err(refusal)
        }
    }
}

async fn delete(call: &PartCall, name: &str) -> Result<Reply, Refusal> {
    refuse_log(call, name)?;
    let (_, task) = call.read()?;
    let (blobs, key) = (blobs(call)?, key_of(&task, name)?);
    let remove = |task: &mut Task| {
        let before = task.status.attached.len();
        task.status.attached.retain(|file| file.name != name);
        if task.status.attached.len() < before {
            return Ok(());
        }
        Err(Refusal::no_such_thing(format!("task \"{}\" has no attachment \"{name}\"", call.name)))
    };
    call.change(remove).await?;
    if !call.options.dry_run {
        on_thread(move || blobs.delete(&key)).await?;
    }
    Ok(respond::document(StatusCode::OK, &json!({ "name": name, "deleted": true })))
}

/// Logs come from containers. A later attempt may have containers of any name, so all names of logs are theirs.
fn refuse_log(call: &PartCall, name: &str) -> Result<(), Refusal> {
    if name.ends_with(&call.api.settings.log_suffix) {
        let why =
            format!("\"{name}\" is the name of a container's log, which is written by the container alone");
        return Err(call.conflict(why));
    }
    Ok(())
}

fn check_room(call: &PartCall, task: &Task, name: &str) -> Result<(), Refusal> {
    let attached = &task.status.attached;
    if attached.len() >= MAX_FILES && !attached.iter().any(|file| file.name == name) {
        let why = format!("a task has at most {MAX_FILES} attachments; put more into its bucket");
        return Err(call.invalid("status.attached", &why));
    }
    Ok(())
}

fn key_of(task: &Task, name: &str) -> Result<BlobKey, Refusal> {
    if name.contains('/') {
        return Err(Refusal::bad_request(format!("\"{name}\" cannot name an attachment: it contains a /")));
    }
    let key = BlobKey::of_task(&task.metadata.uid).and_then(|key| key.join(&format!("attachments/{name}")));
    key.map_err(|error| of_blob(&error))
}
