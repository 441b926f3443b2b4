//! A cluster in memory that has jobs and pods, remembers its changes, and can be told to forget them.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_types::{KubeJobView, KubePodView};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{KubeError, KubeJobs, KubeList, KubeNews, KubePlace, KubeWatch};
use crate::publisher::Boxed;

/// A cluster in memory. Clones are the same cluster.
#[derive(Debug, Clone, Default)]
pub struct MemoryKubeJobs(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    version: u64,
    /// Changes up to here are forgotten.
    forgotten: u64,
    news: Vec<(u64, KubeNews)>,
    jobs: BTreeMap<String, KubeJobView>,
    pods: BTreeMap<String, KubePodView>,
    down: bool,
    lists: u32,
}

impl MemoryKubeJobs {
    /// Makes or changes a job.
    pub fn put_job(&self, job: &KubeJobView) {
        self.change(|state, version| {
            state.jobs.insert(job.uid.clone(), job.clone());
            KubeNews::Job { job: Box::new(job.clone()), version, gone: false }
        });
    }

    /// Deletes a job and its pods.
    pub fn delete_job(&self, uid: &str) {
        let Some(job) = self.0.state.lock().jobs.remove(uid) else { return };
        self.change(|state, version| {
            state.pods.retain(|_, pod| pod.job != uid);
            KubeNews::Job { job: Box::new(job), version, gone: true }
        });
    }

    /// Makes or changes a pod.
    pub fn put_pod(&self, pod: &KubePodView) {
        self.change(|state, version| {
            state.pods.insert(pod.uid.clone(), pod.clone());
            KubeNews::Pod { pod: Box::new(pod.clone()), version, gone: false }
        });
    }

    /// Forgets all changes so far.
    pub fn forget(&self) {
        let mut state = self.0.state.lock();
        state.version += 1;
        state.forgotten = state.version;
    }

    /// Cuts all watches and answers nothing, or answers again.
    pub fn set_down(&self, down: bool) {
        self.0.state.lock().down = down;
        self.0.changed.notify_waiters();
    }

    /// The newest version.
    pub fn version(&self) -> u64 {
        self.0.state.lock().version
    }

    /// How often everything was listed.
    pub fn lists(&self) -> u32 {
        self.0.state.lock().lists
    }

    fn change(&self, change: impl FnOnce(&mut State, String) -> KubeNews) {
        let mut state = self.0.state.lock();
        state.version += 1;
        let version = state.version;
        let news = change(&mut state, version.to_string());
        state.news.push((version, news));
        drop(state);
        self.0.changed.notify_waiters();
    }
}

impl State {
    fn check(&self) -> Result<(), KubeError> {
        if self.down { Err(KubeError::Unreachable("nobody listens".to_owned())) } else { Ok(()) }
    }
}

impl KubeJobs for MemoryKubeJobs {
    fn own_namespace(&self) -> &'static str {
        "own"
    }

    /// Only the present, or a past in which nothing was.
    fn list<'a>(&'a self, namespace: &'a str, at: Option<&'a str>) -> Boxed<'a, Result<KubeList, KubeError>> {
        Box::pin(async move {
            let mut state = self.0.state.lock();
            state.check()?;
            state.lists += 1;
            let mut list =
                KubeList { place: KubePlace::at(&state.version.to_string()), ..KubeList::default() };
            if let Some(at) = at {
                let version = at.parse::<u64>().unwrap_or(0);
                if version > state.version {
                    return Err(KubeError::Future(at.to_owned()));
                }
                if version < state.forgotten {
                    return Err(KubeError::Expired(at.to_owned()));
                }
                list.place = KubePlace::at(at);
                let mut jobs = BTreeMap::new();
                for (_, news) in state.news.iter().filter(|(then, _)| *then <= version) {
                    match news {
                        KubeNews::Job { job, gone: false, .. } => drop(jobs.insert(job.uid.clone(), job)),
                        KubeNews::Job { job, .. } => drop(jobs.remove(&job.uid)),
                        _ => {}
                    }
                }
                list.jobs = jobs.into_values().map(|job| (**job).clone()).collect();
            } else {
                list.jobs = state.jobs.values().cloned().collect();
                list.pods = state.pods.values().cloned().collect();
            }
            list.jobs.retain(|job| job.namespace == namespace);
            Ok(list)
        })
    }

    fn pods<'a>(
        &'a self,
        _: &'a str,
        job: Option<&'a str>,
    ) -> Boxed<'a, Result<Vec<KubePodView>, KubeError>> {
        Box::pin(async move {
            let state = self.0.state.lock();
            state.check()?;
            let pods = state.pods.values().filter(|pod| job.is_none_or(|job| pod.job == job));
            Ok(pods.cloned().collect())
        })
    }

    fn watch(&self, namespace: &str, from: &KubePlace) -> Box<dyn KubeWatch> {
        Box::new(MemoryWatch {
            cluster: self.0.clone(),
            namespace: namespace.to_owned(),
            place: from.version(),
        })
    }
}

struct MemoryWatch {
    cluster: Arc<Shared>,
    namespace: String,
    place: u64,
}

impl KubeWatch for MemoryWatch {
    fn next(&mut self) -> Boxed<'_, Result<Vec<KubeNews>, KubeError>> {
        Box::pin(async {
            loop {
                let cluster = self.cluster.clone();
                let changed = cluster.changed.notified();
                let news = self.look()?;
                if !news.is_empty() {
                    return Ok(news);
                }
                changed.await;
            }
        })
    }
}

impl MemoryWatch {
    fn look(&mut self) -> Result<Vec<KubeNews>, KubeError> {
        let state = self.cluster.state.lock();
        state.check()?;
        if self.place < state.forgotten {
            return Err(KubeError::Expired(self.place.to_string()));
        }
        let is_near = |news: &KubeNews| match news {
            KubeNews::Job { job, .. } => job.namespace == self.namespace,
            _ => true,
        };
        let behind = state.news.iter().filter(|(version, news)| *version > self.place && is_near(news));
        let mut news: Vec<KubeNews> = behind.map(|(_, news)| news.clone()).collect();
        if self.place < state.version {
            let version = state.version.to_string();
            news.extend([KubeNews::JobsUpTo(version.clone()), KubeNews::PodsUpTo(version)]);
        }
        self.place = state.version;
        Ok(news)
    }
}
