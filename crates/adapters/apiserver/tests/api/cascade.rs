//! Cascading deletion: what becomes of dependents when their owners go.

use std::sync::Arc;

use muster_apiserver::garbage;
use muster_ports::store::{LogError, WatchScope};
use serde_json::{Value, json};

use crate::server::{
    Ask, MERGE_PATCH, SOON, Server, Watching, application, name, names, path, path_everywhere, path_in,
};

pub fn target(name: &str) -> String {
    format!("{}/{name}", path("applications"))
}

/// An object that belongs to others.
pub fn owned(name: &str, owners: &[&Value], blocks: bool) -> Value {
    let reference = |owner: &&Value| {
        json!({
            "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocks,
        })
    };
    let mut object = application(name);
    object["metadata"]["ownerReferences"] = owners.iter().map(reference).collect();
    object
}

fn with_finalizer(mut object: Value) -> Value {
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    object
}

async fn let_go(server: &Server, name: &str) {
    server.patch(&target(name), MERGE_PATCH, &json!({"metadata": {"finalizers": null}})).await.good();
}

async fn delete(server: &Server, name: &str, policy: &str) {
    server.delete(&format!("{}?propagationPolicy={policy}", target(name))).await.good();
}

fn collect(server: &Server) {
    let clock = Arc::new(server.clock.clone());
    let collector =
        garbage::collect(server.store.clone(), server.registry.clone(), clock, server.shutdown.clone());
    tokio::spawn(collector);
}

pub async fn start() -> Server {
    let server = Server::start().await;
    collect(&server);
    server
}

/// Looks again after every change until the condition holds.
async fn wait_for(server: &Server, what: &str, condition: impl AsyncFn() -> bool) {
    let mut changes = server.store.watch(WatchScope::All, server.store.revision()).unwrap();
    let held = tokio::time::timeout(SOON, async {
        while !condition().await {
            changes.next(1000).await.unwrap();
        }
    });
    let held = held.await;
    let left = server.get(&path_everywhere("applications")).await.good();
    assert!(held.is_ok(), "waited in vain for {what}; there are {:?}", names(&left));
}

async fn present(server: &Server) -> Vec<String> {
    let list = server.get(&path_everywhere("applications")).await.good();
    names(&list).into_iter().map(str::to_owned).collect()
}

async fn wait_for_only(server: &Server, expected: &[&str]) {
    wait_for(server, &format!("{expected:?} alone"), async || present(server).await == expected).await;
}

/// Returns after everything that followed from the changes so far was done: what is looked at later is done.
pub async fn settle(server: &Server) {
    let gone = json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Application", "metadata": {"name": "x", "uid": "x"}});
    for _ in 0..4 {
        server.create(&owned("sentinel", &[&gone], false)).await;
        wait_for(server, "the sentinel to go", async || server.get(&target("sentinel")).await.code == 404)
            .await;
    }
}

/// Names in the order in which they were deleted.
fn deleted(watch: &mut Watching) -> Vec<String> {
    let events = watch.ready().into_iter().filter(|event| event.word == "DELETED");
    events.map(|event| name(&event.object).to_owned()).collect()
}

async fn watch(server: &Server) -> Watching {
    server.watch(&format!("{}?watch=1&resourceVersion={}", path("applications"), server.revision())).await
}

#[tokio::test]
async fn dependents_go_after_their_owner_in_the_background() {
    let server = start().await;
    let owner = server.create(&application("owner")).await;
    for number in 0..3 {
        server.create(&owned(&format!("d{number}"), &[&owner], true)).await;
    }
    server.create(&application("stranger")).await;
    let mut watch = watch(&server).await;
    server.delete(&target("owner")).await.good();
    wait_for_only(&server, &["stranger"]).await;
    assert_eq!(deleted(&mut watch)[0], "owner");
}

#[tokio::test]
async fn a_dependent_of_two_owners_stays_until_both_are_gone() {
    let server = start().await;
    let (a, b) = (server.create(&application("a")).await, server.create(&application("b")).await);
    server.create(&owned("d", &[&a, &b], true)).await;
    server.delete(&target("a")).await.good();
    let owners = async || server.get(&target("d")).await.good()["metadata"]["ownerReferences"].clone();
    wait_for(&server, "d to forget a", async || owners().await.as_array().unwrap().len() == 1).await;
    assert_eq!(owners().await[0]["name"], "b");
    server.delete(&target("b")).await.good();
    wait_for_only(&server, &[]).await;
}

