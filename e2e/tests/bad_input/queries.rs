//! Query parameters that make no sense.

use muster_e2e::server::Server;

use crate::place::{Place, task};

#[test]
fn parameters_that_cannot_be_read_are_refused_by_name() {
    let place = Place::new();
    for (query, word) in [
        ("labelSelector=a%20b", "labelSelector"),
        ("labelSelector=a%3D%3D%3Db", "labelSelector"),
        ("labelSelector=a%20in%20(", "labelSelector"),
        ("labelSelector=-a%3Db", "labelSelector"),
        ("fieldSelector=a", "fieldSelector"),
        ("fieldSelector=%3Db", "fieldSelector"),
        ("limit=-1", "limit"),
        ("limit=many", "limit"),
        ("watch=perhaps", "watch"),
        ("allowWatchBookmarks=perhaps", "allowWatchBookmarks"),
        ("timeoutSeconds=soon", "timeoutSeconds"),
        ("resourceVersion=new", "resourceVersion"),
        ("resourceVersion=-1", "resourceVersion"),
        ("resourceVersionMatch=Roughly&resourceVersion=1", "resourceVersionMatch"),
        ("resourceVersionMatch=Exact", "resourceVersionMatch"),
        ("resourceVersionMatch=Exact&resourceVersion=0", "resourceVersionMatch"),
        ("limit=%zz", "limit"),
        ("limit=%ff", "limit"),
        ("includeObject=Some", "includeObject"),
    ] {
        let request = place.http().request("GET", &format!("{}?{query}", place.tasks()));
        place.refuses(request, 400, "BadRequest", &[word]);
    }
}

#[test]
fn parameters_of_writes_that_cannot_be_read_are_refused_by_name() {
    let place = Place::new();
    let long = format!("fieldManager={}", "x".repeat(129));
    for (query, word) in [
        ("dryRun=Some", "dryRun"),
        ("fieldManager=a%00b", "fieldManager"),
        (&*long, "fieldManager"),
        ("force=perhaps", "force"),
    ] {
        let request =
            place.http().request("POST", &format!("{}?{query}", place.tasks())).json(&task("b").to_string());
        place.refuses(request, 400, "BadRequest", &[word]);
    }
}

#[test]
fn parameters_of_deletions_that_cannot_be_read_are_refused_by_name() {
    let place = Place::new();
    for (query, word) in [
        ("propagationPolicy=Sideways", "propagationPolicy"),
        ("orphanDependents=perhaps", "orphanDependents"),
        ("gracePeriodSeconds=soon", "gracePeriodSeconds"),
        ("labelSelector=a%20b", "labelSelector"),
        ("fieldSelector=spec.nonsense%3Da", "spec.nonsense"),
    ] {
        let request = place.http().request("DELETE", &format!("{}?{query}", place.tasks()));
        place.refuses(request, 400, "BadRequest", &[word]);
    }
}

#[test]
fn a_field_that_cannot_be_selected_by_is_refused_with_those_that_can() {
    let place = Place::new();
    let request = place.http().request("GET", &format!("{}?fieldSelector=spec.data%3Dx", place.tasks()));
    place.refuses(request, 400, "BadRequest", &["spec.data", "metadata.name", "status.state"]);
}

#[test]
fn a_selector_in_order_that_matches_nothing_deletes_nothing() {
    let place = Place::new();
    let answer = place.http().delete(&format!("{}?labelSelector=x%3Dz", place.tasks()));
    assert_eq!((answer.code, answer.json()["items"].as_array().map(Vec::len)), (200, Some(0)));
    assert_eq!(place.read()["metadata"]["name"], "a");
}

#[test]
fn a_page_after_nowhere_is_refused() {
    let place = Place::new();
    for token in ["nonsense", "%21%21", "AAAA", &"x".repeat(1000)] {
        let request = place.http().request("GET", &format!("{}?limit=1&continue={token}", place.tasks()));
        place.refuses(request, 400, "BadRequest", &["continue"]);
    }
}

#[test]
fn a_page_at_two_revisions_is_refused() {
    let place = Place::new();
    place.create(&task("b"));
    let first = place.http().get(&format!("{}?limit=1", place.tasks())).json();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let path = format!("{}?limit=1&resourceVersion=1&continue={token}", place.tasks());
    place.refuses(place.http().request("GET", &path), 400, "BadRequest", &["resourceVersion", "continue"]);
}

#[test]
fn a_page_of_a_list_goes_on_after_a_restart_of_the_server() {
    let mut server = Server::start(&[]);
    let place = Place::on(&server);
    place.create(&task("b"));
    let first = place.http().get(&format!("{}?limit=1", place.tasks())).json();
    let path =
        format!("{}?limit=1&continue={}", place.tasks(), first["metadata"]["continue"].as_str().unwrap());
    server.kill();
    server.restart();
    let answer = server.http().get(&path);
    assert_eq!(answer.code, 200, "{}", answer.text());
    let (page, before) = (answer.json(), &first["items"][0]["metadata"]["name"]);
    let names: Vec<_> =
        page["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert!(names.len() == 1 && names[0] != before, "{names:?} after {before}");
}

#[test]
fn a_list_from_the_future_is_refused() {
    let place = Place::new();
    let request = place.http().request("GET", &format!("{}?resourceVersion=999999999", place.tasks()));
    let status = place.refuses(request, 504, "Timeout", &["Too large resource version", "999999999"]);
    assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
}
