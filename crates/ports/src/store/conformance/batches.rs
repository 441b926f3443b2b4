//! Revisions, preconditions and batches.

use super::Subject;
use super::world::{
    World, all, commit, compact, create, delete, draft, job, json, refusal, run, task, update,
};
use crate::store::{Batch, Check, CommitError, Precondition, Revision, Store, WatchScope, Write};

/// Each write of each batch has its own, and a batch has consecutive ones.
pub fn revisions_grow_by_one_per_change(subject: &impl Subject) {
    let world = World::new(subject);
    run(async {
        let store = world.open();
        assert_eq!(store.revision(), Revision::ZERO);
        assert_eq!(commit(&store, create(&task("a"), "1")).await.revision, Revision(1));
        let three = all([create(&task("b"), "1"), update(&task("a"), "2"), create(&job("a"), "1")]);
        let committed = store.commit(three).await.unwrap();
        assert_eq!(committed.revision, Revision(4));
        let revisions: Vec<_> = committed.objects.iter().map(|object| object.revision).collect();
        assert_eq!(revisions, [Revision(2), Revision(3), Revision(4)]);
        assert_eq!(commit(&store, delete(&task("a"))).await.revision, Revision(5));
        assert_eq!(store.revision(), Revision(5));
    });
}

/// The order goes on where it stopped.
pub fn revisions_never_repeat_across_a_restart(subject: &impl Subject) {
    let world = World::new(subject);
    run(async {
        for restart in 0..5 {
            let store = world.open();
            assert_eq!(store.revision(), Revision(restart));
            let key = task(&format!("after-{restart}"));
            assert_eq!(commit(&store, create(&key, "1")).await.revision, Revision(restart + 1));
        }
    });
}

/// The log remembers the newest revision even if no row has it.
pub fn revisions_never_repeat_after_the_newest_rows_were_forgotten(subject: &impl Subject) {
    let world = World::remembering(subject, 0);
    run(async {
        let store = world.open();
        commit(&store, create(&task("a"), "1")).await;
        commit(&store, delete(&task("a"))).await;
        compact(&store).await;
        drop(store);
        assert_eq!(world.rows(), []);
        let store = world.open();
        assert_eq!((store.revision(), store.compacted()), (Revision(2), Revision(2)));
        assert_eq!(commit(&store, create(&task("a"), "1")).await.revision, Revision(3));
    });
}

/// `Absent`, `Exists` and `At`, on writes and on checks.
pub fn each_precondition_holds_or_is_refused_with_what_was_found(subject: &impl Subject) {
    let world = World::new(subject);
    run(async {
        let store = world.open();
        commit(&store, create(&task("there"), "1")).await;
        let there = Some(Revision(1));
        let cases = [
            ("there", Precondition::Absent, Err(there)),
            ("there", Precondition::Exists, Ok(())),
            ("there", Precondition::At(Revision(1)), Ok(())),
            ("there", Precondition::At(Revision(2)), Err(there)),
            ("missing", Precondition::Absent, Ok(())),
            ("missing", Precondition::Exists, Err(None)),
            ("missing", Precondition::At(Revision(1)), Err(None)),
        ];
        for (name, expect, outcome) in cases {
            assert_eq!(verdict(&store, name, expect).await, outcome, "{name} {expect:?}");
        }
        let put = Write::Put { key: task("there"), expect: Precondition::At(Revision(1)), draft: draft("2") };
        assert_eq!(commit(&store, put.clone()).await.revision, Revision(2));
        let error = refusal(&store, Batch::of(put)).await;
        assert_eq!(
            error.to_string(),
            "tasks.example.dev default/there: expected At(Revision(1)), found revision 2"
        );
        let absent = Write::Delete { key: task("missing"), expect: Precondition::Absent };
        assert!(matches!(
            refusal(&store, Batch::of(absent)).await,
            CommitError::Conflict { found: None, .. }
        ));
        let stale = Write::Delete { key: task("there"), expect: Precondition::At(Revision(1)) };
        assert!(matches!(
            refusal(&store, Batch::of(stale)).await,
            CommitError::Conflict { found: Some(_), .. }
        ));
    });
}

/// What a check finds, if it does not hold.
async fn verdict(store: &Store, name: &str, expect: Precondition) -> Result<(), Option<Revision>> {
    let check = Check { key: task(name), expect };
    match store.commit(Batch { checks: vec![check], writes: Vec::new() }).await {
        Err(CommitError::Conflict { key, expected, found }) => {
            assert_eq!((key, expected), (task(name), expect));
            Err(found.map(|found| found.revision))
        }
        outcome => {
            outcome.unwrap();
            Ok(())
        }
    }
}