#[tokio::test]
async fn a_dependent_that_comes_after_its_owner_has_gone_goes_too() {
    let server = start().await;
    let owner = server.create(&application("owner")).await;
    server.delete(&target("owner")).await.good();
    server.create(&owned("late", &[&owner], false)).await;
    wait_for_only(&server, &[]).await;
}

#[tokio::test]
async fn a_new_object_of_the_same_name_is_not_the_owner() {
    let server = start().await;
    let old = server.create(&application("owner")).await;
    server.delete(&target("owner")).await.good();
    server.create(&application("owner")).await;
    server.create(&owned("d", &[&old], false)).await;
    wait_for_only(&server, &["owner"]).await;
}

#[tokio::test]
async fn an_owner_in_another_namespace_is_none() {
    let server = start().await;
    let elsewhere = server.post(&path_in("other", "applications"), &application("owner")).await.good();
    server.create(&owned("d", &[&elsewhere], false)).await;
    wait_for_only(&server, &["owner"]).await;
}

#[tokio::test]
async fn an_owner_of_a_kind_that_is_not_served_is_taken_at_its_word() {
    let server = start().await;
    let foreign = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "1"}});
    server.create(&owned("d", &[&foreign], true)).await;
    settle(&server).await;
    assert_eq!(present(&server).await, ["d"]);
}

