//! Cascading deletion: dependents go with their owners, as in Kubernetes.
//!
//! A [`Graph`] remembers which objects name which owner. Whenever an object may be affected it is looked at again,
//! and [`decide`] says what to do from its metadata, its owners and its dependents alone. Every write states the
//! revision it was decided on, so a race only means another look.
//!
//! Nothing is decided about a version of an object before every change up to it was observed: whoever was there when
//! its deletion was asked for is in the graph.

mod decide;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::future::join_all;
use memchr::memmem::Finder;
use muster_ports::clock::Clock;
use muster_ports::publisher::Boxed;
use muster_ports::store::{
    Batch, Change, CommitError, Key, Precondition, Revision, Store, Stored, WatchError, WatchScope, Write,
};
use muster_types::Timestamp;
use muster_types::metadata::{Metadata, OwnerReference};
use serde::Deserialize;

use crate::encode::Encoded;
use crate::garbage::decide::{Decision, Dependents, Owner, decide, has};
use crate::kind::Input;
use crate::refusal::Refusal;
use crate::registry::Registry;
use crate::shutdown::Shutdown;

pub use decide::{FOREGROUND, ORPHAN};

static OWNERS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"ownerReferences\""));
static DELETION: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"deletionTimestamp\""));

/// Objects looked at between two commits.
const SLICE: usize = 256;
/// How long to wait before a write that the store did not take is tried again.
const HELD_UP: Duration = Duration::from_secs(1);

/// Who depends on whom.
#[derive(Debug, Default)]
struct Graph {
    dependents: HashMap<String, HashSet<Key>>,
}

/// Carries out cascading deletion until shutdown.
pub fn collect(
    store: Store,
    registry: Registry,
    clock: Arc<dyn Clock>,
    shutdown: Shutdown,
) -> Boxed<'static, ()> {
    Box::pin(collect_always(store, registry, clock, shutdown))
}

async fn collect_always(store: Store, registry: Registry, clock: Arc<dyn Clock>, shutdown: Shutdown) {
    while !shutdown.is_requested() {
        tokio::select! {
            () = shutdown.requested() => return,
            // Fell behind the history: start over from what is there.
            ended = follow(&store, &registry, &*clock) => if ended == WatchError::Closed { return },
        }
    }
}

async fn follow(store: &Store, registry: &Registry, clock: &dyn Clock) -> WatchError {
    let mut watch = match store.watch(WatchScope::All, store.revision()) {
        Ok(watch) => watch,
        Err(error) => return error,
    };
    let mut collector = Collector {
        store,
        registry,
        clock,
        graph: Graph::default(),
        queue: Queue::default(),
        told: HashSet::new(),
        observed: watch.position(),
        put_off: HashSet::new(),
        held_up: false,
    };
    for kind in &registry.kinds() {
        let resource = &kind.info().resource;
        for stored in store.snapshot(resource).range(None, None) {
            if concerns(stored) {
                let key = Key { resource: resource.clone(), path: stored.path.clone() };
                collector.graph.add(&key, stored);
                collector.queue.push(key);
            }
        }
    }
    loop {
        while !collector.queue.is_empty() {
            collector.look_at_some().await;
            match watch.poll_page(SLICE) {
                Ok(changes) => collector.observe_all(&changes, watch.position()),
                Err(error) => return error,
            }
            if collector.held_up {
                tokio::time::sleep(HELD_UP).await;
            }
        }
        match watch.next(SLICE).await {
            Ok(changes) => collector.observe_all(&changes, watch.position()),
            Err(error) => return error,
        }
    }
}

struct Collector<'a> {
    store: &'a Store,
    registry: &'a Registry,
    clock: &'a dyn Clock,
    graph: Graph,
    queue: Queue,
    /// Uids and finalizers of objects whose dependents were told that they go. Later ones are looked at anyway.
    told: HashSet<(String, &'static str)>,
    /// Every change up to here is in the graph.
    observed: Revision,
    /// To be looked at again when the next change of each is observed.
    put_off: HashSet<Key>,
    /// The store did not take the last writes.
    held_up: bool,
}

/// Keys to look at, each once.
#[derive(Debug, Default)]
struct Queue {
    order: VecDeque<Key>,
    waiting: HashSet<Key>,
}

impl Queue {
    fn push(&mut self, key: Key) {
        if self.waiting.insert(key.clone()) {
            self.order.push_back(key);
        }
    }

    fn pop(&mut self) -> Option<Key> {
        let key = self.order.pop_front()?;
        self.waiting.remove(&key);
        Some(key)
    }

    fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

impl Collector<'_> {
    fn observe_all(&mut self, changes: &[Arc<Change>], upto: Revision) {
        for change in changes {
            self.observe(change);
        }
        self.observed = upto;
    }

