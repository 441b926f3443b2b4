//! Lists: pages at one revision, selectors, forms.

use std::collections::BTreeMap;

use hyper::header::ACCEPT;
use muster_apiserver::access::Role;
use muster_apiserver::api::Settings;
use muster_ports::store::History;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::server::{
    Ask, MERGE_PATCH, METADATA, Server, TABLE, application, name, names, path, path_everywhere, path_in, task,
};

/// Follows `continue` from a first page to the last; the pages.
async fn read_pages(server: &Server, collection: &str, query: &str, between: impl AsyncFn()) -> Vec<Value> {
    let mut pages = vec![server.get(&format!("{collection}?{query}")).await.good()];
    while let Some(token) = pages.last().unwrap()["metadata"]["continue"].as_str() {
        between().await;
        let next = server.get(&format!("{collection}?{query}&continue={token}")).await.good();
        pages.push(next);
    }
    pages
}

fn items(pages: &[Value]) -> Vec<Value> {
    pages.iter().flat_map(|page| page["items"].as_array().unwrap().clone()).collect()
}

#[tokio::test]
async fn pages_show_one_revision_while_writes_happen() {
    let server = Server::start().await;
    for number in 0..25 {
        server.create(&application(&format!("a{number:02}"))).await;
    }
    let whole = server.get(&path("applications")).await.good();
    let between = async || {
        server.delete(&format!("{}/a24", path("applications"))).await;
        server
            .patch(
                &format!("{}/a20", path("applications")),
                MERGE_PATCH,
                &json!({"spec": {"properties": {"n": 1}}}),
            )
            .await
            .good();
        let new = json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Application", "metadata": {"generateName": "a1-"}});
        server.create(&new).await;
    };
    let pages = read_pages(&server, &path("applications"), "limit=10", between).await;
    assert_eq!(pages.len(), 3);
    assert_eq!(Value::Array(items(&pages)), whole["items"]);
    assert!(
        pages.iter().all(|page| page["metadata"]["resourceVersion"] == whole["metadata"]["resourceVersion"])
    );
}

#[tokio::test]
async fn a_last_page_that_is_full_is_still_the_last() {
    let server = Server::start().await;
    for number in 0..4 {
        server.create(&application(&format!("a{number}"))).await;
    }
    let pages = read_pages(&server, &path("applications"), "limit=2", async || {}).await;
    assert_eq!(pages.iter().map(|page| names(page).len()).collect::<Vec<_>>(), [2, 2]);
}

#[tokio::test]
async fn a_page_is_full_of_what_the_selector_passes() {
    let server = Server::start().await;
    for number in 0..20 {
        let mut object = application(&format!("a{number:02}"));
        object["metadata"]["labels"] = json!({"even": (number % 2 == 0).to_string()});
        server.create(&object).await;
    }
    let query = "limit=4&labelSelector=even%3Dtrue";
    let pages = read_pages(&server, &path("applications"), query, async || {}).await;
    assert_eq!(pages.iter().map(|page| names(page).len()).collect::<Vec<_>>(), [4, 4, 2]);
}

#[tokio::test]
async fn a_list_that_cannot_go_on_is_told_to_start_again() {
    let server = Server::start().await;
    server.create(&application("a")).await;
    server.create(&application("b")).await;
    let collection = path("applications");
    server.get(&format!("{collection}?continue=nonsense")).await.refused(400);
    let first = server.get(&format!("{collection}?limit=1")).await.good();
    let token = first["metadata"]["continue"].as_str().unwrap();
    server.get(&format!("{collection}?limit=1&continue={token}&resourceVersion=1")).await.refused(400);
}

