//! Who may do what: tokens, roles, and that no way of reading shows more than another.

use std::sync::Arc;

use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName};
use muster_apiserver::access::Role;
use muster_apiserver::{expired_tokens, kinds};
use muster_ports::pages::FrontDoor;
use muster_ports::store::WatchScope;
use muster_types::names::Scope;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::server::{
    APPLY_PATCH, Answer, Ask, MERGE_PATCH, SOON, Server, TABLE, path, path_everywhere, task,
};

const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/// A request that exercises a verb on the task `a`.
fn request(verb: &str, stored: &Value) -> Ask {
    let (one, all) = (format!("{}/a", path("tasks")), path("tasks"));
    match verb {
        "get" => Ask::new("GET", &one),
        "list" => Ask::new("GET", &all),
        "watch" => Ask::new("GET", &format!("{all}?watch=1")),
        "create" => Ask::new("POST", &all).json(&task("b")),
        "update" => Ask::new("PUT", &one).json(stored),
        "patch" => Ask::new("PATCH", &one).json(&json!({})).header(CONTENT_TYPE, MERGE_PATCH),
        "delete" => Ask::new("DELETE", &one),
        _ => Ask::new("DELETE", &all),
    }
}

async fn may(server: &Server, secret: &str, verb: &str, resource: &str) -> bool {
    let attributes =
        json!({"verb": verb, "group": "muster.dev", "resource": resource, "namespace": "default"});
    let question = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = server.send(Ask::new("POST", path).json(&question).token(secret)).await.good();
    answer["status"]["allowed"].as_bool().unwrap()
}

#[tokio::test]
async fn each_role_may_do_its_verbs_and_says_so_when_asked() {
    for role in Role::ALL {
        for verb in VERBS {
            let server = Server::start().await;
            let stored = server.create(&task("a")).await;
            let secret = server.token("someone", role).await;
            let before = server.revision();
            let answer = server.glance(request(verb, &stored).token(&secret)).await;
            let allowed = match role {
                Role::Admin | Role::Editor => true,
                Role::Viewer => matches!(verb, "get" | "list" | "watch"),
                Role::Reporter | Role::Addon | Role::Robot | Role::Cluster => false,
            };
            assert_eq!(may(&server, &secret, verb, "tasks").await, allowed, "{role} {verb}");
            if allowed {
                assert!((200..300).contains(&answer.code), "{role} {verb}: {answer:?}");
            } else {
                let message = answer.refused(403);
                assert!(message.contains(verb) && message.contains(&role.to_string()), "{message}");
                assert_eq!(server.revision(), before, "{verb}");
            }
        }
    }
}

/// The rules that a user is shown of itself.
async fn rules_of(server: &Server, secret: &str) -> Value {
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let question = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "default"},
    });
    let answer = server.send(Ask::new("POST", path).json(&question).token(secret)).await.good();
    answer["status"]["resourceRules"].clone()
}

#[tokio::test]
async fn infrastructure_is_written_by_admins_alone_and_whoever_is_asked_says_so() {
    let server = Server::start().await;
    let editor = server.token("ed", Role::Editor).await;
    let before = server.revision();
    for names in kinds::INFRASTRUCTURE {
        let plural = names.plural;
        let all = if names.scope == Scope::Namespaced { path(plural) } else { path_everywhere(plural) };
        let one = format!("{all}/a");
        server.send(Ask::new("GET", &all).token(&editor)).await.good();
        for (verb, ask) in [
            ("create", Ask::new("POST", &all).json(&json!({}))),
            ("update", Ask::new("PUT", &one).json(&json!({}))),
            ("patch", Ask::new("PATCH", &one).json(&json!({})).header(CONTENT_TYPE, MERGE_PATCH)),
            ("patch", Ask::new("PATCH", &one).body("{}").header(CONTENT_TYPE, APPLY_PATCH)),
            ("delete", Ask::new("DELETE", &one)),
            ("deletecollection", Ask::new("DELETE", &all)),
        ] {
            let message = server.send(ask.token(&editor)).await.refused(403);
            assert!(message.contains(verb) && message.contains("it takes the role admin"), "{message}");
            assert!(!may(&server, &editor, verb, plural).await, "{verb} {plural}");
        }
        for verb in ["get", "list", "watch"] {
            assert!(may(&server, &editor, verb, plural).await, "{verb} {plural}");
        }
    }
    assert_eq!(server.revision(), before);
    assert!(!may(&server, &editor, "create", "*").await);
    let visitor = |secret: &str| FrontDoor::admit(&*server.api, Some(secret)).unwrap();
    assert!(visitor(&editor).may_write && !visitor(&editor).may_administer);
    let admin = server.token("ada", Role::Admin).await;
    assert!(visitor(&admin).may_administer);
}

