//! A watch from any revision leads from the list there to the list at the end.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::server::{Event, MERGE_PATCH, Server, path, path_everywhere, path_in, revision, task};
use crate::watching::labelled;

/// One write of a random history.
#[derive(Debug, Clone)]
enum Step {
    Create { which: u8, team: u8 },
    Label { which: u8, team: u8 },
    Delete { which: u8 },
    Task { which: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..8_u8, 0..3_u8).prop_map(|(which, team)| Step::Create { which, team }),
        (0..8_u8, 0..3_u8).prop_map(|(which, team)| Step::Label { which, team }),
        (0..8_u8).prop_map(|which| Step::Delete { which }),
        (0..4_u8).prop_map(|which| Step::Task { which }),
    ]
}

async fn carry_out(server: &Server, step: &Step) {
    let namespace = |which: u8| if which < 4 { "default" } else { "other" };
    let target = |which: u8| format!("{}/a{which}", path_in(namespace(which), "applications"));
    match step {
        Step::Create { which, team } => {
            let object = labelled(&format!("a{which}"), &format!("t{team}"));
            drop(server.post(&path_in(namespace(*which), "applications"), &object).await);
        }
        Step::Label { which, team } => {
            let patch = json!({"metadata": {"labels": {"team": format!("t{team}")}}});
            drop(server.patch(&target(*which), MERGE_PATCH, &patch).await);
        }
        Step::Delete { which } => drop(server.delete(&target(*which)).await),
        Step::Task { which } => drop(server.post(&path("tasks"), &task(&format!("t{which}"))).await),
    }
}

type Known = BTreeMap<String, Value>;

fn key(object: &Value) -> String {
    format!("{}/{}", object["metadata"]["namespace"], object["metadata"]["name"])
}

async fn list(server: &Server, collection: &str) -> Known {
    let list = server.get(collection).await.good();
    list["items"].as_array().unwrap().iter().map(|item| (key(item), item.clone())).collect()
}

/// What a client that knew `known` knows after these events.
fn replay(mut known: Known, mut at: u64, events: &[Event]) -> Result<Known, TestCaseError> {
    for event in events {
        prop_assert!(revision(&event.object) > at, "{:?} after {at}", event.brief());
        at = revision(&event.object);
        let before = match event.word.as_str() {
            "DELETED" => known.remove(&key(&event.object)),
            _ => known.insert(key(&event.object), event.object.clone()),
        };
        prop_assert_eq!(before.is_none(), event.word == "ADDED", "{:?}", event.brief());
    }
    Ok(known)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_watch_from_any_revision_leads_from_the_list_there_to_the_list_at_the_end(
        before in prop::collection::vec(step(), 0..20),
        during in prop::collection::vec(step(), 0..20),
        after in prop::collection::vec(step(), 0..20),
        selected in 0..5_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Server::start().await;
            for step in &before {
                carry_out(&server, step).await;
            }
            let (collection, selector) = [
                (path_everywhere("applications"), ""),
                (path_everywhere("applications"), "labelSelector=team%3Dt1"),
                (path_everywhere("applications"), "labelSelector=team+notin+(t1)"),
                (path("applications"), "labelSelector=team%21%3Dt0"),
                (path_everywhere("applications"), "fieldSelector=metadata.namespace%21%3Ddefault"),
            ][selected].clone();
            let at_start = list(&server, &format!("{collection}?{selector}")).await;
            let from = server.revision();
            for step in &during {
                carry_out(&server, step).await;
            }
            // One watch starts in the past, one in the middle, and one is cut in the middle and resumed.
            let middle = server.revision();
            let at_middle = list(&server, &format!("{collection}?{selector}")).await;
            let query = |from: u64| format!("{collection}?watch=1&resourceVersion={from}&{selector}");
            let mut early = server.watch(&query(from)).await;
            let mut late = server.watch(&query(middle)).await;
            let mut cut = server.watch(&query(from)).await.ready();
            for step in &after {
                carry_out(&server, step).await;
            }
            let resumed = cut.last().map_or(from, |last| revision(&last.object));
            cut.extend(server.watch(&query(resumed)).await.ready());
            let at_end = list(&server, &format!("{collection}?{selector}")).await;
            let events = early.ready();
            prop_assert_eq!(&replay(at_start, from, &events)?, &at_end);
            prop_assert_eq!(&replay(at_middle, middle, &late.ready())?, &at_end);
            prop_assert_eq!(cut, events, "a watch that was cut and resumed saw the same");
            Ok(())
        })?;
    }
}
