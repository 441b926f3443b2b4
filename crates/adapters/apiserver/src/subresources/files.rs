//! Files on their way in and out: never whole in memory, never on the threads that serve requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt as _;
use hyper::header::{CONTENT_LENGTH, HeaderValue};
use muster_ports::blobs::{BlobError, BlobKey, Blobs};
use tokio::sync::mpsc;

use super::{PartCall, RequestBody};
use crate::refusal::Refusal;
use crate::respond::{self, Reply};

/// Bytes of a file that are read at once.
pub const BLOCK: usize = 256 * 1024;
/// Parts of a file that wait to be written.
const PARTS: usize = 8;

/// Bytes that come in a second at least, on average.
const LEAST_RATE: u64 = 1024;
/// Time before that is asked for.
const SLOW_START: Duration = Duration::from_secs(30);

/// What comes of a body.
enum Piece {
    Bytes(Bytes),
    /// Everything came. Without this the file is given up.
    End,
}

/// Where files are kept.
pub fn blobs(call: &PartCall) -> Result<Arc<dyn Blobs>, Refusal> {
    let blobs = call.api.parts.blobs.clone();
    blobs.ok_or_else(|| Refusal::no_such_thing("this server keeps no files; ask one that does"))
}

/// Runs what blocks on a thread for that.
pub async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BlobError> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Refusal::internal(error.to_string()))?.map_err(|error| of_blob(&error))
}

/// Keeps a body as a file and returns its size.
pub async fn receive(call: &PartCall, mut body: RequestBody, key: BlobKey) -> Result<u64, Refusal> {
    if call.options.dry_run {
        return Err(Refusal::bad_request("query parameter dryRun: files cannot be sent for a dry run"));
    }
    let most = call.api.settings.max_file;
    let too_large = || Refusal::too_large(format!("the file is larger than {most} bytes"));
    let announced =
        call.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > most) {
        return Err(too_large());
    }
    let _room = call.api.uploads.take(&call.user.name)?;
    let blobs = blobs(call)?;
    let (sender, receiver) = mpsc::channel(PARTS);
    let started = Instant::now();
    let writing = tokio::task::spawn_blocking(move || write(&*blobs, &key, receiver));
    let mut size = 0;
    while let Some(chunk) = next_chunk(&mut body, call.api.settings.body_timeout).await? {
        size += chunk.len() as u64;
        if is_too_slow(size, started.elapsed()) {
            return Err(Refusal::bad_request(format!(
                "the file comes too slowly: send at least {LEAST_RATE} bytes in a second"
            )));
        }
        if size > most {
            return Err(too_large());
        }
        if sender.send(Piece::Bytes(chunk)).await.is_err() {
            // The writer gave up, and says why below.
            break;
        }
    }
    // If the writer gave up, its own error says why.
    sender.send(Piece::End).await.unwrap_or_default();
    drop(sender);
    let written = writing.await.map_err(|error| Refusal::internal(error.to_string()))?;
    written
        .map_err(|error| of_blob(&error))?
        .ok_or_else(|| Refusal::bad_request("the file was not sent whole"))
}

/// True if what came in this time is less than anybody sends who means to send it.
fn is_too_slow(size: u64, since: Duration) -> bool {
    since > SLOW_START && size < since.as_secs().saturating_mul(LEAST_RATE)
}

async fn next_chunk(body: &mut RequestBody, patience: Duration) -> Result<Option<Bytes>, Refusal> {
    loop {
        let frame = tokio::time::timeout(patience, body.frame()).await;
        match frame.map_err(|_| Refusal::bad_request("the request body was not sent in time"))? {
            None => return Ok(None),
            Some(Err(error)) => {
                return Err(Refusal::bad_request(format!("the request body could not be read: {error}")));
            }
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    return Ok(Some(bytes));
                }
            }
        }
    }
}

/// Writes what comes; `None` if the end never came.
fn write(
    blobs: &dyn Blobs,
    key: &BlobKey,
    mut pieces: mpsc::Receiver<Piece>,
) -> Result<Option<u64>, BlobError> {
    let mut writer = blobs.write(key)?;
    while let Some(piece) = pieces.blocking_recv() {
        match piece {
            Piece::Bytes(bytes) => {
                writer.write_all(&bytes).map_err(|error| BlobError::Io { key: key.clone(), error })?;
            }
            Piece::End => return writer.finish().map(Some),
        }
    }
    Ok(None)
}

/// Sends a file of a known size. If it cannot be read to its end, the connection is cut, so that nobody takes a part
/// for the whole.
pub fn send(blobs: Arc<dyn Blobs>, key: BlobKey, size: u64) -> Reply {
    let chunks = stream::unfold((blobs, key, 0), move |(blobs, key, offset)| async move {
        let left = usize::try_from(size - offset).unwrap_or(usize::MAX);
        if left == 0 {
            return None;
        }
        let (reader, at) = (blobs.clone(), key.clone());
        let reading = tokio::task::spawn_blocking(move || reader.read(&at, offset, left.min(BLOCK)));
        let bytes = reading.await.ok()?.ok().filter(|bytes| !bytes.is_empty())?;
        let next = offset + bytes.len() as u64;
        Some((Bytes::from(bytes), (blobs, key, next)))
    });
    let mut reply = respond::stream("application/octet-stream", chunks);
    reply.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(size));
    reply
}

/// What a failure of the files means for the client.
pub fn of_blob(error: &BlobError) -> Refusal {
    match error {
        BlobError::BadKey { .. } => Refusal::bad_request(error.to_string()),
        BlobError::NotFound(_) => Refusal::no_such_thing(error.to_string()),
        BlobError::Clash(_) => Refusal::clash(error.to_string()),
        BlobError::Io { .. } => Refusal::unavailable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_some_time_to_begin_and_then_comes_at_the_least_rate() {
        let seconds = Duration::from_secs;
        assert!(!is_too_slow(0, seconds(30)));
        assert!(is_too_slow(30 * LEAST_RATE, seconds(31)));
        assert!(!is_too_slow(31 * LEAST_RATE, seconds(31)));
        assert!(is_too_slow(5000, seconds(3600)));
    }
}
