//! The relay: tells others about committed changes, until they confirm it.
//!
//! There is one worker per EventSink. It follows the log of changes from its cursor, makes messages of them, sends them, and
//! writes down how far they were confirmed. Decisions are those of `muster-relay`. Nothing is told before it is committed, and
//! the cursor never passes what is not confirmed: a stop at any moment leads to messages that are sent twice under the same id,
//! never to one that is missing.
//!
//! Jobs of a Kubernetes cluster are told of in the same way: what is seen of them is committed first, by `job_source`.
//!
//! The store holds the changes behind the cursors of all enabled sinks, within limits. Beyond them they are forgotten; then
//! everything that is there is told instead, and the sink says so.

mod cursor;
mod job_place;
mod job_source;
mod requests;
mod resync;
mod standing;
mod telling;
mod worker;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use muster_ports::clock::Clock;
use muster_ports::kube_jobs::KubeJobs;
use muster_ports::publisher::Sinks;
use muster_ports::store::{Change, Hold, ResourceName, Revision, Store, WatchError, WatchScope};
use muster_ports::telemetry::Telemetry;
use muster_types::{EventSink, JsonText};
use tokio::sync::watch;
use tokio::task::JoinSet;

use cursor::Cursor;
use muster_ports::publisher::Boxed;
use worker::Worker;

/// Where sinks are kept.
const SINKS: &str = "eventsinks.muster.dev";
/// Changes of sinks taken in at once.
const CHANGES: usize = 256;
/// How often holds for another server are looked at, if nothing happens.
const HOLD_PAUSE: Duration = Duration::from_secs(5);
/// The name under which a store is opened with everything held.
pub const START_HOLD: &str = "relay";

/// What is outside of the relay.
#[derive(Clone)]
pub struct Outside {
    /// Everything that is committed.
    pub store: Store,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Makes the ways to sinks.
    pub sinks: Arc<dyn Sinks>,
    /// Gets the numbers.
    pub telemetry: Telemetry,
    /// The jobs of a cluster, if one is known.
    pub kube_jobs: Option<Arc<dyn KubeJobs>>,
}

/// What the relay needs to know besides what is stored.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Who holds the leases. The same name again is the same holder: whoever uses it must know that no other does.
    pub holder: String,
    /// How long a lease holds without being renewed.
    pub lease: Duration,
    /// At most this many changes are kept for a sink that does not keep up.
    pub max_held_changes: usize,
    /// At most this much memory for versions that are no longer current.
    pub max_held_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            holder: "relay".to_owned(),
            lease: Duration::from_secs(15),
            max_held_changes: 2_000_000,
            max_held_bytes: 2 << 30,
        }
    }
}

impl Settings {
    /// A hold behind a revision.
    pub fn hold(&self, after: Revision) -> Hold {
        Hold { after, max_changes: self.max_held_changes, max_bytes: self.max_held_bytes }
    }
}

/// Holds what the sinks that are stored have not told yet, and lets go of the rest. Called before anything is written.
pub fn hold_for_sinks(store: &Store, settings: &Settings) {
    for (sink, cursor) in enabled(store) {
        store.hold(&hold_name(&sink.metadata.uid), Some(settings.hold(Revision(cursor.upto))));
    }
    store.hold(START_HOLD, None);
}

/// Holds what the sinks have not told yet while another server tells it, and lets go of what was told. Until the store closes.
pub async fn hold_for_another(store: Store, settings: Settings) {
    let mut held: BTreeSet<String> = BTreeSet::new();
    loop {
        let scope = WatchScope::Resource(ResourceName::new(cursor::CURSORS));
        let Ok(mut watch) = store.watch(scope, store.revision()) else { return };
        loop {
            hold_for_sinks(&store, &settings);
            let now: BTreeSet<String> =
                enabled(&store).map(|(sink, _)| hold_name(&sink.metadata.uid)).collect();
            for gone in held.difference(&now) {
                store.hold(gone, None);
            }
            held = now;
            match tokio::time::timeout(HOLD_PAUSE, watch.next(CHANGES)).await {
                // Not at each message that is told.
                Ok(Ok(_)) => tokio::time::sleep(HOLD_PAUSE / 5).await,
                Err(_) => {}
                Ok(Err(WatchError::Closed)) => return,
                Ok(Err(WatchError::Gone { .. } | WatchError::Future { .. })) => break,
            }
        }
    }
}