#[tokio::test]
async fn a_list_goes_on_at_its_revision_on_a_server_that_did_not_begin_it() {
    let server = Server::start().await;
    for name in ["a", "b", "c", "d"] {
        server.create(&application(name)).await;
    }
    let collection = path("applications");
    let first = server.get(&format!("{collection}?limit=1")).await.good();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let change = json!({"metadata": {"labels": {"changed": "true"}}});
    server.patch(&format!("{collection}/c"), MERGE_PATCH, &change).await.good();
    server.delete(&format!("{collection}/b")).await.good();
    server.create(&application("bb")).await;
    // It shares the store, and knows nothing of the lists of the other.
    let other = server.restarted();
    let rest = other.get(&format!("{collection}?limit=9&continue={token}")).await.good();
    assert_eq!(names(&rest), ["b", "c", "d"]);
    assert_eq!(rest["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    assert!(rest["items"][1]["metadata"].get("labels").is_none(), "{rest}");
}

#[tokio::test]
async fn a_list_whose_state_is_forgotten_is_given_a_token_that_goes_on_in_what_is_there_now() {
    let history = History { max_changes: 2, ..History::default() };
    let server = Server::with(Settings::default(), history).await;
    for name in ["a", "b", "c"] {
        server.create(&application(name)).await;
    }
    let collection = path("applications");
    let first = server.get(&format!("{collection}?limit=1")).await.good();
    let token = first["metadata"]["continue"].as_str().unwrap();
    for name in ["d", "e", "f", "g"] {
        server.create(&application(name)).await;
    }
    let other = server.restarted();
    let refused = other.get(&format!("{collection}?limit=9&continue={token}")).await;
    let message = refused.refused(410);
    assert!(message.contains("start a new list"), "{message}");
    let refused = refused.json();
    assert_eq!(refused["reason"], "Expired");
    let fresh = refused["metadata"]["continue"].as_str().unwrap();
    let rest = other.get(&format!("{collection}?limit=2&continue={fresh}")).await.good();
    assert_eq!(names(&rest), ["b", "c"]);
    // From there on the list is of one revision again.
    let next = rest["metadata"]["continue"].as_str().unwrap();
    server.create(&application("h")).await;
    let rest = other.get(&format!("{collection}?limit=9&continue={next}")).await.good();
    assert_eq!(names(&rest), ["d", "e", "f", "g"]);
}

#[tokio::test]
async fn a_list_at_a_revision_is_exactly_that_or_refused() {
    let server = Server::start().await;
    server.create(&application("a")).await;
    let now = server.revision();
    let collection = path("applications");
    let exact = |revision: u64| format!("{collection}?resourceVersion={revision}&resourceVersionMatch=Exact");
    assert_eq!(names(&server.get(&exact(now)).await.good()), ["a"]);
    server.create(&application("b")).await;
    assert_eq!(names(&server.get(&exact(now)).await.good()), ["a"]);
    server.get(&exact(now + 100)).await.refused(504);
    server.get(&exact(0)).await.refused(400);
    server.get(&format!("{collection}?resourceVersionMatch=Exact")).await.refused(400);
    let newer = format!("{collection}?resourceVersion={now}&resourceVersionMatch=NotOlderThan");
    assert_eq!(names(&server.get(&newer).await.good()), ["a", "b"]);
}

#[tokio::test]
async fn a_namespace_shows_nothing_of_one_whose_name_it_begins() {
    let server = Server::start().await;
    for namespace in ["a", "a-b", "ab"] {
        server.post(&path_in(namespace, "applications"), &application("x")).await.good();
    }
    for namespace in ["a", "a-b", "ab"] {
        let list = server.get(&path_in(namespace, "applications")).await.good();
        let found: Vec<_> =
            list["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["namespace"]).collect();
        assert_eq!(found, [namespace]);
    }
    assert_eq!(names(&server.get(&path_everywhere("applications")).await.good()).len(), 3);
}

#[tokio::test]
async fn every_form_of_a_list_shows_the_same_objects() {
    let server = Server::start().await;
    for name in ["a", "b"] {
        server.create(&task(name)).await;
    }
    let list = async |accept: &str| server.send(Ask::new("GET", &path("tasks")).header(ACCEPT, accept)).await;
    let plain = list("application/json").await.good();
    let yaml: Value = serde_saphyr::from_slice(&list("application/yaml").await.bytes).unwrap();
    assert_eq!(yaml, plain);
    let metadata = list(METADATA).await.good();
    assert_eq!(metadata["kind"], "PartialObjectMetadataList");
    assert_eq!(names(&metadata), ["a", "b"]);
    let table = list(TABLE).await.good();
    let columns = table["columnDefinitions"].as_array().unwrap().len();
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| name(&row["object"])).collect::<Vec<_>>(), ["a", "b"]);
    assert!(rows.iter().all(|row| row["cells"].as_array().unwrap().len() == columns));
    for form in [&metadata, &table] {
        assert_eq!(form["metadata"]["resourceVersion"], plain["metadata"]["resourceVersion"]);
    }
}

#[tokio::test]
async fn a_long_list_in_many_chunks_is_one_document() {
    let server = Server::start().await;
    let filler = "x".repeat(4000);
    for number in 0..200 {
        let mut object = application(&format!("a{number:03}"));
        object["spec"]["properties"] = json!({ "filler": filler });
        server.create(&object).await;
    }
    let list = server.get(&path("applications")).await.good();
    assert_eq!(names(&list).len(), 200);
    let everything = server.get(&format!("{}?limit=150", path("applications"))).await.good();
    assert_eq!(names(&everything).len(), 150);
}

#[tokio::test]
async fn fields_that_cannot_be_selected_by_are_named_with_those_that_can() {
    let server = Server::start().await;
    let message = server.get(&format!("{}?fieldSelector=spec.priority=1", path("tasks"))).await.refused(400);
    assert!(message.contains("spec.priority") && message.contains("status.state"), "{message}");
    let viewer = server.token("viewer", Role::Viewer).await;
    server.send(Ask::new("GET", &path("tasks")).token(&viewer)).await.good();
}

/// What may happen between two pages.
#[derive(Debug, Clone)]
enum Write {
    Create(u8),
    Change(u8, u8),
    Delete(u8),
}

fn write() -> impl Strategy<Value = Write> {
    prop_oneof![
        any::<u8>().prop_map(Write::Create),
        (any::<u8>(), any::<u8>()).prop_map(|(which, label)| Write::Change(which, label)),
        any::<u8>().prop_map(Write::Delete),
    ]
}

async fn carry_out(server: &Server, write: &Write) {
    let namespace = |which: u8| if which.is_multiple_of(3) { "default" } else { "other" };
    match write {
        Write::Create(which) => {
            let mut object = application(&format!("a{}", which % 32));
            object["metadata"]["labels"] = json!({"l": (which % 2).to_string()});
            drop(server.post(&path_in(namespace(*which), "applications"), &object).await);
        }
        Write::Change(which, label) => {
            let target = format!("{}/a{}", path_in(namespace(*which), "applications"), which % 32);
            let patch = json!({"metadata": {"labels": {"l": (label % 2).to_string()}}});
            drop(server.patch(&target, MERGE_PATCH, &patch).await);
        }
        Write::Delete(which) => {
            let target = format!("{}/a{}", path_in(namespace(*which), "applications"), which % 32);
            drop(server.delete(&target).await);
        }
    }
}

fn by_key(items: &[Value]) -> BTreeMap<String, &Value> {
    let key = |item: &Value| format!("{}/{}", item["metadata"]["namespace"], item["metadata"]["name"]);
    items.iter().map(|item| (key(item), item)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pages_of_any_size_add_up_to_the_list_at_their_revision(
        before in prop::collection::vec(write(), 0..60),
        between in prop::collection::vec(write(), 0..20),
        limit in 1..20_usize,
        scope in 0..3_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Server::start().await;
            for write in &before {
                carry_out(&server, write).await;
            }
            let (collection, selector) = [
                (path_everywhere("applications"), ""),
                (path_everywhere("applications"), "&labelSelector=l%3D1"),
                (path("applications"), ""),
            ][scope].clone();
            let whole = server.get(&format!("{collection}?{}", selector.trim_start_matches('&'))).await.good();
            let disturb = async || for write in &between { carry_out(&server, write).await };
            let pages = read_pages(&server, &collection, &format!("limit={limit}{selector}"), disturb).await;
            let found = items(&pages);
            prop_assert_eq!(found.len(), by_key(&found).len(), "nothing twice");
            prop_assert_eq!(Value::Array(found), whole["items"].clone());
            let full = pages.iter().rev().skip(1).all(|page| names(page).len() == limit);
            prop_assert!(full, "only the last page is not full");
            Ok(())
        })?;
    }
}
