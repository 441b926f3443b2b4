//! Tokens that are for one thing alone, and forms that are larger than any: the console opens to neither.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use muster_e2e::http::Answer;
use muster_e2e::server::Server;
use muster_e2e::wait::{SOON, wait_for};
use serde_json::json;

const TASKS: &str = "/apis/muster.dev/v1alpha1/namespaces/default/tasks";
const OF_OTHERS: &str = "what-others-do";
const PAGES: [&str; 14] = [
    "",
    "tasks",
    "tasks/default/what-others-do",
    "tasks/default/what-others-do/log",
    "jobs",
    "schedules",
    "robots",
    "resources",
    "sinks",
    "submit",
    "live/",
    "live/tasks",
    "live/tasks/default/what-others-do",
    "live/nothing",
];

fn make(server: &Server, name: &str, script: &str) {
    let spec = json!({"container": {"command": ["sh", "-c", script]}});
    let task = json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": name}, "spec": spec});
    assert_eq!(server.http().post(TASKS, &task.to_string()).code, 201);
}

fn look(server: &Server, token: &str, page: &str) -> Answer {
    let cookie = format!("muster_token={token}");
    server.http().with_token(None).request("GET", &format!("/ui/{page}")).header("Cookie", &cookie).send()
}

#[test]
fn tokens_of_attempts_robots_and_reporters_see_nothing_of_the_console() {
    let server = Server::start(&["--roles", "api,engine,web"]);
    make(&server, OF_OTHERS, "exec sleep 600");
    let told = server.data().join("told");
    make(&server, "spy", &format!("echo $MUSTER_TOKEN > {}; exec sleep 600", told.display()));
    let of_attempt = || std::fs::read_to_string(&told).unwrap_or_default().trim().to_owned();
    wait_for("the token of an attempt", SOON, || !of_attempt().is_empty());
    let own = server.http().with_token(Some(&of_attempt())).get(&format!("{TASKS}/spy"));
    assert_eq!(own.code, 200, "the token is good: {}", own.text());
    let reporter = json!({"name": "dns", "role": "reporter", "adapter": "dns"});
    for (role, token) in [
        ("addon", of_attempt()),
        ("robot", server.new_token("r1", "robot")),
        ("reporter", server.new_token_of(&reporter)),
    ] {
        for page in PAGES {
            let answer = look(&server, &token, page);
            assert_eq!(answer.code, 403, "{role} looks at {page}: {}", answer.text());
            assert!(answer.text().contains(&format!("role {role} opens no console")), "{}", answer.text());
            assert!(!answer.text().contains(OF_OTHERS), "{role} sees at {page}: {}", answer.text());
        }
    }
    let viewer = server.new_token("vera", "viewer");
    assert!(look(&server, &viewer, "tasks/default/what-others-do").text().contains(OF_OTHERS));
}

/// What the server answers to a request of which only the head and a part of the body are sent.
fn answer_to(server: &Server, head: &str, sent: usize) -> String {
    let mut stream = TcpStream::connect(server.address()).expect("the server takes connections");
    stream.set_read_timeout(Some(SOON)).expect("a time limit can be set");
    let origin = format!("Host: {0}\r\nOrigin: http://{0}\r\n", server.address());
    stream
        .write_all(format!("{head}{origin}Content-Length: 3000000\r\n\r\n").as_bytes())
        .expect("it is sent");
    // The server may have refused, and closed, before all of it is there.
    stream.write_all(&vec![b'a'; sent]).ok();
    let mut first = [0; 12];
    stream.read_exact(&mut first).expect("an answer comes without the rest of the body");
    String::from_utf8_lossy(&first).into_owned()
}

#[test]
fn a_form_is_read_only_from_those_who_are_known_and_never_a_large_one() {
    let server = Server::start(&["--roles", "api,web"]);
    let unknown = "POST /ui/submit HTTP/1.1\r\nCookie: muster_token=nobody\r\n";
    assert_eq!(answer_to(&server, unknown, 0), "HTTP/1.1 401");
    assert_eq!(answer_to(&server, "POST /ui/submit HTTP/1.1\r\n", 0), "HTTP/1.1 401");
    assert_eq!(answer_to(&server, "POST /ui/sign-in HTTP/1.1\r\n", 8 << 10), "HTTP/1.1 413");
    let known = format!("POST /ui/submit HTTP/1.1\r\nCookie: muster_token={}\r\n", server.admin_token());
    assert_eq!(answer_to(&server, &known, 512 << 10), "HTTP/1.1 413");
}
