//! What robots sent of logs, on this machine, until it is kept for good.
//!
//! `<root>/<uid>-<attempt>/robot` names the robot of an attempt, `ended` beside it says that its end was reported, and
//! `<container>/<base>` holds a log; its name is the place of its first byte. A robot sends pieces again that it is not sure
//! of, so what is there already is skipped.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use muster_ports::logs::{LogPart, LogTimes};
use muster_ports::runtime::Handle;

const ROBOT: &str = "robot";
const ENDED: &str = "ended";

/// Where logs of attempts on robots are.
#[derive(Debug, Clone)]
pub(crate) struct LogStore {
    root: PathBuf,
    max: u64,
}

/// A log that is there.
pub(crate) struct Found {
    pub path: PathBuf,
    pub base: u64,
    pub end: u64,
}

impl LogStore {
    pub(crate) fn new(root: PathBuf, max: u64) -> Self {
        Self { root, max }
    }

    fn dir(&self, handle: &Handle) -> PathBuf {
        self.root.join(handle.to_string())
    }

    /// Writes down that an attempt may be on a robot. Done before it is.
    pub(crate) fn begin(&self, handle: &Handle, robot: &str) -> io::Result<()> {
        fs::create_dir_all(self.dir(handle))?;
        fs::write(self.dir(handle).join(ROBOT), robot)
    }

    /// The robot of an attempt.
    pub(crate) fn robot(&self, handle: &Handle) -> Option<String> {
        fs::read_to_string(self.dir(handle).join(ROBOT)).ok()
    }

    /// Writes down that the end of an attempt was reported.
    pub(crate) fn end(&self, handle: &Handle) -> io::Result<()> {
        let dir = self.dir(handle);
        if dir.is_dir() { fs::write(dir.join(ENDED), "") } else { Ok(()) }
    }

    pub(crate) fn has_ended(&self, handle: &Handle) -> bool {
        self.dir(handle).join(ENDED).exists()
    }

    pub(crate) fn is_known(&self, handle: &Handle) -> bool {
        self.dir(handle).is_dir()
    }

    /// Every attempt that was begun and not removed.
    pub(crate) fn stored(&self) -> io::Result<Vec<Handle>> {
        let parse = |name: String| {
            let (task, attempt) = name.rsplit_once('-')?;
            Some(Handle { task: task.to_owned(), attempt: attempt.parse().ok()? })
        };
        Ok(names(&self.root)?.into_iter().filter_map(parse).collect())
    }