    fn observe(&mut self, change: &Change) {
        let key = change.key();
        let put_off = self.put_off.remove(&key);
        if !change.deleted && change.previous.as_ref().is_some_and(|it| same_ties(it, &change.object)) {
            if put_off {
                self.queue.push(key);
            }
            return;
        }
        if let Some(previous) = change.previous.as_ref().filter(|previous| concerns(previous)) {
            for owner in self.graph.remove(&key, previous) {
                self.queue.extend(self.owner_key(&key, &owner));
            }
        }
        if change.deleted {
            if let Some(uid) = metadata_of(&change.object).map(|metadata| metadata.uid) {
                let dependents = self.graph.dependents.get(&uid).into_iter().flatten();
                dependents.cloned().for_each(|dependent| self.queue.push(dependent));
                for finalizer in [FOREGROUND, ORPHAN] {
                    self.told.remove(&(uid.clone(), finalizer));
                }
            }
        } else if concerns(&change.object) {
            self.graph.add(&key, &change.object);
            self.queue.push(key);
        }
    }

    /// Looks at some objects and commits what was decided, all at once.
    async fn look_at_some(&mut self) {
        let mut batches = Vec::new();
        while batches.len() < SLICE
            && let Some(key) = self.queue.pop()
        {
            match self.look_at(&key) {
                Ok(Some(batch)) => batches.push((key, batch)),
                Ok(None) => {}
                Err(refusal) => {
                    tracing::warn!(%key, %refusal, "an object cannot be looked at for its owners");
                }
            }
        }
        let commits = batches.into_iter().map(|(key, batch)| async {
            let outcome = self.store.commit(batch).await;
            (key, outcome)
        });
        let mut refused = None;
        for (key, outcome) in join_all(commits).await {
            match outcome {
                Ok(_) => continue,
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => refused = Some(error),
            }
            self.queue.push(key);
        }
        if let Some(error) = refused.as_ref().filter(|_| !self.held_up) {
            tracing::warn!(%error, "cascading deletion is held up");
        }
        self.held_up = refused.is_some();
    }

    fn look_at(&mut self, key: &Key) -> Result<Option<Batch>, Refusal> {
        let Some(stored) = self.store.get(key) else { return Ok(None) };
        if stored.revision > self.observed {
            // It is looked at again when that change is observed.
            self.put_off.insert(key.clone());
            return Ok(None);
        }
        let Some(metadata) = metadata_of(&stored) else { return Ok(None) };
        let owners: Vec<_> = metadata.owner_references.iter().map(|owner| self.owner(key, owner)).collect();
        let decision = decide(&metadata, &owners, self.dependents(key, &metadata));
        match decision {
            Decision::Keep => Ok(None),
            Decision::Wait(finalizer) => {
                self.tell_dependents(&metadata.uid, finalizer);
                Ok(None)
            }
            Decision::Forget(_) | Decision::Release(_) | Decision::Delete { .. } => {
                self.write(key, &stored, decision)
            }
        }
    }

    /// Has the dependents of an object looked at, once.
    fn tell_dependents(&mut self, uid: &str, finalizer: &'static str) {
        let other = if finalizer == ORPHAN { FOREGROUND } else { ORPHAN };
        self.told.remove(&(uid.to_owned(), other));
        if self.told.insert((uid.to_owned(), finalizer)) {
            let dependents = self.graph.dependents.get(uid).into_iter().flatten();
            dependents.cloned().for_each(|dependent| self.queue.push(dependent));
        }
    }

    fn write(&self, key: &Key, stored: &Stored, decision: Decision) -> Result<Option<Batch>, Refusal> {
        let Some(kind) = self.registry.find_resource(&key.resource) else { return Ok(None) };
        let expect = Precondition::At(stored.revision);
        let mut object = kind.decode(Input::Json(stored.json()))?.object;
        let goes_last = kind.goes_last(&*object);
        let metadata = object.metadata_mut();
        let now = Timestamp::from_second(self.clock.now().0.div_euclid(1000));
        match decision {
            Decision::Keep | Decision::Wait(_) => return Ok(None),
            Decision::Forget(uids) => metadata.owner_references.retain(|owner| !uids.contains(&owner.uid)),
            Decision::Release(finalizer) => metadata.finalizers.retain(|known| known != finalizer),
            Decision::Delete { foreground } => {
                if (foreground || goes_last) && !kind.ends_in_order() && !has(metadata, FOREGROUND) {
                    metadata.finalizers.push(FOREGROUND.to_owned());
                }
                metadata.deletion_timestamp = Some(now);
                metadata.deletion_grace_period_seconds = Some(0);
                metadata.generation += 1;
                kind.mark_deleted(&mut *object, self.store, now);
            }
        }
        let metadata = object.metadata();
        if metadata.deletion_timestamp.is_some() && metadata.finalizers.is_empty() {
            let checks = kind.needs_at_end(&*object);
            if !checks.is_empty()
                && let Some(why) = kind.held_back(&*object, self.store)
            {
                tracing::warn!(%key, why, "an object whose owners are gone is kept");
                return Ok(None);
            }
            return Ok(Some(Batch { checks, writes: vec![Write::Delete { key: key.clone(), expect }] }));
        }
        let draft = Encoded::new(&mut *object)?.into_draft();
        Ok(Some(Batch::of(Write::Put { key: key.clone(), expect, draft })))
    }

