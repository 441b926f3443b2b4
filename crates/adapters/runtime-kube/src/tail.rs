//! Takes the log of one container while it is written, until all of it was taken.
//!
//! Every line comes with the time it was written, so that a stream that was cut is taken up behind the last whole line.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{AsyncBufRead, AsyncBufReadExt as _, FutureExt as _};
use jiff::Timestamp;
use kube::api::{Api, LogParams};
use muster_ports::runtime::Handle;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::log_store::{Chunk, LogStore, LogWriter};
use crate::pod::Pod;
use crate::refusal::{Refusal, read_refusal};

/// A stream that ended this shortly before the container did is whole.
const SHORTLY: Duration = Duration::from_secs(5);
/// Bytes that are written at once.
const CHUNK: usize = 64 << 10;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How often the log of a container that has ended is asked for before it is given up.
const TRIES: u32 = 6;

/// The log of one container.
pub(crate) struct Tail {
    pub api: Api<Pod>,
    pub pod: String,
    pub handle: Handle,
    pub container: String,
    pub store: LogStore,
    /// The container has ended.
    pub ended: watch::Receiver<bool>,
}

/// What was taken of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Taken {
    pub bytes: u64,
    /// Why that is not all of it.
    pub trouble: Option<String>,
}

type Writer = Arc<Mutex<LogWriter>>;

impl Tail {
    /// Runs until the container has ended and its log was taken.
    pub(crate) async fn run(mut self) -> Taken {
        let (store, handle, container) = (self.store.clone(), self.handle.clone(), self.container.clone());
        let writer = match blocking(move || store.resume(&handle, &container)).await {
            Ok(writer) => Arc::new(Mutex::new(writer)),
            Err(error) => return Taken { bytes: 0, trouble: Some(format!("no log could be kept: {error}")) },
        };
        let trouble = self.take_all(&writer).await;
        let bytes = writer.lock().end();
        Taken { bytes, trouble }
    }

