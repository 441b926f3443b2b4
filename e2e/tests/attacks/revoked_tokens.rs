//! A token that is revoked while it is in use: what was begun with it ends soon, not when its holder likes.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use muster_e2e::server::Server;
use muster_e2e::wait::{SOON, wait_for};
use serde_json::json;

/// How slowly a file is sent.
const BETWEEN_BYTES: Duration = Duration::from_millis(200);
const TASKS: &str = "/apis/muster.dev/v1alpha1/namespaces/default/tasks";

fn open(server: &Server, secret: &str, request: &str, more: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).expect("the server takes connections");
    stream.set_read_timeout(Some(SOON)).expect("it can be set");
    let head = format!(
        "{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {secret}\r\n{more}\r\n"
    );
    stream.write_all(head.as_bytes()).expect("the server listens");
    stream
}

/// Reads until the server ends it. False if it does not.
fn ends(mut stream: TcpStream) -> bool {
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

/// Something that has begun: an answer of which the first byte is there.
fn begun(server: &Server, secret: &str, path: &str, more: &str) -> JoinHandle<bool> {
    let mut stream = open(server, secret, &format!("GET {path}"), more);
    stream.read_exact(&mut [0]).expect("the answer begins");
    std::thread::spawn(move || ends(stream))
}

/// A file that never ends. True if the server gave it up.
fn upload(server: &Server, secret: &str) -> JoinHandle<bool> {
    let request = format!("PUT {TASKS}/t/bucket/large");
    let stream = open(server, secret, &request, "Content-Length: 1000000\r\n");
    let mut writer = stream.try_clone().expect("a copy of the connection");
    let (told, ended) = channel();
    std::thread::spawn(move || told.send(ends(stream)));
    std::thread::spawn(move || {
        loop {
            match ended.recv_timeout(BETWEEN_BYTES) {
                Err(RecvTimeoutError::Timeout) if writer.write_all(b"x").is_ok() => {}
                Err(RecvTimeoutError::Timeout) => return ended.recv().unwrap_or(false),
                answered => return answered.unwrap_or(false),
            }
        }
    })
}

#[test]
fn watches_logs_and_uploads_of_a_revoked_token_end_and_those_of_others_go_on() {
    let server = Server::start(&["--roles", "api,engine", "--slots", "2"]);
    let http = server.http();
    let spec =
        json!({"container": {"command": ["sh", "-c", "echo begun; exec sleep 600"]}, "killTimeout": "1s"});
    let task =
        json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": "t"}, "spec": spec});
    assert_eq!(http.post(TASKS, &task.to_string()).code, 201);
    wait_for("it to run", SOON, || http.get(&format!("{TASKS}/t/log")).text().contains("begun"));
    let (revoked, other) = (server.new_token("revoked", "editor"), server.new_token("other", "editor"));
    let all = |secret: &str| {
        [
            begun(&server, secret, &format!("{TASKS}?watch=1"), ""),
            begun(&server, secret, &format!("{TASKS}/t/log?follow=true"), ""),
            upload(&server, secret),
        ]
    };
    let (cut, kept) = (all(&revoked), all(&other));
    assert!(http.delete("/tokens/revoked").code < 300);
    for (what, ended) in ["watch", "log", "upload"].into_iter().zip(cut) {
        assert!(ended.join().expect("it was followed"), "the {what} goes on");
    }
    assert!(kept.iter().all(|of_other| !of_other.is_finished()), "others are not harmed");
    assert_eq!(http.get(&format!("{TASKS}/t/bucket/large")).code, 404, "what was not sent whole is not kept");
    assert!(http.delete("/tokens/other").code < 300);
}

#[test]
fn a_watch_of_an_admin_ends_with_the_token_of_whoever_it_acts_as() {
    let server = Server::start(&["--roles", "api"]);
    server.new_token("lent", "viewer");
    let as_lent = "Impersonate-User: lent\r\n";
    let watch = begun(&server, &server.admin_token(), &format!("{TASKS}?watch=1"), as_lent);
    assert!(server.http().delete("/tokens/lent").code < 300);
    assert!(watch.join().expect("it was followed"), "it goes on");
}