#[tokio::test]
async fn roles_of_a_cluster_allow_what_the_role_editor_allows() {
    let server = Server::start().await;
    let editor = server.token("ed", Role::Editor).await;
    let shown = rules_of(&server, &editor).await;
    // Relative to this file, which other packages run too.
    let text = include_str!("../../../../../deploy/server/user-roles.yaml");
    let delivered = |role: &str| -> Value {
        let of_role = |part: &&str| part.contains(&format!("name: {role}\n"));
        serde_saphyr::from_str(text.split("\n---\n").find(of_role).expect("there is such a role")).unwrap()
    };
    let edit = delivered("muster-edit");
    for (delivered, shown) in [(&edit["rules"][0], &shown[1]), (&edit["rules"][1], &shown[2])] {
        for part in ["apiGroups", "resources", "verbs"] {
            let sorted = |rule: &Value| {
                let texts =
                    rule[part].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned());
                texts.collect::<std::collections::BTreeSet<_>>()
            };
            assert_eq!(sorted(delivered), sorted(shown), "{part}");
        }
    }
    let admin = delivered("muster-admin")["rules"][0]["resources"].to_string();
    for names in kinds::INFRASTRUCTURE {
        assert!(admin.contains(&format!("\"{}\"", names.plural)), "{admin}");
    }
}

#[tokio::test]
async fn tokens_are_for_admins_alone() {
    let server = Server::start().await;
    for role in [Role::Editor, Role::Viewer, Role::Reporter] {
        let secret = server.token(&role.to_string(), role).await;
        let before = server.revision();
        let wanted = json!({"name": "more", "role": "admin"});
        for ask in [
            Ask::new("GET", "/tokens"),
            Ask::new("POST", "/tokens").json(&wanted),
            Ask::new("DELETE", "/tokens/admin"),
        ] {
            server.send(ask.token(&secret)).await.refused(403);
        }
        assert_eq!(server.revision(), before);
        let hidden = if role == Role::Reporter { 403 } else { 404 };
        server.send(Ask::new("GET", "/apis/internal/v1/tokens").token(&secret)).await.refused(hidden);
    }
}

#[tokio::test]
async fn a_token_is_made_once_listed_without_its_secret_and_revoked() {
    let server = Server::start().await;
    let wanted = json!({"name": "ci", "role": "editor", "lifetimeSeconds": 60});
    let made = server.post("/tokens", &wanted).await.good();
    let secret = made["token"].as_str().unwrap();
    server.post("/tokens", &wanted).await.refused(409);
    let listed = server.get("/tokens").await;
    assert!(!String::from_utf8_lossy(&listed.bytes).contains(secret));
    let ci = &listed.good()["items"][1];
    assert_eq!((&ci["name"], &ci["expires"]), (&json!("ci"), &json!("2023-11-14T22:14:20Z")));
    server.send(Ask::new("GET", &path("tasks")).token(secret)).await.good();
    server.delete("/tokens/ci").await.good();
    server.send(Ask::new("GET", &path("tasks")).token(secret)).await.refused(401);
    assert!(server.delete("/tokens/ci").await.refused(404).contains("ci"));
}

