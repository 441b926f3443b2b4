//! Backups of a server that works, and servers made of them.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use muster_e2e::http::Http;
use muster_e2e::server::Server;
use muster_e2e::wait::{SOON, wait_for};
use serde_json::json;

const TASKS: &str = "/apis/muster.dev/v1alpha1/namespaces/default/tasks";

fn muster(data: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(muster_e2e::brokers::program("MUSTER_BIN"));
    command.arg("--data").arg(data).args(arguments).env_remove("KUBECONFIG").output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

fn back_up(server: &Server, file: &Path) {
    let made = muster(&server.data(), &["backup", file.to_str().unwrap()]);
    assert!(made.status.success(), "{}", said(&made));
}

fn create(http: &Http, name: &str, suspend: bool) {
    let task = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": { "name": name },
        "spec": { "suspend": suspend, "container": { "command": ["echo", "from", name] } },
    });
    let answer = http.post(TASKS, &task.to_string());
    assert_eq!(answer.code, 201, "{}", answer.text());
}

#[test]
fn what_was_acknowledged_before_a_backup_began_is_there_when_it_is_restored_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("kept.tar");
    let server = Server::start(&["--roles", "api,engine"]);
    let http = server.http();
    create(&http, "done", false);
    let state =
        |http: &Http, name: &str| http.get(&format!("{TASKS}/{name}")).json()["status"]["state"].clone();
    wait_for("the task to end", SOON, || state(&http, "done") == "Succeeded");
    let done = http.get(&format!("{TASKS}/done")).json();
    let handle = done["status"]["attempts"][0]["handle"].as_str().unwrap().to_owned();
    let left = server.data().join("attempts").join(handle);
    wait_for("its log to be kept, and what it left to go", SOON, || !left.exists());
    create(&http, "with-file", true);
    let attachment = format!("{TASKS}/with-file/attachments/large.bin");
    let large = vec![7_u8; (1 << 20) + 1];
    assert_eq!(http.request("PUT", &attachment).body(large.clone()).send().code, 201);

    let (acknowledged, enough) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let before = std::thread::scope(|scope| {
        scope.spawn(|| {
            let http = server.http();
            for number in 0.. {
                let name = format!("during-{number}");
                create(&http, &name, true);
                acknowledged.lock().unwrap().push(name);
                if enough.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        wait_for("writes to be acknowledged", SOON, || acknowledged.lock().unwrap().len() > 50);
        let before = acknowledged.lock().unwrap().clone();
        back_up(&server, &file);
        enough.store(true, Ordering::Relaxed);
        before
    });
    assert_eq!(http.get(&format!("{TASKS}/done")).code, 200, "it still works");

    let mut elsewhere = Server::start(&["--roles", "api,engine"]);
    elsewhere.stop();
    fs::remove_dir_all(elsewhere.data()).unwrap();
    let restored = muster(&elsewhere.data(), &["restore", file.to_str().unwrap()]);
    assert!(restored.status.success(), "{}", said(&restored));
    elsewhere.restart();
    let there = elsewhere.http();
    for name in &before {
        assert_eq!(there.get(&format!("{TASKS}/{name}")).code, 200, "{name}");
    }
    assert_eq!(state(&there, "done"), "Succeeded");
    assert_eq!(there.get(&format!("{TASKS}/done/log")).text(), "from done\n");
    assert!(there.get(&attachment).bytes() == large, "it came back different");
    let uid = |http: &Http| http.get(&format!("{TASKS}/done")).json()["metadata"].clone();
    assert_eq!(uid(&http), uid(&there), "the same object at the same revision");
    create(&there, "new", false);
    wait_for("the restored server to work", SOON, || state(&there, "new") == "Succeeded");
}

#[test]
fn a_backup_that_is_not_whole_or_was_changed_makes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("kept.tar");
    let server = Server::start(&[]);
    create(&server.http(), "kept", true);
    back_up(&server, &file);
    let whole = fs::read(&file).unwrap();
    let at = whole.windows(9).position(|window| window == b"\"kept\",\"n").unwrap_or(whole.len() / 2);
    let changed = [&whole[..at], &[whole[at] ^ 1], &whole[at + 1..]].concat();
    let cases = [
        ("cut", whole[..whole.len() / 2].to_vec(), "not whole"),
        ("without its end", whole[..whole.len() - 2048].to_vec(), "not whole"),
        ("changed", changed, "not whole"),
        ("foreign", b"something else".to_vec(), "no backup"),
    ];
    for (case, bytes, words) in cases {
        let (file, data) = (dir.path().join("bad.tar"), dir.path().join("data"));
        fs::write(&file, bytes).unwrap();
        let refused = muster(&data, &["restore", file.to_str().unwrap()]);
        assert!(!refused.status.success() && said(&refused).contains(words), "{case}: {}", said(&refused));
        assert!(!data.exists(), "{case}");
    }
}

#[test]
fn a_directory_that_is_used_is_not_restored_into_and_a_file_is_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("kept.tar");
    let server = Server::start(&[]);
    back_up(&server, &file);
    let refused = muster(&server.data(), &["restore", file.to_str().unwrap()]);
    assert!(!refused.status.success() && said(&refused).contains("--data DIR"), "{}", said(&refused));
    assert_eq!(server.http().get(TASKS).code, 200);
    let refused = muster(&server.data(), &["backup", file.to_str().unwrap()]);
    assert!(!refused.status.success() && said(&refused).contains("there already"), "{}", said(&refused));
}

#[test]
fn only_an_admin_makes_a_backup() {
    let server = Server::start(&[]);
    for role in ["viewer", "editor"] {
        let http = Http::new(server.address(), Some(&server.new_token(role, role)));
        assert_eq!(http.get("/backup").code, 403, "{role}");
    }
    assert_eq!(Http::new(server.address(), None).get("/backup").code, 401);
    assert_eq!(server.http().get("/backup").code, 200);
}
