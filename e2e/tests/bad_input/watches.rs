//! Watches that cannot begin.

use muster_e2e::http::Request;
use muster_e2e::server::Server;

use crate::place::{Place, check_status};

fn watch(place: &Place<'_>, query: &str) -> Request {
    place.http().request("GET", &format!("{}?watch=true&{query}", place.tasks()))
}

#[test]
fn a_watch_from_the_future_is_refused() {
    let place = Place::new();
    let status = place.refuses(
        watch(&place, "resourceVersion=999999999"),
        504,
        "Timeout",
        &["Too large resource version"],
    );
    assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
}

#[test]
fn a_watch_from_a_forgotten_revision_is_gone() {
    let server = Server::start(&["--history-changes", "10"]);
    let place = Place::on(&server);
    let start = place.read()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    for priority in 2..100 {
        place.patch("merge-patch+json", &format!(r#"{{"spec":{{"priority":{priority}}}}}"#)).send();
    }
    let request = watch(&place, &format!("resourceVersion={start}"));
    place.refuses(request, 410, "Expired", &[&*start]);
}

#[test]
fn a_watch_by_a_field_that_cannot_be_selected_by_is_refused() {
    let place = Place::new();
    place.refuses(watch(&place, "fieldSelector=spec.data%3Dx"), 400, "BadRequest", &["spec.data"]);
}

#[test]
fn options_of_a_watch_that_do_not_go_together_are_refused() {
    let place = Place::new();
    for (query, word) in [
        ("sendInitialEvents=true", "resourceVersionMatch"),
        ("sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1", "NotOlderThan"),
        ("resourceVersionMatch=NotOlderThan&resourceVersion=1", "sendInitialEvents"),
    ] {
        place.refuses(watch(&place, query), 400, "BadRequest", &[word]);
    }
}

#[test]
fn more_watches_than_allowed_are_refused() {
    let server = Server::start(&["--max-watches", "2"]);
    let place = Place::on(&server);
    let open = [watch(&place, "").stream(), watch(&place, "").stream()];
    let answer = watch(&place, "").send();
    check_status(&answer, 429, "TooManyRequests", &["too many watches"]);
    assert_eq!(answer.header("retry-after"), Some("1"));
    drop(open);
}
