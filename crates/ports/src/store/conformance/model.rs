//! A store does what a plain map with a list of changes does, whatever it is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Subject;
use super::world::{World, all, delete, describe, draft, job, jobs, json, listed, run, task, tasks};
use crate::clock::Clock;
use crate::store::{
    CommitError, History, Key, Precondition, Revision, Store, Watch, WatchError, WatchScope, Write,
};

/// Few enough that random operations meet.
const OBJECTS: u8 = 8;

/// Carries out operations that the words stand for, and compares. Any words are fine: the test that calls this
/// makes them up, and makes them fewer when it fails.
pub fn agrees_with_a_plain_map(subject: &impl Subject, words: &[u32]) {
    let mut world = World::new(subject);
    world.history =
        History { max_changes: 12, max_age: Duration::from_secs(1), max_bytes: 4_000, ..world.history };
    run(async {
        let mut run = Run { store: world.open_inline(), world, model: Model::default(), watches: Vec::new() };
        for word in words {
            run.step(word.to_le_bytes()).await;
            run.compare();
        }
        run.finish().await;
    });
}

struct Run<'a, S> {
    world: World<'a, S>,
    store: Store,
    model: Model,
    watches: Vec<(WatchScope, Watch)>,
}

/// What should be there.
#[derive(Default)]
struct Model {
    revision: u64,
    /// Text and revision of each object.
    objects: BTreeMap<u8, (String, Revision)>,
    changes: Vec<ModelChange>,
}

struct ModelChange {
    revision: Revision,
    object: u8,
    previous: Option<Revision>,
    line: String,
}

/// A write, and the text it puts.
type Step = (Write, u8);

/// Even ones are tasks, odd ones are jobs.
fn key(object: u8) -> Key {
    let name = format!("{}", object % OBJECTS);
    if object.is_multiple_of(2) { task(&name) } else { job(&name) }
}

