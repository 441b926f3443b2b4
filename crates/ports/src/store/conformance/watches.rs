//! Watches: each later change once and in order, or a clear word that it cannot be.

use super::Subject;
use super::world::{
    World, all, commit, compact, create, delete, describe, drain, job, jobs, run, task, tasks, update,
    watched,
};
use crate::store::{Batch, Revision, Store, WatchError, WatchScope};

fn scopes() -> [WatchScope; 3] {
    [WatchScope::All, WatchScope::Resource(tasks()), WatchScope::Resource(jobs())]
}

/// Nine changes of two kinds: creations, updates, deletions, batches.
async fn make_history(store: &Store) {
    commit(store, create(&task("a"), "1")).await;
    commit(store, create(&job("a"), "1")).await;
    store
        .commit(all([update(&task("a"), "2"), create(&task("b"), "1"), update(&job("a"), "2")]))
        .await
        .unwrap();
    commit(store, delete(&task("a"))).await;
    commit(store, create(&task("a"), "again")).await;
    store.commit(all([delete(&job("a")), update(&task("b"), "2")])).await.unwrap();
}

/// Checks that a watch from any revision, in pages of any size, says the end of what a watch from the start says.
fn check_all_starts(store: &Store, expected: &[String]) {
    for scope in scopes() {
        let whole = watched(store, &scope, Revision::ZERO).unwrap();
        let in_scope = |line: &&String| match &scope {
            WatchScope::All => true,
            WatchScope::Resource(resource) => line.contains(&format!(" {} ", resource.as_str())),
        };
        assert_eq!(whole, expected.iter().filter(in_scope).cloned().collect::<Vec<_>>());
        for from in 0..=store.revision().0 {
            let later: Vec<_> = whole.iter().filter(|line| revision_of(line) > from).cloned().collect();
            for page in [1, 2, 3, usize::MAX] {
                let mut watch = store.watch(scope.clone(), Revision(from)).unwrap();
                assert_eq!(watch.poll_page(0).unwrap().len(), 0);
                assert_eq!(drain(&mut watch, page).unwrap(), later, "{scope:?} from {from}");
                assert_eq!(watch.position(), store.revision());
            }
        }
    }
}

fn revision_of(line: &str) -> u64 {
    line.split(':').next().unwrap().parse().unwrap()
}

/// In pages of any size, also from the middle of a batch.
pub fn a_watch_from_each_revision_sees_exactly_the_later_changes(subject: &impl Subject) {
    let world = World::new(subject);
    run(async {
        let store = world.open();
        let mut live = store.watch(WatchScope::All, Revision::ZERO).unwrap();
        make_history(&store).await;
        let expected = drain(&mut live, usize::MAX).unwrap();
        assert_eq!(expected.len(), 9);
        check_all_starts(&store, &expected);
    });
}

/// What was watched live, and what came before, are one history.
pub fn a_watch_sees_the_same_after_a_restart(subject: &impl Subject) {
    let world = World::new(subject);
    run(async {
        let store = world.open();
        world.clock.advance(1_000);
        make_history(&store).await;
        let mut expected = watched(&store, &WatchScope::All, Revision::ZERO).unwrap();
        drop(store);
        let store = world.open();
        check_all_starts(&store, &expected);
        world.clock.advance(1_000);
        commit(&store, update(&task("a"), "later")).await;
        expected.extend(watched(&store, &WatchScope::All, Revision(9)).unwrap());
        check_all_starts(&store, &expected);
        drop(store);
        check_all_starts(&world.open(), &expected);
    });
}

