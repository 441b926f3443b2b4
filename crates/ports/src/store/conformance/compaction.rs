//! Compaction: the past is forgotten, the present never.

use std::time::Duration;

use super::Subject;
use super::world::{
    World, all, commit, compact, create, delete, drain, json, listed, run, task, tasks, update, watched,
};
use crate::store::{Batch, History, Hold, Revision, Store, WatchError, WatchScope};

/// An object that is never touched again, and one that is updated `times` times.
async fn busy_history(store: &Store, times: usize) {
    commit(store, create(&task("old"), "1")).await;
    commit(store, create(&task("busy"), "start")).await;
    for number in 0..times {
        commit(store, update(&task("busy"), &number.to_string())).await;
    }
}

/// And the objects, however old.
pub fn compaction_by_count_keeps_the_newest_changes(subject: &impl Subject) {
    let world = World::remembering(subject, 5);
    run(async {
        let store = world.open();
        busy_history(&store, 20).await;
        let before = listed(&store, &tasks());
        compact(&store).await;
        assert_eq!(store.compacted(), Revision(17));
        assert_eq!(watched(&store, &WatchScope::All, Revision(17)).unwrap().len(), 5);
        drop(store);
        // The two objects; the five changes, of which the last is an object; what the first of the five replaced.
        let rows: Vec<_> = world.rows().into_iter().map(|revision| revision.0).collect();
        assert_eq!(rows, [1, 17, 18, 19, 20, 21, 22]);
        assert_eq!(listed(&world.open(), &tasks()), before);
    });
}

/// The slowest reader counts; when it lets go, what it held is forgotten.
pub fn what_is_held_is_not_forgotten(subject: &impl Subject) {
    let world = World::remembering(subject, 5);
    let hold = |after| Some(Hold { after: Revision(after), max_changes: usize::MAX, max_bytes: usize::MAX });
    run(async {
        let store = world.open();
        commit(&store, create(&task("busy"), "start")).await;
        store.hold("slow", hold(3));
        store.hold("quick", hold(9));
        for number in 0..20 {
            commit(&store, update(&task("busy"), &number.to_string())).await;
        }
        compact(&store).await;
        assert_eq!((store.compacted(), store.held_after()), (Revision(3), Some(Revision(3))));
        assert_eq!(watched(&store, &WatchScope::All, Revision(3)).unwrap().len(), 18);
        store.hold("slow", None);
        compact(&store).await;
        assert_eq!(store.compacted(), Revision(9));
        store.hold("quick", hold(12));
        compact(&store).await;
        assert_eq!(store.compacted(), Revision(12));
        store.hold("quick", None);
        compact(&store).await;
        assert_eq!((store.compacted(), store.held_after()), (Revision(16), None));
    });
}

/// Beyond its limits, it is as if nobody held anything: the reader is told when it watches.
pub fn a_hold_has_limits(subject: &impl Subject) {
    let world = World::remembering(subject, 5);
    run(async {
        let store = world.open();
        commit(&store, create(&task("busy"), "start")).await;
        let hold = Hold { after: Revision(1), max_changes: 10, max_bytes: usize::MAX };
        store.hold("slow", Some(hold));
        for number in 0..20 {
            commit(&store, update(&task("busy"), &number.to_string())).await;
        }
        compact(&store).await;
        assert!(store.compacted() > Revision(1) && store.compacted() == store.held_after().unwrap());
        let gone = watched(&store, &WatchScope::All, Revision(1)).unwrap_err();
        assert!(matches!(gone, WatchError::Gone { .. }));
    });
}

/// So that whoever knows what is needed has the time to say so.
pub fn a_store_can_be_opened_with_everything_held(subject: &impl Subject) {
    let mut world = World::new(subject);
    run(async {
        let store = world.open();
        busy_history(&store, 20).await;
        drop(store);
        world.history = History { max_changes: 5, ..world.history };
        let hold = Hold { after: Revision::ZERO, max_changes: usize::MAX, max_bytes: usize::MAX };
        let store = world.open_holding("start", hold);
        compact(&store).await;
        assert_eq!(store.compacted(), Revision::ZERO);
        store.hold("reader", Some(Hold { after: Revision(4), ..hold }));
        store.hold("start", None);
        compact(&store).await;
        assert_eq!(store.compacted(), Revision(4));
    });
}

/// Time passes without a change too.
pub fn compaction_by_age_keeps_the_youngest_changes(subject: &impl Subject) {
    let mut world = World::new(subject);
    world.history = History { max_age: Duration::from_secs(10), ..world.history };
    run(async {
        let store = world.open();
        busy_history(&store, 3).await;
        world.clock.advance(8_000);
        commit(&store, update(&task("busy"), "young")).await;
        compact(&store).await;
        assert_eq!(store.compacted(), Revision::ZERO);
        world.clock.advance(2_001);
        compact(&store).await;
        assert_eq!(store.compacted(), Revision(5));
        world.clock.advance(8_000);
        compact(&store).await;
        assert_eq!(store.compacted(), Revision(6));
        let before = listed(&store, &tasks());
        drop(store);
        assert_eq!(world.rows(), [Revision(1), Revision(6)]);
        assert_eq!(listed(&world.open(), &tasks()), before);
    });
}

/// Large versions leave room for fewer.
pub fn compaction_by_size_keeps_the_newest_changes(subject: &impl Subject) {
    let mut world = World::new(subject);
    world.history = History { max_bytes: 100_000, ..world.history };
    run(async {
        let store = world.open();
        let large = "x".repeat(30_000);
        commit(&store, create(&task("busy"), &large)).await;
        for _ in 0..9 {
            commit(&store, update(&task("busy"), &large)).await;
        }
        compact(&store).await;
        assert_eq!(store.compacted(), Revision(7));
        drop(store);
        let store = world.open();
        assert_eq!(watched(&store, &WatchScope::All, Revision(7)).unwrap().len(), 3);
        compact(&store).await;
        assert_eq!(store.compacted(), Revision(7));
    });
}

