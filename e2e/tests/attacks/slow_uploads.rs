//! Hundreds of files that come in byte by byte. Others get their logs and keep their files meanwhile.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use muster_e2e::http::Http;
use muster_e2e::server::Server;
use muster_e2e::wait::{SOON, wait_for};
use serde_json::json;

const TASKS: &str = "/apis/muster.dev/v1alpha1/namespaces/default/tasks";
/// More than there are threads that write files.
const SLOW: usize = 520;

/// Begins to send a file and goes no further.
fn begin(server: &Server, secret: &str, number: usize) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).expect("the server takes connections");
    let head = format!(
        "PUT {TASKS}/t/bucket/slow-{number} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\nContent-Length: 1000000\r\n\r\nx"
    );
    stream.write_all(head.as_bytes()).expect("the server listens");
    stream
}

#[test]
fn five_hundred_slow_uploads_of_one_token_stop_neither_logs_nor_files_of_others() {
    let server = Server::start(&["--roles", "api,engine", "--slots", "2"]);
    let http = server.http();
    let spec = json!({"container": {"command": ["echo", "said"]}});
    let task =
        json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": "t"}, "spec": spec});
    assert_eq!(http.post(TASKS, &task.to_string()).code, 201);
    let said = |http: &Http| http.get(&format!("{TASKS}/t/log")).text();
    wait_for("it to end", SOON, || http.get(&format!("{TASKS}/t")).json()["status"]["state"] == "Succeeded");
    let slow = server.new_token("slow", "editor");
    let mut uploads: Vec<_> = (0..SLOW).map(|number| begin(&server, &slow, number)).collect();
    // The last one was looked at: it is refused, and so all others were.
    let mut answer = [0; 12];
    uploads[SLOW - 1].set_read_timeout(Some(SOON)).expect("it can be set");
    uploads[SLOW - 1].read_exact(&mut answer).expect("it is answered");
    assert_eq!(&answer, b"HTTP/1.1 429");
    assert_eq!(said(&http), "said\n");
    assert_eq!(http.put(&format!("{TASKS}/t/bucket/quick"), "content").code, 201);
    assert_eq!(http.get(&format!("{TASKS}/t/bucket/quick")).text(), "content");
    drop(uploads);
    let again = server.http().with_token(Some(&slow));
    wait_for("a place to be free again", SOON, || {
        again.put(&format!("{TASKS}/t/bucket/after"), "content").code == 201
    });
}