#[tokio::test]
async fn an_expired_token_opens_nothing() {
    let server = Server::start().await;
    let wanted = json!({"name": "short", "role": "admin", "lifetimeSeconds": 60});
    let made = server.post("/tokens", &wanted).await.good();
    let ask = Ask::new("GET", &path("tasks")).token(made["token"].as_str().unwrap());
    server.send(ask.clone()).await.good();
    server.clock.advance(60_000);
    let answer = server.send(ask).await;
    assert!(answer.refused(401).contains("expired"));
    assert!(answer.headers.contains_key("www-authenticate"));
}

#[tokio::test]
async fn a_token_is_removed_an_hour_after_it_expired() {
    let server = Server::start().await;
    let listed = async || {
        let items = server.get("/tokens").await.good()["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (name, seconds) in [("longer", 7200), ("short", 60)] {
        let wanted = json!({"name": name, "role": "viewer", "lifetimeSeconds": seconds});
        server.post("/tokens", &wanted).await.good();
    }
    server.clock.advance(3_600_000);
    let remover = expired_tokens::remove(server.store.clone(), Arc::new(server.clock.clone()));
    let remover = tokio::spawn(remover);
    // It looks again when a token was made.
    let other = json!({"name": "other", "role": "viewer"});
    server.post("/tokens", &other).await.good();
    assert_eq!(listed().await, ["admin", "longer", "other", "short"]);
    server.clock.advance(60_000);
    let mut changes = server.store.watch(WatchScope::All, server.store.revision()).unwrap();
    server.post("/tokens", &json!({"name": "wakes", "role": "viewer"})).await.good();
    tokio::time::timeout(SOON, async {
        while listed().await.contains(&"short".to_owned()) {
            changes.next(1).await.unwrap();
        }
    })
    .await
    .expect("the token goes");
    assert_eq!(listed().await, ["admin", "longer", "other", "wakes"]);
    remover.abort();
}

#[tokio::test]
async fn a_token_request_that_makes_no_sense_is_refused() {
    let server = Server::start().await;
    let before = server.revision();
    for (wanted, code) in [
        (json!({"name": "Bad Name", "role": "admin"}), 422),
        (json!({"name": "a", "role": "king"}), 400),
        (json!({"name": "a", "role": "admin", "lifetimeSeconds": 0}), 422),
        (json!({"name": "a", "role": "admin", "lifetimeSeconds": -5}), 422),
        (json!({"name": "a", "role": "admin", "extra": 1}), 400),
        (json!(["a", "admin", null]), 400),
        (json!(null), 400),
    ] {
        server.post("/tokens", &wanted).await.refused(code);
    }
    assert_eq!(server.revision(), before);
    let forever = json!({"name": "a", "role": "admin", "lifetimeSeconds": i64::MAX});
    server.post("/tokens", &forever).await.good();
    assert_eq!(server.get("/tokens").await.good()["items"][0]["expires"], "9999-12-30T22:00:00Z");
}

#[tokio::test]
async fn nothing_is_shown_without_a_token_but_health_and_version() {
    let server = Server::start().await;
    server.create(&task("a")).await;
    let as_nobody = |path: &str| Ask::new("GET", path).header(AUTHORIZATION, "Basic YTpi");
    for path in ["/healthz", "/readyz", "/livez", "/version", "/healthz?verbose"] {
        assert_eq!(server.send(as_nobody(path)).await.code, 200, "{path}");
    }
    let (tasks, named) = (path("tasks"), format!("{}/a", path("tasks")));
    for path in [
        tasks.as_str(),
        named.as_str(),
        "/api",
        "/apis",
        "/apis/muster.dev",
        "/openapi/v3",
        "/metrics",
        "/tokens",
        "/none",
    ] {
        server.send(as_nobody(path)).await.refused(401);
    }
}

#[tokio::test]
async fn who_asks_is_told_who_they_are() {
    let server = Server::start().await;
    let secret = server.token("ada", Role::Viewer).await;
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let question = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let answer = server.send(Ask::new("POST", path).json(&question).token(&secret)).await.good();
    assert_eq!(answer["status"]["userInfo"]["username"], "ada");
    assert_eq!(rules_of(&server, &secret).await[0]["verbs"], json!(["get", "list", "watch"]));
}

fn refused(answer: &Answer) -> bool {
    matches!(answer.code, 401 | 403)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn watch_and_list_never_show_what_get_refuses(
        role in prop::sample::select(vec![Some(Role::Admin), Some(Role::Editor), Some(Role::Viewer), Some(Role::Reporter), None]),
        kind in 0..6_usize,
        form in prop::sample::select(vec!["application/json", "application/yaml", TABLE]),
        everywhere in any::<bool>(),
        query in prop::sample::select(vec!["", "limit=1", "resourceVersion=0", "labelSelector=x", "allowWatchBookmarks=true"]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Server::start().await;
            server.create(&task("secret-name")).await;
            let secret = match role {
                Some(role) => server.token("someone", role).await,
                None => "muster_unknown".to_owned(),
            };
            let plural = kinds::registry().kinds()[kind].info().plural.clone();
            let collection = if everywhere { format!("/apis/muster.dev/v1alpha1/{plural}") } else { path(&plural) };
            let ask = |target: String| Ask::new("GET", &target).token(&secret).header(hyper::header::ACCEPT, form);
            let got = server.glance(ask(format!("{}/secret-name", path(&plural)))).await;
            let listed = server.glance(ask(format!("{collection}?{query}"))).await;
            let watched = server.glance(ask(format!("{collection}?watch=1&{query}"))).await;
            for answer in [&listed, &watched] {
                prop_assert_eq!(refused(answer), refused(&got), "{:?}", answer);
                let shown = String::from_utf8_lossy(&answer.bytes);
                prop_assert!(!refused(&got) || !shown.contains("secret-name"));
            }
            Ok(())
        })?;
    }
}

