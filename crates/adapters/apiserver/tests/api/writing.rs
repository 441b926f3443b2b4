//! Creating, changing and deleting objects: identity, revisions, generations, finalizers, dry runs.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use hyper::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::server::{
    APPLY_PATCH, Ask, Event, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Server, application, name, names,
    path, path_in, revision, task,
};

fn named(plural: &str, name: &str) -> String {
    format!("{}/{name}", path(plural))
}

#[tokio::test]
async fn what_a_create_answers_is_what_a_get_shows() {
    let server = Server::start().await;
    let created = server.create(&application("a")).await;
    assert_eq!(server.get(&named("applications", "a")).await.good(), created);
    assert_eq!(revision(&created), server.revision());
    assert_eq!(created["metadata"]["generation"], 1);
    assert_eq!(created["metadata"]["namespace"], "default");
    assert_eq!(created["metadata"]["creationTimestamp"], "2023-11-14T22:13:20Z");
}

#[tokio::test]
async fn what_only_the_server_sets_is_not_taken_from_a_new_object() {
    let server = Server::start().await;
    let mut object = task("a");
    object["metadata"]["uid"] = json!("mine");
    object["metadata"]["generation"] = json!(77);
    object["metadata"]["creationTimestamp"] = json!("1999-01-01T00:00:00Z");
    object["metadata"]["deletionTimestamp"] = json!("1999-01-01T00:00:00Z");
    object["metadata"]["managedFields"] = json!([{"manager": "m"}]);
    object["metadata"]["selfLink"] = json!("/old");
    object["status"] = json!({"state": "Succeeded"});
    let created = server.create(&object).await;
    assert_ne!(created["metadata"]["uid"], "mine");
    assert_eq!(created["metadata"]["generation"], 1);
    assert_eq!(created["metadata"]["creationTimestamp"], "2023-11-14T22:13:20Z");
    for field in ["deletionTimestamp", "managedFields", "selfLink"] {
        assert!(created["metadata"].get(field).is_none(), "{field}");
    }
    assert_eq!(
        created["status"],
        json!({"createUser": "admin", "state": "Ready"}),
        "what was observed is not the client's to say"
    );
}

fn list(items: &[Value]) -> Value {
    json!({"apiVersion": "muster.dev/v1alpha1", "kind": "TaskList", "items": items})
}

#[tokio::test]
async fn a_list_of_tasks_is_stored_at_once_and_answered_as_it_is_stored() {
    let server = Server::start().await;
    let mut generated = task("");
    generated["metadata"] = json!({"generateName": "made-"});
    let made = server.post(&path("tasks"), &list(&[task("a"), task("b"), generated])).await;
    assert_eq!(made.code, 201);
    let made = made.json();
    assert_eq!((&made["kind"], made["items"].as_array().unwrap().len()), (&json!("TaskList"), 3));
    for item in made["items"].as_array().unwrap() {
        assert_eq!(server.get(&named("tasks", name(item))).await.good(), *item);
        assert_eq!(item["status"], json!({"createUser": "admin", "state": "Ready"}));
    }
    assert!(name(&made["items"][2]).starts_with("made-"));
    assert_eq!(made["metadata"]["resourceVersion"], made["items"][2]["metadata"]["resourceVersion"]);
    let text = serde_json::to_string(&list(&[task("c")])).unwrap();
    let yaml = Ask::new("POST", &path("tasks")).header(CONTENT_TYPE, "application/yaml").body(text);
    assert_eq!(name(&server.send(yaml).await.good()["items"][0]), "c");
    assert_eq!(server.post(&path("tasks"), &list(&[])).await.good()["items"], json!([]));
}

