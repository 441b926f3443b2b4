//! What is acknowledged is there, whole, now and after a restart.

use std::collections::HashSet;

use tokio::task::JoinSet;

use super::Subject;
use super::world::{
    World, all, commit, create, delete, draft, job, jobs, json, listed, refusal, run, task, tasks, update,
    watched,
};
use crate::store::{
    Batch, CommitError, Draft, Key, Precondition, ResourceName, Revision, WatchError, WatchScope, Write,
};

/// Whatever the bytes, the names and the place of the revision are.
pub fn a_restart_gives_the_same_objects_byte_for_byte(subject: &impl Subject) {
    let world = World::new(subject);
    run(async {
        let store = world.open();
        let large = vec![b'x'; 3 << 20];
        let every_byte: Vec<u8> = (0..=255).collect();
        let odd = [
            ("", "empty", Draft::new(Vec::new(), 0)),
            ("", "revision-first", Draft::new(b"{}".to_vec(), 0)),
            ("default", "revision-last", Draft::new(b"{}".to_vec(), 2)),
            ("default", "large", Draft::new(large, 1 << 20)),
            ("default", "every-byte", Draft::new(every_byte, 128)),
            ("größe", "名前 'quoted' \"twice\"", Some(draft("☃"))),
        ];
        for (namespace, name, draft) in odd {
            let key = Key::new(&ResourceName::new("größen.example.dev"), namespace, name);
            commit(&store, Write::Put { key, expect: Precondition::Absent, draft: draft.unwrap() }).await;
        }
        commit(&store, create(&task("a"), "1")).await;
        commit(&store, create(&task("b"), "1")).await;
        commit(&store, update(&task("a"), "2")).await;
        commit(&store, delete(&task("b"))).await;
        commit(&store, create(&task("b"), "again")).await;
        let describe = |store: &crate::store::Store| {
            let mut lines = Vec::new();
            for (resource, count) in store.counts() {
                let snapshot = store.snapshot(&resource);
                assert_eq!(snapshot.len(), count);
                for object in snapshot.range(None, None) {
                    let whole =
                        (object.revision, object.path.clone(), object.splice(), object.json().to_vec());
                    lines.push((resource.clone(), whole));
                }
            }
            (store.revision(), lines)
        };
        let before = describe(&store);
        assert_eq!(before.1.len(), 8);
        for _ in 0..3 {
            store.close();
            let again = world.open();
            assert!(describe(&again) == before, "the objects are not what they were");
        }
    });
}

/// Each caller goes on only after its commit was acknowledged, and then it is visible, and there after a restart.
pub fn all_acknowledged_commits_of_many_callers_are_there(subject: &impl Subject) {
    const CALLERS: u64 = 32;
    const EACH: u64 = 20;
    let world = World::new(subject);
    run(async {
        let store = world.open();
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            let store = store.clone();
            callers.spawn(async move {
                let mut acknowledged = Vec::new();
                for number in 0..EACH {
                    let key = task(&format!("{caller}-{number}"));
                    let committed = commit(&store, create(&key, "1")).await;
                    assert_eq!(store.get(&key).unwrap().revision, committed.revision);
                    acknowledged.push((key, committed.revision));
                }
                acknowledged
            });
        }
        let acknowledged = callers.join_all().await.concat();
        let revisions: HashSet<_> = acknowledged.iter().map(|(_, revision)| *revision).collect();
        assert_eq!(revisions, (1..=CALLERS * EACH).map(Revision).collect());
        drop(store);
        let store = world.open();
        for (key, revision) in acknowledged {
            assert_eq!(store.get(&key).unwrap().json(), json("1", revision));
        }
    });
}

/// A reader sees both objects of a batch or none of them, and so does a restart.
pub fn batches_of_many_callers_do_not_mix(subject: &impl Subject) {
    const CALLERS: u64 = 16;
    const EACH: u64 = 20;
    let world = World::new(subject);
    run(async {
        let store = world.open();
        store.commit(all([create(&task("left"), "start"), create(&task("right"), "start")])).await.unwrap();
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            let store = store.clone();
            callers.spawn(async move {
                for number in 0..EACH {
                    let text = format!("{caller}-{number}");
                    let both = all([update(&task("left"), &text), update(&task("right"), &text)]);
                    store.commit(both).await.unwrap();
                    let snapshot = store.snapshot(&tasks());
                    let revision = |name| snapshot.get(name).unwrap().revision.0;
                    assert_eq!(revision("default/left") + 1, revision("default/right"));
                }
            });
        }
        callers.join_all().await;
        assert_eq!(store.revision(), Revision(2 + 2 * CALLERS * EACH));
        let listed_before = listed(&store, &tasks());
        drop(store);
        assert_eq!(listed(&world.open(), &tasks()), listed_before);
    });
}