    /// Says what is missing, if something is.
    async fn take_all(&mut self, writer: &Writer) -> Option<String> {
        let (mut pause, mut tries) = (FIRST_PAUSE, 0);
        loop {
            let had_ended = *self.ended.borrow();
            let before = writer.lock().end();
            match self.take_stream(writer, !had_ended).await {
                Ok(()) if had_ended => return None,
                Ok(()) => {
                    let at = Instant::now();
                    if self.ended.wait_for(|ended| *ended).await.is_err() || at.elapsed() < SHORTLY {
                        return None;
                    }
                }
                Err(Cut::Disk(error)) => return Some(format!("the log could not be written: {error}")),
                Err(Cut::Gone) => {
                    let what = format!("the pod was gone before the log of {} was taken", self.container);
                    return Some(what);
                }
                Err(Cut::Stream(error)) => {
                    tries = if had_ended { tries + 1 } else { 0 };
                    if tries >= TRIES {
                        return Some(format!("the log of {} could not be taken: {error}", self.container));
                    }
                    pause = if writer.lock().end() > before { FIRST_PAUSE } else { pause };
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    async fn take_stream(&self, writer: &Writer, follow: bool) -> Result<(), Cut> {
        let known = writer.lock().last();
        // Times are asked for in whole seconds, and the client would round them up.
        let since_time = known.and_then(|last| Timestamp::from_second(last.as_second()).ok());
        let container = Some(self.container.clone());
        let asked = LogParams { container, follow, timestamps: true, since_time, ..LogParams::default() };
        let stream =
            self.api.log_stream(&self.pod, &asked).await.map_err(|error| match read_refusal(&error) {
                Refusal::NotFound => Cut::Gone,
                _ => Cut::Stream(error.to_string()),
            })?;
        copy(Box::pin(stream), writer, known).await
    }
}

/// Why a stream ended early.
enum Cut {
    Gone,
    Stream(String),
    Disk(io::Error),
}

/// Copies whole lines until the stream ends; what was written up to `after` is known already.
async fn copy(
    mut stream: impl AsyncBufRead + Unpin,
    writer: &Writer,
    after: Option<Timestamp>,
) -> Result<(), Cut> {
    let (mut line, mut chunk) = (Vec::new(), Chunk::default());
    loop {
        // What is there is taken at once and written together.
        let ready = stream.read_until(b'\n', &mut line).now_or_never();
        let read = if let Some(read) = ready {
            read
        } else {
            flush(writer, &mut chunk).await?;
            stream.read_until(b'\n', &mut line).await
        };
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                flush(writer, &mut chunk).await?;
                return Err(Cut::Stream(error.to_string()));
            }
        };
        if let Some((at, text)) = split_line(&line)
            && after.is_none_or(|after| at > after)
        {
            if chunk.bytes.len() >= CHUNK
                || (!chunk.bytes.is_empty() && at.as_second() != chunk.first.as_second())
            {
                flush(writer, &mut chunk).await?;
            }
            if chunk.bytes.is_empty() {
                chunk.first = at;
            }
            chunk.last = at;
            chunk.bytes.extend_from_slice(text);
        }
        line.clear();
        if read == 0 {
            return flush(writer, &mut chunk).await;
        }
    }
}

async fn flush(writer: &Writer, chunk: &mut Chunk) -> Result<(), Cut> {
    if chunk.bytes.is_empty() {
        return Ok(());
    }
    let (writer, chunk) = (writer.clone(), std::mem::take(chunk));
    blocking(move || writer.lock().append(&chunk)).await.map_err(Cut::Disk)
}

/// A line into its time and its text; `None` for what the cluster says instead of a line.
fn split_line(line: &[u8]) -> Option<(Timestamp, &[u8])> {
    let space = line.iter().position(|byte| *byte == b' ')?;
    let at = std::str::from_utf8(&line[..space]).ok()?.parse().ok()?;
    Some((at, &line[space + 1..]))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use futures_util::io::Cursor;

    use super::*;

    fn store(dir: &std::path::Path) -> (LogStore, Writer) {
        let store = LogStore::new(dir.into(), 1 << 20);
        let writer = store.resume(&handle(), "c").expect("a log");
        (store, Arc::new(Mutex::new(writer)))
    }

    fn handle() -> Handle {
        Handle { task: "t".into(), attempt: 1 }
    }

    fn text(store: &LogStore) -> String {
        let part = store.read(&handle(), "c", 0, 1 << 20).expect("a disk").expect("a log");
        String::from_utf8(part.bytes).expect("text")
    }

    const LOG: &str = "2026-11-15T20:00:00.1Z one\n2026-11-15T20:00:00.2Z two words\n2026-11-15T20:00:01Z \n\
                       2026-11-15T20:00:02Z end";

    #[tokio::test]
    async fn times_are_taken_off_and_the_last_line_needs_no_end() {
        let temp = tempfile::tempdir().unwrap();
        let (store, writer) = store(temp.path());
        assert!(copy(Cursor::new(LOG), &writer, None).await.is_ok());
        assert_eq!(text(&store), "one\ntwo words\n\nend");
    }

    #[tokio::test]
    async fn what_is_known_is_not_taken_twice() {
        let temp = tempfile::tempdir().unwrap();
        let (store, writer) = store(temp.path());
        let first = &LOG[..=LOG.find('\n').unwrap()];
        assert!(copy(Cursor::new(first), &writer, None).await.is_ok());
        let last = writer.lock().last();
        assert!(copy(Cursor::new(LOG), &writer, last).await.is_ok());
        assert_eq!(text(&store), "one\ntwo words\n\nend");
    }

    #[tokio::test]
    async fn what_the_cluster_says_instead_of_a_line_is_not_part_of_the_log() {
        let temp = tempfile::tempdir().unwrap();
        let (store, writer) = store(temp.path());
        let said = format!("unable to retrieve container logs\n{LOG}");
        assert!(copy(Cursor::new(said), &writer, None).await.is_ok());
        assert_eq!(text(&store), "one\ntwo words\n\nend");
    }
}
