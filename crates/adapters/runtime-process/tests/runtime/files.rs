use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use muster_ports::blobs::{BlobError, BlobKey, Blobs, MemoryBlobs};
use muster_ports::clock::{Clock, Millis, SystemClock};
use muster_ports::logs::{AllLogs, KeptLogs, LogError, LogPart, Logs};
use muster_ports::runtime::{FilesError, Runtime};
use tempfile::tempdir;

use crate::yard::{LONG, Yard, eventually, handle, launch, settings};

#[tokio::test]
async fn files_of_an_attempt_are_listed_and_removed_when_it_has_ended() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    yard.start("t", "echo kept > file; echo said; exec sleep 3600");
    yard.started("t").await;
    let blobs = MemoryBlobs::default();
    assert!(matches!(yard.runtime.remove(&handle("t")), Err(FilesError::Running)));
    assert!(matches!(yard.runtime.keep_logs(&handle("t"), &blobs), Err(FilesError::Running)));
    yard.runtime.stop(&handle("t"), LONG);
    yard.ending("t").await;
    assert_eq!(yard.runtime.stored().expect("a test needs it"), [handle("t")]);
    yard.runtime.remove(&handle("t")).expect("a test needs it");
    assert_eq!(yard.runtime.stored().expect("a test needs it"), []);
    yard.runtime.remove(&handle("t")).expect("a test needs it");
    assert!(matches!(yard.runtime.logs().read(&handle("t"), "main", 0, 10), Err(LogError::NotFound)));
}

/// What is kept, without the second in which it was written.
fn kept(blobs: &MemoryBlobs) -> Vec<(String, u64)> {
    let all = blobs.list(&BlobKey::of_task("t").expect("a test needs it")).expect("a test needs it");
    let plain = |path: &str| path.split_once('@').map_or(path, |(plain, _)| plain).to_owned();
    all.into_iter().map(|entry| (plain(&entry.path), entry.size)).collect()
}

#[tokio::test]
async fn logs_of_an_ended_attempt_move_to_the_files_and_stay_readable() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    let main = "until test -s ../logs/side.car.log; do :; done; echo from main";
    yard.runtime.start(launch("t", &[("main", main), ("side.car", "echo; exit 0")]));
    yard.ending("t").await;
    let blobs = Arc::new(MemoryBlobs::default());
    let all = AllLogs::new(vec![Arc::new(yard.runtime.logs())], KeptLogs::new(blobs.clone()));
    let part = LogPart { offset: 5, bytes: b"main\n".to_vec(), end: 10 };
    assert_eq!(all.read(&handle("t"), "main", 5, 100).expect("a test needs it"), part);
    for round in 0..2 {
        yard.runtime.keep_logs(&handle("t"), &*blobs).expect("a test needs it");
        let expected = [("logs/1/main/0".to_string(), 10), ("logs/1/side.car/0".to_string(), 1)];
        assert_eq!(kept(&blobs), expected, "round {round}");
        assert_eq!(all.read(&handle("t"), "main", 5, 100).expect("a test needs it"), part);
    }
    let empty = yard.runtime.logs().read(&handle("t"), "main", 0, 100).expect("a test needs it");
    assert_eq!(empty, LogPart::default(), "nothing of it is left where it ran");
    let later = Millis(SystemClock.now().0 + 5000);
    assert_eq!(
        all.offset_at(&handle("t"), "main", later).expect("a test needs it"),
        10,
        "it is older than that"
    );
    yard.runtime.remove(&handle("t")).expect("a test needs it");
    yard.runtime.keep_logs(&handle("t"), &*blobs).expect("a test needs it");
    assert_eq!(all.read(&handle("t"), "main", 5, 100).expect("a test needs it"), part);
}

#[tokio::test]
async fn an_attempt_that_wrote_nothing_keeps_nothing() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    yard.start("t", "exit 0");
    yard.ending("t").await;
    let blobs = MemoryBlobs::default();
    yard.runtime.keep_logs(&handle("t"), &blobs).expect("a test needs it");
    assert_eq!(kept(&blobs), []);
}

#[tokio::test]
async fn what_was_kept_of_a_rotated_log_moves_with_its_places() {
    let temp = tempdir().expect("a test needs it");
    let mut small = settings(temp.path());
    small.executor.log_max_bytes = 1000;
    let mut yard = Yard::with(small);
    yard.start("t", "seq -w 1 999; seq -w 1 50");
    yard.ending("t").await;
    let blobs = Arc::new(MemoryBlobs::default());
    let live = yard.runtime.logs().read(&handle("t"), "main", 0, usize::MAX).expect("a test needs it");
    assert!(live.offset > 0 && live.end == 4146, "{} to {}", live.offset, live.end);
    yard.runtime.keep_logs(&handle("t"), &*blobs).expect("a test needs it");
    let moved = KeptLogs::new(blobs.clone());
    assert_eq!(moved.read(&handle("t"), "main", 0, usize::MAX).expect("a test needs it"), live);
    let empty = yard.runtime.logs().read(&handle("t"), "main", 0, 100).expect("a test needs it");
    assert_eq!(empty, LogPart::default());
}

