//! What the token of an attempt opens, and when it stops.

use hyper::header::CONTENT_TYPE;
use muster_apiserver::access::Role;
use muster_types::addon::Grant;
use serde_json::{Value, json};

use crate::server::{Ask, MERGE_PATCH, Server, application, path, path_in, task};

/// A server with the task `own` about the application `inventory`, whose first attempt runs, and its token.
async fn server_with_attempt() -> (Server, String) {
    let server = Server::start().await;
    for name in ["inventory", "billing"] {
        server.create(&application(name)).await;
    }
    let mut own = task("own");
    own["spec"]["subject"] = json!({"kind": "Application", "name": "inventory"});
    let uid = server.run_task(&own, 1).await;
    server.run_task(&task("other"), 1).await;
    let token = server.attempt_token("own", &uid, 1);
    (server, token)
}

async fn may(server: &Server, token: &str, attributes: Value) -> bool {
    let question = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = server.send(Ask::new("POST", path).json(&question).token(token)).await.good();
    answer["status"]["allowed"].as_bool().unwrap()
}

#[tokio::test]
async fn an_attempt_reads_its_task_and_its_subject() {
    let (server, token) = server_with_attempt().await;
    for place in [format!("{}/own", path("tasks")), format!("{}/inventory", path("applications"))] {
        server.send(Ask::new("GET", &place).token(&token)).await.good();
    }
}

#[tokio::test]
async fn an_attempt_may_do_nothing_else() {
    let (server, token) = server_with_attempt().await;
    let (tasks, applications) = (path("tasks"), path("applications"));
    let before = server.revision();
    for (method, place) in [
        ("GET", tasks.clone()),
        ("GET", format!("{tasks}?watch=true")),
        ("GET", format!("{tasks}/own?watch=true")),
        ("GET", format!("{tasks}/other")),
        ("POST", tasks.clone()),
        ("PUT", format!("{tasks}/own")),
        ("PATCH", format!("{tasks}/own")),
        ("PATCH", format!("{tasks}/own/status")),
        ("DELETE", format!("{tasks}/own")),
        ("DELETE", tasks.clone()),
        ("GET", format!("{}/own", path_in("elsewhere", "tasks"))),
        ("GET", format!("{applications}/billing")),
        ("GET", applications.clone()),
        ("DELETE", format!("{applications}/inventory")),
        ("GET", path("taskkinds")),
        ("GET", format!("{tasks}/other/report")),
        ("POST", format!("{tasks}/other/report")),
        ("GET", "/api/v1/namespaces".to_owned()),
        ("GET", "/metrics".to_owned()),
        ("GET", "/tokens".to_owned()),
        ("POST", "/tokens".to_owned()),
    ] {
        let ask = Ask::new(method, &place).json(&json!({})).header(CONTENT_TYPE, MERGE_PATCH).token(&token);
        let message = server.send(ask).await.refused(403);
        assert!(message.contains("addon"), "{method} {place}: {message}");
    }
    assert_eq!(server.revision(), before);
}

#[tokio::test]
async fn an_attempt_can_ask_what_it_may_and_what_there_is() {
    let (server, token) = server_with_attempt().await;
    let own = |verb: &str, resource: &str, subresource: &str, name: &str| {
        json!({
            "verb": verb, "group": "muster.dev", "resource": resource, "subresource": subresource,
            "namespace": "default", "name": name,
        })
    };
    for (attributes, allowed) in [
        (own("get", "tasks", "", "own"), true),
        (own("get", "tasks", "", "other"), false),
        (own("list", "tasks", "", ""), false),
        (own("create", "tasks", "report", "own"), true),
        (own("create", "tasks", "report", "other"), false),
        (own("get", "applications", "", "inventory"), true),
    ] {
        assert_eq!(may(&server, &token, attributes.clone()).await, allowed, "{attributes}");
    }
    for document in ["/apis", "/api", "/apis/muster.dev/v1alpha1", "/openapi/v3", "/version"] {
        server.send(Ask::new("GET", document).token(&token)).await.good();
    }
    let question = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": "default"}});
    let place = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let rules = server.send(Ask::new("POST", place).json(&question).token(&token)).await.good();
    assert_eq!(rules["status"]["resourceRules"].as_array().unwrap().len(), 3, "{rules}");
    let place = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let who = server.send(Ask::new("POST", place).json(&json!({})).token(&token)).await.good();
    assert_eq!(who["status"]["userInfo"]["groups"][0], "addon");
}

#[tokio::test]
async fn a_token_ends_with_its_attempt() {
    let (server, token) = server_with_attempt().await;
    let own = format!("{}/own", path("tasks"));
    for status in [
        json!({"state": "Running", "attempt": 2}),
        json!({"state": "Ready", "attempt": 1}),
        json!({"state": "Succeeded", "attempt": 1}),
    ] {
        server.send(Ask::new("GET", &own).token(&token)).await.good();
        server.set_status("own", &status).await;
        let message = server.send(Ask::new("GET", &own).token(&token)).await.refused(401);
        assert!(message.contains("attempt"), "{message}");
        server.set_status("own", &json!({"state": "Pending", "attempt": 1})).await;
    }
    server.delete(&own).await.good();
    // Until it has ended, it may say what became of it.
    server.send(Ask::new("GET", &own).token(&token)).await.good();
    server.delete_running(&own).await;
    server.send(Ask::new("GET", &own).token(&token)).await.refused(401);
    server.run_task(&task("own"), 1).await;
    server.send(Ask::new("GET", &own).token(&token)).await.refused(401);
}

