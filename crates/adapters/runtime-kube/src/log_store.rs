//! Logs of pods on this machine, until they are kept for good.
//!
//! `<root>/<uid>-<attempt>/<container>/<base>` holds a part of a log; its name is the place of its first byte. `index` beside it
//! says, line by line, up to where the log was taken and when that was written: whoever goes on after a crash cuts off what is
//! behind the last line and asks for what was written later, so nothing is missing and nothing is there twice.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use muster_ports::logs::{LogPart, LogTimes};
use muster_ports::runtime::Handle;

/// Beside the parts of a log.
const INDEX: &str = "index";

/// Where logs of attempts are.
#[derive(Debug, Clone)]
pub(crate) struct LogStore {
    root: PathBuf,
    max: u64,
}

/// Whole lines that were written at about the same time.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    pub bytes: Vec<u8>,
    pub first: Timestamp,
    pub last: Timestamp,
}

/// The end of a log that is being taken.
#[derive(Debug)]
pub(crate) struct LogWriter {
    dir: PathBuf,
    file: File,
    index: File,
    base: u64,
    end: u64,
    last: Option<Timestamp>,
    max_part: u64,
}

impl LogStore {
    pub(crate) fn new(root: PathBuf, max: u64) -> Self {
        Self { root, max }
    }

    fn dir(&self, handle: &Handle) -> PathBuf {
        self.root.join(handle.to_string())
    }

    /// Writes down that something of an attempt may be in the cluster. Done before anything is.
    pub(crate) fn begin(&self, handle: &Handle) -> io::Result<()> {
        fs::create_dir_all(self.dir(handle))
    }

    pub(crate) fn is_known(&self, handle: &Handle) -> bool {
        self.dir(handle).is_dir()
    }