    fn owner_key(&self, dependent: &Key, owner: &OwnerReference) -> Option<Key> {
        let kind = self.registry.find_kind(&owner.api_version, &owner.kind)?;
        let info = kind.info();
        let namespace = dependent.path.split_once('/').map_or("", |(namespace, _)| namespace);
        Some(Key::new(&info.resource, if info.namespaced { namespace } else { "" }, &owner.name))
    }

    fn owner(&self, dependent: &Key, owner: &OwnerReference) -> Owner {
        let Some(key) = self.owner_key(dependent, owner) else { return Owner::Solid };
        let found = self.store.get(&key).and_then(|stored| metadata_of(&stored));
        match found.filter(|metadata| metadata.uid == owner.uid) {
            None => Owner::Absent,
            Some(metadata) if metadata.deletion_timestamp.is_some() && has(&metadata, FOREGROUND) => {
                Owner::Waiting
            }
            Some(metadata) if metadata.deletion_timestamp.is_some() && has(&metadata, ORPHAN) => {
                Owner::Orphaning
            }
            Some(_) => Owner::Solid,
        }
    }

    /// What is known of the dependents of an object, as far as that matters.
    fn dependents(&self, key: &Key, metadata: &Metadata) -> Dependents {
        let deleting = metadata.deletion_timestamp.is_some();
        Dependents {
            any: self.dependents_of(key, &metadata.uid).next().is_some(),
            blocking: deleting && has(metadata, FOREGROUND) && self.is_blocked(key, &metadata.uid),
        }
    }

    /// Objects that name the object as their owner, and whether they hold up its end.
    fn dependents_of(&self, key: &Key, uid: &str) -> impl Iterator<Item = (&Key, Metadata, bool)> {
        let named = self.graph.dependents.get(uid).into_iter().flatten();
        named.filter_map(move |dependent| {
            let metadata = metadata_of(&self.store.get(dependent)?)?;
            // The uid alone does not make an owner: the rest of the reference must lead to it too.
            let leads_here = |owner: &&OwnerReference| {
                owner.uid == uid && self.owner_key(dependent, owner).as_ref() == Some(key)
            };
            let owner = metadata.owner_references.iter().find(leads_here)?;
            let blocking = owner.block_owner_deletion == Some(true);
            Some((dependent, metadata, blocking))
        })
    }

    /// True if some dependent holds up the end of the object, other than by waiting for that end itself.
    fn is_blocked(&self, key: &Key, uid: &str) -> bool {
        let mut blocking = self.dependents_of(key, uid).filter(|(.., blocking)| *blocking);
        blocking.any(|(dependent, metadata, _)| !self.waits_for(dependent, &metadata, key))
    }

    /// True if an object waits in the foreground for the end of another one, through however many others.
    fn waits_for(&self, key: &Key, metadata: &Metadata, end: &Key) -> bool {
        let waits = |metadata: &Metadata| metadata.deletion_timestamp.is_some() && has(metadata, FOREGROUND);
        if !waits(metadata) {
            return false;
        }
        let mut seen = HashSet::from([key.clone()]);
        let mut ahead = vec![(key.clone(), metadata.uid.clone())];
        while let Some((key, uid)) = ahead.pop() {
            for (dependent, metadata, _) in self.dependents_of(&key, &uid).filter(|(.., blocking)| *blocking)
            {
                if dependent == end {
                    return true;
                }
                if waits(&metadata) && seen.insert(dependent.clone()) {
                    ahead.push((dependent.clone(), metadata.uid));
                }
            }
        }
        false
    }
}

impl Queue {
    fn extend(&mut self, keys: Option<Key>) {
        if let Some(key) = keys {
            self.push(key);
        }
    }
}

impl Graph {
    fn add(&mut self, key: &Key, stored: &Stored) {
        for owner in metadata_of(stored).map(|metadata| metadata.owner_references).unwrap_or_default() {
            self.dependents.entry(owner.uid).or_default().insert(key.clone());
        }
    }

    /// Removes an object and returns the owners it named.
    fn remove(&mut self, key: &Key, stored: &Stored) -> Vec<OwnerReference> {
        let owners = metadata_of(stored).map(|metadata| metadata.owner_references).unwrap_or_default();
        for owner in &owners {
            if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                dependents.remove(key);
                if dependents.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
        owners
    }
}

/// A quick look at the text; most objects have neither owners nor an end.
fn concerns(stored: &Stored) -> bool {
    OWNERS.find(stored.json()).is_some() || DELETION.find(stored.json()).is_some()
}

fn metadata_of(stored: &Stored) -> Option<Metadata> {
    stored.metadata()
}

/// What of an object matters here.
#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Ties {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    owner_references: Vec<OwnerReference>,
    #[serde(default)]
    finalizers: Vec<String>,
    deletion_timestamp: Option<Timestamp>,
}

/// True if a change of an object changed nothing that matters here, as most changes do not.
fn same_ties(before: &Stored, after: &Stored) -> bool {
    match (concerns(before), concerns(after)) {
        (false, false) => true,
        (true, true) => before.metadata::<Ties>() == after.metadata::<Ties>(),
        _ => false,
    }
}