/// The sinks that are told about changes, and how far each was.
fn enabled(store: &Store) -> impl Iterator<Item = (EventSink, Cursor)> {
    let stored = store.snapshot(&ResourceName::new(SINKS));
    let told = stored.range(None, None).filter_map(|stored| {
        let sink = EventSink::from_json(stored.json()).ok().filter(|sink| !sink.spec.suspend)?;
        let new = || Cursor::first(&sink, stored.revision);
        let cursor = Cursor::read(store, &sink.metadata.uid).unwrap_or_else(new);
        Some((sink, cursor))
    });
    told.collect::<Vec<_>>().into_iter()
}

/// True if an enabled sink has not been sent a change and no relay worker holds history for it yet, such as a sink that was just created.
/// A sink that is further behind than a hold may be does not count.
pub(crate) fn awaits_new_sink(store: &Store, revision: Revision) -> bool {
    let most = Settings::default().max_held_changes as u64;
    enabled(store).any(|(sink, cursor)| {
        let is_recent = store.revision().0.saturating_sub(cursor.upto) <= most;
        revision.0 > cursor.upto && is_recent && !store.has_hold(&hold_name(&sink.metadata.uid))
    })
}

/// The name of what a sink holds.
fn hold_name(uid: &str) -> String {
    format!("sink/{uid}")
}

/// A sink as it is stored.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    sink: EventSink,
    revision: Revision,
}

/// What the relay keeps of a sink that has a worker.
struct Tended {
    uid: String,
    /// `None` if it is gone.
    news: watch::Sender<Option<Arc<Seen>>>,
}

/// Tells about changes until the store closes.
pub fn run(outside: Outside, settings: Settings) -> Boxed<'static, ()> {
    Box::pin(follow_always(outside, settings))
}

async fn follow_always(outside: Outside, settings: Settings) {
    let mut relay =
        Relay { outside, settings: Arc::new(settings), tended: HashMap::new(), workers: JoinSet::new() };
    loop {
        match relay.follow().await {
            WatchError::Closed => return,
            // Fell behind what can be watched: start over from what is there.
            WatchError::Gone { .. } => {}
            error @ WatchError::Future { .. } => {
                return tracing::error!(%error, "the relay cannot follow the store");
            }
        }
    }
}

struct Relay {
    outside: Outside,
    settings: Arc<Settings>,
    /// By `namespace/name`.
    tended: HashMap<Arc<str>, Tended>,
    /// They end with the relay.
    workers: JoinSet<()>,
}

impl Relay {
    async fn follow(&mut self) -> WatchError {
        let resource = ResourceName::new(SINKS);
        let stored = self.outside.store.snapshot(&resource);
        let scope = WatchScope::Resource(resource);
        let mut watch = match self.outside.store.watch(scope, stored.revision) {
            Ok(watch) => watch,
            Err(error) => return error,
        };
        let there: Vec<_> = stored.range(None, None).map(|stored| stored.path.clone()).collect();
        let gone: Vec<_> = self.tended.keys().filter(|path| !there.contains(path)).cloned().collect();
        for path in &gone {
            self.forget(path);
        }
        for stored in stored.range(None, None) {
            self.tend(&stored.path, stored.json(), stored.revision);
        }
        loop {
            match watch.next(CHANGES).await {
                Ok(changes) => changes.iter().for_each(|change| self.observe(change)),
                Err(error) => return error,
            }
            // Workers of sinks that are gone.
            while self.workers.try_join_next().is_some() {}
        }
    }

    fn observe(&mut self, change: &Change) {
        if change.deleted {
            self.forget(&change.object.path);
        } else {
            self.tend(&change.object.path, change.object.json(), change.revision());
        }
    }

    fn forget(&mut self, path: &Arc<str>) {
        if let Some(tended) = self.tended.remove(path) {
            tended.news.send_replace(None);
        }
    }

    fn tend(&mut self, path: &Arc<str>, json: &[u8], revision: Revision) {
        let sink = match EventSink::from_json(json) {
            Ok(sink) => sink,
            Err(error) => {
                tracing::error!(path = &**path, %error, "a stored sink cannot be read; it is left alone");
                return;
            }
        };
        if self.tended.get(path).is_some_and(|tended| tended.uid != sink.metadata.uid) {
            self.forget(path);
        }
        let uid = sink.metadata.uid.clone();
        let seen = Some(Arc::new(Seen { sink, revision }));
        if let Some(tended) = self.tended.get(path) {
            tended.news.send_replace(seen);
            return;
        }
        let (news, heard) = watch::channel(seen);
        let worker =
            Worker::new(self.outside.clone(), self.settings.clone(), path.clone(), uid.clone(), heard);
        self.workers.spawn(worker.run());
        self.tended.insert(path.clone(), Tended { uid, news });
    }
}