#[tokio::test]
async fn a_list_is_stored_whole_or_not_at_all() {
    let server = Server::start().await;
    server.create(&task("there")).await;
    let tasks = path("tasks");
    let mut bad = task("bad");
    bad["spec"]["priority"] = json!("high");
    let said = server.post(&tasks, &list(&[task("a"), bad])).await.refused(400);
    assert!(said.starts_with("items[1]: ") && said.contains("priority"), "{said}");
    let said = server.post(&tasks, &list(&[task("a"), task("not a name")])).await.refused(422);
    assert!(said.starts_with("items[1]: "), "{said}");
    let said = server.post(&tasks, &list(&[task("a"), task("there")])).await.refused(409);
    assert!(said.contains("\"there\" already exists"), "{said}");
    let said = server.post(&tasks, &list(&[task("a"), task("a")])).await.refused(400);
    assert_eq!(said, "items: \"a\" is there twice");
    let said = server.post(&tasks, &list(&vec![task("a"); 1001])).await.refused(413);
    assert_eq!(said, "the list has 1001 items; at most 1000 are taken at once");
    let dry = format!("{tasks}?dryRun=All");
    assert_eq!(server.post(&dry, &list(&[task("a")])).await.good()["items"].as_array().unwrap().len(), 1);
    server.post(&dry, &list(&[task("a"), task("there")])).await.refused(409);
    assert_eq!(names(&server.get(&tasks).await.good()), ["there"]);
    // Lists of anything else are not taken.
    let other = json!({"apiVersion": "muster.dev/v1alpha1", "kind": "ApplicationList", "items": []});
    server.post(&path("applications"), &other).await.refused(400);
    // A task may speak of lists.
    let mut speaks = task("speaks");
    speaks["metadata"]["annotations"] = json!({"about": "TaskList"});
    assert_eq!(name(&server.post(&tasks, &speaks).await.good()), "speaks");
}

#[tokio::test]
async fn a_list_draws_another_name_for_an_item_whose_name_is_taken() {
    let server = Server::start().await;
    let mut generated = task("");
    generated["metadata"] = json!({"generateName": "same-"});
    let body = list(&vec![generated; 1000]);
    // Among 20 000 names of five characters some are drawn twice, again and again.
    for _ in 0..20 {
        let made = server.post(&path("tasks"), &body).await;
        assert_eq!(made.code, 201, "{}", made.json());
    }
    let made = server.get(&path("tasks")).await.good();
    let made: BTreeSet<_> = names(&made).into_iter().map(str::to_owned).collect();
    assert_eq!(made.len(), 20_000);
}

#[tokio::test]
async fn items_of_a_list_need_not_say_what_they_are() {
    let server = Server::start().await;
    let untyped = |name: &str| {
        let mut task = task(name);
        task.as_object_mut().unwrap().retain(|field, _| field != "apiVersion" && field != "kind");
        task
    };
    let mut speaks = untyped("speaks");
    speaks["metadata"]["annotations"] = json!({"apiVersion": "x", "kind": "y"});
    let made = server.post(&path("tasks"), &list(&[untyped("a"), speaks, task("b")])).await;
    assert_eq!(made.code, 201, "{}", made.json());
    let made = made.json();
    assert!(made["items"].as_array().unwrap().iter().all(|item| item["kind"] == "Task"), "{made}");
    let yaml = "kind: TaskList\nitems:\n- {metadata: {name: c}, spec: {container: {command: [\"true\"]}}}\n";
    let yaml =
        Ask::new("POST", &path("tasks")).header(CONTENT_TYPE, "application/yaml").body(yaml.to_owned());
    assert_eq!(name(&server.send(yaml).await.good()["items"][0]), "c");
    let mut other = task("d");
    other["kind"] = json!("Application");
    let said = server.post(&path("tasks"), &list(&[other])).await.refused(400);
    assert!(said.starts_with("items[0]: "), "{said}");
}

#[tokio::test]
async fn generated_names_never_collide() {
    let server = Server::start().await;
    let mut object = application("");
    object["metadata"] = json!({"generateName": "same-"});
    let collection = path("applications");
    let answers = join_all((0..3000).map(|_| server.post(&collection, &object))).await;
    let made: BTreeSet<_> = answers.iter().map(|answer| name(&answer.good()).to_owned()).collect();
    assert_eq!(made.len(), 3000);
    assert!(made.iter().all(|name| name.starts_with("same-") && name.len() == 10));
}