    pub(crate) fn remove(&self, handle: &Handle) -> io::Result<()> {
        match fs::remove_dir_all(self.dir(handle)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Containers that have a log.
    pub(crate) fn containers(&self, handle: &Handle) -> io::Result<Vec<String>> {
        let dir = self.dir(handle);
        Ok(names(&dir)?.into_iter().filter(|name| dir.join(name).is_dir()).collect())
    }

    /// Takes in a piece of a log.
    pub(crate) fn append(
        &self,
        handle: &Handle,
        container: &str,
        offset: u64,
        bytes: &[u8],
    ) -> io::Result<()> {
        let dir = self.dir(handle).join(container);
        fs::create_dir_all(&dir)?;
        let mut found = find(&dir)?;
        // The robot was asked for what is missing before, and will send what follows again.
        while let Some(later) = found.take_if(|found| offset < found.base) {
            fs::remove_file(later.path)?;
            found = find(&dir)?;
        }
        let start = || Found { path: dir.join(offset.to_string()), base: offset, end: offset };
        let Found { mut path, base, end } = found.unwrap_or_else(start);
        let known = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let Some(bytes) = bytes.get(known..).filter(|rest| !rest.is_empty()) else { return Ok(()) };
        let is_too_much = end - base > self.max;
        if is_too_much || offset > end {
            // What is older goes. Before a gap the last part stays, in case the robot still has what lies between.
            remove_before(&dir, if is_too_much { end } else { base })?;
            path = dir.join(offset.max(end).to_string());
        }
        OpenOptions::new().create(true).append(true).open(path)?.write_all(bytes)
    }

    /// The log of a container, if there is one.
    pub(crate) fn find(&self, handle: &Handle, container: &str) -> io::Result<Option<Found>> {
        find(&self.dir(handle).join(container))
    }

    /// Part of a log; `None` if there is none, or it is being moved to where logs are kept.
    pub(crate) fn read(
        &self,
        handle: &Handle,
        container: &str,
        offset: u64,
        max: usize,
    ) -> io::Result<Option<LogPart>> {
        let Some(found) = self.find(handle, container)? else { return Ok(None) };
        let offset = offset.clamp(found.base, found.end);
        let mut file = match File::open(found.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        file.seek(SeekFrom::Start(offset - found.base))?;
        let mut bytes = Vec::new();
        file.take(max as u64).read_to_end(&mut bytes)?;
        Ok(Some(LogPart { offset, bytes, end: found.end }))
    }

    /// When a log was written: robots do not say, so it is when its last piece came.
    pub(crate) fn times(found: &Found) -> LogTimes {
        let changed = fs::metadata(&found.path).and_then(|meta| meta.modified()).ok();
        let since = changed.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let second = since.and_then(|since| i64::try_from(since.as_secs()).ok()).unwrap_or(0);
        LogTimes::new([(second, found.base)])
    }
}

fn find(dir: &Path) -> io::Result<Option<Found>> {
    let bases = names(dir)?.into_iter().filter_map(|name| name.parse::<u64>().ok());
    let Some(base) = bases.max() else { return Ok(None) };
    let path = dir.join(base.to_string());
    match fs::metadata(&path) {
        Ok(meta) => Ok(Some(Found { end: base + meta.len(), path, base })),
        // It went between the two looks.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes the parts of a log that begin before a place.
fn remove_before(dir: &Path, place: u64) -> io::Result<()> {
    let is_old = |name: &String| name.parse::<u64>().is_ok_and(|base| base < place);
    for name in names(dir)?.into_iter().filter(is_old) {
        match fs::remove_file(dir.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn names(dir: &Path) -> io::Result<Vec<String>> {
    match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => Ok(entries?.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle() -> Handle {
        Handle { task: "u-v".to_owned(), attempt: 3 }
    }

    fn text(store: &LogStore) -> (u64, String) {
        let part = store.read(&handle(), "addon", 0, 1000).unwrap().unwrap();
        (part.offset, String::from_utf8(part.bytes).unwrap())
    }

    #[test]
    fn pieces_that_come_twice_are_there_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = LogStore::new(dir.path().into(), 1000);
        store.begin(&handle(), "r1").unwrap();
        for (offset, bytes) in [(0, "one "), (0, "one "), (2, "e two "), (4, "two "), (8, "three")] {
            store.append(&handle(), "addon", offset, bytes.as_bytes()).unwrap();
        }
        assert_eq!(text(&store), (0, "one two three".to_owned()));
        assert_eq!(store.stored().unwrap(), [handle()]);
        assert_eq!(store.containers(&handle()).unwrap(), ["addon"]);
        assert_eq!(store.robot(&handle()).as_deref(), Some("r1"));
    }

    #[test]
    fn behind_a_gap_the_log_begins_anew_at_its_own_place() {
        let dir = tempfile::tempdir().unwrap();
        let store = LogStore::new(dir.path().into(), 1000);
        store.append(&handle(), "addon", 0, b"lost").unwrap();
        store.append(&handle(), "addon", 100, b"later").unwrap();
        assert_eq!(text(&store), (100, "later".to_owned()));
    }

    #[test]
    fn what_was_missing_can_be_sent_again() {
        let dir = tempfile::tempdir().unwrap();
        let store = LogStore::new(dir.path().into(), 1000);
        for (offset, bytes) in [(4, "two "), (0, "one "), (4, "two "), (8, "three")] {
            store.append(&handle(), "addon", offset, bytes.as_bytes()).unwrap();
        }
        assert_eq!(text(&store), (0, "one two three".to_owned()));
    }

    #[test]
    fn what_was_there_before_a_gap_is_there_still_when_the_gap_is_filled() {
        let dir = tempfile::tempdir().unwrap();
        let store = LogStore::new(dir.path().into(), 1000);
        store.append(&handle(), "addon", 0, b"one ").unwrap();
        store.append(&handle(), "addon", 8, b"three").unwrap();
        assert_eq!(text(&store), (8, "three".to_owned()));
        store.append(&handle(), "addon", 4, b"two ").unwrap();
        store.append(&handle(), "addon", 8, b"three").unwrap();
        assert_eq!(text(&store), (0, "one two three".to_owned()));
        for place in 1..9 {
            store.append(&handle(), "addon", place * 100, b"far").unwrap();
        }
        let parts = fs::read_dir(store.dir(&handle()).join("addon")).unwrap().count();
        assert_eq!(parts, 2, "only the last part before a gap is kept");
    }

    #[test]
    fn a_log_does_not_grow_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let store = LogStore::new(dir.path().into(), 10);
        for place in 0..9 {
            store.append(&handle(), "addon", place * 4, b"abcd").unwrap();
        }
        let (first, kept) = text(&store);
        assert!(first > 0 && kept.len() <= 14 && kept.ends_with("abcd"), "{first} {kept}");
    }
}
