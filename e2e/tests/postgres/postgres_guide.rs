//! The guide from one server to three, typed as it is written.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::os::unix::fs::symlink;
use std::process::Command;

use muster_e2e::databases::Postgres;
use muster_e2e::guide::{repository, script};

#[test]
fn the_guide_from_one_server_to_three_works_as_written() {
    let postgres = Postgres::start();
    let dir = tempfile::tempdir().unwrap();
    let programs = dir.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    symlink(std::env::var("MUSTER_BIN").unwrap(), programs.join("muster")).unwrap();
    let guide = std::fs::read_to_string(repository().join("docs/guides/replicas.md")).unwrap();
    // Whatever the guide leaves in the background ends with it.
    let script = format!("trap 'kill -9 $(jobs -p) 2>/dev/null || true' EXIT\n{}", script(&guide));
    assert!(script.lines().count() > 30, "the guide is missing:\n{script}");
    let output = Command::new("timeout")
        .args(["120", "bash", "-euo", "pipefail", "-c", &script])
        .current_dir(dir.path())
        .env("PATH", format!("{}:{}", programs.display(), std::env::var("PATH").unwrap()))
        .env("HOME", dir.path())
        .env("STORE", postgres.url())
        .env_remove("MUSTER_ROLES")
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    for part in ["made before the move", "leader: ", "and compared; both are at"] {
        assert!(out.contains(part), "{part}:\n{out}\n{err}");
    }
    for name in ["echo-", "during-", "after-"] {
        let listed = |line: &str| line.starts_with(name) && line.contains(" Succeeded ");
        assert!(out.lines().any(listed), "{name}:\n{out}\n{err}");
    }
    assert_eq!(out.matches("and compared").count(), 2, "{out}");
}
