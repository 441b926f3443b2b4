//! Robots that are deleted. Their sessions at the broker are to end: the broker asks for a secret only when somebody connects.

use std::collections::HashMap;

use muster_ports::store::{Change, ResourceName, Store, Watch, WatchError, WatchScope};
use muster_types::{JsonText, Robot};

/// Changes that are taken in at once.
const PAGE: usize = 256;

/// Tells of robots that are deleted.
pub(crate) struct Departures {
    store: Store,
    robots: ResourceName,
    namespace: String,
    watch: Option<Watch>,
    /// Uids of the robots that are there, by name.
    known: HashMap<String, String>,
}

impl Departures {
    /// Of a namespace, from now on.
    pub fn new(store: Store, robots: ResourceName, namespace: &str) -> Self {
        let mut departures =
            Self { store, robots, namespace: namespace.to_owned(), watch: None, known: HashMap::new() };
        departures.start_over();
        departures
    }

    /// Waits until robots are deleted; says which.
    pub async fn next(&mut self) -> Vec<String> {
        loop {
            let Some(watch) = &mut self.watch else { return std::future::pending().await };
            let gone: Vec<_> = match watch.next(PAGE).await {
                Ok(changes) => changes.iter().filter_map(|change| self.observe(change)).collect(),
                Err(WatchError::Gone { .. }) => self.start_over(),
                // The store is closed.
                Err(_) => {
                    self.watch = None;
                    continue;
                }
            };
            if !gone.is_empty() {
                return gone;
            }
        }
    }

    fn observe(&mut self, change: &Change) -> Option<String> {
        if change.object.namespace() != self.namespace {
            return None;
        }
        let name = change.object.name().to_owned();
        let uid = Robot::from_json(change.object.json()).map(|robot| robot.metadata.uid).unwrap_or_default();
        if change.deleted {
            self.known.remove(&name);
            return Some(name);
        }
        let before = self.known.insert(name.clone(), uid.clone());
        before.filter(|before| *before != uid).map(|_| name)
    }

    /// Reads what is there, and says who is not there any more.
    fn start_over(&mut self) -> Vec<String> {
        let snapshot = self.store.snapshot(&self.robots);
        let revision = snapshot.revision;
        let there: HashMap<_, _> = snapshot
            .range(Some(&self.namespace), None)
            .filter_map(|stored| Robot::from_json(stored.json()).ok())
            .map(|robot| (robot.metadata.name, robot.metadata.uid))
            .collect();
        let before = std::mem::replace(&mut self.known, there);
        self.watch = self.store.watch(WatchScope::Resource(self.robots.clone()), revision).ok();
        before
            .into_iter()
            .filter(|(name, uid)| self.known.get(name) != Some(uid))
            .map(|(name, _)| name)
            .collect()
    }
}
