//! Servers that keep files in a bucket: logs and attachments of any of them are served by all, and go with their tasks.

use std::time::Duration;

use muster_e2e::databases::Postgres;
use muster_e2e::http::Http;
use muster_e2e::object_storage::ObjectStorage;
use muster_e2e::server::Server;
use muster_e2e::wait::{SOON, holds_within, wait_for};
use serde_json::json;

const TASKS: &str = "/apis/muster.dev/v1alpha1/namespaces/default/tasks";

/// A request is tried again for a while before the server says that it failed.
const OUTAGE: Duration = Duration::from_mins(2);
const SOME_SECONDS: Duration = Duration::from_secs(5);

/// Larger than a part.
const LARGE: usize = (17 << 20) + 3;

fn start(storage: &ObjectStorage, store: &str, bucket: &str) -> Server {
    let flags =
        ["--roles", "api,engine", "--slots", "2", "--lease", "2s", "--store", store, "--files", bucket];
    Server::start_with(&flags, &storage.variables())
}

fn create(http: &Http, name: &str, script: &str) {
    let task = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": { "name": name },
        "spec": { "container": { "command": ["sh", "-c", script] } },
    });
    let answer = http.post(TASKS, &task.to_string());
    assert_eq!(answer.code, 201, "{}", answer.text());
}

#[test]
fn servers_of_one_postgres_serve_what_any_of_them_kept_in_a_bucket_and_it_goes_with_its_task() {
    let (postgres, storage) = (Postgres::shared(), ObjectStorage::shared());
    let (store, bucket) = (postgres.fresh_url(), storage.fresh_bucket());
    let servers = [start(&storage, &store, &bucket), start(&storage, &store, &bucket)];
    let https: Vec<Http> = servers.iter().map(Server::http).collect();
    create(&https[0], "done", "for number in $(seq 1 2000); do echo line $number; done");
    let state = |name: &str| https[1].get(&format!("{TASKS}/{name}")).json()["status"]["state"].clone();
    wait_for("the task to end", SOON, || state("done") == "Succeeded");
    let in_bucket = || storage.files(&bucket, "tasks");
    wait_for("its log to be kept", SOON, || in_bucket().iter().any(|name| name.contains("log")));
    let lines = (1..=2000).fold(String::new(), |lines, number| lines + &format!("line {number}\n"));
    for http in &https {
        assert_eq!(http.get(&format!("{TASKS}/done/log")).text(), lines, "every server has it");
    }

    create(&https[0], "large", "exec sleep 600");
    wait_for("the task to run", SOON, || state("large") == "Running");
    let large: Vec<u8> = (0..LARGE).map(|at| u8::try_from(at % 251).expect("it is small")).collect();
    let place = format!("{TASKS}/large/attachments/large.bin");
    let put = https[0].request("PUT", &place).body(large.clone()).send();
    assert_eq!(put.code, 201, "{}", put.text());
    assert!(https[1].get(&place).bytes() == large, "it came back different");

    for name in ["done", "large"] {
        assert_eq!(https[1].delete(&format!("{TASKS}/{name}")).code, 200);
    }
    wait_for("files of tasks that are gone to be gone", SOON, || in_bucket().is_empty());
}

#[test]
fn a_service_that_was_away_gets_every_log_and_no_task_goes_before_that() {
    let storage = ObjectStorage::start();
    let bucket = storage.fresh_bucket();
    let flags = ["--roles", "api,engine", "--slots", "2", "--files", &bucket];
    let server = Server::start_with(&flags, &storage.variables());
    let http = server.http();
    storage.kill();
    let (stay, go): (Vec<_>, Vec<_>) =
        (0..5).map(|number| (format!("stays-{number}"), format!("goes-{number}"))).unzip();
    for (name, ttl) in stay.iter().map(|name| (name, "72h")).chain(go.iter().map(|name| (name, "2s"))) {
        let task = json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": { "name": name },
            "spec": { "container": { "command": ["echo", name] }, "ttl": { "succeeded": ttl } },
        });
        assert_eq!(http.post(TASKS, &task.to_string()).code, 201);
    }
    let is_there = |name: &String| http.get(&format!("{TASKS}/{name}")).code == 200;
    let told = || std::fs::read_to_string(server.log()).unwrap_or_default();
    wait_for("a log that cannot be stored", OUTAGE, || told().contains("files are "));
    // Longer than any of them may be there after it ended.
    let went = holds_within(SOME_SECONDS, || !go.iter().all(is_there));
    assert!(!went, "a task went before its log was stored");
    storage.restart();
    wait_for("tasks to go whose time is over", OUTAGE, || !go.iter().any(is_there));
    let logs = || storage.files(&bucket, "tasks").iter().filter(|name| name.contains("log")).count();
    wait_for("all logs of the others", OUTAGE, || logs() >= stay.len());
    for name in &stay {
        assert_eq!(http.get(&format!("{TASKS}/{name}/log")).text(), format!("{name}\n"));
    }
}

