//! What a sink wants to hear of.

use std::collections::BTreeSet;

use muster_types::EventSink;
use muster_types::event_sink::{EventMode, KubeJobSource, OnExpired, Profile};
use muster_types::metadata::StringMap;

/// What a sink wants to hear of, and in which words.
#[derive(Debug, Clone, PartialEq)]
pub struct Wants {
    /// What its messages look like.
    pub profile: Profile,
    /// How a CloudEvent is written.
    pub mode: EventMode,
    /// What is done about jobs of a cluster whose changes were forgotten.
    pub on_expired: OnExpired,
    /// Its own uid, if it wants to hear of jobs of a cluster.
    kube_jobs: Option<String>,
    /// Of own work; `None` is all of them.
    namespaces: Option<BTreeSet<String>>,
    kinds: Vec<String>,
    transitions: Vec<String>,
    labels: StringMap,
}

impl Wants {
    /// What this sink wants.
    pub fn of(sink: &EventSink) -> Self {
        let spec = &sink.spec;
        let named = spec.sources.work.as_ref().map(|work| work.namespaces.as_slice()).unwrap_or_default();
        let all = named.iter().any(|namespace| namespace == "*");
        let own = || BTreeSet::from([sink.metadata.namespace.clone()]);
        let namespaces = match named {
            _ if !spec.sources.has_work() => BTreeSet::new(),
            [] => own(),
            named => named.iter().cloned().collect(),
        };
        let kube_jobs = spec.sources.kube_jobs.as_ref();
        Self {
            on_expired: kube_jobs.map_or(OnExpired::Resync, KubeJobSource::on_expired),
            kube_jobs: kube_jobs.map(|_| sink.metadata.uid.clone()),
            profile: spec.profile(),
            mode: spec.mode.unwrap_or(EventMode::Structured),
            namespaces: (!all).then_some(namespaces),
            kinds: spec.filter.kinds.clone(),
            transitions: spec.filter.transitions.iter().map(|word| word.to_lowercase()).collect(),
            labels: spec.filter.labels.clone(),
        }
    }

    /// True if objects of a namespace matter.
    pub fn namespace(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|all| all.contains(namespace))
    }

    /// True if jobs matter that were seen for this sink.
    pub fn kube_jobs_of(&self, sink: &str) -> bool {
        self.kube_jobs.as_deref() == Some(sink)
    }

    /// True if objects of a kind matter.
    pub fn kind(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|known| known == kind)
    }

    /// True if an object with these labels matters.
    pub fn labels(&self, labels: &StringMap) -> bool {
        self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
    }

    /// True if the labels of objects need not be read.
    pub fn any_labels(&self) -> bool {
        self.labels.is_empty()
    }

    /// True if a transition with this last word matters.
    pub fn transition(&self, topic: &str) -> bool {
        let word = topic.rsplit('.').next().unwrap_or(topic);
        self.transitions.is_empty() || self.transitions.iter().any(|known| known == word)
    }
}
