//! Watches: every change once and in order, from any revision, in every form.

use std::time::Duration;

use muster_apiserver::api::Settings;
use muster_ports::store::History;
use serde_json::{Value, json};

use crate::server::{
    Event, MERGE_PATCH, METADATA, Server, TABLE, application, name, path, path_in, revision, task,
};

pub fn labelled(name: &str, value: &str) -> Value {
    let mut object = application(name);
    object["metadata"]["labels"] = json!({"team": value});
    object
}

async fn label(server: &Server, name: &str, value: &str) -> Value {
    let patch = json!({"metadata": {"labels": {"team": value}}});
    server.patch(&format!("{}/{name}", path("applications")), MERGE_PATCH, &patch).await.good()
}

#[tokio::test]
async fn a_watch_shows_what_is_created_changed_and_deleted() {
    let server = Server::start().await;
    let from = server.revision();
    let mut watch = server.watch(&format!("{}?watch=1&resourceVersion={from}", path("applications"))).await;
    assert!(watch.ready().is_empty());
    let created = server.create(&application("a")).await;
    let changed = label(&server, "a", "red").await;
    server.delete(&format!("{}/a", path("applications"))).await.good();
    let events = watch.ready();
    assert_eq!(
        events.iter().map(|event| event.word.as_str()).collect::<Vec<_>>(),
        ["ADDED", "MODIFIED", "DELETED"]
    );
    assert_eq!(events[0].object, created);
    assert_eq!(events[1].object, changed);
    let mut last = changed;
    last["metadata"]["resourceVersion"] = json!(server.revision().to_string());
    assert_eq!(events[2].object, last, "the last version, at the revision of the deletion");
}

#[tokio::test]
async fn an_object_that_starts_to_match_is_added_and_one_that_stops_is_deleted() {
    let server = Server::start().await;
    server.create(&labelled("a", "blue")).await;
    let from = server.revision();
    let query = format!("watch=1&resourceVersion={from}&labelSelector=team%3Dred");
    let mut watch = server.watch(&format!("{}?{query}", path("applications"))).await;
    let entered = label(&server, "a", "red").await;
    let stayed = server
        .patch(&format!("{}/a", path("applications")), MERGE_PATCH, &json!({"spec": {"properties": 1}}))
        .await
        .good();
    let left = label(&server, "a", "green").await;
    label(&server, "a", "yellow").await;
    let events = watch.ready();
    assert_eq!(
        events.iter().map(Event::brief).collect::<Vec<_>>(),
        [
            ("ADDED", "a", revision(&entered)),
            ("MODIFIED", "a", revision(&stayed)),
            ("DELETED", "a", revision(&left)),
        ]
    );
    assert_eq!(events[2].object["metadata"]["labels"]["team"], "red", "what the client knew of it");
}

#[tokio::test]
async fn a_watch_by_field_follows_the_status() {
    let server = Server::start().await;
    server.create(&task("a")).await;
    let query = format!("watch=1&resourceVersion={}&fieldSelector=status.state%3DRunning", server.revision());
    let mut watch = server.watch(&format!("{}?{query}", path("tasks"))).await;
    for state in ["Pending", "Running", "Succeeded"] {
        server.set_status("a", &json!({"state": state})).await;
    }
    let words: Vec<_> = watch.ready().into_iter().map(|event| event.word).collect();
    assert_eq!(words, ["ADDED", "DELETED"]);
}

