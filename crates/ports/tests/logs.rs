//! Logs that moved to where files are kept, and logs that move while they are read.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use muster_ports::blobs::{BlobError, BlobKey, Blobs, MemoryBlobs};
use muster_ports::logs::{
    AllLogs, KeptLogs, LogError, LogPart, LogTimes, Logs, container_key, keep_file, keep_parts,
};
use muster_ports::runtime::Handle;
use muster_types::Millis;

fn handle() -> Handle {
    Handle { task: "7d1c".into(), attempt: 2 }
}

fn shown(part: LogPart) -> (u64, String, u64) {
    (part.offset, String::from_utf8(part.bytes).expect("text"), part.end)
}

fn keep(blobs: &dyn Blobs, first: u64, text: &str, times: &LogTimes) {
    let mut parts = text.as_bytes().chunks(3).map(<[u8]>::to_vec);
    let next = |_| Ok(parts.next().unwrap_or_default());
    keep_parts(blobs, &handle(), "main", first, times, next).expect("memory has room");
}

#[test]
fn a_kept_log_is_read_by_place() {
    let blobs = Arc::new(MemoryBlobs::default());
    keep(&*blobs, 0, "hello world", &LogTimes::default());
    let logs = KeptLogs::new(blobs);
    let read = |offset, max| shown(logs.read(&handle(), "main", offset, max).unwrap());
    assert_eq!(read(0, 5), (0, "hello".into(), 11));
    assert_eq!(read(6, 100), (6, "world".into(), 11));
    assert_eq!(read(99, 100), (11, String::new(), 11), "past the end is the end");
}

#[test]
fn the_place_of_a_byte_stays_when_the_beginning_was_dropped() {
    let blobs = Arc::new(MemoryBlobs::default());
    keep(&*blobs, 1000, "the end", &LogTimes::default());
    let logs = KeptLogs::new(blobs);
    let read = |offset, max| shown(logs.read(&handle(), "main", offset, max).unwrap());
    assert_eq!(read(0, 3), (1000, "the".into(), 1007));
    assert_eq!(read(1004, 99), (1004, "end".into(), 1007));
}

#[test]
fn a_log_that_is_one_file_is_moved_under_the_place_of_its_first_byte() {
    let blobs = MemoryBlobs::default();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"kept").unwrap();
    let times = LogTimes::new([(5, 7), (6, 9)]);
    keep_file(&blobs, &handle(), "main", 7, &times, file.path()).unwrap();
    assert!(!file.path().exists());
    let listed = blobs.list(&BlobKey::of_task("7d1c").unwrap()).unwrap();
    let paths: Vec<_> = listed.iter().map(|entry| (entry.path.as_str(), entry.size)).collect();
    assert_eq!(paths, [("logs/2/main/7", 4), ("logs/2/main/times", 32)]);
}

#[test]
fn the_time_of_a_log_of_one_second_is_in_its_name() {
    let blobs = Arc::new(MemoryBlobs::default());
    keep(&*blobs, 3, "one second", &LogTimes::new([(5, 3)]));
    let listed = blobs.list(&container_key(&handle(), "main").unwrap()).unwrap();
    assert_eq!(listed.iter().map(|entry| entry.path.as_str()).collect::<Vec<_>>(), ["3@5"]);
    let logs = KeptLogs::new(blobs);
    assert_eq!(shown(logs.read(&handle(), "main", 0, 3).unwrap()), (3, "one".into(), 13));
    let at = |millis| logs.offset_at(&handle(), "main", Millis(millis)).unwrap();
    assert_eq!([at(0), at(5999), at(6000)], [3, 3, 13]);
}

#[test]
fn a_log_of_which_no_time_is_known_is_given_whole() {
    let blobs = Arc::new(MemoryBlobs::default());
    keep(&*blobs, 0, "whenever", &LogTimes::default());
    let logs = KeptLogs::new(blobs);
    assert_eq!(logs.offset_at(&handle(), "main", Millis(99_000)).unwrap(), 0);
}

#[test]
fn a_time_is_found_in_a_kept_log() {
    let blobs = Arc::new(MemoryBlobs::default());
    keep(&*blobs, 10, "0123456789", &LogTimes::new([(100, 10), (105, 14), (110, 18)]));
    let logs = KeptLogs::new(blobs);
    let at = |millis| logs.offset_at(&handle(), "main", Millis(millis)).unwrap();
    assert_eq!([at(0), at(101_000), at(105_999), at(106_000), at(111_000)], [10, 14, 14, 18, 20]);
}

