use std::fs;

use muster_runtime_process::{ReadError, RemoveError};
use tempfile::tempdir;

use crate::yard::{LONG, Yard, handle};

#[tokio::test]
async fn files_of_an_attempt_are_listed_and_removed_when_it_has_ended() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    yard.start("t", "echo kept > file; echo said; exec sleep 3600");
    yard.started("t").await;
    assert!(matches!(yard.runtime.remove(&handle("t")), Err(RemoveError::Running)));
    yard.runtime.stop(&handle("t"), LONG);
    yard.ending("t").await;
    assert_eq!(yard.runtime.stored().expect("a test needs it"), [handle("t")]);
    assert!(yard.runtime.log_path(&handle("t"), "main").starts_with(temp.path()));
    yard.runtime.remove(&handle("t")).expect("a test needs it");
    assert_eq!(yard.runtime.stored().expect("a test needs it"), []);
    yard.runtime.remove(&handle("t")).expect("a test needs it");
    assert!(matches!(yard.runtime.read_log(&handle("t"), "main", 0, 10), Err(ReadError::NoAttempt)));
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
    let read = yard.runtime.read_log(&handle("t"), "main", 0, 10);
    assert!(matches!(read, Err(ReadError::NotAFile)), "{read:?}");
    yard.runtime.remove(&handle("t")).expect("a test needs it");
    assert_eq!(fs::read_to_string(&secret).expect("a test needs it"), "secret");
}
