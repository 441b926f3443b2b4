//! kube-rs: the client that our own crates and most Rust controllers use.

use std::time::Duration;

use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
    Preconditions, WatchEvent, WatchParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt as _};
use muster_e2e::server::Server;
use muster_e2e::wait::SOON;
use serde_json::{Value, json};

fn task_kind() -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("muster.dev", "v1alpha1", "Task"), "tasks")
}

async fn connect(server: &Server) -> Client {
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).expect("the kubeconfig can be read");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("the kubeconfig is complete")).expect("a client can be made")
}

/// The tasks of a new namespace.
async fn tasks() -> Api<DynamicObject> {
    let server = Server::shared();
    Api::namespaced_with(connect(server).await, &server.new_namespace(), &task_kind())
}

fn task(name: &str, spec: &Value) -> DynamicObject {
    DynamicObject::new(name, &task_kind()).data(json!({ "spec": spec }))
}

async fn create(api: &Api<DynamicObject>, name: &str) -> DynamicObject {
    let made = api.create(&PostParams::default(), &task(name, &json!({ "kind": "k" }))).await;
    made.expect("a task can be created")
}

fn code_of(error: kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    }
}

/// The next event of a watch.
async fn next<K>(events: &mut (impl Stream<Item = kube::Result<WatchEvent<K>>> + Unpin)) -> WatchEvent<K> {
    let event = tokio::time::timeout(SOON, events.next()).await.expect("an event comes in time");
    event.expect("the watch goes on").expect("the event can be read")
}

fn told<K: kube::ResourceExt>(event: &WatchEvent<K>) -> String {
    match event {
        WatchEvent::Added(object) => format!("added {}", object.name_any()),
        WatchEvent::Modified(object) => format!("modified {}", object.name_any()),
        WatchEvent::Deleted(object) => format!("deleted {}", object.name_any()),
        WatchEvent::Bookmark(bookmark) => format!("bookmark {}", bookmark.types.kind),
        WatchEvent::Error(status) => format!("error {}", status.code),
    }
}

#[tokio::test]
async fn discovery_finds_the_kinds_in_both_forms() {
    let client = connect(Server::shared()).await;
    let old = kube::Discovery::new(client.clone()).filter(&["muster.dev"]).run().await.unwrap();
    let aggregated = kube::Discovery::new(client).filter(&["muster.dev"]).run_aggregated().await.unwrap();
    for discovery in [old, aggregated] {
        let (found, capabilities) =
            discovery.resolve_gvk(&GroupVersionKind::gvk("muster.dev", "v1alpha1", "Task")).unwrap();
        assert_eq!(found.plural, "tasks");
        assert!(capabilities.supports_operation("watch"));
        assert!(capabilities.subresources.iter().any(|(subresource, _)| subresource.plural == "status"));
    }
}

#[tokio::test]
async fn discovery_of_everything_holds_no_empty_group() {
    let client = connect(Server::shared()).await;
    let old = kube::Discovery::new(client.clone()).run().await.unwrap();
    let aggregated = kube::Discovery::new(client).run_aggregated().await.unwrap();
    for discovery in [old, aggregated] {
        for group in discovery.groups() {
            assert!(!group.recommended_resources().is_empty(), "{} is empty", group.name());
        }
    }
}

#[tokio::test]
async fn what_is_created_is_read_back() {
    let api = tasks().await;
    let made = create(&api, "a").await;
    let read = api.get("a").await.unwrap();
    assert_eq!(read, made);
    assert_eq!(read.data["spec"]["kind"], "k");
    assert!(api.get_opt("b").await.unwrap().is_none());
}

#[tokio::test]
async fn server_side_apply_conflicts_until_forced() {
    let api = tasks().await;
    let wanted = |priority: i32| {
        json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": "a"},
               "spec": {"kind": "k", "priority": priority}})
    };
    api.patch("a", &PatchParams::apply("alice"), &Patch::Apply(wanted(1))).await.unwrap();
    let refused = api.patch("a", &PatchParams::apply("bob"), &Patch::Apply(wanted(2))).await.unwrap_err();
    let kube::Error::Api(status) = refused else { panic!("{refused}") };
    assert_eq!((status.code, &*status.reason), (409, "Conflict"));
    assert_eq!(status.details.unwrap().causes[0].field, ".spec.priority");
    let forced = api.patch("a", &PatchParams::apply("bob").force(), &Patch::Apply(wanted(2))).await.unwrap();
    assert_eq!(forced.data["spec"]["priority"], 2);
    assert_eq!(forced.managed_fields().len(), 2);
}

