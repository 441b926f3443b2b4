//! Cascading deletion in families of any shape.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cascade::{owned, settle, start, target};
use crate::server::{MERGE_PATCH, application, name, path};

#[derive(Debug, Clone)]
struct Family {
    /// Owners of each object, by number; an object may own itself through others.
    owners: Vec<BTreeSet<usize>>,
    blocks: bool,
    deletes: Vec<(usize, &'static str)>,
}

fn family(policies: &'static [&'static str]) -> impl Strategy<Value = Family> {
    let owners = prop::collection::vec(prop::collection::btree_set(0..10_usize, 0..3), 10);
    let deletes = prop::collection::vec((0..10_usize, prop::sample::select(policies)), 1..4);
    (owners, any::<bool>(), deletes).prop_map(|(owners, blocks, deletes)| Family { owners, blocks, deletes })
}

/// Makes the family and carries out its deletes; the objects that are left.
async fn carry_out(family: &Family) -> BTreeMap<String, Value> {
    let server = start().await;
    let mut made = Vec::new();
    for number in 0..family.owners.len() {
        made.push(server.create(&application(&format!("n{number}"))).await);
    }
    for (number, owners) in family.owners.iter().enumerate() {
        let owners: Vec<_> =
            owners.iter().filter(|owner| **owner != number).map(|owner| &made[*owner]).collect();
        let references = owned("", &owners, family.blocks)["metadata"]["ownerReferences"].clone();
        let patch = json!({"metadata": {"ownerReferences": references}});
        server.patch(&target(&format!("n{number}")), MERGE_PATCH, &patch).await.good();
    }
    for (number, policy) in &family.deletes {
        let query = format!("{}?propagationPolicy={policy}", target(&format!("n{number}")));
        drop(server.delete(&query).await);
    }
    settle(&server).await;
    settle(&server).await;
    server.shutdown.request();
    let list = server.get(&path("applications")).await.good();
    list["items"].as_array().unwrap().iter().map(|item| (name(item).to_owned(), item.clone())).collect()
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn in_the_background_exactly_those_go_whose_every_owner_goes(family in family(&["Background"])) {
        let left = block_on(carry_out(&family));
        let mut stays: BTreeSet<_> = (0..family.owners.len()).collect();
        for (number, _) in &family.deletes {
            stays.remove(number);
        }
        loop {
            let lost = |number: &usize| {
                let mut owners = family.owners[*number].iter().filter(|owner| *owner != number).peekable();
                owners.peek().is_some() && owners.all(|owner| !stays.contains(owner))
            };
            let Some(lost) = stays.iter().copied().find(lost) else { break };
            stays.remove(&lost);
        }
        let expected: Vec<_> = stays.iter().map(|number| format!("n{number}")).collect();
        prop_assert_eq!(left.keys().cloned().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn nothing_is_left_half_deleted_or_pointing_at_nothing(
        family in family(&["Background", "Foreground", "Orphan"]),
    ) {
        let left = block_on(carry_out(&family));
        let uids: BTreeSet<_> = left.values().map(|object| object["metadata"]["uid"].clone().to_string()).collect();
        for (name, object) in &left {
            let metadata = &object["metadata"];
            prop_assert!(metadata.get("deletionTimestamp").is_none(), "{} hangs: {}", name, metadata);
            for owner in metadata["ownerReferences"].as_array().into_iter().flatten() {
                prop_assert!(uids.contains(&owner["uid"].to_string()), "{} points at nothing: {}", name, metadata);
            }
        }
    }
}
