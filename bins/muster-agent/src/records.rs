//! What this robot knows of its attempts, on disk: an attempt is written down before it is started, and each report before it
//! is sent. An attempt that was forgotten leaves a mark for a day, so that a late message does not start it again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use muster_fleet_mqtt::messages::Status;
use muster_types::attempt::{Handle, Observation};
use serde::{Deserialize, Serialize};

use crate::private;

/// How long it is remembered that an attempt was forgotten.
const MARKS: Duration = Duration::from_hours(24);
const RECORD: &str = "json";
const MARK: &str = "gone";

/// An attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Which one.
    pub handle: Handle,
    /// Its containers, whose logs are sent.
    pub containers: Vec<String>,
    /// Time to end in, if the server does not say.
    pub kill_timeout: Duration,
    /// It is stopped after this time without a connection.
    pub stop_after_silence: Option<Duration>,
    /// What was said of it, in order.
    pub reports: Vec<Status>,
    /// Nothing more will be said.
    pub ended: bool,
}

impl Record {
    /// Whether it was said that it runs.
    pub fn has_started(&self) -> bool {
        self.reports.iter().any(|report| matches!(report.observation, Some(Observation::Started)))
    }
}

/// All attempts.
#[derive(Debug)]
pub struct Records {
    dir: PathBuf,
    known: BTreeMap<Handle, Record>,
}

impl Records {
    /// Reads what is there.
    pub fn open(dir: &Path) -> io::Result<Self> {
        private::make_dir(dir)?;
        let mut known = BTreeMap::new();
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            match path.extension().and_then(|extension| extension.to_str()) {
                Some(RECORD) => {
                    // One that was cut off while it was written was not started either.
                    if let Ok(record) = serde_json::from_slice::<Record>(&fs::read(&path)?) {
                        known.insert(record.handle.clone(), record);
                    }
                }
                Some(MARK) => {
                    let age = fs::metadata(&path)?
                        .modified()
                        .ok()
                        .and_then(|at| SystemTime::now().duration_since(at).ok());
                    if age.is_some_and(|age| age > MARKS) {
                        fs::remove_file(&path)?;
                    }
                }
                _ => {}
            }
        }
        Ok(Self { dir: dir.to_owned(), known })
    }

    pub fn get(&self, handle: &Handle) -> Option<&Record> {
        self.known.get(handle)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        self.known.values()
    }

    /// How many have not ended.
    pub fn running(&self) -> u32 {
        u32::try_from(self.known.values().filter(|record| !record.ended).count()).unwrap_or(u32::MAX)
    }

    /// Writes an attempt down.
    pub fn put(&mut self, record: Record) -> io::Result<()> {
        let path = self.path(&record.handle, RECORD);
        let text = serde_json::to_vec(&record).map_err(io::Error::other)?;
        let draft = path.with_extension("new");
        private::write(&draft, &text)?.sync_all()?;
        fs::rename(draft, path)?;
        self.known.insert(record.handle.clone(), record);
        Ok(())
    }

    /// Forgets an attempt for good.
    pub fn forget(&mut self, handle: &Handle) -> io::Result<()> {
        private::write(&self.path(handle, MARK), b"")?;
        self.known.remove(handle);
        match fs::remove_file(self.path(handle, RECORD)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// True if an attempt was forgotten.
    pub fn is_forgotten(&self, handle: &Handle) -> bool {
        self.path(handle, MARK).exists()
    }

    fn path(&self, handle: &Handle, extension: &str) -> PathBuf {
        self.dir.join(format!("{handle}.{extension}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            handle: Handle { task: "u".to_owned(), attempt: 1 },
            containers: vec!["addon".to_owned()],
            kill_timeout: Duration::from_secs(1),
            stop_after_silence: None,
            reports: vec![],
            ended: false,
        }
    }

    #[test]
    fn what_was_written_down_is_known_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let mut records = Records::open(dir.path()).unwrap();
        records.put(record()).unwrap();
        let again = Records::open(dir.path()).unwrap();
        assert_eq!((again.get(&record().handle), again.running()), (Some(&record()), 1));
    }

    #[test]
    fn what_was_forgotten_is_not_started_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut records = Records::open(dir.path()).unwrap();
        records.put(record()).unwrap();
        records.forget(&record().handle).unwrap();
        let again = Records::open(dir.path()).unwrap();
        assert!(again.is_forgotten(&record().handle) && again.get(&record().handle).is_none());
    }

    #[test]
    fn a_record_that_was_cut_off_harms_nobody() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("u-1.json"), "{\"handle\":").unwrap();
        assert_eq!(Records::open(dir.path()).unwrap().iter().count(), 0);
    }
}
