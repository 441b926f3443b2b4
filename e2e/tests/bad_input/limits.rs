//! Requests that are too long, too many or too slow.

use muster_e2e::server::Server;

use crate::place::{Place, check_status};

#[test]
fn a_path_that_is_too_long_is_refused() {
    let place = Place::new();
    let request =
        place.http().request("GET", &format!("{}?labelSelector={}", place.tasks(), "x".repeat(10_000)));
    place.refuses(request, 414, "BadRequest", &["8192"]);
}

#[test]
fn a_head_with_too_many_headers_is_refused() {
    let place = Place::new();
    let mut request = place.http().request("DELETE", &place.task(""));
    for number in 0..1000 {
        request = request.header(&format!("X-Header-{number}"), "x");
    }
    // The connection refuses this one before it is a request, so there is no `Status`.
    assert_eq!(request.send().code, 431);
    assert_eq!(place.read()["metadata"]["name"], "a");
}

#[test]
fn a_head_that_is_too_large_is_refused() {
    let place = Place::new();
    let request = place.http().request("DELETE", &place.task("")).header("X-Large", &"x".repeat(100_000));
    assert_eq!(request.send().code, 431);
    assert_eq!(place.read()["metadata"]["name"], "a");
}

#[test]
fn requests_beyond_the_rate_of_a_token_are_refused_for_a_while() {
    let server = Server::start(&["--max-requests", "5"]);
    let http = server.http();
    let path = "/apis/muster.dev/v1alpha1/tasks";
    let refused = (0..100).map(|_| http.get(path)).find(|answer| answer.code != 200);
    let answer = refused.expect("a hundred requests at once are too many");
    check_status(&answer, 429, "TooManyRequests", &["more than 5 requests per second", "admin"]);
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(answer.json()["details"]["retryAfterSeconds"], 1);
    assert_eq!(http.get("/healthz").code, 200, "health is for everybody");
}

#[test]
fn one_token_does_not_use_up_the_rate_of_another() {
    let server = Server::start(&["--max-requests", "5"]);
    let other = server.http().with_token(Some(&server.new_token("other", "viewer")));
    let path = "/apis/muster.dev/v1alpha1/tasks";
    assert!((0..100).any(|_| server.http().get(path).code == 429));
    assert_eq!(other.get(path).code, 200);
}

#[test]
fn a_request_that_is_no_http_is_refused() {
    use std::io::{Read as _, Write as _};
    let place = Place::new();
    let mut stream = std::net::TcpStream::connect(Server::shared().address()).unwrap();
    stream.write_all(b"HELO there\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(place.read()["metadata"]["name"], "a", "the server goes on");
}
