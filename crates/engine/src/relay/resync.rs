//! Changes were forgotten before they were told: what is there is told instead.
//!
//! Every object that changed since gives the transitions it must have had, under the ids they would have had. Whoever keeps
//! ids sees each once. Of objects that were deleted meanwhile nothing is known.

use std::sync::Arc;

use muster_ports::store::{ResourceName, Revision, Snapshot, Store, Stored};
use muster_relay::classify::{Observed, classify};
use muster_relay::kube_job::KUBE_JOBS;
use muster_relay::wants::Wants;
use muster_types::{Message, Millis};

/// Objects looked at in one go.
const SLICE: usize = 512;

/// A walk through everything that is there.
pub struct Resync {
    /// Objects that did not change behind this are left out.
    since: u64,
    /// Everything up to here is told when the walk is over.
    pub upto: u64,
    left: Vec<(ResourceName, Snapshot)>,
    place: Option<Arc<str>>,
}

impl Resync {
    /// A walk through the store as it is now.
    pub fn new(store: &Store, since: u64) -> Self {
        let resources = store.counts().into_iter().map(|(resource, _)| resource);
        let is_told = |name: &str| name == KUBE_JOBS || !name.ends_with(".internal");
        let resources = resources.filter(|resource| is_told(resource.as_str()));
        let upto = store.revision().0;
        let left = resources.map(|resource| (resource.clone(), store.snapshot(&resource))).collect();
        Self { since, upto, left, place: None }
    }

    /// The messages of the next objects; `None` if there are no more.
    pub fn next(&mut self, wants: &Wants, now: Millis) -> Option<Vec<Message>> {
        let (resource, snapshot) = self.left.last()?;
        let slice: Vec<_> = snapshot.range(None, self.place.as_deref()).take(SLICE).cloned().collect();
        // Those that changed behind the end of the walk are told of twice, under the same ids.
        let changed = slice.iter().filter(|stored| stored.revision.0 > self.since);
        let messages = changed.flat_map(|stored| messages_of(wants, resource, stored, now)).collect();
        match slice.last() {
            Some(last) if slice.len() == SLICE => self.place = Some(last.path.clone()),
            _ => {
                self.place = None;
                self.left.pop();
            }
        }
        Some(messages)
    }
}

fn messages_of(wants: &Wants, resource: &ResourceName, stored: &Stored, now: Millis) -> Vec<Message> {
    let Revision(revision) = stored.revision;
    let observed = Observed {
        resource: resource.as_str(),
        namespace: stored.namespace(),
        revision,
        at: now,
        before: None,
        after: stored.json(),
        deleted: false,
    };
    classify(wants, &observed).unwrap_or_default()
}