#[tokio::test]
async fn merge_and_strategic_patches_are_carried_out() {
    let api = tasks().await;
    create(&api, "a").await;
    let params = PatchParams::default();
    api.patch("a", &params, &Patch::Merge(json!({"spec": {"priority": 1}}))).await.unwrap();
    let patched =
        api.patch("a", &params, &Patch::Strategic(json!({"spec": {"locator": "here"}}))).await.unwrap();
    assert_eq!(patched.data["spec"], json!({"kind": "k", "priority": 1, "locator": "here"}));
}

#[tokio::test]
async fn replacing_a_stale_object_conflicts() {
    let api = tasks().await;
    let stale = create(&api, "a").await;
    api.patch("a", &PatchParams::default(), &Patch::Merge(json!({"spec": {"priority": 1}}))).await.unwrap();
    let refused = api.replace("a", &PostParams::default(), &stale).await.unwrap_err();
    assert_eq!(code_of(refused), 409);
}

#[tokio::test]
async fn the_status_is_written_apart() {
    let api = tasks().await;
    create(&api, "a").await;
    let done = json!({"type": "Done", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let patch = Patch::Merge(json!({"spec": {"priority": 9}, "status": {"conditions": [done]}}));
    let patched = api.patch_status("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.data["status"]["conditions"], json!([done]));
    assert_eq!(patched.data["spec"], json!({"kind": "k"}));
    assert_eq!(patched.metadata.generation, Some(1));
}

#[tokio::test]
async fn lists_are_paged_at_one_revision() {
    let api = tasks().await;
    for number in 0..5 {
        create(&api, &format!("t{number}")).await;
    }
    let mut params = ListParams::default().limit(2);
    let (mut names, mut versions) = (Vec::new(), Vec::new());
    loop {
        let page = api.list(&params).await.unwrap();
        names.extend(page.items.iter().map(kube::ResourceExt::name_any));
        versions.extend(page.metadata.resource_version.clone());
        create(&api, &format!("u{}", names.len())).await;
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(names, ["t0", "t1", "t2", "t3", "t4"]);
    versions.dedup();
    assert_eq!(versions.len(), 1, "{versions:?}");
}

#[tokio::test]
async fn lists_are_chosen_by_labels_and_fields() {
    let api = tasks().await;
    for (name, color) in [("a", "red"), ("b", "green")] {
        let mut object = task(name, &json!({ "kind": "k" }));
        object.labels_mut().insert("color".into(), color.into());
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    for params in
        [ListParams::default().labels("color=green"), ListParams::default().fields("metadata.name=b")]
    {
        let listed = api.list(&params).await.unwrap();
        assert_eq!(listed.iter().map(kube::ResourceExt::name_any).collect::<Vec<_>>(), ["b"]);
    }
}

#[tokio::test]
async fn metadata_comes_without_the_rest() {
    let api = tasks().await;
    create(&api, "a").await;
    let one = api.get_metadata("a").await.unwrap();
    assert_eq!((one.name_any(), &*one.types.unwrap().kind), ("a".to_owned(), "PartialObjectMetadata"));
    let listed = api.list_metadata(&ListParams::default()).await.unwrap();
    assert_eq!(listed.types.kind, "PartialObjectMetadataList");
    assert_eq!(listed.items[0].name_any(), "a");
}

#[tokio::test]
async fn metadata_can_be_patched_alone() {
    let api = tasks().await;
    create(&api, "a").await;
    let patch = Patch::Merge(json!({"metadata": {"labels": {"x": "z"}}}));
    let patched = api.patch_metadata("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.labels()["x"], "z");
    assert_eq!(api.get("a").await.unwrap().data["spec"]["kind"], "k");
}

#[tokio::test]
async fn a_watch_tells_every_change_from_a_revision_on() {
    let api = tasks().await;
    let start = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    create(&api, "a").await;
    api.patch("a", &PatchParams::default(), &Patch::Merge(json!({"spec": {"priority": 1}}))).await.unwrap();
    api.delete("a", &DeleteParams::default()).await.unwrap();
    let mut events = api.watch(&WatchParams::default(), &start).await.unwrap().boxed();
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(told(&next(&mut events).await));
    }
    assert_eq!(seen, ["added a", "modified a", "deleted a"]);
}

#[tokio::test]
async fn a_watch_of_metadata_tells_changes_without_the_rest() {
    let api = tasks().await;
    let start = create(&api, "a").await.resource_version().unwrap();
    api.delete("a", &DeleteParams::default()).await.unwrap();
    let mut events = api.watch_metadata(&WatchParams::default(), &start).await.unwrap().boxed();
    assert_eq!(told(&next(&mut events).await), "deleted a");
}

#[tokio::test]
async fn a_streaming_list_ends_with_a_bookmark_and_goes_on() {
    let api = tasks().await;
    create(&api, "a").await;
    create(&api, "b").await;
    let mut events = api.watch(&WatchParams::streaming_lists(), "0").await.unwrap().boxed();
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(next(&mut events).await);
    }
    assert_eq!(seen.iter().map(told).collect::<Vec<_>>(), ["added a", "added b", "bookmark Task"]);
    let WatchEvent::Bookmark(bookmark) = &seen[2] else { panic!("{seen:?}") };
    assert_eq!(bookmark.metadata.annotations["k8s.io/initial-events-end"], "true");
    create(&api, "c").await;
    assert_eq!(told(&next(&mut events).await), "added c");
}

#[tokio::test]
async fn bookmarks_of_a_metadata_watch_are_metadata() {
    let server = Server::start(&["--bookmark-interval", "50ms"]);
    let api: Api<DynamicObject> = Api::namespaced_with(connect(&server).await, "x", &task_kind());
    let start = create(&api, "a").await.resource_version().unwrap();
    let mut events = api.watch_metadata(&WatchParams::default(), &start).await.unwrap().boxed();
    assert_eq!(told(&next(&mut events).await), "bookmark PartialObjectMetadata");
}

#[tokio::test]
async fn a_watch_ends_after_its_timeout() {
    let api = tasks().await;
    let params = WatchParams::default().timeout(1).disable_bookmarks();
    let events = api.watch(&params, "0").await.unwrap();
    let all = tokio::time::timeout(Duration::from_secs(10), events.try_collect::<Vec<_>>()).await;
    assert_eq!(all.expect("the watch ends").unwrap().len(), 0);
}

#[tokio::test]
async fn deletion_respects_its_preconditions() {
    let api = tasks().await;
    let made = create(&api, "a").await;
    let with = |uid: &str| {
        let wanted = Preconditions { uid: Some(uid.to_owned()), ..Preconditions::default() };
        DeleteParams::default().preconditions(wanted)
    };
    assert_eq!(code_of(api.delete("a", &with("another")).await.unwrap_err()), 409);
    let outcome = api.delete("a", &with(&made.uid().unwrap())).await.unwrap();
    assert!(outcome.right().is_some_and(|status| status.is_success()), "the object is gone at once");
}

#[tokio::test]
async fn a_collection_is_deleted_at_once() {
    let api = tasks().await;
    create(&api, "a").await;
    create(&api, "b").await;
    let outcome = api.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    assert_eq!(outcome.left().map(|list| list.items.len()), Some(2));
    assert!(api.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_watch_is_resumed_after_the_server_was_killed() {
    let mut server = Server::start(&[]);
    let api: Api<DynamicObject> = Api::namespaced_with(connect(&server).await, "x", &task_kind());
    let start = create(&api, "a").await.resource_version().unwrap();
    create(&api, "b").await;
    server.kill();
    server.restart();
    let api: Api<DynamicObject> = Api::namespaced_with(connect(&server).await, "x", &task_kind());
    create(&api, "c").await;
    let mut events = api.watch(&WatchParams::default(), &start).await.unwrap().boxed();
    let seen = [told(&next(&mut events).await), told(&next(&mut events).await)];
    assert_eq!(seen, ["added b", "added c"]);
}
