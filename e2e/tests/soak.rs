//! A short soak in which nothing goes wrong: the history that is recorded of a real server keeps every promise.

use std::process::Command;

#[test]
fn a_short_soak_without_faults_keeps_every_promise() {
    let mut soak = Command::new(env!("CARGO_BIN_EXE_soak"));
    let output =
        soak.args(["--calm", "--seconds", "8", "--seed", "1"]).output().expect("a soak can be started");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let count = |statement: &str| {
        let line = said.lines().find(|line| line.trim_end().ends_with(&format!(" {statement}")));
        line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0)
    };
    for statement in ["one_running_attempt_per_task", "terminal_is_final", "messages", "room", "unique"] {
        assert!(count(statement) >= 10, "{statement} compared {} facts\n{said}", count(statement));
    }
}
