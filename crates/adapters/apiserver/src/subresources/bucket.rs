//! `bucket`: a directory for each task, by path, as single files or as a tar of many. Members of a group share one.

use hyper::StatusCode;
use hyper::header::ACCEPT;
use muster_ports::blobs::{BlobEntry, BlobError, BlobKey};
use muster_ports::store::{Key, ResourceName};
use muster_types::Task;
use muster_types::metadata::OwnerReference;
use serde::Deserialize;
use serde_json::{Value, json};

use super::files::{blobs, of_blob, on_thread, receive, send};
use super::{PartCall, RequestBody, Subresource, archive};
use crate::ids;
use crate::negotiate::media_type;
use crate::refusal::Refusal;
use crate::respond::{self, Reply};

/// Its line in the table.
pub const SUBRESOURCE: Subresource =
    Subresource { name: "bucket", kind: "TaskBucket", verbs: &["get", "update", "delete"], has_files: true };

const TAR: &str = "application/x-tar";
/// Where groups are kept.
const GROUPS: &str = "taskgroups.muster.dev";

#[derive(Deserialize)]
struct Uid {
    uid: String,
}

/// Gets, keeps or deletes what is at a path of the bucket.
pub async fn answer(call: &PartCall, body: RequestBody) -> Result<Reply, Refusal> {
    let (_, task) = call.read()?;
    match call.verb {
        "get" => get(call, &task).await,
        "update" if is_folder(call) => unpack(call, &task, body).await,
        "update" => put(call, &task, body).await,
        _ => delete(call, &task).await,
    }
}

async fn get(call: &PartCall, task: &Task) -> Result<Reply, Refusal> {
    let (blobs, key) = (blobs(call)?, key_of(call, task)?);
    let (reader, at, folder) = (blobs.clone(), key.clone(), is_folder(call));
    let found = on_thread(move || {
        let size = if folder { None } else { Some(reader.size(&at)) };
        match size {
            Some(Ok(size)) => Ok(Found::File(size)),
            Some(Err(error)) if !matches!(error, BlobError::NotFound(_)) => Err(error),
            _ => reader.list(&at).map(Found::Folder),
        }
    });
    match found.await? {
        Found::File(size) => Ok(send(blobs, key, size)),
        Found::Folder(entries) if entries.is_empty() && !call.rest.is_empty() => Err(missing(call)),
        Found::Folder(entries) if takes_tar(call) => {
            Ok(respond::stream(TAR, archive::pack(blobs, key, entries, call.api.clock.now())))
        }
        Found::Folder(entries) => {
            let items: Vec<_> = entries.iter().map(show).collect();
            Ok(respond::document(StatusCode::OK, &json!({ "items": items })))
        }
    }
}

enum Found {
    File(u64),
    Folder(Vec<BlobEntry>),
}

async fn put(call: &PartCall, task: &Task, body: RequestBody) -> Result<Reply, Refusal> {
    let (blobs, key) = (blobs(call)?, key_of(call, task)?);
    let (reader, at) = (blobs, key.clone());
    let is_new = on_thread(move || Ok(reader.size(&at).is_err())).await?;
    let size = receive(call, body, key.clone()).await?;
    keep_while_holder_is_there(call, task, key).await?;
    let code = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(respond::document(code, &json!({ "path": call.rest.join("/"), "size": size })))
}

async fn unpack(call: &PartCall, task: &Task, body: RequestBody) -> Result<Reply, Refusal> {
    if media_type(&call.headers) != TAR {
        return Err(Refusal::bad_request(format!(
            "the path names a directory: name a file behind it, or send a tar with Content-Type {TAR}"
        )));
    }
    let (blobs, key) = (blobs(call)?, key_of(call, task)?);
    let spool = holder_key(call, task)?.join(&format!("unpacking/{}", ids::hex(&ids::random::<8>()?)));
    let spool = spool.map_err(|error| of_blob(&error))?;
    receive(call, body, spool.clone()).await?;
    let (target, packed) = (key.clone(), spool.clone());
    let unpacking = tokio::task::spawn_blocking(move || {
        let unpacked = archive::unpack(&*blobs, &packed, &target);
        blobs.delete(&packed).map_err(|error| of_blob(&error))?;
        unpacked
    });
    let entries = unpacking.await.map_err(|error| Refusal::internal(error.to_string()))??;
    keep_while_holder_is_there(call, task, key).await?;
    let items: Vec<_> = entries.iter().map(show).collect();
    Ok(respond::document(StatusCode::OK, &json!({ "items": items })))
}

async fn delete(call: &PartCall, task: &Task) -> Result<Reply, Refusal> {
    let (blobs, key) = (blobs(call)?, key_of(call, task)?);
    let dry_run = call.options.dry_run;
    let deleted = on_thread(move || {
        let there = blobs.size(&key).is_ok() || !blobs.list(&key)?.is_empty();
        if there && !dry_run {
            blobs.delete(&key)?;
        }
        Ok(there)
    });
    if !deleted.await? && !call.rest.is_empty() {
        return Err(missing(call));
    }
    Ok(respond::document(StatusCode::OK, &json!({ "path": call.rest.join("/"), "deleted": true })))
}

/// What was deleted while a file came in takes the file with it.
async fn keep_while_holder_is_there(call: &PartCall, task: &Task, key: BlobKey) -> Result<(), Refusal> {
    if task.group().is_some_and(|group| is_there(call, group)) || call.read_same(&task.metadata.uid).is_some()
    {
        return Ok(());
    }
    let blobs = blobs(call)?;
    on_thread(move || blobs.delete(&key)).await?;
    Err(Refusal::not_found(call.info(), &call.name))
}

/// True if the group that a task names as its owner is one of its namespace.
fn is_there(call: &PartCall, group: &OwnerReference) -> bool {
    let key = Key::new(&ResourceName::new(GROUPS), &call.namespace, &group.name);
    let stored = call.api.store.get(&key);
    stored.and_then(|stored| stored.metadata::<Uid>()).is_some_and(|found| found.uid == group.uid)
}

/// Everything of the group that a task belongs to, else of the task. Anybody can write down any owner: only a group that is there,
/// in the namespace of the task, counts.
fn holder_key(call: &PartCall, task: &Task) -> Result<BlobKey, Refusal> {
    let group = task.group().filter(|group| is_there(call, group));
    let uid = group.map_or(&task.metadata.uid, |group| &group.uid);
    BlobKey::of_task(uid).map_err(|error| of_blob(&error))
}

fn key_of(call: &PartCall, task: &Task) -> Result<BlobKey, Refusal> {
    let mut key = holder_key(call, task)?.join("bucket");
    for segment in &call.rest {
        key = key.and_then(|key| key.join(segment));
    }
    key.map_err(|error| of_blob(&error))
}

fn is_folder(call: &PartCall) -> bool {
    call.folder || call.rest.is_empty()
}

fn takes_tar(call: &PartCall) -> bool {
    call.headers
        .get(ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains(TAR))
}

fn missing(call: &PartCall) -> Refusal {
    let path = call.rest.join("/");
    Refusal::no_such_thing(format!("the bucket of task \"{}\" has nothing at \"{path}\"", call.name))
}

fn show(entry: &BlobEntry) -> Value {
    json!({ "path": entry.path, "size": entry.size })
}
