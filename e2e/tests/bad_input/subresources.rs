//! Requests on the parts of a task that make no sense: logs, reports, files, retries. Each is refused with words, and
//! nothing changes.

use muster_e2e::http::Request;
use muster_e2e::server::Server;
use muster_e2e::wait::{SOON, wait_for};
use serde_json::json;

use crate::place::{Place, blamed, task};

/// A place whose task `a` has an attempt that runs.
fn running() -> Place<'static> {
    let mut sleeper = task("a");
    sleeper["spec"] = json!({"priority": 1, "container": {"name": "addon", "command": ["sleep", "600"]}});
    let place = Place::with(Server::with_engine(), &sleeper);
    wait_for("a is Running", SOON, || place.read()["status"]["state"] == "Running");
    place
}

fn put(place: &Place<'_>, rest: &str, body: impl Into<Vec<u8>>) -> Request {
    place.http().request("PUT", &place.task(rest)).body(body)
}

#[test]
fn questions_for_logs_that_make_no_sense_are_refused() {
    let place = running();
    for (query, word) in [
        ("tailLines=-1", "tailLines"),
        ("attempt=0", "attempt"),
        ("attempt=9", "attempt 9 has not begun"),
        ("limitBytes=0", "limitBytes"),
        ("sinceTime=noon", "sinceTime"),
        ("sinceSeconds=x", "sinceSeconds"),
        ("follow=maybe", "follow"),
    ] {
        let request = place.http().request("GET", &place.task(&format!("/log?{query}")));
        place.refuses(request, 400, "BadRequest", &[word]);
    }
    let inline = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": "inline"},
        "spec": {"suspend": true, "container": {"name": "main", "command": ["true"]}},
    });
    place.create(&inline);
    let request = place.http().request("GET", &format!("{}/inline/log?container=nobody", place.tasks()));
    place.refuses(request, 400, "BadRequest", &["nobody", "main"]);
    let request = place.http().request("GET", &format!("{}/nobody/log", place.tasks()));
    place.refuses(request, 404, "NotFound", &["nobody"]);
}