#[test]
fn keeping_a_log_again_changes_nothing() {
    let blobs = Arc::new(MemoryBlobs::default());
    for _ in 0..2 {
        keep(&*blobs, 3, "twice", &LogTimes::new([(1, 3), (2, 4)]));
    }
    let part = KeptLogs::new(blobs).read(&handle(), "main", 0, 100).unwrap();
    assert_eq!(shown(part), (3, "twice".into(), 8));
}

#[test]
fn what_is_not_kept_is_not_found_and_what_names_no_file_is_refused() {
    let logs = KeptLogs::new(Arc::new(MemoryBlobs::default()));
    assert!(matches!(logs.read(&handle(), "main", 0, 1), Err(LogError::NotFound)));
    assert!(matches!(logs.offset_at(&handle(), "main", Millis(0)), Err(LogError::NotFound)));
    let bad = logs.read(&handle(), "..", 0, 1);
    assert!(matches!(bad, Err(LogError::Blob(BlobError::BadKey { .. }))), "{bad:?}");
}

#[test]
fn a_log_is_given_up_whole_if_a_part_of_it_cannot_be_read() {
    let blobs = MemoryBlobs::default();
    let mut parts = vec![Err(LogError::NotFound), Ok(b"first".to_vec())];
    let next = |_| parts.pop().unwrap();
    let kept = keep_parts(&blobs, &handle(), "main", 0, &LogTimes::default(), next);
    assert!(matches!(kept, Err(LogError::NotFound)));
    assert_eq!(blobs.list(&BlobKey::of_task("7d1c").unwrap()).unwrap(), []);
}

/// A live log that is gone from one moment on; what is kept from then on is put there in the same moment.
struct Moving {
    text: &'static str,
    gone: AtomicBool,
    /// Moves when it is read.
    moves: bool,
    blobs: Arc<MemoryBlobs>,
}

impl Moving {
    fn there(&self) -> &'static str {
        if self.gone.load(Ordering::SeqCst) { "" } else { self.text }
    }

    fn move_now(&self) {
        if self.moves && !self.gone.load(Ordering::SeqCst) {
            keep(&*self.blobs, 0, self.text, &LogTimes::new([(1, 0), (9, 2)]));
            self.gone.store(true, Ordering::SeqCst);
        }
    }
}

impl Logs for Moving {
    fn read(&self, _: &Handle, _: &str, offset: u64, max: usize) -> Result<LogPart, LogError> {
        self.move_now();
        let text = self.there();
        let offset = offset.min(text.len() as u64);
        let bytes = text.bytes().skip(usize::try_from(offset).unwrap_or(0)).take(max).collect();
        Ok(LogPart { offset, bytes, end: text.len() as u64 })
    }

    fn offset_at(&self, _: &Handle, _: &str, time: Millis) -> Result<u64, LogError> {
        self.move_now();
        let times = LogTimes::new(if self.there().is_empty() { vec![] } else { vec![(1, 0), (9, 2)] });
        Ok(times.offset_at(time, 0, self.there().len() as u64))
    }
}

fn moving(text: &'static str, moves: bool) -> AllLogs {
    let blobs = Arc::new(MemoryBlobs::default());
    let live = Moving { text, gone: AtomicBool::new(false), moves, blobs: blobs.clone() };
    AllLogs::new(vec![Arc::new(live)], KeptLogs::new(blobs))
}

#[test]
fn a_log_is_found_while_it_is_live_and_after_it_moved() {
    for moves in [false, true] {
        let logs = moving("hello", moves);
        assert_eq!(shown(logs.read(&handle(), "main", 1, 3).unwrap()), (1, "ell".into(), 5), "{moves}");
        assert_eq!(logs.offset_at(&handle(), "main", Millis(5000)).unwrap(), 2, "{moves}");
    }
    let logs = moving("hello", true);
    assert_eq!(
        logs.offset_at(&handle(), "main", Millis(5000)).unwrap(),
        2,
        "it moves while it is looked for"
    );
}

#[test]
fn a_log_in_which_nothing_was_written_is_empty() {
    let logs = moving("", false);
    assert_eq!(shown(logs.read(&handle(), "main", 5, 3).unwrap()), (0, String::new(), 0));
    assert_eq!(logs.offset_at(&handle(), "main", Millis(5000)).unwrap(), 0);
}