#[test]
fn what_a_task_left_in_a_bucket_that_vanished_meanwhile_is_collected_at_the_start() {
    let storage = ObjectStorage::shared();
    let bucket = storage.fresh_bucket();
    let flags = ["--roles", "api,engine", "--files", &bucket];
    let mut server = Server::start_with(&flags, &storage.variables());
    let http = server.http();
    create(&http, "own", "exec sleep 600");
    assert_eq!(http.request("PUT", &format!("{TASKS}/own/attachments/kept")).body("kept").send().code, 201);
    // As a server leaves it that is killed after its task was deleted and before its files were.
    let lost = storage.copy_task(&bucket, "vanished");
    assert!(lost > 0);
    server.kill();
    server.restart();
    wait_for("what nobody has to be gone", SOON, || {
        !storage.files(&bucket, "tasks").iter().any(|name| name.starts_with("vanished"))
    });
    assert_eq!(http.get(&format!("{TASKS}/own/attachments/kept")).text(), "kept");
}

#[test]
fn a_bucket_that_cannot_be_used_stops_the_start_with_words() {
    let storage = ObjectStorage::shared();
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let mut muster = std::process::Command::new(muster_e2e::brokers::program("MUSTER_BIN"));
    muster.args(["up", "--listen", "127.0.0.1:0", "--files", "s3://nowhere", "--data"]).arg(dir.path());
    let said = muster.envs(storage.variables()).output().expect("the program can be started");
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("s3://nowhere") && said.contains("AWS_ENDPOINT_URL"), "{said}");
    assert!(!said.contains("secret-of-muster"), "{said}");
}

#[test]
fn a_service_with_tls_is_used_by_who_trusts_its_authority_and_by_nobody_else() {
    let storage = ObjectStorage::start_secured();
    let bucket = storage.fresh_bucket();
    let mut trusting = storage.variables();
    trusting.push(("AWS_CA_BUNDLE", storage.authority()));
    let server = Server::start_with(&["--files", &bucket], &trusting);
    let http = server.http();
    create(&http, "own", "exec sleep 600");
    let place = format!("{TASKS}/own/attachments/kept");
    assert_eq!(http.request("PUT", &place).body("kept").send().code, 201);
    assert_eq!(http.get(&place).text(), "kept");
    assert!(storage.files(&bucket, "tasks").iter().any(|name| name.ends_with("kept")), "it is in the bucket");

    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let mut muster = std::process::Command::new(muster_e2e::brokers::program("MUSTER_BIN"));
    muster.args(["up", "--listen", "127.0.0.1:0", "--files", &bucket, "--data"]).arg(dir.path());
    let refused = muster.env_remove("AWS_CA_BUNDLE").envs(storage.variables()).output();
    let refused = refused.expect("the program can be started");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("certificate"), "{said}");
}

#[test]
fn an_installation_moves_from_a_directory_to_a_bucket_with_its_files_and_back() {
    let (postgres, storage) = (Postgres::shared(), ObjectStorage::shared());
    let (store, bucket) = (postgres.fresh_url(), storage.fresh_bucket());
    let mut server = Server::start_with(&["--roles", "api,engine", "--slots", "2"], &[]);
    let http = server.http();
    create(&http, "moved", "echo what it said");
    let ended = || http.get(&format!("{TASKS}/moved")).json()["status"]["state"] == "Succeeded";
    wait_for("the task to end", SOON, ended);
    let log = || http.get(&format!("{TASKS}/moved/log")).text();
    let files = server.data().join("files");
    wait_for("its log to be kept", SOON, || !files_below(&files).is_empty());
    assert_eq!(log(), "what it said\n");
    server.stop();

    let copy = |arguments: &[&str]| {
        let mut muster = std::process::Command::new(muster_e2e::brokers::program("MUSTER_BIN"));
        muster.args(["store", "copy"]).args(arguments).envs(storage.variables());
        let done = muster.output().expect("the program can be started");
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
        said
    };
    let from = format!("sqlite:{}", server.data().join("muster.db").display());
    let text = files.display().to_string();
    let said = copy(&["--from", &from, "--to", &store, "--files-from", &text, "--files-to", &bucket]);
    assert!(said.contains("1 file of 13 bytes copied") && said.contains("rows copied"), "{said}");

    let shared = start(&storage, &store, &bucket);
    let moved = shared.http().get(&format!("{TASKS}/moved/log"));
    assert_eq!(moved.text(), "what it said\n", "the bucket has it");
    drop(shared);

    let home = tempfile::tempdir().expect("a temporary directory can be made");
    let (file, back) = (format!("sqlite:{}", home.path().join("b.db").display()), home.path().join("files"));
    let text = back.display().to_string();
    let said = copy(&["--from", &store, "--to", &file, "--files-from", &bucket, "--files-to", &text]);
    assert!(said.contains("1 file of 13 bytes copied"), "{said}");
    let kept = files_below(&back);
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(std::fs::read_to_string(&kept[0]).expect("it can be read"), "what it said\n");
}

/// All files below a directory.
fn files_below(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found
}