#[tokio::test]
async fn a_log_tells_when_it_was_written_while_it_is_live_and_after() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    yard.start("t", "mkfifo fifo; echo early; read line < fifo; echo late");
    yard.started("t").await;
    eventually("the first line", || (yard.log("t") == "early\n").then_some(())).await;
    let seen = SystemClock.now().0;
    eventually("the next second", || (SystemClock.now().0 / 1000 > seen / 1000).then_some(())).await;
    fs::write(temp.path().join("t-1/work/fifo"), "go\n").expect("a test needs it");
    yard.ending("t").await;
    let blobs = Arc::new(MemoryBlobs::default());
    let all = AllLogs::new(vec![Arc::new(yard.runtime.logs())], KeptLogs::new(blobs.clone()));
    for moved in [false, true] {
        let at = |after| all.offset_at(&handle("t"), "main", Millis(seen + after)).expect("a test needs it");
        let hour = 3_600_000;
        assert_eq!([at(-hour), at(1000), at(hour)], [0, 6, 11], "moved: {moved}");
        yard.runtime.keep_logs(&handle("t"), &*blobs).expect("a test needs it");
    }
    assert_eq!(kept(&blobs).len(), 2, "the log and its times");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_reads_while_a_log_moves_sees_all_of_it() {
    let temp = tempdir().expect("a test needs it");
    let mut small = settings(temp.path());
    small.executor.log_max_bytes = 1000;
    let mut yard = Yard::with(small);
    let blobs = Arc::new(MemoryBlobs::default());
    let all = AllLogs::new(vec![Arc::new(yard.runtime.logs())], KeptLogs::new(blobs.clone()));
    // Some are rotated, some are not.
    for (task, lines) in (0..40).map(|index| (format!("t{index}"), if index % 2 == 0 { 500 } else { 5 })) {
        yard.start(&task, &format!("seq -w 1 {lines}"));
        yard.ending(&task).await;
        let whole = all.read(&handle(&task), "main", 0, usize::MAX).expect("a test needs it");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut last = false;
                while !last {
                    last = done.load(Ordering::SeqCst);
                    let part = all.read(&handle(&task), "main", 0, usize::MAX).expect("it is always there");
                    assert_eq!(part, whole);
                }
            });
            yard.runtime.keep_logs(&handle(&task), &*blobs).expect("a test needs it");
            yard.runtime.remove(&handle(&task)).expect("a test needs it");
            done.store(true, Ordering::SeqCst);
            reader.join().expect("the reader always sees all of it");
        });
    }
}

/// Files that can be kept nowhere.
struct Full;

impl Blobs for Full {
    fn write(&self, key: &BlobKey) -> Result<Box<dyn muster_ports::blobs::BlobWriter>, BlobError> {
        Err(BlobError::Io { key: key.clone(), error: std::io::ErrorKind::StorageFull.into() })
    }

    fn take(&self, key: &BlobKey, _: &std::path::Path) -> Result<(), BlobError> {
        Err(BlobError::Io { key: key.clone(), error: std::io::ErrorKind::StorageFull.into() })
    }

    fn read(&self, key: &BlobKey, _: u64, _: usize) -> Result<Vec<u8>, BlobError> {
        Err(BlobError::NotFound(key.clone()))
    }

    fn size(&self, key: &BlobKey) -> Result<u64, BlobError> {
        Err(BlobError::NotFound(key.clone()))
    }

    fn list(&self, _: &BlobKey) -> Result<Vec<muster_ports::blobs::BlobEntry>, BlobError> {
        Ok(vec![])
    }

    fn delete(&self, _: &BlobKey) -> Result<(), BlobError> {
        Ok(())
    }

    fn tasks(&self) -> Result<Vec<String>, BlobError> {
        Ok(vec![])
    }
}

#[tokio::test]
async fn a_log_that_cannot_be_kept_stays_where_it_is() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    yard.start("t", "echo precious");
    yard.ending("t").await;
    let refused = yard.runtime.keep_logs(&handle("t"), &Full);
    assert!(matches!(refused, Err(FilesError::Blob(BlobError::Io { .. }))), "{refused:?}");
    assert_eq!(yard.log("t"), "precious\n");
}

#[tokio::test]
async fn directories_that_nobody_touched_are_used_again() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    let inode = |task: &str| {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(temp.path().join(format!("{task}-1/work"))).expect("a test needs it").ino()
    };
    yard.start("first", "echo of the first");
    yard.ending("first").await;
    let used = inode("first");
    yard.runtime.remove(&handle("first")).expect("a test needs it");
    let mut seen = Vec::new();
    // The executor looks for them now and then.
    while !seen.contains(&used) {
        let task = format!("t{}", seen.len());
        yard.start(&task, "ls -A; pwd");
        yard.ending(&task).await;
        assert_eq!(yard.log(&task), format!("{}\n", temp.path().join(format!("{task}-1/work")).display()));
        seen.push(inode(&task));
        assert!(seen.len() < 1000, "the directory was never used again");
    }
}

#[tokio::test]
async fn a_log_that_an_attempt_replaced_by_a_link_is_not_read() {
    let temp = tempdir().expect("a test needs it");
    let secret = temp.path().join("secret");
    fs::write(&secret, "secret").expect("a test needs it");
    let mut yard = Yard::new(&temp.path().join("root"));
    let replace = format!("rm ../logs/main.log; ln -s {} ../logs/main.log", secret.display());
    yard.start("t", &format!("echo x; until test -s ../logs/main.log; do :; done; {replace}"));
    yard.ending("t").await;
    let read = yard.runtime.logs().read(&handle("t"), "main", 0, 10);
    assert!(matches!(read, Err(LogError::Io(_))), "{read:?}");
    let blobs = MemoryBlobs::default();
    yard.runtime.keep_logs(&handle("t"), &blobs).expect("it does not hold up anything");
    assert_eq!(kept(&blobs), [], "what is no log is not kept");
    yard.runtime.remove(&handle("t")).expect("a test needs it");
    assert_eq!(fs::read_to_string(&secret).expect("a test needs it"), "secret");
}
