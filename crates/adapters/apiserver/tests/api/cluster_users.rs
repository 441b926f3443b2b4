//! Users of a cluster: believed when the cluster's API server speaks for them, and allowed what the cluster allows.

use hyper::header::{AUTHORIZATION, HeaderName};
use muster_ports::delegate::{FrontProxy, Identity, ScriptedDelegate, Wish};
use serde_json::{Value, json};

use crate::server::{Ask, Server, path, task};

const USER: HeaderName = HeaderName::from_static("x-remote-user");
const GROUP: HeaderName = HeaderName::from_static("x-remote-group");

fn proxy() -> FrontProxy {
    let one = |text: &str| vec![text.to_owned()];
    FrontProxy {
        user_headers: one("X-Remote-User"),
        group_headers: one("X-Remote-Group"),
        ..FrontProxy::default()
    }
}

async fn behind(delegate: &ScriptedDelegate) -> Server {
    Server::start().await.in_cluster(delegate.clone(), Some(proxy()))
}

#[tokio::test]
async fn a_user_of_the_cluster_may_do_what_the_cluster_says() {
    let delegate = ScriptedDelegate::default().allowing("jane", "create").allowing("jane", "get");
    let server = behind(&delegate).await;
    let as_jane = |ask: Ask| ask.through(&proxy()).header(USER, "jane").header(GROUP, "dev");
    let made = server.send(as_jane(Ask::new("POST", &path("tasks")).json(&task("a")))).await.good();
    assert_eq!(made["status"]["createUser"], "jane");
    server.send(as_jane(Ask::new("GET", &format!("{}/a", path("tasks"))))).await.good();
    let said = server.send(as_jane(Ask::new("DELETE", &format!("{}/a", path("tasks"))))).await.refused(403);
    assert_eq!(
        said,
        "tasks.muster.dev \"a\" is forbidden: User \"jane\" cannot delete resource \"tasks\" in API group \"muster.dev\" \
         in the namespace \"default\": no rule"
    );
    let (who, wish) = delegate.asked().remove(0);
    assert_eq!(who.groups, ["dev"]);
    let expected = Wish::Resource {
        verb: "create".into(),
        group: "muster.dev".into(),
        resource: "tasks".into(),
        subresource: String::new(),
        namespace: "default".into(),
        name: String::new(),
    };
    assert_eq!(wish, expected);
}

#[tokio::test]
async fn a_part_of_a_task_is_asked_about_as_such() {
    let delegate = ScriptedDelegate::default();
    let server = behind(&delegate).await;
    let ask = Ask::new("GET", &format!("{}/a/log", path("tasks"))).through(&proxy()).header(USER, "jane");
    server.send(ask).await.refused(403);
    let (_, wish) = delegate.asked().remove(0);
    let Wish::Resource { resource, subresource, name, .. } = wish else { panic!("{wish:?}") };
    assert_eq!([resource, subresource, name], ["tasks", "log", "a"]);
}

#[tokio::test]
async fn headers_of_somebody_who_did_not_prove_to_be_the_cluster_are_not_believed() {
    let server = behind(&ScriptedDelegate::default().allowing("jane", "list")).await;
    let ask = Ask::new("GET", &path("tasks")).header(USER, "jane").header(AUTHORIZATION, "");
    server.send(ask).await.refused(401);
    let ask = Ask::new("GET", &path("tasks")).through(&proxy());
    server.send(ask).await.refused(401);
}

#[tokio::test]
async fn a_token_of_the_cluster_is_as_good_as_its_api_server() {
    let robot = Identity { name: "system:serviceaccount:a:b".into(), ..Identity::default() };
    let delegate = ScriptedDelegate::default().with_token("eyJ", robot.clone()).allowing(&robot.name, "list");
    let server = behind(&delegate).await;
    server.send(Ask::new("GET", &path("tasks")).token("eyJ")).await.good();
    server.send(Ask::new("POST", &path("tasks")).json(&task("a")).token("eyJ")).await.refused(403);
    server.send(Ask::new("GET", &path("tasks")).token("other")).await.refused(401);
    server.send(Ask::new("GET", &path("tasks"))).await.good();
}

#[tokio::test]
async fn a_token_that_looks_like_ours_is_not_shown_to_the_cluster() {
    let robot = Identity { name: "thief".into(), ..Identity::default() };
    let server = behind(&ScriptedDelegate::default().with_token("muster_0", robot)).await;
    server.send(Ask::new("GET", &path("tasks")).token("muster_0")).await.refused(401);
}

#[tokio::test]
async fn a_cluster_that_is_away_turns_its_users_away_and_nobody_else() {
    let server = behind(&ScriptedDelegate::default().away()).await;
    let ask = Ask::new("GET", &path("tasks")).through(&proxy()).header(USER, "jane");
    assert!(server.send(ask).await.refused(503).contains("it is away; try again"));
    server.send(Ask::new("GET", &path("tasks")).token("eyJ")).await.refused(503);
    server.send(Ask::new("GET", &path("tasks"))).await.good();
    let masters = Ask::new("GET", &path("tasks")).through(&proxy()).header(USER, "a");
    server.send(masters.header(GROUP, "system:masters")).await.good();
}

#[tokio::test]
async fn everybody_known_may_discover_what_is_served() {
    let delegate = ScriptedDelegate::default();
    let server = behind(&delegate).await;
    for path in ["/apis", "/apis/muster.dev/v1alpha1", "/apis/resources.muster.dev/v1alpha1", "/openapi/v3"] {
        server.send(Ask::new("GET", path).through(&proxy()).header(USER, "jane")).await.good();
    }
    assert_eq!(delegate.asked(), []);
    server.send(Ask::new("GET", "/metrics").through(&proxy()).header(USER, "jane")).await.refused(403);
    let path = Wish::Path { verb: "get".into(), path: "/metrics".into() };
    assert_eq!(delegate.asked().remove(0).1, path);
}

#[tokio::test]
async fn a_server_is_not_ready_before_it_knows_whom_to_believe() {
    let server = Server::start().await.in_cluster(ScriptedDelegate::default(), None);
    assert_eq!(server.get("/readyz").await.code, 503);
    assert_eq!(server.get("/livez").await.code, 200);
    assert_eq!(behind(&ScriptedDelegate::default()).await.get("/readyz").await.code, 200);
}

#[tokio::test]
async fn a_user_of_the_cluster_may_ask_about_itself() {
    let server = behind(&ScriptedDelegate::default().allowing("jane", "create")).await;
    let ask = async |group: &str, plural: &str, spec: Value| -> Value {
        let question = json!({ "apiVersion": format!("{group}/v1"), "kind": "Question", "spec": spec });
        let ask = Ask::new("POST", &format!("/apis/{group}/v1/{plural}")).json(&question);
        server.send(ask.through(&proxy()).header(USER, "jane")).await.good()["status"].clone()
    };
    let attributes = |verb: &str| json!({ "resourceAttributes": { "verb": verb, "resource": "tasks" } });
    let reviews = ("authorization.k8s.io", "selfsubjectaccessreviews");
    assert_eq!(ask(reviews.0, reviews.1, attributes("create")).await["allowed"], true);
    assert_eq!(ask(reviews.0, reviews.1, attributes("delete")).await["allowed"], false);
    let rules = ask(reviews.0, "selfsubjectrulesreviews", json!({})).await;
    assert_eq!(rules["incomplete"], true);
    let me = ask("authentication.k8s.io", "selfsubjectreviews", json!({})).await;
    assert_eq!(me["userInfo"]["username"], "jane");
}