    /// Every attempt that was begun and not removed.
    pub(crate) fn stored(&self) -> io::Result<Vec<Handle>> {
        let entries = match fs::read_dir(&self.root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let parse = |name: String| {
            let (task, attempt) = name.rsplit_once('-')?;
            Some(Handle { task: task.to_owned(), attempt: attempt.parse().ok()? })
        };
        Ok(names.filter_map(parse).collect())
    }

    pub(crate) fn remove(&self, handle: &Handle) -> io::Result<()> {
        match fs::remove_dir_all(self.dir(handle)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Containers that have a log.
    pub(crate) fn containers(&self, handle: &Handle) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.dir(handle)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        Ok(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
    }

    /// Goes on with a log, or begins it.
    pub(crate) fn resume(&self, handle: &Handle, container: &str) -> io::Result<LogWriter> {
        let dir = self.dir(handle).join(container);
        fs::create_dir_all(&dir)?;
        let known = read_index(&dir)?;
        let last = known.last().map(|line| (line.end, line.last));
        let end = last.map_or(0, |(end, _)| end);
        let mut base = 0;
        for part in parts(&dir)? {
            if part > end || (last.is_none() && part > 0) {
                fs::remove_file(dir.join(part.to_string()))?;
            } else {
                base = part;
            }
        }
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .open(dir.join(base.to_string()))?;
        file.set_len(end - base)?;
        file.seek(SeekFrom::End(0))?;
        let index = OpenOptions::new().create(true).append(true).open(dir.join(INDEX))?;
        Ok(LogWriter { dir, file, index, base, end, last: last.map(|(_, at)| at), max_part: self.max / 2 })
    }

    /// Part of a log; `None` if there is none.
    pub(crate) fn read(
        &self,
        handle: &Handle,
        container: &str,
        offset: u64,
        max: usize,
    ) -> io::Result<Option<LogPart>> {
        let dir = self.dir(handle).join(container);
        let parts = parts(&dir)?;
        let Some(first) = parts.first().copied() else { return Ok(None) };
        let size = |part: u64| fs::metadata(dir.join(part.to_string())).map(|meta| meta.len());
        let end = match parts.last() {
            Some(last) => last + size(*last)?,
            None => first,
        };
        let offset = offset.clamp(first, end);
        let within = parts.iter().rev().copied().find(|part| *part <= offset).unwrap_or(first);
        let mut file = File::open(dir.join(within.to_string()))?;
        file.seek(SeekFrom::Start(offset - within))?;
        let mut bytes = Vec::new();
        file.take(max as u64).read_to_end(&mut bytes)?;
        Ok(Some(LogPart { offset, bytes, end }))
    }

    pub(crate) fn times(&self, handle: &Handle, container: &str) -> io::Result<LogTimes> {
        let index = read_index(&self.dir(handle).join(container))?;
        Ok(LogTimes::new(index.iter().map(|line| (line.first.as_second(), line.start))))
    }
}

impl LogWriter {
    /// When the last line was written that was taken.
    pub(crate) fn last(&self) -> Option<Timestamp> {
        self.last
    }

    /// How much was taken.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn append(&mut self, chunk: &Chunk) -> io::Result<()> {
        if self.end - self.base >= self.max_part {
            self.next_part()?;
        }
        self.file.write_all(&chunk.bytes)?;
        let start = self.end;
        self.end += chunk.bytes.len() as u64;
        let line = IndexLine { start, first: chunk.first, end: self.end, last: chunk.last };
        self.index.write_all(line.to_text().as_bytes())?;
        self.last = Some(chunk.last);
        Ok(())
    }

    fn next_part(&mut self) -> io::Result<()> {
        self.file = File::create(self.dir.join(self.end.to_string()))?;
        self.base = self.end;
        let old = parts(&self.dir)?;
        for part in &old[..old.len().saturating_sub(2)] {
            fs::remove_file(self.dir.join(part.to_string()))?;
        }
        Ok(())
    }
}

struct IndexLine {
    start: u64,
    first: Timestamp,
    end: u64,
    last: Timestamp,
}

impl IndexLine {
    fn to_text(&self) -> String {
        format!("{} {} {} {}\n", self.start, self.first.as_nanosecond(), self.end, self.last.as_nanosecond())
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let start = words.next()?.parse().ok()?;
        let first = Timestamp::from_nanosecond(words.next()?.parse().ok()?).ok()?;
        let end = words.next()?.parse().ok()?;
        let last = Timestamp::from_nanosecond(words.next()?.parse().ok()?).ok()?;
        Some(Self { start, first, end, last })
    }
}

/// Whole lines only: the last one may have been cut by a crash.
fn read_index(dir: &Path) -> io::Result<Vec<IndexLine>> {
    let text = match fs::read_to_string(dir.join(INDEX)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    Ok(whole.lines().filter_map(IndexLine::parse).collect())
}

/// Where the parts of a log begin.
fn parts(dir: &Path) -> io::Result<Vec<u64>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut parts: Vec<u64> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    parts.sort_unstable();
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle() -> Handle {
        Handle { task: "a-b".into(), attempt: 3 }
    }

    fn chunk(text: &str, second: i64) -> Chunk {
        let at = Timestamp::from_second(second).unwrap();
        Chunk { bytes: text.as_bytes().to_vec(), first: at, last: at }
    }

    fn text(store: &LogStore) -> String {
        let part = store.read(&handle(), "addon", 0, 1000).unwrap().unwrap();
        String::from_utf8(part.bytes).unwrap()
    }

    #[test]
    fn what_was_cut_by_a_crash_is_taken_again_from_the_last_whole_line() {
        let temp = tempfile::tempdir().unwrap();
        let store = LogStore::new(temp.path().into(), 1000);
        let mut writer = store.resume(&handle(), "addon").unwrap();
        assert_eq!(writer.last(), None);
        writer.append(&chunk("one\n", 1)).unwrap();
        writer.append(&chunk("two\n", 2)).unwrap();
        drop(writer);
        let dir = temp.path().join("a-b-3/addon");
        fs::write(dir.join("0"), "one\ntwo\nthr").unwrap();
        let index = fs::read_to_string(dir.join(INDEX)).unwrap();
        fs::write(dir.join(INDEX), format!("{index}8 30000")).unwrap();
        let mut writer = store.resume(&handle(), "addon").unwrap();
        assert_eq!((writer.last(), writer.end()), (Some(Timestamp::from_second(2).unwrap()), 8));
        writer.append(&chunk("three\n", 3)).unwrap();
        assert_eq!(text(&store), "one\ntwo\nthree\n");
    }

    #[test]
    fn of_a_long_log_the_newest_part_is_kept() {
        let temp = tempfile::tempdir().unwrap();
        let store = LogStore::new(temp.path().into(), 20);
        let mut writer = store.resume(&handle(), "addon").unwrap();
        for number in 10..20 {
            writer.append(&chunk(&format!("line {number}\n"), number)).unwrap();
        }
        let part = store.read(&handle(), "addon", 0, 1000).unwrap().unwrap();
        assert_eq!((part.end, part.offset > 0), (80, true));
        let all: Vec<u8> = {
            let mut all = part.bytes;
            while part.offset + (all.len() as u64) < part.end {
                let place = part.offset + all.len() as u64;
                all.extend(store.read(&handle(), "addon", place, 1000).unwrap().unwrap().bytes);
            }
            all
        };
        let all = String::from_utf8(all).unwrap();
        assert!(all.ends_with("line 18\nline 19\n") && !all.contains("line 10"), "{all}");
    }

    #[test]
    fn a_time_is_found_in_a_log() {
        let temp = tempfile::tempdir().unwrap();
        let store = LogStore::new(temp.path().into(), 1000);
        let mut writer = store.resume(&handle(), "addon").unwrap();
        writer.append(&chunk("one\n", 1)).unwrap();
        writer.append(&chunk("two\n", 5)).unwrap();
        let times = store.times(&handle(), "addon").unwrap();
        assert_eq!(times.offset_at(muster_ports::clock::Millis(3000), 0, 8), 4);
    }

    #[test]
    fn attempts_are_known_from_before_their_pod_until_they_are_removed() {
        let temp = tempfile::tempdir().unwrap();
        let store = LogStore::new(temp.path().join("later"), 1000);
        assert_eq!(store.stored().unwrap(), []);
        store.begin(&handle()).unwrap();
        assert_eq!(store.stored().unwrap(), [handle()]);
        assert!(store.is_known(&handle()));
        store.remove(&handle()).unwrap();
        store.remove(&handle()).unwrap();
        assert!(!store.is_known(&handle()));
    }
}