/// While they are being committed by several callers.
pub fn a_waiting_watch_sees_changes_as_they_come(subject: &impl Subject) {
    const CALLERS: u64 = 4;
    const EACH: u64 = 25;
    let world = World::new(subject);
    run(async {
        let store = world.open();
        let watchers: Vec<_> = scopes()
            .into_iter()
            .zip([2, 1, 1])
            .map(|(scope, share)| {
                let mut watch = store.watch(scope.clone(), Revision::ZERO).unwrap();
                let follow = async move {
                    let mut seen = Vec::new();
                    while (seen.len() as u64) < share * CALLERS * EACH {
                        seen.extend(watch.next(7).await.unwrap().iter().map(|change| describe(change)));
                    }
                    (scope, seen)
                };
                tokio::spawn(follow)
            })
            .collect();
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let store = store.clone();
                tokio::spawn(async move {
                    for number in 0..EACH {
                        let name = format!("{caller}-{number}");
                        commit(&store, create(&task(&name), "1")).await;
                        commit(&store, create(&job(&name), "1")).await;
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.await.unwrap();
        }
        for watcher in watchers {
            let (scope, seen) = watcher.await.unwrap();
            assert_eq!(seen, watched(&store, &scope, Revision::ZERO).unwrap());
        }
    });
}

fn gone(error: &WatchError) -> (Revision, Revision) {
    match error {
        WatchError::Gone { asked, oldest } => (*asked, *oldest),
        WatchError::Future { .. } | WatchError::Closed => (Revision::ZERO, Revision::ZERO),
    }
}

/// It never skips silently what was forgotten, neither before nor after a restart.
pub fn a_watch_behind_compaction_is_gone(subject: &impl Subject) {
    let world = World::remembering(subject, 3);
    run(async {
        let store = world.open();
        make_history(&store).await;
        compact(&store).await;
        let check = |store: &Store| {
            assert_eq!(store.compacted(), Revision(6));
            for scope in [WatchScope::All, WatchScope::Resource(tasks())] {
                for from in 0..6 {
                    let error = watched(store, &scope, Revision(from)).unwrap_err();
                    assert_eq!(gone(&error), (Revision(from), Revision(6)));
                }
            }
            assert_eq!(watched(store, &WatchScope::All, Revision(6)).unwrap().len(), 3);
        };
        check(&store);
        drop(store);
        check(&world.open());
    });
}

/// Whether it waits or polls.
pub fn a_watch_that_falls_behind_compaction_is_gone(subject: &impl Subject) {
    let world = World::remembering(subject, 2);
    run(async {
        let store = world.open();
        commit(&store, create(&task("a"), "1")).await;
        let mut slow = store.watch(WatchScope::All, Revision(1)).unwrap();
        let mut slow_of_kind = store.watch(WatchScope::Resource(tasks()), Revision(1)).unwrap();
        let mut quick = store.watch(WatchScope::All, Revision(1)).unwrap();
        for number in 2..=6 {
            commit(&store, update(&task("a"), &number.to_string())).await;
            assert_eq!(quick.next(10).await.unwrap().len(), 1);
        }
        assert_eq!(gone(&slow.next(10).await.unwrap_err()), (Revision(1), Revision(4)));
        assert_eq!(gone(&slow_of_kind.poll_page(10).unwrap_err()), (Revision(1), Revision(4)));
    });
}

/// A revision that does not exist yet is of another store.
pub fn a_watch_from_the_future_is_refused(subject: &impl Subject) {
    let world = World::new(subject);
    run(async {
        let store = world.open();
        commit(&store, create(&task("a"), "1")).await;
        for scope in scopes() {
            let error = store.watch(scope.clone(), Revision(2)).unwrap_err();
            assert_eq!(error, WatchError::Future { asked: Revision(2), newest: Revision(1) });
            assert!(store.watch(scope, Revision(1)).is_ok());
        }
    });
}

/// It missed nothing, so it is not told to start over.
pub fn a_watch_of_a_quiet_kind_outlives_the_compaction_of_others(subject: &impl Subject) {
    let world = World::remembering(subject, 2);
    run(async {
        let store = world.open();
        commit(&store, create(&job("quiet"), "1")).await;
        let mut waiting = store.watch(WatchScope::Resource(jobs()), Revision(1)).unwrap();
        let waiting = tokio::spawn(async move { waiting.next(10).await });
        tokio::task::yield_now().await;
        commit(&store, create(&task("busy"), "1")).await;
        for number in 0..20 {
            commit(&store, update(&task("busy"), &number.to_string())).await;
        }
        store.commit(Batch::default()).await.unwrap();
        assert_eq!(store.compacted(), Revision(20));
        commit(&store, update(&job("quiet"), "2")).await;
        let changes = waiting.await.unwrap().unwrap();
        assert_eq!(changes.iter().map(|change| change.revision()).collect::<Vec<_>>(), [Revision(23)]);
    });
}