/// Asks for tasks as somebody else.
async fn as_other(server: &Server, secret: &str, method: &str, headers: &[(&'static str, &str)]) -> Answer {
    let ask = Ask::new(method, &path("tasks")).json(&task("made")).token(secret);
    let ask = headers.iter().fold(ask, |ask, (name, value)| ask.header(HeaderName::from_static(name), value));
    server.send(ask).await
}

#[tokio::test]
async fn an_admin_acts_as_the_holder_of_a_token_and_nobody_else_does() {
    let server = Server::start().await;
    let admin = server.token("boss", Role::Admin).await;
    let viewer = server.token("reader", Role::Viewer).await;
    server.token("writer", Role::Editor).await;
    let user = |name: &'static str| [("impersonate-user", name)];
    assert_eq!(as_other(&server, &admin, "GET", &user("reader")).await.code, 200);
    let why = as_other(&server, &admin, "POST", &user("reader")).await.refused(403);
    assert!(why.contains("reader"), "it may do no more than who it acts as: {why}");
    assert_eq!(as_other(&server, &admin, "POST", &user("writer")).await.code, 201);
    for (secret, headers) in [
        (&admin, &[("impersonate-user", "nobody")][..]),
        (&admin, &[("impersonate-user", "reader"), ("impersonate-group", "system:masters")]),
        (&admin, &[("impersonate-user", "reader"), ("impersonate-extra-scopes", "x")]),
        (&admin, &[("impersonate-uid", "x")]),
        (&viewer, &[("impersonate-user", "boss")]),
        (&viewer, &[("impersonate-user", "reader")]),
    ] {
        as_other(&server, secret, "GET", headers).await.refused(403);
    }
}