#[tokio::test]
async fn a_server_without_attempt_tokens_takes_none() {
    let (server, token) = server_with_attempt().await;
    let own = format!("{}/own", path("tasks"));
    server.without_parts().send(Ask::new("GET", &own).token(&token)).await.refused(401);
}

#[tokio::test]
async fn nobody_can_make_a_token_of_role_addon() {
    let server = Server::start().await;
    let wanted = json!({"name": "x", "role": "addon"});
    let message = server.post("/tokens", &wanted).await.refused(400);
    assert!(message.contains("addon"), "{message}");
}

#[tokio::test]
async fn a_token_name_that_is_taken_is_a_conflict() {
    let server = Server::start().await;
    server.token("taken", Role::Viewer).await;
    let message = server.post("/tokens", &json!({"name": "taken", "role": "viewer"})).await.refused(409);
    assert!(message.contains("taken") && message.contains("revoke"), "{message}");
}

#[tokio::test]
async fn the_key_of_attempt_tokens_is_served_nowhere() {
    let (server, _) = server_with_attempt().await;
    for place in ["/apis/internal/v1/secrets", "/api/v1/secrets", "/apis/internal/v1/secrets/attempt-tokens"]
    {
        server.get(place).await.refused(404);
    }
}

/// The same with an addon that was granted the tags of its subject.
async fn server_with_tagger() -> (Server, String) {
    let (server, _) = server_with_attempt().await;
    let own = server.send(Ask::new("GET", &format!("{}/own", path("tasks")))).await.good();
    let uid = own["metadata"]["uid"].as_str().unwrap().to_owned();
    let token = server.attempt_token_with("own", &uid, 1, &[Grant::SubjectTags]);
    (server, token)
}

fn patch_of(name: &str, patch: &Value, token: &str) -> Ask {
    let place = format!("{}/{name}", path("applications"));
    Ask::new("PATCH", &place).json(patch).header(CONTENT_TYPE, MERGE_PATCH).token(token)
}

fn java() -> Value {
    json!([{"category": "Language", "tag": "Java"}])
}

fn apply_java(token: &str) -> Ask {
    let applied = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Application", "metadata": {"name": "inventory"},
        "spec": {"tags": java()},
    });
    let place = format!("{}/inventory?fieldManager=tagger", path("applications"));
    let ask = Ask::new("PATCH", &place).json(&applied);
    ask.header(CONTENT_TYPE, "application/apply-patch+yaml").token(token)
}

#[tokio::test]
async fn an_attempt_with_the_grant_sets_the_tags_of_its_subject() {
    let (server, token) = server_with_tagger().await;
    let patched = server.send(patch_of("inventory", &json!({"spec": {"tags": java()}}), &token)).await.good();
    assert_eq!((&patched["spec"]["tags"], &patched["spec"]["properties"]["n"]), (&java(), &json!(0)));
    let mut whole = patched.clone();
    whole["spec"]["tags"] = json!([]);
    let place = format!("{}/inventory", path("applications"));
    let replaced = server.send(Ask::new("PUT", &place).json(&whole).token(&token)).await.good();
    assert!(replaced["spec"].get("tags").is_none(), "{replaced}");
    assert_eq!(server.send(apply_java(&token)).await.good()["spec"]["tags"], java());
    let asked = json!({
        "verb": "patch", "group": "muster.dev", "resource": "applications", "namespace": "default", "name": "inventory",
    });
    assert!(may(&server, &token, asked).await);
}

#[tokio::test]
async fn an_attempt_without_the_grant_sets_no_tags() {
    let (server, token) = server_with_attempt().await;
    let message =
        server.send(patch_of("inventory", &json!({"spec": {"tags": java()}}), &token)).await.refused(403);
    assert!(message.contains("spec.grants of its addon"), "{message}");
}

#[tokio::test]
async fn the_grant_opens_nothing_but_the_tags_of_the_own_subject() {
    let (server, token) = server_with_tagger().await;
    let before = server.revision();
    let other =
        server.send(patch_of("billing", &json!({"spec": {"tags": java()}}), &token)).await.refused(403);
    assert!(other.contains("addon"), "{other}");
    for patch in [
        json!({"spec": {"tags": java(), "properties": {"n": 1}}}),
        json!({"metadata": {"labels": {"a": "b"}}}),
        json!({"metadata": {"finalizers": ["muster.dev/a"]}}),
        json!({"spec": null}),
    ] {
        let message = server.send(patch_of("inventory", &patch, &token)).await.refused(403);
        assert!(message.contains("spec.tags of its subject and no other field"), "{patch}: {message}");
    }
    for (method, place) in [("DELETE", "/inventory"), ("POST", ""), ("DELETE", "")] {
        let ask = Ask::new(method, &format!("{}{place}", path("applications"))).json(&json!({}));
        server.send(ask.token(&token)).await.refused(403);
    }
    assert_eq!(server.revision(), before);
}

#[tokio::test]
async fn the_grant_does_not_make_a_subject_that_is_gone() {
    let (server, token) = server_with_tagger().await;
    let place = format!("{}/inventory", path("applications"));
    server.send(Ask::new("DELETE", &place)).await.good();
    let message = server.send(apply_java(&token)).await.refused(403);
    assert!(message.contains("is not created"), "{message}");
}