#[test]
fn reports_that_make_no_sense_are_refused() {
    let place = running();
    for (body, code, reason, word) in [
        ("", 400, "BadRequest", "report"),
        ("[1]", 400, "BadRequest", "report"),
        (r#"{"progress": 1}"#, 400, "BadRequest", "progress"),
        (r#"{"completed": -1}"#, 400, "BadRequest", "completed"),
        (r#"{"completed": 1.5}"#, 400, "BadRequest", "completed"),
        (r#"{"activity": [1]}"#, 400, "BadRequest", "activity"),
        (r#"{"attempt": 2}"#, 422, "Invalid", "attempt 2 has not begun"),
        (r#"{"errors": [{}]}"#, 422, "Invalid", "errors[0].description"),
    ] {
        let request = place.http().request("POST", &place.task("/report")).json(body);
        place.refuses(request, code, reason, &[word]);
    }
    let long = json!({"activity": ["x".repeat(2000)]}).to_string();
    let status = place.refuses(
        place.http().request("POST", &place.task("/report")).json(&long),
        422,
        "Invalid",
        &["1024"],
    );
    assert_eq!(blamed(&status), ["activity[0]"]);
    let many = json!({"activity": vec!["x"; 1001]}).to_string();
    place.refuses(place.http().request("PUT", &place.task("/report")).json(&many), 422, "Invalid", &["1000"]);
    let large = json!({"result": "x".repeat(70_000)}).to_string();
    place.refuses(
        place.http().request("POST", &place.task("/report")).json(&large),
        422,
        "Invalid",
        &["result"],
    );
}

#[test]
fn a_task_that_waits_takes_no_reports() {
    let place = Place::new();
    let request = place.http().request("POST", &place.task("/report")).json(r#"{"completed": 1}"#);
    place.refuses(request, 409, "Conflict", &["no attempt"]);
}

#[test]
fn a_forged_token_of_an_attempt_opens_nothing() {
    let place = running();
    for token in [
        "muster_a_",
        "muster_a_YWJj.YWJj",
        "muster_a_ZGVmYXVsdC9hL3UvMQ.AAAA",
        &format!("muster_a_{}", "A".repeat(5000)),
    ] {
        let http = place.http().with_token(Some(token));
        let request = http.request("POST", &place.task("/report")).json("{}");
        place.refuses(request, 401, "Unauthorized", &["attempt"]);
    }
}

#[test]
fn files_with_names_that_are_none_are_refused() {
    let place = running();
    for (rest, code, reason) in [
        ("/attachments/..", 400, "BadRequest"),
        ("/attachments/%2e%2e%2fx", 400, "BadRequest"),
        ("/attachments/a%00b", 400, "BadRequest"),
        ("/attachments/a?activity=0", 400, "BadRequest"),
        ("/attachments/addon.log", 409, "Conflict"),
        ("/attachments/a/b", 404, "NotFound"),
        ("/bucket/../x", 400, "BadRequest"),
        ("/bucket/%2e%2e/x", 400, "BadRequest"),
        ("/bucket/dir/", 400, "BadRequest"),
        ("/bucket", 400, "BadRequest"),
    ] {
        place.refuses(put(&place, rest, "x"), code, reason, &[]);
    }
    let listed = place.http().get(&place.task("/bucket")).json();
    assert_eq!(listed, json!({"items": []}));
}

#[test]
fn archives_that_are_none_are_refused() {
    let place = running();
    for body in [b"no archive".repeat(200), vec![0xff; 2048]] {
        let request = put(&place, "/bucket/", body).header("Content-Type", "application/x-tar");
        place.refuses(request, 400, "BadRequest", &["archive"]);
    }
    assert_eq!(place.http().get(&place.task("/bucket")).json(), json!({"items": []}));
}

#[test]
fn only_a_task_that_ended_is_retried() {
    let place = running();
    place.refuses(place.http().request("POST", &place.task("/retry")), 409, "Conflict", &["Running"]);
}

#[test]
fn parts_that_there_are_not_are_not_found() {
    let place = running();
    for rest in ["/nonsense", "/log/more", "/report/more", "/explain/more", "/status/more"] {
        place.refuses(place.http().request("GET", &place.task(rest)), 404, "NotFound", &[]);
    }
    for (method, rest) in [("POST", "/log"), ("PATCH", "/report"), ("GET", "/retry"), ("POST", "/bucket/x")] {
        place.refuses(place.http().request(method, &place.task(rest)), 405, "MethodNotAllowed", &[]);
    }
}

#[test]
fn changes_that_come_too_late_are_refused_with_the_field() {
    let place = running();
    let status = place.refuses(
        place.patch("merge-patch+json", r#"{"spec": {"timeout": "1m", "priority": 9}}"#),
        422,
        "Invalid",
        &["Running", "cancel"],
    );
    assert_eq!(blamed(&status), ["spec.priority", "spec.timeout"]);
}

#[test]
fn a_circle_of_kinds_is_refused_with_its_name() {
    let place = Place::new();
    let kinds = format!("/apis/muster.dev/v1alpha1/namespaces/{}/taskkinds", place.namespace());
    let kind = |name: &str, needs: &[&str]| {
        let mut kind = task(name);
        kind["kind"] = json!("TaskKind");
        kind["spec"] = json!({ "dependencies": needs });
        kind.to_string()
    };
    assert_eq!(place.http().post(&kinds, &kind("a", &["b"])).code, 201);
    let request = place.http().request("POST", &kinds).json(&kind("b", &["a"]));
    place.refuses(request, 422, "Invalid", &["b -> a -> b"]);
}

#[test]
fn rules_that_do_not_parse_are_refused_with_the_place() {
    let place = Place::new();
    for (kind, field, text, word) in [
        ("Addon", "selector", "tag:A &&", "column"),
        ("Addon", "task", "a(", "unclosed"),
        ("Extension", "selector", "(tag:A", "column"),
        ("Extension", "addon", "*", "repetition"),
    ] {
        let path =
            format!("/apis/muster.dev/v1alpha1/namespaces/{}/{}s", place.namespace(), kind.to_lowercase());
        let object = json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": kind, "metadata": {"name": "x"},
            "spec": {field: text, "container": {"command": ["true"]}},
        });
        let request = place.http().request("POST", &path).json(&object.to_string());
        let status = place.refuses(request, 422, "Invalid", &[word]);
        assert_eq!(blamed(&status), [format!("spec.{field}")]);
    }
}