#[tokio::test]
async fn a_watch_without_a_revision_begins_with_what_is_there() {
    let server = Server::start().await;
    server.create(&application("b")).await;
    server.create(&application("a")).await;
    for query in ["watch=true", "watch=true&resourceVersion=0"] {
        let mut watch = server.watch(&format!("{}?{query}", path("applications"))).await;
        let events = watch.ready();
        let seen: Vec<_> = events.iter().map(|event| (event.word.as_str(), name(&event.object))).collect();
        assert_eq!(seen, [("ADDED", "a"), ("ADDED", "b")]);
    }
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark_that_says_so() {
    let server = Server::start().await;
    server.create(&application("a")).await;
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = server.watch(&format!("{}?{query}", path("applications"))).await;
    let events = watch.ready();
    assert_eq!(events.len(), 2);
    assert_eq!((events[0].word.as_str(), name(&events[0].object)), ("ADDED", "a"));
    let bookmark = &events[1];
    assert_eq!(bookmark.word, "BOOKMARK");
    assert_eq!(bookmark.object["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    assert_eq!(revision(&bookmark.object), server.revision());
    assert_eq!(bookmark.object["kind"], "Application");
    server.create(&application("b")).await;
    assert_eq!(
        watch.ready().iter().map(Event::brief).collect::<Vec<_>>(),
        [("ADDED", "b", server.revision())]
    );
    let from = format!(
        "{}?watch=1&resourceVersion={}",
        path("applications"),
        bookmark.object["metadata"]["resourceVersion"].as_str().unwrap()
    );
    assert_eq!(server.watch(&from).await.ready().len(), 1, "a watch goes on from the bookmark");
}

#[tokio::test]
async fn initial_events_that_are_not_wanted_are_not_sent() {
    let server = Server::start().await;
    server.create(&application("a")).await;
    let query = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = server.watch(&format!("{}?{query}", path("applications"))).await;
    assert!(watch.ready().is_empty());
    server.create(&application("b")).await;
    assert_eq!(
        watch.ready().iter().map(Event::brief).collect::<Vec<_>>(),
        [("ADDED", "b", server.revision())]
    );
}

#[tokio::test]
async fn questions_about_initial_events_that_make_no_sense_are_refused() {
    let server = Server::start().await;
    for query in [
        "sendInitialEvents=true",
        "sendInitialEvents=true&resourceVersionMatch=Exact",
        "resourceVersionMatch=NotOlderThan",
        "resourceVersion=nonsense",
    ] {
        server.get(&format!("{}?watch=1&{query}", path("applications"))).await.refused(400);
    }
    let message =
        server.get(&format!("{}?watch=1&resourceVersion=999", path("applications"))).await.refused(504);
    assert!(message.contains("999"), "{message}");
}

#[tokio::test]
async fn a_table_watch_sends_its_columns_once() {
    let server = Server::start().await;
    server.create(&task("a")).await;
    let mut watch = server.watch_as(&format!("{}?watch=1", path("tasks")), TABLE).await;
    server.create(&task("b")).await;
    let tables: Vec<_> = watch.ready().into_iter().map(|event| event.object).collect();
    assert_eq!(tables.len(), 2);
    let columns = |table: &Value| table["columnDefinitions"].as_array().unwrap().len();
    assert!(columns(&tables[0]) > 2);
    assert_eq!(columns(&tables[1]), 0);
    for (table, expected) in tables.iter().zip(["a", "b"]) {
        assert_eq!(table["kind"], "Table");
        assert_eq!(table["rows"][0]["cells"].as_array().unwrap().len(), columns(&tables[0]));
        assert_eq!(table["rows"][0]["cells"][0], expected);
        assert_eq!(
            table["metadata"],
            json!({"resourceVersion": table["rows"][0]["object"]["metadata"]["resourceVersion"]})
        );
    }
}

#[tokio::test]
async fn a_metadata_watch_sends_metadata_alone() {
    let server = Server::start().await;
    server.create(&application("a")).await;
    let mut watch = server.watch_as(&format!("{}?watch=1", path("applications")), METADATA).await;
    let object = watch.ready().remove(0).object;
    assert_eq!(object["kind"], "PartialObjectMetadata");
    assert_eq!(name(&object), "a");
    assert!(object.get("spec").is_none());
}

#[tokio::test]
async fn a_watch_of_one_object_shows_no_other() {
    let server = Server::start().await;
    let from = server.revision();
    let by_path = format!("{}/a?watch=1&resourceVersion={from}", path("applications"));
    let by_field =
        format!("{}?watch=1&resourceVersion={from}&fieldSelector=metadata.name%3Da", path("applications"));
    let mut watches = [server.watch(&by_path).await, server.watch(&by_field).await];
    server.create(&application("b")).await;
    let expected = [("ADDED", "a", revision(&server.create(&application("a")).await))];
    for watch in &mut watches {
        assert_eq!(watch.ready().iter().map(Event::brief).collect::<Vec<_>>(), expected);
    }
}

#[tokio::test]
async fn a_namespaced_watch_shows_no_other_namespace() {
    let server = Server::start().await;
    let from = server.revision();
    let mut watch = server.watch(&format!("{}?watch=1&resourceVersion={from}", path("applications"))).await;
    server.post(&path_in("default2", "applications"), &application("a")).await.good();
    server.post(&path_in("default", "applications"), &application("b")).await.good();
    assert_eq!(
        watch.ready().iter().map(Event::brief).collect::<Vec<_>>(),
        [("ADDED", "b", server.revision())]
    );
}

#[tokio::test]
async fn bookmarks_come_while_nothing_happens_and_say_where_the_store_is() {
    let settings = Settings { bookmark_every: Duration::from_millis(5), ..Settings::default() };
    let server = Server::with(settings, History::default()).await;
    let from = server.revision();
    let query = format!("watch=1&resourceVersion={from}&allowWatchBookmarks=true&labelSelector=nobody");
    let mut watch = server.watch(&format!("{}?{query}", path("applications"))).await;
    server.create(&application("a")).await;
    let mut bookmark = watch.next().await;
    while revision(&bookmark.object) < server.revision() {
        bookmark = watch.next().await;
    }
    assert_eq!(bookmark.brief(), ("BOOKMARK", "", server.revision()));
    assert!(bookmark.object["metadata"].get("annotations").is_none());
}

#[tokio::test]
async fn a_watch_that_did_not_ask_for_bookmarks_gets_none() {
    let settings = Settings { bookmark_every: Duration::from_millis(1), ..Settings::default() };
    let server = Server::with(settings, History::default()).await;
    let query = format!("watch=1&resourceVersion={}&timeoutSeconds=1", server.revision());
    let watch = server.watch(&format!("{}?{query}", path("applications"))).await;
    assert_eq!(watch.until_end().await, [], "a watch ends after its time");
}

#[tokio::test]
async fn a_watch_from_a_forgotten_revision_is_gone() {
    let history = History { max_changes: 3, ..History::default() };
    let server = Server::with(Settings::default(), history).await;
    server.create(&application("a0")).await;
    let early = server.revision();
    let query = format!("{}?watch=1&resourceVersion={early}", path("applications"));
    let mut slow = server.watch(&query).await;
    for number in 1..10 {
        server.create(&application(&format!("a{number}"))).await;
    }
    server.get(&query).await.refused(410);
    let error = slow.ready().remove(0);
    assert_eq!((error.word.as_str(), &error.object["code"]), ("ERROR", &json!(410)));
    assert_eq!(error.object["reason"], "Expired");
    assert!(slow.next_or_end().await.is_none());
}

#[tokio::test]
async fn a_quiet_kind_can_be_watched_across_any_number_of_changes_of_others() {
    let history = History { max_changes: 3, ..History::default() };
    let server = Server::with(Settings::default(), history).await;
    server.create(&task("t")).await;
    let from = server.revision();
    for number in 1..10 {
        server.create(&application(&format!("a{number}"))).await;
    }
    let mut watch = server.watch(&format!("{}?watch=1&resourceVersion={from}", path("tasks"))).await;
    server.create(&task("u")).await;
    assert_eq!(
        watch.ready().iter().map(Event::brief).collect::<Vec<_>>(),
        [("ADDED", "u", server.revision())]
    );
}

#[tokio::test]
async fn a_server_that_stops_ends_its_watches_and_says_where_they_were() {
    let server = Server::start().await;
    let query = format!("watch=1&resourceVersion={}&allowWatchBookmarks=true", server.revision());
    let mut watch = server.watch(&format!("{}?{query}", path("applications"))).await;
    server.create(&application("a")).await;
    assert_eq!(watch.ready().len(), 1);
    server.shutdown.request();
    let events = watch.until_end().await;
    assert_eq!(events.iter().map(Event::brief).collect::<Vec<_>>(), [("BOOKMARK", "", server.revision())]);
}

#[tokio::test]
async fn a_watch_beyond_the_limit_is_refused_until_another_ends() {
    let settings = Settings { max_watches: 1, ..Settings::default() };
    let server = Server::with(settings, History::default()).await;
    let query = format!("{}?watch=1", path("applications"));
    let first = server.watch(&query).await;
    let answer = server.get(&query).await;
    answer.refused(429);
    assert_eq!(answer.headers["retry-after"], "1");
    drop(first);
    server.watch(&query).await;
}