impl<S: Subject> Run<'_, S> {
    async fn step(&mut self, [operation, a, b, c]: [u8; 4]) {
        match operation % 12 {
            0..=3 => self.commit(&[self.put(a, b)], true).await,
            4 => self.commit(&[(delete(&key(a)), b)], self.model.objects.contains_key(&(a % OBJECTS))).await,
            5 => self.commit(&[self.stale_put(a, b)], false).await,
            6 => self.commit_three(a, b, c).await,
            7 => self.restart(),
            8 => self.world.clock.advance(i64::from(a) * 4),
            9 => self.commit(&[], true).await,
            10 => self.start_watch(a, b),
            _ => self.poll_watch(a, b),
        }
    }

    /// A write that should work.
    fn put(&self, object: u8, text: u8) -> Step {
        let expect = match self.model.objects.get(&(object % OBJECTS)) {
            None => Precondition::Absent,
            Some((_, revision)) if text.is_multiple_of(2) => Precondition::At(*revision),
            Some(_) => Precondition::Exists,
        };
        (Write::Put { key: key(object), expect, draft: draft(&text.to_string()) }, text)
    }

    /// A write that should not.
    fn stale_put(&self, object: u8, text: u8) -> Step {
        let expect = match self.model.objects.get(&(object % OBJECTS)) {
            None => Precondition::Exists,
            Some((_, revision)) if text.is_multiple_of(2) => Precondition::At(Revision(revision.0 + 1)),
            Some(_) => Precondition::Absent,
        };
        (Write::Put { key: key(object), expect, draft: draft(&text.to_string()) }, text)
    }

    async fn commit_three(&mut self, a: u8, b: u8, c: u8) {
        let write = |object: u8| {
            let exists = self.model.objects.contains_key(&(object % OBJECTS));
            if exists && b & (1 << (object % OBJECTS)) != 0 {
                (delete(&key(object)), b)
            } else {
                self.put(object, b)
            }
        };
        let good = !c.is_multiple_of(4);
        let (second, third) = (a.wrapping_add(1), a.wrapping_add(2));
        let last = if good { write(third) } else { self.stale_put(third, b) };
        let writes = [write(a), write(second), last];
        self.commit(&writes, good).await;
    }

    async fn commit(&mut self, steps: &[Step], good: bool) {
        let outcome = self.store.commit(all(steps.iter().map(|(write, _)| write.clone()))).await;
        if !good {
            assert!(matches!(outcome.unwrap_err(), CommitError::Conflict { .. }));
            return;
        }
        let at = self.world.clock.now().0;
        let lines: Vec<_> = steps.iter().map(|(write, text)| self.model.apply(write, *text, at)).collect();
        let committed = outcome.unwrap();
        assert_eq!(committed.revision, Revision(self.model.revision));
        assert_eq!(committed.objects.len(), lines.len());
        for (object, line) in committed.objects.iter().zip(lines) {
            assert!(line.ends_with(&*String::from_utf8_lossy(object.json())), "{line}");
        }
    }

    fn restart(&mut self) {
        let watches = std::mem::take(&mut self.watches);
        let positions: Vec<_> =
            watches.iter().map(|(scope, watch)| (scope.clone(), watch.position())).collect();
        drop(watches);
        self.store.close();
        self.store = self.world.open_inline();
        for (scope, position) in positions {
            self.watch(scope, position);
        }
    }

    fn start_watch(&mut self, from: u8, scope: u8) {
        let scope = match scope % 3 {
            0 => WatchScope::All,
            1 => WatchScope::Resource(tasks()),
            _ => WatchScope::Resource(jobs()),
        };
        self.watch(scope, Revision(u64::from(from) % (self.model.revision + 1)));
    }

    fn watch(&mut self, scope: WatchScope, from: Revision) {
        match self.store.watch(scope.clone(), from) {
            Ok(watch) => self.watches.push((scope, watch)),
            Err(error) => self.check_gone(&error, from),
        }
    }

    fn poll_watch(&mut self, which: u8, page: u8) {
        if self.watches.is_empty() {
            return;
        }
        let index = usize::from(which) % self.watches.len();
        let (scope, watch) = &mut self.watches[index];
        let page = usize::from(page % 5);
        let from = watch.position();
        match watch.poll_page(page) {
            Ok(changes) => {
                let seen: Vec<_> = changes.iter().map(|change| describe(change)).collect();
                assert_eq!(seen, self.model.later(scope, from).take(page).collect::<Vec<_>>());
            }
            Err(error) => {
                self.watches.swap_remove(index);
                self.check_gone(&error, from);
            }
        }
    }

    fn check_gone(&self, error: &WatchError, from: Revision) {
        let oldest = self.store.compacted();
        assert_eq!(error, &WatchError::Gone { asked: from, oldest });
        assert!(from < oldest);
    }

    fn compare(&self) {
        assert_eq!(self.store.revision(), Revision(self.model.revision));
        for object in 0..OBJECTS {
            let found = self.store.get(&key(object)).map(|found| found.json().to_vec());
            let expected = self.model.objects.get(&object).map(|(text, revision)| json(text, *revision));
            assert_eq!(found, expected);
        }
    }

    async fn finish(mut self) {
        for _ in 0..8 {
            self.commit(&[], true).await;
        }
        for index in 0..self.watches.len() {
            self.poll_watch(u8::try_from(index).unwrap_or(0), 4);
        }
        let (lists, compacted) =
            ([listed(&self.store, &tasks()), listed(&self.store, &jobs())], self.store.compacted());
        let Self { world, store, model, watches } = self;
        drop((store, watches));
        let remembered: Vec<_> = model.changes.iter().filter(|change| change.revision > compacted).collect();
        assert!(remembered.len() <= world.history.max_changes);
        let live = model.objects.values().map(|(_, revision)| *revision);
        let needed = remembered.iter().flat_map(|change| [Some(change.revision), change.previous]).flatten();
        let rows: BTreeSet<_> = live.chain(needed).collect();
        assert_eq!(world.rows(), rows.into_iter().collect::<Vec<_>>());
        let store = world.open_inline();
        assert_eq!([listed(&store, &tasks()), listed(&store, &jobs())], lists);
    }
}

impl Model {
    /// Applies a write and returns the line that a watch should show for it.
    fn apply(&mut self, write: &Write, text: u8, at: i64) -> String {
        self.revision += 1;
        let revision = Revision(self.revision);
        let object: u8 = write.key().path.rsplit('/').next().unwrap().parse().unwrap();
        let previous = self.objects.remove(&object);
        let (verb, text) = match write {
            Write::Put { .. } => {
                self.objects.insert(object, (text.to_string(), revision));
                ("put", text.to_string())
            }
            Write::Delete { .. } => ("deleted", previous.clone().unwrap().0),
        };
        let previous = previous.map(|(_, revision)| revision);
        let before = previous.map_or_else(|| "nothing".to_owned(), |revision| revision.to_string());
        let json = String::from_utf8(json(&text, revision)).unwrap();
        let line = format!("{revision}: {verb} {} after {before} at {at}: {json}", key(object));
        self.changes.push(ModelChange { revision, object, previous, line: line.clone() });
        line
    }

    fn later(&self, scope: &WatchScope, from: Revision) -> impl Iterator<Item = String> {
        let in_scope = move |change: &&ModelChange| match scope {
            WatchScope::All => true,
            WatchScope::Resource(resource) => key(change.object).resource == *resource,
        };
        self.changes
            .iter()
            .filter(move |change| change.revision > from)
            .filter(in_scope)
            .map(|change| change.line.clone())
    }
}