#[tokio::test]
async fn in_the_foreground_blocking_dependents_go_first() {
    let server = start().await;
    let owner = server.create(&application("owner")).await;
    server.create(&with_finalizer(owned("d1", &[&owner], true))).await;
    server.create(&owned("d2", &[&owner], true)).await;
    let mut watch = watch(&server).await;
    delete(&server, "owner", "Foreground").await;
    wait_for_only(&server, &["d1", "owner"]).await;
    settle(&server).await;
    assert_eq!(present(&server).await, ["d1", "owner"], "the owner waits for what holds d1");
    let waiting = server.get(&target("owner")).await.good();
    assert_eq!(waiting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert!(server.get(&target("d1")).await.good()["metadata"]["deletionTimestamp"].is_string());
    let_go(&server, "d1").await;
    wait_for_only(&server, &[]).await;
    let order: Vec<_> = deleted(&mut watch).into_iter().filter(|name| name != "sentinel").collect();
    assert_eq!(order, ["d2", "d1", "owner"]);
}

#[tokio::test]
async fn in_the_foreground_dependents_that_do_not_block_are_not_waited_for() {
    let server = start().await;
    let owner = server.create(&application("owner")).await;
    server.create(&with_finalizer(owned("d", &[&owner], false))).await;
    delete(&server, "owner", "Foreground").await;
    wait_for_only(&server, &["d"]).await;
    let deleting =
        async || server.get(&target("d")).await.good()["metadata"]["deletionTimestamp"].is_string();
    wait_for(&server, "d to be marked", deleting).await;
    let_go(&server, "d").await;
    wait_for_only(&server, &[]).await;
}

#[tokio::test]
async fn orphans_stay_and_forget_their_owner() {
    let server = start().await;
    let (owner, other) =
        (server.create(&application("owner")).await, server.create(&application("other")).await);
    server.create(&owned("d1", &[&owner], true)).await;
    server.create(&owned("d2", &[&owner, &other], false)).await;
    delete(&server, "owner", "Orphan").await;
    wait_for_only(&server, &["d1", "d2", "other"]).await;
    settle(&server).await;
    assert_eq!(present(&server).await, ["d1", "d2", "other"]);
    assert!(server.get(&target("d1")).await.good()["metadata"].get("ownerReferences").is_none());
    let kept = server.get(&target("d2")).await.good();
    assert_eq!(kept["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
    assert_eq!(kept["metadata"]["ownerReferences"][0]["name"], "other");
}

#[tokio::test]
async fn the_old_word_for_orphans_means_the_same() {
    let server = start().await;
    let owner = server.create(&application("owner")).await;
    server.create(&owned("d", &[&owner], true)).await;
    let body = json!({"orphanDependents": true});
    server.send(Ask::new("DELETE", &target("owner")).json(&body)).await.good();
    wait_for_only(&server, &["d"]).await;
    settle(&server).await;
    assert_eq!(present(&server).await, ["d"]);
}

#[tokio::test]
async fn an_owner_without_dependents_goes_under_every_policy() {
    let server = start().await;
    for policy in ["Background", "Foreground", "Orphan"] {
        server.create(&application("owner")).await;
        delete(&server, "owner", policy).await;
        wait_for_only(&server, &[]).await;
    }
}

async fn chain(server: &Server) {
    let a = server.create(&application("a")).await;
    let b = server.create(&owned("b", &[&a], true)).await;
    let c = server.create(&owned("c", &[&b], true)).await;
    server.create(&owned("d", &[&c], true)).await;
}

#[tokio::test]
async fn a_chain_goes_from_the_top_in_the_background_and_from_the_bottom_in_the_foreground() {
    let server = start().await;
    for (policy, expected) in [("Background", ["a", "b", "c", "d"]), ("Foreground", ["d", "c", "b", "a"])] {
        chain(&server).await;
        let mut watch = watch(&server).await;
        delete(&server, "a", policy).await;
        wait_for_only(&server, &[]).await;
        assert_eq!(deleted(&mut watch), expected, "{policy}");
    }
}

#[tokio::test]
async fn of_a_chain_the_part_below_an_orphan_stays_as_it_is() {
    let server = start().await;
    chain(&server).await;
    delete(&server, "a", "Orphan").await;
    wait_for_only(&server, &["b", "c", "d"]).await;
    settle(&server).await;
    assert_eq!(present(&server).await, ["b", "c", "d"]);
    assert_eq!(server.get(&target("c")).await.good()["metadata"]["ownerReferences"][0]["name"], "b");
}

#[tokio::test]
async fn two_objects_that_own_each_other_go_in_the_foreground_too() {
    let server = start().await;
    let a = server.create(&application("a")).await;
    let b = server.create(&owned("b", &[&a], true)).await;
    let references = owned("a", &[&b], true)["metadata"]["ownerReferences"].clone();
    server
        .patch(&target("a"), MERGE_PATCH, &json!({"metadata": {"ownerReferences": references}}))
        .await
        .good();
    delete(&server, "a", "Foreground").await;
    wait_for_only(&server, &[]).await;
}

#[tokio::test]
async fn two_thousand_dependents_go_in_one_sweep() {
    for policy in ["Background", "Foreground"] {
        let server = start().await;
        let owner = server.create(&application("owner")).await;
        for number in 0..2000 {
            server.create(&owned(&format!("d{number}"), &[&owner], true)).await;
        }
        delete(&server, "owner", policy).await;
        wait_for(&server, "all to go", async || server.store.counts()[0].1 == 0).await;
    }
}

#[tokio::test]
async fn a_collector_that_starts_late_finishes_what_was_begun() {
    let server = Server::start().await;
    let (a, b) = (server.create(&application("a")).await, server.create(&application("b")).await);
    let c = server.create(&application("c")).await;
    for (name, owner) in [("da", &a), ("db", &b), ("dc", &c)] {
        server.create(&owned(name, &[owner], true)).await;
    }
    delete(&server, "a", "Background").await;
    delete(&server, "b", "Foreground").await;
    delete(&server, "c", "Orphan").await;
    collect(&server);
    wait_for_only(&server, &["dc"]).await;
    settle(&server).await;
    assert_eq!(present(&server).await, ["dc"]);
}

#[tokio::test]
async fn a_write_that_the_store_refused_is_tried_again() {
    let server = start().await;
    let owner = server.create(&application("owner")).await;
    server.create(&owned("d", &[&owner], true)).await;
    settle(&server).await;
    server.delete(&target("owner")).await.good();
    server.faults.fail_next(LogError::Full("no room".into()));
    wait_for_only(&server, &[]).await;
}

#[tokio::test]
async fn a_dependent_that_came_just_before_the_delete_is_orphaned_and_not_lost() {
    let server = start().await;
    let owner = server.create(&application("owner")).await;
    server.create(&owned("d1", &[&owner], false)).await;
    settle(&server).await;
    // Nothing here waits, so the collector finds it all at once, in more than one page.
    server.delete(&target("d1")).await.good();
    for number in 0..300 {
        server.create(&application(&format!("other{number}"))).await;
    }
    server.create(&owned("d2", &[&owner], false)).await;
    delete(&server, "owner", "Orphan").await;
    wait_for(&server, "the owner to go", async || server.get(&target("owner")).await.code == 404).await;
    settle(&server).await;
    assert!(server.get(&target("d2")).await.good()["metadata"].get("ownerReferences").is_none());
}

#[tokio::test]
async fn a_delete_with_another_policy_overrides_the_one_before() {
    let server = Server::start().await;
    let owner = server.create(&application("owner")).await;
    server.create(&owned("d", &[&owner], true)).await;
    delete(&server, "owner", "Foreground").await;
    delete(&server, "owner", "Orphan").await;
    collect(&server);
    wait_for_only(&server, &["d"]).await;
    settle(&server).await;
    assert_eq!(present(&server).await, ["d"]);
}
