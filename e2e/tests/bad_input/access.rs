//! Who is refused, and why.

use muster_e2e::server::Server;
use muster_e2e::wait::{SOON, wait_for};
use serde_json::json;

use crate::place::{Place, check_status, task};

#[test]
fn nobody_gets_in_without_a_token() {
    let place = Place::new();
    let answer = place.http().with_token(None).get(&place.tasks());
    check_status(&answer, 401, "Unauthorized", &["bearer token"]);
    assert!(answer.header("www-authenticate").is_some_and(|challenge| challenge.starts_with("Bearer")));
}

#[test]
fn tokens_that_are_none_open_nothing() {
    let place = Place::new();
    for token in ["", "wrong", "muster_0000", &"x".repeat(5000)] {
        let request = place.http().with_token(Some(token)).request("GET", &place.tasks());
        place.refuses(request, 401, "Unauthorized", &["Unauthorized"]);
    }
    let basic = place.http().with_token(None).request("GET", &place.tasks());
    place.refuses(basic.header("Authorization", "Basic YTpi"), 401, "Unauthorized", &["bearer token"]);
}

#[test]
fn a_token_that_has_expired_opens_nothing() {
    let place = Place::new();
    let wanted = json!({"name": "short-lived", "role": "admin", "lifetimeSeconds": 1});
    let made = place.http().post("/tokens", &wanted.to_string()).json();
    let http = place.http().with_token(made["token"].as_str());
    wait_for("the token to expire", SOON, || http.get(&place.tasks()).code != 200);
    let request = http.request("POST", &place.tasks()).json(&task("b").to_string());
    place.refuses(request, 401, "Unauthorized", &["expired"]);
}

#[test]
fn a_token_that_was_revoked_opens_nothing() {
    let place = Place::new();
    let secret = Server::shared().new_token("revoked", "admin");
    let http = place.http().with_token(Some(&secret));
    assert_eq!(http.get(&place.tasks()).code, 200);
    assert_eq!(place.http().delete("/tokens/revoked").code, 200);
    let request = http.request("POST", &place.tasks()).json(&task("b").to_string());
    place.refuses(request, 401, "Unauthorized", &["revoked"]);
}

#[test]
fn a_viewer_is_refused_every_change() {
    let place = Place::new();
    let secret = Server::shared().new_token("refused-viewer", "viewer");
    let http = place.http().with_token(Some(&secret));
    let merge = "application/merge-patch+json";
    for (request, verb) in [
        (http.request("POST", &place.tasks()).json(&task("b").to_string()), "create"),
        (http.request("PUT", &place.task("")).json(&place.read().to_string()), "update"),
        (http.request("PATCH", &place.task("")).header("Content-Type", merge).body("{}"), "patch"),
        (http.request("PATCH", &place.task("/status")).header("Content-Type", merge).body("{}"), "patch"),
        (http.request("DELETE", &place.task("")), "delete"),
        (http.request("DELETE", &place.tasks()), "deletecollection"),
    ] {
        place.refuses(request, 403, "Forbidden", &["refused-viewer", "viewer", verb, "tasks"]);
    }
}

#[test]
fn only_an_admin_reaches_tokens() {
    let place = Place::new();
    for role in ["viewer", "editor"] {
        let secret = Server::shared().new_token(&format!("curious-{role}"), role);
        let http = place.http().with_token(Some(&secret));
        let wanted = json!({"name": "more", "role": "admin"}).to_string();
        for request in [
            http.request("GET", "/tokens"),
            http.request("POST", "/tokens").json(&wanted),
            http.request("DELETE", "/tokens/admin"),
        ] {
            place.refuses(request, 403, "Forbidden", &[role, "tokens"]);
        }
    }
    assert_eq!(place.http().get(&place.tasks()).code, 200, "the admin's token is still there");
}

#[test]
fn requests_for_tokens_that_make_no_sense_are_refused() {
    let place = Place::new();
    for (wanted, code, reason, word) in [
        (json!({"name": "x", "role": "king"}), 400, "BadRequest", "king"),
        (json!({"name": "x", "role": "addon"}), 400, "BadRequest", "addon"),
        (json!({"name": "x"}), 400, "BadRequest", "role"),
        (json!({"role": "viewer"}), 400, "BadRequest", "name"),
        (json!({"name": "x", "role": "viewer", "nonsense": 1}), 400, "BadRequest", "nonsense"),
        (json!([]), 400, "BadRequest", "token"),
        (json!({"name": "Not A Name", "role": "viewer"}), 422, "Invalid", "Not A Name"),
        (json!({"name": "admin", "role": "viewer"}), 409, "AlreadyExists", "already"),
        (json!({"name": "x", "role": "viewer", "lifetimeSeconds": 0}), 422, "Invalid", "lifetime"),
    ] {
        let before = place.http().get("/tokens").json();
        let answer = place.http().post("/tokens", &wanted.to_string());
        check_status(&answer, code, reason, &[word]);
        let after = place.http().get("/tokens").json();
        let named_x = |list: &serde_json::Value| list.to_string().contains(r#""name":"x""#);
        assert_eq!(named_x(&before), named_x(&after));
    }
}

#[test]
fn a_token_that_is_not_there_cannot_be_revoked() {
    let place = Place::new();
    let answer = place.http().delete("/tokens/nobody");
    check_status(&answer, 404, "NotFound", &["nobody"]);
}

#[test]
fn secrets_are_never_shown_again() {
    let place = Place::new();
    let secret = Server::shared().new_token("kept", "viewer");
    let listed = place.http().get("/tokens").text();
    assert!(listed.contains("kept") && !listed.contains(&secret), "{listed}");
}