/// What is young stays whatever its size; of what is older, no more than a quarter of what is current.
pub fn the_past_takes_no_more_than_a_quarter_of_the_present(subject: &impl Subject) {
    let mut world = World::new(subject);
    world.history = History { fresh: Duration::from_secs(30), ..world.history };
    run(async {
        let store = world.open();
        let large = "x".repeat(1_000_000);
        for number in 0..12 {
            commit(&store, create(&task(&number.to_string()), &large)).await;
        }
        // Twelve are current. Of three old ones, each of which takes a little more, two fit.
        for number in 0..12 {
            commit(&store, update(&task(&number.to_string()), &large)).await;
        }
        world.clock.advance(29_000);
        compact(&store).await;
        assert_eq!(store.compacted(), Revision::ZERO);
        world.clock.advance(2_000);
        compact(&store).await;
        assert_eq!(store.compacted(), Revision(22));
        // Less that is current is room for fewer, but never for less than the least.
        for number in 2..12 {
            commit(&store, delete(&task(&number.to_string()))).await;
        }
        world.clock.advance(31_000);
        compact(&store).await;
        assert_eq!(store.compacted(), Revision(33));
        drop(store);
        let store = world.open();
        assert_eq!(watched(&store, &WatchScope::All, Revision(33)).unwrap().len(), 1);
        compact(&store).await;
        assert_eq!(store.compacted(), Revision(33));
    });
}

/// In the log there remain exactly the objects.
pub fn compaction_removes_superseded_rows_and_deletions_only(subject: &impl Subject) {
    let world = World::remembering(subject, 0);
    run(async {
        let store = world.open();
        let names: Vec<_> = (0..50).map(|number| task(&number.to_string())).collect();
        store.commit(all(names.iter().map(|key| create(key, "1")))).await.unwrap();
        store.commit(all(names[..30].iter().map(|key| update(key, "2")))).await.unwrap();
        store.commit(all(names[20..40].iter().map(delete))).await.unwrap();
        store.commit(all(names[35..40].iter().map(|key| create(key, "again")))).await.unwrap();
        store.commit(all(names[37..40].iter().map(delete))).await.unwrap();
        compact(&store).await;
        let objects = listed(&store, &tasks());
        assert_eq!(objects.len(), 20 + 10 + 2);
        let mut live: Vec<_> =
            store.snapshot(&tasks()).range(None, None).map(|object| object.revision).collect();
        live.sort_unstable();
        drop(store);
        assert_eq!(world.rows(), live);
        world.each_row(|row| assert!(row.json.is_some()));
        assert_eq!(listed(&world.open(), &tasks()), objects);
    });
}

/// It goes on afterwards; no deleted object comes back, and no watch misses a change.
pub fn a_restart_in_the_middle_of_compaction_changes_nothing(subject: &impl Subject) {
    let mut world = World::new(subject);
    run(async {
        let store = world.open();
        let names: Vec<_> = (0..300).map(|number| task(&number.to_string())).collect();
        store.commit(all(names.iter().map(|key| create(key, "1")))).await.unwrap();
        store.commit(all(names.iter().map(|key| update(key, "2")))).await.unwrap();
        store.commit(all(names.iter().map(|key| update(key, "3")))).await.unwrap();
        store.commit(all(names[..200].iter().map(delete))).await.unwrap();
        store.commit(all(names[..100].iter().map(|key| create(key, "again")))).await.unwrap();
        drop(store);
        world.history = History { max_changes: 50, ..world.history };
        let store = world.open_inline();
        // The more is written, the more of the past is dropped at once: here all that should be.
        let others: Vec<_> = (0..600).map(|number| task(&format!("other-{number}"))).collect();
        let mut watch = store.watch(WatchScope::All, Revision::ZERO).unwrap();
        let mut history = drain(&mut watch, usize::MAX).unwrap();
        store.commit(all(others.iter().map(|key| create(key, "1")))).await.unwrap();
        history.extend(others.iter().zip(1201..).map(|(key, revision)| {
            let json = String::from_utf8(json("1", Revision(revision))).unwrap();
            format!("{revision}: put {key} after nothing at 0: {json}")
        }));
        let objects = listed(&store, &tasks());
        // The log learns of it with the first slice.
        store.commit(Batch::default()).await.unwrap();
        drop((watch, store));
        let mut restarts = 0;
        while world.rows().len() > 200 + 600 {
            let store = world.open_inline();
            assert_eq!(listed(&store, &tasks()), objects);
            check_watches(&store, &history);
            // One slice and no more, because nobody else is there to ask for the next.
            store.commit(Batch::default()).await.unwrap();
            restarts += 1;
            assert!(restarts < 50, "compaction does not get on: {} rows", world.rows().len());
        }
        assert!(restarts >= 3, "compaction is done in slices");
        assert_eq!(listed(&world.open(), &tasks()), objects);
    });
}

/// Each start either sees everything behind it or is told that it cannot.
fn check_watches(store: &Store, history: &[String]) {
    for from in (0..=history.len()).step_by(10) {
        match watched(store, &WatchScope::All, Revision(from as u64)) {
            Ok(seen) => assert_eq!(seen, history[from..], "from {from}"),
            Err(error) => assert!(matches!(error, WatchError::Gone { .. }), "from {from}: {error}"),
        }
    }
}
