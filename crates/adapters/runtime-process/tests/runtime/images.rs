//! Containers of docker and podman that an earlier life left. A script stands in for podman and writes down what it is told.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::tempdir;

use crate::yard::{Yard, codes, settings};

const PODMAN: &str = r#"#!/bin/sh
echo "$*" >> "$(dirname "$0")/told"
[ "$1" = ps ] && echo 4711
exit 0
"#;

/// A process of its own writes it, so that nothing that is started meanwhile holds it open for writing.
fn install(place: &Path) {
    let script = "mkdir -p \"$0\" && printf %s \"$1\" > \"$0/podman\" && chmod 755 \"$0/podman\"";
    let status = Command::new("/bin/sh").args(["-c", script]).arg(place).arg(PODMAN).status();
    assert!(status.is_ok_and(|status| status.success()), "{} cannot be made", place.display());
}

/// What podman was told until an attempt had ended.
async fn told_in(root: &Path, bin: &Path) -> String {
    install(bin);
    let mut settings = settings(root);
    settings.executor.driver_path = format!("{}:/usr/bin:/bin", bin.display());
    let mut yard = Yard::with(settings);
    yard.start("t", "exit 3");
    assert_eq!(codes(&yard.ending("t").await), [3]);
    fs::read_to_string(bin.join("told")).unwrap_or_default()
}

#[tokio::test]
async fn containers_that_an_earlier_life_left_are_removed_before_anything_starts() {
    let temp = tempdir().expect("a test needs it");
    let root = temp.path().join("root");
    fs::create_dir(&root).expect("a test needs it");
    fs::write(root.join(".containers-of-podman"), "").expect("a test needs it");
    let told = told_in(&root, &temp.path().join("bin")).await;
    let list = format!("ps --all --quiet --filter label=muster.dev/work-root={}", root.display());
    assert_eq!(told.lines().collect::<Vec<_>>(), [&list, "rm --force --time 0 --volumes 4711"]);
}

#[tokio::test]
async fn where_no_container_ever_ran_nobody_is_asked_for_any() {
    let temp = tempdir().expect("a test needs it");
    assert_eq!(told_in(&temp.path().join("root"), &temp.path().join("bin")).await, "");
}
