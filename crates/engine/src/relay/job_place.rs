//! Up to where the jobs of a cluster were seen for a sink, written down in the store beside what was seen.

use muster_ports::kube_jobs::KubePlace;
use muster_ports::store::{Draft, Key, Precondition, ResourceName, Store, Write};
use serde::{Deserialize, Serialize};

/// Where it is kept, by the uid of the sink.
pub const JOB_PLACES: &str = "kubejobplaces.internal";

/// Up to where jobs were seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobPlace {
    /// Everything up to here was seen, and what was seen is kept.
    pub place: KubePlace,
    /// How often the cluster had forgotten changes before they were seen.
    #[serde(default)]
    pub expired: u64,
}

impl JobPlace {
    /// Where it is kept.
    pub fn key(sink: &str) -> Key {
        Key::new(&ResourceName::new(JOB_PLACES), "", sink)
    }

    /// What is written down; `None` if nothing is, or if it cannot be read.
    pub fn read(store: &Store, sink: &str) -> Option<Self> {
        Self::parse(store.get(&Self::key(sink))?.json())
    }

    /// What a stored version says.
    pub fn parse(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }

    /// The write that keeps it.
    pub fn write(&self, store: &Store, sink: &str) -> Write {
        let key = Self::key(sink);
        let expect = store.get(&key).map_or(Precondition::Absent, |found| Precondition::At(found.revision));
        let fields = serde_json::to_string(self).unwrap_or_default();
        // The revision goes into a field of its own, before the others.
        let draft = Draft::joined("{\"revision\":", &fields.replacen('{', ",", 1));
        Write::Put { key, expect, draft }
    }
}
