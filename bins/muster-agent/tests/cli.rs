//! The agent as a program: what it says when it cannot begin.

use std::process::{Command, Output};

fn agent(arguments: &[&str]) -> Output {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    Command::new(env!("CARGO_BIN_EXE_muster-agent"))
        .args(arguments)
        .arg("--work-dir")
        .arg(dir.path())
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
