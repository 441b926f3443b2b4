//! What pages are made of: the store, the index of tasks, the time, and who looks.

use std::sync::Arc;
use std::time::Duration;

use muster_ports::clock::Clock;
use muster_ports::pages::{FrontDoor, Visitor};
use muster_ports::store::{Key, ResourceName, Store, Stored};
use muster_types::{JsonText, Object, Resource, Timestamp};
use parking_lot::RwLockReadGuard;

use crate::index::{Index, Tasks};
use crate::query::Query;

/// How long a page waits for all tasks to be read before it is sent without them.
const PATIENCE: Duration = Duration::from_millis(50);

/// Where a kind is kept.
pub fn resource_of<S: Resource>() -> ResourceName {
    ResourceName::new(&format!("{}.{}", S::NAMES.plural, S::NAMES.group))
}

/// What every page can read.
#[derive(Clone)]
pub struct Site {
    /// All objects.
    pub store: Store,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// All tasks, in order.
    pub index: Arc<Index>,
}

impl Site {
    /// The time, to the second.
    pub fn now(&self) -> Timestamp {
        self.clock.now().to_timestamp()
    }

    /// One object.
    pub fn get<S: Resource>(&self, namespace: &str, name: &str) -> Option<Object<S>> {
        read(&self.store.get(&Key::new(&resource_of::<S>(), namespace, name))?)
    }

    /// The first objects of a kind, in order of namespace and name, and how many there are.
    pub fn first<S: Resource>(&self, most: usize) -> (Vec<Object<S>>, usize) {
        let snapshot = self.store.snapshot(&resource_of::<S>());
        let found = snapshot.range(None, None).filter_map(|stored| read(stored)).take(most).collect();
        (found, snapshot.len())
    }

    /// Objects of a namespace whose names begin like this, at most so many.
    pub fn beginning<S: Resource>(&self, namespace: &str, beginning: &str, most: usize) -> Vec<Object<S>> {
        let snapshot = self.store.snapshot(&resource_of::<S>());
        let prefix = format!("{namespace}/{beginning}");
        let found = snapshot.range(Some(namespace), Some(&prefix));
        let found = found.take_while(|stored| stored.path.starts_with(&prefix));
        found.filter_map(|stored| read(stored)).take(most).collect()
    }
}

fn read<S: Resource>(stored: &Stored) -> Option<Object<S>> {
    Object::from_json(stored.json()).ok()
}

/// A page that is asked for.
#[derive(Clone)]
pub struct Visit {
    /// What pages are made of.
    pub site: Site,
    /// The API, for what only it knows and for every change.
    pub door: Arc<dyn FrontDoor>,
    /// Who looks.
    pub user: Visitor,
    /// Their token.
    pub secret: Arc<str>,
    /// The path below the console, without its first slash.
    pub path: String,
    /// What the address says besides.
    pub query: Query,
    /// True if the page is followed: then it comes late rather than without what it shows.
    pub is_followed: bool,
}

impl Visit {
    /// True if whoever looks may change something.
    pub fn may_write(&self) -> bool {
        self.user.may_write
    }

    /// True if the visitor may change sinks, robots and other infrastructure.
    pub fn may_administer(&self) -> bool {
        self.user.may_administer
    }

    /// All tasks; `None` if they are still being read. A page without them is filled by whoever follows it.
    pub async fn tasks(&self) -> Option<RwLockReadGuard<'_, Tasks>> {
        let patience = if self.is_followed { Duration::MAX } else { PATIENCE };
        self.site.index.tasks(patience).await
    }

    /// The parts of the path.
    pub fn segments(&self) -> Vec<&str> {
        self.path.split('/').filter(|part| !part.is_empty()).collect()
    }
}
