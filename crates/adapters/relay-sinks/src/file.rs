//! A file below a directory, one message in a line. A message is confirmed when it is on disk.
//!
//! A CloudEvent that is one document is the line; of anything else the line holds id, topic, attributes and data. A file that
//! has become too large is put aside under a number, the latest being 1. A line that was cut off by a crash is left as it is,
//! and its message is written again.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use muster_ports::publisher::{Boxed, PublishError, Publisher, Session, Verdict};
use muster_types::Message;
use muster_types::event_sink::FileSink;
use rustix::io::Errno;
use serde_json::{Map, Value, json};

use crate::beneath::Place;

/// A file on this machine.
#[derive(Debug, Clone)]
pub struct FilePublisher {
    directory: PathBuf,
    path: String,
    max_bytes: u64,
    keep: u32,
}

impl FilePublisher {
    /// A file at a path below a directory. It is put aside when it is larger than `max_bytes`; `keep` of those are kept.
    pub fn new(directory: impl Into<PathBuf>, path: &str, max_bytes: u64, keep: u32) -> Self {
        Self { directory: directory.into(), path: path.to_owned(), max_bytes, keep }
    }

    fn failed(&self, error: &io::Error) -> PublishError {
        let path = self.directory.join(&self.path);
        let path = path.display();
        if Errno::from_io_error(error) == Some(Errno::LOOP) {
            let message =
                format!("{path} is or crosses a symbolic link; remove the link or name another path");
            return PublishError::new("PathNotAllowed", message);
        }
        let reason = if error.kind() == io::ErrorKind::StorageFull { "DiskFull" } else { "CannotWrite" };
        PublishError::new(reason, format!("{path} cannot be written: {error}"))
    }
}

impl Publisher for FilePublisher {
    fn open(&self) -> Boxed<'_, Result<Box<dyn Session>, PublishError>> {
        Box::pin(async {
            FileSink::check_path(&self.path)
                .map_err(|why| PublishError::new("PathNotAllowed", format!("{}: {why}", self.path)))?;
            let this = self.clone();
            let open = tokio::task::spawn_blocking(move || {
                Place::find(&this.directory, &this.path)
                    .and_then(Open::new)
                    .map_err(|error| this.failed(&error))
            });
            let open = open.await.map_err(|error| PublishError::new("CannotWrite", error))??;
            let session = FileSession { rules: self.clone(), open: Some(open), verdicts: VecDeque::new() };
            Ok(Box::new(session) as Box<dyn Session>)
        })
    }
}

struct Open {
    place: Place,
    file: File,
    size: u64,
}

impl Open {
    fn new(place: Place) -> io::Result<Self> {
        let mut file = place.open()?;
        let mut size = file.metadata()?.len();
        let mut last = [b'\n'];
        if size > 0 {
            file.read_exact_at(&mut last, size - 1)?;
        }
        if last != [b'\n'] {
            file.write_all(b"\n")?;
            size += 1;
        }
        Ok(Self { place, file, size })
    }
}

struct FileSession {
    rules: FilePublisher,
    /// `None` after a write failed.
    open: Option<Open>,
    verdicts: VecDeque<(u64, Verdict)>,
}

impl Session for FileSession {
    fn send<'a>(&'a mut self, messages: &'a [(u64, Arc<Message>)]) -> Boxed<'a, Result<(), PublishError>> {
        Box::pin(async move {
            let mut lines = Vec::new();
            for (_, message) in messages {
                lines.extend(line(message));
                lines.push(b'\n');
            }
            let Some(open) = self.open.take() else {
                return Err(PublishError::new("CannotWrite", "an earlier write failed"));
            };
            let rules = self.rules.clone();
            let written = tokio::task::spawn_blocking(move || {
                append(&rules, open, &lines).map_err(|error| rules.failed(&error))
            });
            self.open = Some(written.await.map_err(|error| PublishError::new("CannotWrite", error))??);
            self.verdicts.extend(messages.iter().map(|(number, _)| (*number, Verdict::Confirmed)));
            Ok(())
        })
    }

    fn verdicts(&mut self) -> Boxed<'_, Result<Vec<(u64, Verdict)>, PublishError>> {
        Box::pin(async {
            if self.verdicts.is_empty() {
                std::future::pending::<()>().await;
            }
            Ok(self.verdicts.drain(..).collect())
        })
    }
}

fn append(rules: &FilePublisher, mut open: Open, lines: &[u8]) -> io::Result<Open> {
    if open.size > rules.max_bytes {
        put_aside(&open.place, rules.keep)?;
        open = Open::new(open.place)?;
    }
    open.file.write_all(lines)?;
    open.file.sync_data()?;
    open.size += lines.len() as u64;
    Ok(open)
}

/// The file becomes number 1, number 1 becomes 2, and so on; the last is gone.
fn put_aside(place: &Place, keep: u32) -> io::Result<()> {
    if keep == 0 {
        return place.remove();
    }
    for number in (1..keep).rev() {
        match place.renumber(number, number + 1) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    place.renumber(0, 1)
}

fn line(message: &Message) -> Vec<u8> {
    if message.content_type.starts_with("application/cloudevents") {
        return message.body.clone();
    }
    let data: Value = serde_json::from_slice(&message.body)
        .unwrap_or_else(|_| json!(String::from_utf8_lossy(&message.body)));
    let mut line = json!({"id": message.id, "topic": message.topic, "data": data});
    if !message.attributes.is_empty() {
        let attributes = message.attributes.iter();
        let attributes: Map<String, Value> =
            attributes.map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        line["attributes"] = Value::Object(attributes);
    }
    line.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_has_a_reason_of_its_own() {
        let publisher = FilePublisher::new("/d", "a", 1, 1);
        assert_eq!(publisher.failed(&Errno::NOSPC.into()).reason, "DiskFull");
        assert_eq!(publisher.failed(&Errno::IO.into()).reason, "CannotWrite");
    }
}