/// Nor by a restart.
pub fn a_snapshot_is_unaffected_by_later_writes(subject: &impl Subject) {
    let world = World::new(subject);
    run(async {
        let store = world.open();
        for name in ["a", "b", "c"] {
            commit(&store, create(&task(name), "1")).await;
        }
        let snapshot = store.snapshot(&tasks());
        commit(&store, update(&task("a"), "2")).await;
        commit(&store, delete(&task("b"))).await;
        commit(&store, create(&task("d"), "1")).await;
        drop(store);
        assert_eq!((snapshot.revision, snapshot.len(), snapshot.is_empty()), (Revision(3), 3, false));
        let found: Vec<_> = snapshot.range(None, None).map(|object| object.json().to_vec()).collect();
        assert_eq!(found, [json("1", Revision(1)), json("1", Revision(2)), json("1", Revision(3))]);
        assert!(snapshot.get("default/d").is_none());
    });
}

/// A namespace is a prefix up to the slash, not a beginning of one.
pub fn a_range_is_of_one_namespace_and_behind_a_path(subject: &impl Subject) {
    let world = World::new(subject);
    run(async {
        let store = world.open();
        let paths = [("", "wide"), ("a", "1"), ("a", "2"), ("a", "3"), ("a-b", "1"), ("ab", "1"), ("b", "1")];
        for (namespace, name) in paths.iter().rev() {
            commit(&store, create(&Key::new(&tasks(), namespace, name), "1")).await;
        }
        let snapshot = store.snapshot(&tasks());
        let range = |namespace, after| -> Vec<String> {
            snapshot.range(namespace, after).map(|object| object.path.to_string()).collect()
        };
        assert_eq!(range(None, None), ["/wide", "a-b/1", "a/1", "a/2", "a/3", "ab/1", "b/1"]);
        assert_eq!(range(Some("a"), None), ["a/1", "a/2", "a/3"]);
        assert_eq!(range(Some("a"), Some("a/1")), ["a/2", "a/3"]);
        assert_eq!(range(Some("a"), Some("a/15")), ["a/2", "a/3"]);
        assert_eq!(range(Some("a"), Some("")), ["a/1", "a/2", "a/3"]);
        assert_eq!(range(Some("a"), Some("a/3")), [""; 0]);
        assert_eq!(range(Some("a"), Some("z")), [""; 0]);
        assert_eq!(range(Some(""), None), ["/wide"]);
        assert_eq!(range(Some("none"), None), [""; 0]);
        assert_eq!(range(None, Some("a/2")), ["a/3", "ab/1", "b/1"]);
        let object = snapshot.get("a-b/1").unwrap();
        assert_eq!((object.namespace(), object.name()), ("a-b", "1"));
        assert!(store.snapshot(&jobs()).is_empty());
    });
}

/// A watch delivers what was committed before it says that the store is closed.
pub fn closing_ends_commits_and_watches_but_not_reads(subject: &impl Subject) {
    let world = World::new(subject);
    run(async {
        let store = world.open();
        let mut behind = store.watch(WatchScope::All, Revision::ZERO).unwrap();
        let mut waiting = store.watch(WatchScope::Resource(jobs()), Revision::ZERO).unwrap();
        let waiting = tokio::spawn(async move { waiting.next(1).await.unwrap_err() });
        commit(&store, create(&task("a"), "1")).await;
        store.close();
        store.close();
        assert_eq!(waiting.await.unwrap(), WatchError::Closed);
        assert_eq!(behind.next(10).await.unwrap().len(), 1);
        assert_eq!(behind.next(10).await.unwrap_err(), WatchError::Closed);
        assert_eq!(store.watch(WatchScope::All, Revision(1)).unwrap_err(), WatchError::Closed);
        assert!(matches!(refusal(&store, Batch::of(create(&task("b"), "1"))).await, CommitError::Closed));
        assert_eq!(store.get(&task("a")).unwrap().revision, Revision(1));
        let again = world.open();
        assert_eq!(watched(&again, &WatchScope::All, Revision::ZERO).unwrap().len(), 1);
    });
}

/// Without being asked to close, and also while it is busy.
pub fn the_log_is_closed_when_the_last_store_is_gone(subject: &impl Subject) {
    let world = World::new(subject);
    run(async {
        for round in 0..10 {
            let store = world.open();
            let watch = store.watch(WatchScope::All, store.revision()).unwrap();
            commit(&store, create(&task(&round.to_string()), "1")).await;
            let busy = store.clone();
            let abandoned =
                tokio::spawn(async move { commit(&busy, create(&job(&round.to_string()), "1")).await });
            tokio::task::yield_now().await;
            abandoned.abort();
            // Cancelled, or quicker than that.
            drop(abandoned.await);
            drop(store);
            drop(watch);
        }
        assert_eq!(world.open().snapshot(&tasks()).len(), 10);
    });
}
