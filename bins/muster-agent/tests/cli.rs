//! The agent as a program: what it says when it cannot begin.

use std::path::Path;
use std::process::{Command, Output};

fn agent(arguments: &[&str]) -> Output {
    agent_in(tempfile::tempdir().expect("a temporary directory can be made").path(), arguments)
}

fn agent_in(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_muster-agent"))
        .args(arguments)
        .arg("--work-dir")
        .arg(dir)
        .env_remove("MUSTER_JOIN_TOKEN")
        .output()
        .expect("the agent can be started")
}

fn complaint(arguments: &[&str]) -> String {
    let output = agent(arguments);
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_robot_that_has_not_joined_needs_a_token() {
    let said = complaint(&["--robot-id", "r1"]);
    assert!(said.contains("muster robot token create"), "{said}");
}

#[test]
fn what_cannot_be_right_is_refused_with_the_flag_to_change() {
    assert!(complaint(&["--robot-id", "Not/A/Name"]).contains("--robot-id"));
    assert!(complaint(&["--robot-id", "r1", "--broker", "http://x"]).contains("mqtt://HOST:PORT"));
    assert!(complaint(&["--robot-id", "r1", "--label", "zone"]).contains("NAME=VALUE"));
    assert!(complaint(&["--robot-id", "r1", "--ca-file", "/no/such/file"]).contains("/no/such/file"));
}

#[test]
fn one_agent_at_a_time_works_in_a_directory() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let held = std::fs::File::create(dir.path().join("lock")).expect("a file can be made");
    held.lock().expect("it is free");
    let output = agent_in(dir.path(), &["--robot-id", "r1", "--token", "t"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("another agent works in"), "{said}");
}
