//! Disks that fill up, and work directories that cannot be used: the task says so, the server goes on.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use muster_e2e::http::Http;
use muster_e2e::server::Server;
use muster_e2e::wait::wait_for;
use serde_json::{Value, json};

const TASKS: &str = "/apis/muster.dev/v1alpha1/namespaces/default/tasks";
const FLAGS: [&str; 4] = ["--roles", "api,engine", "--slots", "2"];
const SOON: Duration = Duration::from_mins(1);

/// Starts the server where the directory of attempts is a small disk of its own.
const SMALL_DISK: &str = r#"#!/bin/sh
set -e
for word; do
    if [ "$previous" = --data ]; then data=$word; fi
    previous=$word
done
export DATA="$data"
# Only root need not ask for the right to mount.
if [ "$(id -u)" = 0 ]; then flags=-m; else flags=-rm; fi
exec unshare $flags sh -c '
    mkdir -p "$DATA/attempts" && mount -t tmpfs -o size=4m none "$DATA/attempts" && exec "$0" "$@"
' "$MUSTER_BIN" "$@"
"#;

fn create(http: &Http, name: &str, script: &str) {
    let task = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": { "name": name },
        "spec": { "container": { "command": ["sh", "-c", script] } },
    });
    let answer = http.post(TASKS, &task.to_string());
    assert_eq!(answer.code, 201, "{}", answer.text());
}

fn task(http: &Http, name: &str) -> Value {
    http.get(&format!("{TASKS}/{name}")).json()
}

fn wait_for_state(http: &Http, name: &str, state: &str) -> Value {
    wait_for(&format!("{name} is {state}"), SOON, || task(http, name)["status"]["state"] == state);
    task(http, name)
}

/// A program that becomes the server, on a small disk.
fn small_disk() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let program = dir.path().join("muster-on-a-small-disk");
    fs::write(&program, SMALL_DISK).expect("a script can be written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it can be run");
    (dir, program)
}

#[test]
fn a_disk_that_fills_up_while_logging_fails_the_task_with_words_and_the_server_lives() {
    let (_dir, program) = small_disk();
    let server = Server::start_program(&program, &FLAGS);
    let http = server.http();
    create(&http, "before", "echo fits");
    wait_for_state(&http, "before", "Succeeded");

    create(&http, "loud", "exec yes this fills the disk");
    let loud = wait_for_state(&http, "loud", "Failed");
    let said = loud["status"]["errors"].to_string();
    assert!(said.contains("the log could not be written"), "{said}");

    // Letting go of the task lets go of its files.
    let answer = http.delete(&format!("{TASKS}/loud"));
    assert_eq!(answer.code, 200, "{}", answer.text());
    create(&http, "after", "echo fits again");
    wait_for_state(&http, "after", "Succeeded");
}

#[test]
fn a_work_directory_that_cannot_be_made_fails_the_task_with_its_name_and_the_server_lives() {
    let server = Server::start(&FLAGS);
    let http = server.http();
    create(&http, "before", "true");
    wait_for_state(&http, "before", "Succeeded");

    let attempts = server.data().join("attempts");
    let away = server.data().join("attempts-away");
    fs::rename(&attempts, &away).unwrap();
    fs::write(&attempts, "in the way").unwrap();
    create(&http, "homeless", "true");
    let homeless = wait_for_state(&http, "homeless", "Failed");
    let said = homeless["status"]["errors"].to_string();
    assert!(said.contains("WorkDirectory") && said.contains("cannot make the work directory"), "{said}");
    assert!(said.contains("attempts/"), "the directory is named: {said}");

    fs::remove_file(&attempts).unwrap();
    fs::rename(&away, &attempts).unwrap();
    create(&http, "after", "true");
    wait_for_state(&http, "after", "Succeeded");
}