#[tokio::test]
async fn a_name_is_needed_and_wins_over_a_prefix() {
    let server = Server::start().await;
    let mut object = application("a");
    object["metadata"]["generateName"] = json!("b-");
    assert_eq!(name(&server.create(&object).await), "a");
    object["metadata"] = json!({});
    let answer = server.post(&path("applications"), &object).await;
    assert!(answer.refused(422).contains("generateName"));
    assert_eq!(answer.json()["details"]["causes"][0]["field"], "metadata.name");
}

#[tokio::test]
async fn a_second_object_of_the_same_name_is_refused() {
    let server = Server::start().await;
    server.create(&application("a")).await;
    let before = server.revision();
    let answer = server.post(&path("applications"), &application("a")).await;
    answer.refused(409);
    assert_eq!(answer.json()["reason"], "AlreadyExists");
    assert_eq!(server.revision(), before);
    server.post(&path_in("other", "applications"), &application("a")).await.good();
}

#[tokio::test]
async fn a_change_that_changes_nothing_keeps_the_resource_version() {
    let server = Server::start().await;
    let mut object = task("a");
    object["metadata"]["labels"] = json!({"l": "1"});
    let created = server.create(&object).await;
    let target = named("tasks", "a");
    let before = server.revision();
    assert_eq!(server.put(&target, &created).await.good(), created);
    assert_eq!(server.patch(&target, JSON_PATCH, &json!([])).await.good(), created);
    assert_eq!(server.patch(&target, MERGE_PATCH, &json!({})).await.good(), created);
    let same = json!({"metadata": {"labels": {"l": "1"}}, "spec": {"container": {"command": ["true"]}}});
    for media in [MERGE_PATCH, STRATEGIC_PATCH] {
        assert_eq!(server.patch(&target, media, &same).await.good(), created);
    }
    let status = json!({"status": {}});
    assert_eq!(server.patch(&format!("{target}/status"), MERGE_PATCH, &status).await.good(), created);
    assert_eq!(server.revision(), before, "nothing was written");
    let applied = server.apply(&target, "m", &task("a")).await.good();
    let later = server.revision();
    server.clock.advance(60_000);
    assert_eq!(server.apply(&target, "m", &task("a")).await.good(), applied);
    assert_eq!(server.put(&target, &applied).await.good(), applied);
    assert_eq!(server.revision(), later, "nothing was written");
}