/// Wherever in the batch the refusal is.
pub fn a_refused_batch_changes_nothing(subject: &impl Subject) {
    let world = World::new(subject);
    run(async {
        let store = world.open();
        commit(&store, create(&task("a"), "1")).await;
        let mut watch = store.watch(WatchScope::All, store.revision()).unwrap();
        let good = || [update(&task("a"), "2"), create(&task("b"), "1"), create(&job("c"), "1")];
        let bad_check = Check { key: job("missing"), expect: Precondition::Exists };
        let mut batches = vec![Batch { checks: vec![bad_check], writes: good().into() }];
        for place in 0..=good().len() {
            let mut writes = Vec::from(good());
            writes.insert(place, delete(&job("missing")));
            batches.push(all(writes));
        }
        for batch in batches {
            let error = refusal(&store, batch).await;
            assert!(matches!(error, CommitError::Conflict { key, .. } if key == job("missing")));
        }
        assert_eq!(store.revision(), Revision(1));
        assert_eq!(watch.poll_page(usize::MAX).unwrap().len(), 0);
        drop((watch, store));
        assert_eq!(world.rows(), [Revision(1)]);
        let store = world.open();
        assert_eq!(store.get(&task("a")).unwrap().json(), json("1", Revision(1)));
        assert!(store.get(&task("b")).is_none() && store.get(&job("c")).is_none());
    });
}

/// Two writes of one object in a batch are a mistake of the caller.
pub fn an_object_is_written_once_in_a_batch(subject: &impl Subject) {
    let world = World::new(subject);
    run(async {
        let store = world.open();
        let twice = all([create(&task("a"), "1"), create(&job("a"), "1"), update(&task("a"), "2")]);
        assert!(matches!(refusal(&store, twice).await, CommitError::WrittenTwice(key) if key == task("a")));
        assert_eq!(store.revision(), Revision::ZERO);
    });
}

/// It reports the revision at which the checks held.
pub fn a_batch_of_checks_takes_no_revision(subject: &impl Subject) {
    let world = World::new(subject);
    run(async {
        let store = world.open();
        commit(&store, create(&task("a"), "1")).await;
        let check = Check { key: task("a"), expect: Precondition::At(Revision(1)) };
        let committed = store.commit(Batch { checks: vec![check], writes: Vec::new() }).await.unwrap();
        assert_eq!((committed.revision, committed.objects.len()), (Revision(1), 0));
        assert_eq!(store.revision(), Revision(1));
    });
}

/// Also when what is there, or the deletion of what was there, is of the same group of batches.
pub fn a_batch_can_need_a_kind_to_have_no_objects(subject: &impl Subject) {
    let world = World::new(subject);
    run(async {
        let store = world.open();
        assert_eq!(verdict(&store, "", Precondition::NoneOfKind).await, Ok(()));
        commit(&store, create(&task("a"), "1")).await;
        assert_eq!(verdict(&store, "", Precondition::NoneOfKind).await, Err(Some(Revision(1))));
        let none = |key| Check { key, expect: Precondition::NoneOfKind };
        let guarded = |kind, write| Batch { checks: vec![none(kind)], writes: vec![write] };
        let (gone, made, late) = tokio::join!(
            store.commit(Batch::of(delete(&task("a")))),
            store.commit(guarded(task(""), create(&job("b"), "1"))),
            store.commit(guarded(job(""), create(&task("c"), "1"))),
        );
        assert!(gone.is_ok() && made.is_ok());
        assert!(matches!(late, Err(CommitError::Conflict { found: Some(_), .. })));
    });
}

/// Also when the deletion is read back, and when its revision has more digits.
pub fn a_deletion_shows_the_last_version_at_its_own_revision(subject: &impl Subject) {
    let world = World::new(subject);
    run(async {
        let store = world.open();
        commit(&store, create(&task("a"), "first")).await;
        for number in 2..=9 {
            commit(&store, create(&job(&number.to_string()), "other")).await;
        }
        let deleted = commit(&store, delete(&task("a"))).await;
        assert_eq!(deleted.objects[0].revision, Revision(10));
        assert_eq!(deleted.objects[0].json(), json("first", Revision(10)));
        assert!(store.get(&task("a")).is_none());
        drop(store);
        let store = world.open();
        assert!(store.get(&task("a")).is_none());
        let mut watch = store.watch(WatchScope::All, Revision(9)).unwrap();
        let changes = watch.poll_page(usize::MAX).unwrap();
        assert!(changes[0].deleted);
        assert_eq!(changes[0].object.json(), json("first", Revision(10)));
        assert_eq!(changes[0].previous.as_ref().unwrap().json(), json("first", Revision(1)));
    });
}