#[tokio::test]
async fn an_update_of_an_old_version_is_a_conflict() {
    let server = Server::start().await;
    let old = server.create(&application("a")).await;
    let mut new = old.clone();
    new["spec"]["properties"] = json!({"n": 1});
    let target = named("applications", "a");
    let stored = server.put(&target, &new).await.good();
    let before = server.revision();
    assert_eq!(server.put(&target, &new).await.json()["reason"], "Conflict");
    let stale = json!({"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}, "spec": {"properties": 2}});
    server.patch(&target, MERGE_PATCH, &stale).await.refused(409);
    new["metadata"]["resourceVersion"] = json!("");
    server.put(&target, &new).await.refused(422);
    server.put(&named("applications", "none"), &old).await.refused(404);
    assert_eq!(server.get(&target).await.good(), stored);
    assert_eq!(server.revision(), before);
}

#[tokio::test]
async fn identity_survives_every_change() {
    let server = Server::start().await;
    let created = server.create(&application("a")).await;
    let target = named("applications", "a");
    server.clock.advance(3_600_000);
    let mut new = created.clone();
    new["metadata"]["creationTimestamp"] = json!("1999-01-01T00:00:00Z");
    new["metadata"]["deletionTimestamp"] = json!("1999-01-01T00:00:00Z");
    new["metadata"]["generation"] = json!(50);
    new["metadata"]["uid"] = json!("");
    new["spec"]["properties"] = json!({"n": 1});
    let changed = server.put(&target, &new).await.good();
    for field in ["uid", "creationTimestamp", "name", "namespace"] {
        assert_eq!(changed["metadata"][field], created["metadata"][field], "{field}");
    }
    assert_eq!(changed["metadata"]["generation"], 2);
    assert!(changed["metadata"].get("deletionTimestamp").is_none());
    let before = server.revision();
    for patch in [json!({"metadata": {"uid": "x"}})] {
        assert!(server.patch(&target, MERGE_PATCH, &patch).await.refused(422).contains("metadata.uid"));
    }
    for patch in [json!({"metadata": {"name": "b"}}), json!({"metadata": {"namespace": "b"}})] {
        server.patch(&target, MERGE_PATCH, &patch).await.refused(400);
    }
    assert_eq!(server.revision(), before);
}

#[tokio::test]
async fn generation_counts_changes_of_the_spec_alone() {
    let server = Server::start().await;
    server.create(&task("a")).await;
    let target = named("tasks", "a");
    let generation = |object: &Value| object["metadata"]["generation"].as_i64().unwrap();
    let labelled =
        server.patch(&target, MERGE_PATCH, &json!({"metadata": {"labels": {"l": "1"}}})).await.good();
    assert_eq!(generation(&labelled), 1);
    let changed = server.patch(&target, MERGE_PATCH, &json!({"spec": {"priority": 3}})).await.good();
    assert_eq!(generation(&changed), 2);
    let condition = json!({"type": "Done", "status": "True", "lastTransitionTime": "2026-11-15T14:00:00Z"});
    let reported = json!({"status": {"conditions": [condition]}});
    let reported = server.patch(&format!("{target}/status"), MERGE_PATCH, &reported).await.good();
    assert_eq!(generation(&reported), 2);
}

#[tokio::test]
async fn the_status_is_written_through_its_subresource_alone() {
    let server = Server::start().await;
    let created = server.create(&task("a")).await;
    let target = named("tasks", "a");
    let both =
        json!({"metadata": {"labels": {"l": "1"}}, "spec": {"priority": 3}, "status": {"state": "Running"}});
    let main = server.patch(&target, MERGE_PATCH, &both).await.good();
    assert_eq!(main["status"]["state"], "Ready");
    assert_eq!(main["spec"]["priority"], 3);
    let condition = |status: &str| json!([{"type": "Done", "status": status, "lastTransitionTime": "2026-11-15T14:00:00Z"}]);
    let other = json!({
        "metadata": {"labels": {"l": "2"}}, "spec": {"priority": 4}, "status": {"conditions": condition("False")},
    });
    let status = server.patch(&format!("{target}/status"), MERGE_PATCH, &other).await.good();
    assert_eq!(status["status"]["conditions"], condition("False"));
    assert_eq!((&status["spec"]["priority"], &status["metadata"]["labels"]["l"]), (&json!(3), &json!("1")));
    assert_eq!(server.get(&format!("{target}/status")).await.good(), status);
    let mut put = status.clone();
    put["status"]["conditions"] = condition("True");
    put["spec"]["priority"] = json!(9);
    let put = server.put(&format!("{target}/status"), &put).await.good();
    assert_eq!((&put["status"]["conditions"], &put["spec"]["priority"]), (&condition("True"), &json!(3)));
    assert_eq!(put["metadata"]["uid"], created["metadata"]["uid"]);
    server.delete(&format!("{target}/status")).await.refused(405);
    server.create(&application("b")).await;
    server.get(&format!("{}/status", named("applications", "b"))).await.refused(404);
}

#[tokio::test]
async fn a_dry_run_answers_as_if_and_changes_nothing() {
    let server = Server::start().await;
    let existing = server.create(&task("a")).await;
    let target = named("tasks", "a");
    let mut changed = existing.clone();
    changed["spec"]["priority"] = json!(7);
    let from = server.revision();
    let mut watch = server.watch(&format!("{}?watch=1&resourceVersion={from}", path("tasks"))).await;
    let made = server.post(&format!("{}?dryRun=All", path("tasks")), &task("b")).await.good();
    assert!(made["metadata"]["uid"].is_string());
    server.post(&format!("{}?dryRun=All", path("tasks")), &task("a")).await.refused(409);
    let put = server.put(&format!("{target}?dryRun=All"), &changed).await.good();
    assert_eq!((&put["spec"]["priority"], &put["metadata"]["generation"]), (&json!(7), &json!(2)));
    let patch = json!({"spec": {"priority": 8}});
    let patched = server.patch(&format!("{target}?dryRun=All"), MERGE_PATCH, &patch).await.good();
    assert_eq!(patched["spec"]["priority"], 8);
    let json_patch = json!([{"op": "add", "path": "/spec/priority", "value": 9}]);
    server.patch(&format!("{target}?dryRun=All"), JSON_PATCH, &json_patch).await.good();
    let done = json!({"type": "Done", "status": "True", "lastTransitionTime": "2026-11-15T14:00:00Z"});
    let status = json!({"status": {"conditions": [done]}});
    server.patch(&format!("{target}/status?dryRun=All"), MERGE_PATCH, &status).await.good();
    for name in ["a", "new"] {
        let target = format!("{}?dryRun=All&fieldManager=m", named("tasks", name));
        let applied = server.patch(&target, APPLY_PATCH, &task(name)).await.good();
        assert_eq!(applied["metadata"]["managedFields"][0]["manager"], "m");
    }
    server.delete(&format!("{target}?dryRun=All")).await.good();
    let body = json!({"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]});
    server.send(Ask::new("DELETE", &target).json(&body)).await.good();
    server.send(Ask::new("DELETE", &path("tasks")).json(&body)).await.good();
    let foreground = format!("{target}?dryRun=All&propagationPolicy=Foreground");
    assert!(server.delete(&foreground).await.good()["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(server.revision(), from);
    assert_eq!(server.get(&target).await.good(), existing);
    assert!(watch.ready().is_empty());
}

#[tokio::test]
async fn an_object_with_finalizers_goes_when_the_last_one_is_removed() {
    let server = Server::start().await;
    let mut object = application("a");
    object["metadata"]["finalizers"] = json!(["example.com/a", "example.com/b"]);
    server.create(&object).await;
    let target = named("applications", "a");
    let query = format!("{}?watch=1&resourceVersion={}", path("applications"), server.revision());
    let mut watch = server.watch(&query).await;
    let marked = server.delete(&target).await.good();
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2023-11-14T22:13:20Z");
    assert_eq!(marked["metadata"]["generation"], 2);
    let at = server.revision();
    assert_eq!(server.delete(&target).await.good(), marked, "a second delete changes nothing");
    assert_eq!(server.revision(), at);
    let more = json!({"metadata": {"finalizers": ["example.com/a", "example.com/b", "example.com/c"]}});
    assert!(server.patch(&target, MERGE_PATCH, &more).await.refused(422).contains("example.com/c"));
    let one = json!({"metadata": {"finalizers": ["example.com/b"]}});
    server.patch(&target, MERGE_PATCH, &one).await.good();
    let none = json!([{"op": "remove", "path": "/metadata/finalizers/0"}]);
    let last = server.patch(&target, JSON_PATCH, &none).await.good();
    assert!(last["metadata"].get("finalizers").is_none(), "the answer shows what was asked for: {last}");
    assert_eq!(revision(&last), server.revision());
    server.get(&target).await.refused(404);
    let words: Vec<_> = watch.ready().into_iter().map(|event| event.word).collect();
    assert_eq!(words, ["MODIFIED", "MODIFIED", "DELETED"]);
}

#[tokio::test]
async fn a_delete_whose_preconditions_fail_changes_nothing() {
    let server = Server::start().await;
    let object = server.create(&application("a")).await;
    let target = named("applications", "a");
    let before = server.revision();
    for preconditions in [json!({"uid": "another"}), json!({"resourceVersion": "1"})] {
        let body = json!({"preconditions": preconditions});
        server.send(Ask::new("DELETE", &target).json(&body)).await.refused(409);
    }
    assert_eq!(server.revision(), before);
    let metadata = &object["metadata"];
    let body =
        json!({"preconditions": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}});
    let answer = server.send(Ask::new("DELETE", &target).json(&body)).await.good();
    assert_eq!((&answer["status"], &answer["details"]["uid"]), (&json!("Success"), &metadata["uid"]));
    server.delete(&target).await.refused(404);
}

#[tokio::test]
async fn a_collection_is_deleted_as_far_as_the_selectors_reach() {
    let server = Server::start().await;
    for (name, team) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        let mut object = application(name);
        object["metadata"]["labels"] = json!({"team": team});
        server.create(&object).await;
    }
    server.post(&path_in("other", "applications"), &application("d")).await.good();
    let answer = server.delete(&format!("{}?labelSelector=team%3Dred", path("applications"))).await.good();
    assert_eq!(names(&answer), ["a", "c"]);
    assert_eq!(names(&server.get(&path("applications")).await.good()), ["b"]);
    server.delete(&format!("{}?fieldSelector=metadata.name%3Db", path("applications"))).await.good();
    assert!(names(&server.get(&path("applications")).await.good()).is_empty());
    assert_eq!(names(&server.get(&path_in("other", "applications")).await.good()), ["d"]);
}

#[tokio::test]
async fn a_patch_that_fails_in_the_middle_changes_nothing() {
    let server = Server::start().await;
    let object = server.create(&application("a")).await;
    let target = named("applications", "a");
    let patch = json!([
        {"op": "add", "path": "/metadata/labels", "value": {"l": "1"}},
        {"op": "test", "path": "/spec/properties/n", "value": 99},
    ]);
    assert!(server.patch(&target, JSON_PATCH, &patch).await.refused(422).contains("test"));
    assert_eq!(server.get(&target).await.good(), object);
}

#[tokio::test]
async fn writes_of_many_at_once_lose_nothing() {
    let server = Server::start().await;
    server.create(&application("a")).await;
    let target = named("applications", "a");
    let writes = (0..50).map(|number| {
        let patch = json!({"metadata": {"annotations": {format!("k{number}"): "v"}}});
        let (server, target) = (&server, &target);
        async move { server.patch(target, MERGE_PATCH, &patch).await.good() }
    });
    let answers = join_all(writes).await;
    let revisions: BTreeSet<_> = answers.iter().map(revision).collect();
    assert_eq!(revisions.len(), 50);
    let stored = server.get(&target).await.good();
    assert_eq!(stored["metadata"]["annotations"].as_object().unwrap().len(), 50);
}

#[tokio::test]
async fn yaml_is_taken_wherever_json_is() {
    let server = Server::start().await;
    let yaml = "apiVersion: muster.dev/v1alpha1\nkind: Task\nmetadata: {name: a}\nspec:\n  timeout: PT2M\n  \
                container:\n    command: [\"true\"]\n";
    for (name, body) in [
        ("a", yaml.to_owned()),
        ("b", "{apiVersion: muster.dev/v1alpha1, kind: Task, metadata: {name: b}, spec: {timeout: 2m, kind: k}}".to_owned()),
        ("c", format!("---\n{}", yaml.replace("name: a", "name: c"))),
    ] {
        let ask = Ask::new("POST", &path("tasks")).body(body).header(CONTENT_TYPE, "application/yaml");
        let created = server.send(ask).await.good();
        assert_eq!((created["metadata"]["name"].as_str(), created["spec"]["timeout"].as_str()), (Some(name), Some("2m")));
    }
}

#[tokio::test]
async fn a_delete_answers_a_watch_with_the_object_it_removed() {
    let server = Server::start().await;
    server.create(&application("a")).await;
    let query = format!("{}?watch=1&resourceVersion={}", path("applications"), server.revision());
    let mut watch = server.watch(&query).await;
    server.delete(&named("applications", "a")).await.good();
    assert_eq!(
        watch.ready().iter().map(Event::brief).collect::<Vec<_>>(),
        [("DELETED", "a", server.revision())]
    );
}
