//! Keeps what is seen of the jobs of a cluster for a sink, so that it is told like any other change.
//!
//! What was seen of a job is an object of the store, and each version of it a change in the log. So order, window, confirmation
//! and crashes are those of all changes, and a broker that is away loses nothing that the cluster would have forgotten
//! meanwhile. With what was seen, in the same commit, goes the place up to which it was seen: a stop at any moment goes on there.
//!
//! When the cluster has forgotten that place, everything is listed and compared with what is kept. What differs is what was
//! missed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use muster_ports::clock::Millis;
use muster_ports::kube_jobs::{KubeError, KubeJobs, KubeList, KubeNews};
use muster_ports::publisher::{Journal, PublishError};
use muster_ports::store::{Batch, Draft, Key, Lease, Precondition, ResourceName, Store, Write};
use muster_relay::job_board::JobBoard;
use muster_relay::kube_job::{KUBE_JOBS, KeptJob, SeenJob, Sight};
use muster_types::event_sink::{KubeJobSource, OnExpired};
use tokio::sync::watch;

use super::job_place::JobPlace;
use super::worker::Ending;
use super::{Outside, Settings};

/// Jobs written in one commit.
const SLICE: usize = 500;
/// Least time between two notes of a place up to which nothing happened, in milliseconds.
const QUIET_PAUSE: i64 = 10_000;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// How it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobSourceStanding {
    /// Why jobs are not seen; `None` if they are.
    pub trouble: Option<PublishError>,
    /// What was last forgotten by the cluster.
    pub gap: Option<String>,
}

/// Sees to the jobs of one sink.
pub struct JobSource {
    /// What is outside.
    pub outside: Outside,
    /// The relay's.
    pub settings: Arc<Settings>,
    /// `namespace/name` of the sink.
    pub path: Arc<str>,
    /// Its uid.
    pub uid: String,
    /// What it asks for.
    pub wanted: KubeJobSource,
    /// Where it writes down how far messages were confirmed, if that is not the store alone.
    pub journal: Option<Arc<dyn Journal>>,
    /// Gets how it stands.
    pub standing: watch::Sender<JobSourceStanding>,
}

/// One turn: with the lease, from the place that is written down.
struct Turn<'a> {
    source: &'a JobSource,
    cluster: &'a dyn KubeJobs,
    namespace: String,
    lease: Lease,
    renew_at: Millis,
    board: JobBoard,
    place: JobPlace,
    /// Jobs that changed, to be written with the place.
    writes: Vec<Write>,
    last_note: Millis,
}

impl JobSource {
    /// Sees to it until it is no longer wanted.
    pub async fn run(self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let begun = self.outside.clock.now();
            let trouble = match self.turn().await {
                Err(Ending::Closed) => return,
                Err(Ending::Trouble(trouble)) => trouble,
                Ok(()) | Err(Ending::Changed) => continue,
            };
            tracing::warn!(sink = &*self.path, reason = trouble.reason, %trouble, "jobs of the cluster are not seen");
            self.standing.send_modify(|standing| standing.trouble = Some(trouble));
            let lasted = self.outside.clock.now().0 - begun.0;
            if u128::try_from(lasted).unwrap_or(0) > LONGEST_PAUSE.as_millis() {
                pause = FIRST_PAUSE;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn turn(&self) -> Result<(), Ending> {
        let Some(cluster) = self.outside.kube_jobs.as_deref() else {
            let why = "the server knows no cluster; start it with --cluster-kubeconfig, or in a cluster";
            return Err(PublishError::new("NoCluster", why).into());
        };
        let (store, now) = (&self.outside.store, self.outside.clock.now());
        let name = format!("kubejobs/{}", self.uid);
        let lease = Lease::acquire(store, &name, &self.settings.holder, self.settings.lease, now).await?;
        let kept = kept_jobs(store, &self.uid);
        let place = JobPlace::read(store, &self.uid);
        let asked = &self.wanted.namespace;
        let namespace = if asked.is_empty() { cluster.own_namespace() } else { asked };
        // What is kept of another namespace says nothing about this one.
        let is_other = kept.iter().any(|(_, job)| job.namespace() != namespace);
        let mut turn = Turn {
            source: self,
            cluster,
            namespace: namespace.to_owned(),
            lease,
            renew_at: renewal(&self.settings, now),
            board: JobBoard::new(kept.into_iter().map(|(_, job)| job.seen)),
            place: place.clone().unwrap_or_default(),
            writes: Vec::new(),
            last_note: now,
        };
        match place {
            Some(_) if !is_other => {
                for pod in cluster.pods(&turn.namespace, None).await? {
                    turn.board.observe_pod(pod);
                }
            }
            _ => turn.begin(is_other).await?,
        }
        turn.follow().await
    }
}

fn renewal(settings: &Settings, now: Millis) -> Millis {
    Millis(now.0 + i64::try_from(settings.lease.as_millis() / 3).unwrap_or(i64::MAX))
}

impl Turn<'_> {
    fn store(&self) -> &Store {
        &self.source.outside.store
    }

    /// The first look: at what was when messages were last confirmed, if somebody wrote that down, else at what is now.
    async fn begin(&mut self, is_other: bool) -> Result<(), Ending> {
        let journaled = if is_other { None } else { self.journaled().await? };
        let Some(version) = journaled else {
            let list = self.cluster.list(&self.namespace, None).await?;
            return self.take_list(list, Sight::Before).await;
        };
        match self.cluster.list(&self.namespace, Some(&version)).await {
            Ok(list) => self.take_list(list, Sight::Before).await,
            Err(error @ (KubeError::Expired(_) | KubeError::Future(_))) => self.resync(&error).await,
            Err(error) => Err(error.into()),
        }
    }

    async fn journaled(&self) -> Result<Option<String>, Ending> {
        let Some(journal) = &self.source.journal else { return Ok(None) };
        let said = journal.read().await.map_err(|error| PublishError::new("JournalFailed", error))?;
        let is_version = |said: &String| said.parse::<u64>().is_ok_and(|version| version > 0);
        if let Some(said) = said.as_ref().filter(|said| !is_version(said)) {
            tracing::warn!(
                sink = &*self.source.path,
                said,
                "the journal holds no version; jobs are seen from now on"
            );
        }
        Ok(said.filter(is_version))
    }

    /// The cluster has forgotten what was not seen: everything is compared with what is kept.
    async fn resync(&mut self, error: &KubeError) -> Result<(), Ending> {
        let list = self.cluster.list(&self.namespace, None).await?;
        self.place.expired += 1;
        let there: BTreeSet<&str> = list.jobs.iter().map(|job| job.uid.as_str()).collect();
        let kept = kept_jobs(self.store(), &self.source.uid);
        let is_lost =
            |job: &KeptJob| job.seen.job.end.is_none() && !there.contains(job.seen.job.uid.as_str());
        let vanished = kept.iter().filter(|(_, job)| is_lost(job)).count();
        let done = match self.source.wanted.on_expired() {
            OnExpired::Resync => {
                "all jobs were compared with what was told of them, and what was missed is told"
            }
            OnExpired::Latest => "what was missed is not told",
        };
        let gap = format!("{error}; {done}; {vanished} jobs went without their end being seen");
        tracing::warn!(sink = &*self.source.path, "{gap}");
        self.source.standing.send_modify(|standing| standing.gap = Some(gap));
        self.take_list(list, Sight::AfterGap).await
    }

    /// Everything is as a list says.
    async fn take_list(&mut self, list: KubeList, how: Sight) -> Result<(), Ending> {
        let there: BTreeSet<String> = list.jobs.iter().map(|job| job.uid.clone()).collect();
        for pod in list.pods {
            self.board.observe_pod(pod);
        }
        for job in list.jobs {
            let uid = job.uid.clone();
            self.board.observe_job(job);
            self.keep(&uid, how).await?;
        }
        for uid in self.board.uids().into_iter().filter(|uid| !there.contains(uid)) {
            self.remove(&uid).await?;
        }
        self.place.place = list.place;
        self.note().await
    }

    async fn follow(&mut self) -> Result<(), Ending> {
        let mut watch = self.cluster.watch(&self.namespace, &self.place.place);
        self.source.standing.send_modify(|standing| standing.trouble = None);
        loop {
            let now = self.source.outside.clock.now();
            let left = Duration::from_millis(u64::try_from(self.renew_at.0 - now.0).unwrap_or(0));
            match tokio::time::timeout(left, watch.next()).await {
                Err(_) => self.renew().await?,
                Ok(Ok(news)) => self.take_news(news).await?,
                Ok(Err(error @ KubeError::Expired(_))) => {
                    self.resync(&error).await?;
                    watch = self.cluster.watch(&self.namespace, &self.place.place);
                }
                Ok(Err(error)) => return Err(error.into()),
            }
        }
    }

    async fn renew(&mut self) -> Result<(), Ending> {
        let (settings, now) = (&self.source.settings, self.source.outside.clock.now());
        self.lease = self.lease.renew(&self.source.outside.store, settings.lease, now).await?;
        self.renew_at = renewal(settings, now);
        Ok(())
    }

    async fn take_news(&mut self, news: Vec<KubeNews>) -> Result<(), Ending> {
        for one in news {
            match &one {
                KubeNews::Job { job, gone, .. } => {
                    self.board.observe_job((**job).clone());
                    self.keep(&job.uid, Sight::Live).await?;
                    if *gone {
                        self.remove(&job.uid).await?;
                    }
                }
                KubeNews::Pod { pod, gone, .. } => {
                    self.board.observe_pod((**pod).clone());
                    self.keep(&pod.job, Sight::Live).await?;
                    if *gone {
                        self.board.forget_pod(pod);
                    }
                }
                KubeNews::JobsUpTo(_) | KubeNews::PodsUpTo(_) => {}
            }
            self.place.place.pass(&one);
        }
        let now = self.source.outside.clock.now();
        if !self.writes.is_empty() || now.0 - self.last_note.0 >= QUIET_PAUSE {
            self.note().await?;
        }
        if now >= self.renew_at {
            self.renew().await?;
        }
        Ok(())
    }

    /// Keeps what is seen of a job, if that is new.
    async fn keep(&mut self, uid: &str, how: Sight) -> Result<(), Ending> {
        let key = key_of(&self.source.uid, uid);
        if self.writes.iter().any(|write| *write.key() == key) || self.writes.len() >= SLICE {
            self.flush(false).await?;
        }
        let found = self.store().get(&key);
        let before = found.as_ref().and_then(|stored| parse(stored.json()));
        if how == Sight::Live && self.board.needs_pods(uid) {
            for pod in self.cluster.pods(&self.namespace, Some(uid)).await? {
                self.board.observe_pod(pod);
            }
        }
        let Some(seen) = self.board.look(uid) else { return Ok(()) };
        if before.is_some_and(|before| before.seen == seen) {
            return Ok(());
        }
        let expect = found.map_or(Precondition::Absent, |stored| Precondition::At(stored.revision));
        self.writes.extend(put(key, expect, seen, how));
        Ok(())
    }

    /// A job is gone.
    async fn remove(&mut self, uid: &str) -> Result<(), Ending> {
        self.flush(false).await?;
        self.board.forget(uid);
        let key = key_of(&self.source.uid, uid);
        if self.store().get(&key).is_some() {
            self.writes.push(Write::Delete { key, expect: Precondition::Exists });
        }
        Ok(())
    }

    /// Writes down what was seen, and that it was.
    async fn note(&mut self) -> Result<(), Ending> {
        self.last_note = self.source.outside.clock.now();
        self.flush(true).await
    }

    async fn flush(&mut self, with_place: bool) -> Result<(), Ending> {
        let mut writes = std::mem::take(&mut self.writes);
        if with_place {
            writes.push(self.place.write(self.store(), &self.source.uid));
        }
        if !writes.is_empty() {
            self.store().commit(Batch { checks: vec![self.lease.guard()], writes }).await?;
        }
        Ok(())
    }
}

fn key_of(sink: &str, job: &str) -> Key {
    Key::new(&ResourceName::new(KUBE_JOBS), sink, job)
}

fn parse(json: &[u8]) -> Option<KeptJob> {
    serde_json::from_slice(json).ok()
}

fn put(key: Key, expect: Precondition, seen: SeenJob, how: Sight) -> Option<Write> {
    let draft = Draft::of_object(serde_json::to_vec(&KeptJob::new(seen, how)).ok()?)?;
    Some(Write::Put { key, expect, draft })
}

/// What is kept for a sink.
fn kept_jobs(store: &Store, sink: &str) -> Vec<(Key, KeptJob)> {
    let snapshot = store.snapshot(&ResourceName::new(KUBE_JOBS));
    let stored = snapshot.range(Some(sink), None);
    let key = |path: &Arc<str>| Key { resource: ResourceName::new(KUBE_JOBS), path: path.clone() };
    stored.filter_map(|stored| Some((key(&stored.path), parse(stored.json())?))).collect()
}

/// Forgets what was seen for a sink that is gone.
pub async fn forget_jobs(store: &Store, sink: &str) {
    let keys = kept_jobs(store, sink).into_iter().map(|(key, _)| key);
    let place = Some(JobPlace::key(sink)).filter(|key| store.get(key).is_some());
    let keys: Vec<Key> = keys.chain(place).collect();
    for keys in keys.chunks(SLICE) {
        let delete = |key: &Key| Write::Delete { key: key.clone(), expect: Precondition::Exists };
        let batch = Batch { checks: Vec::new(), writes: keys.iter().map(delete).collect() };
        if let Err(error) = store.commit(batch).await {
            tracing::debug!(sink, %error, "what was seen for a sink that is gone stays behind");
        }
    }
}

impl From<KubeError> for Ending {
    fn from(error: KubeError) -> Self {
        let reason = match error {
            KubeError::Expired(_) => "Expired",
            KubeError::Future(_) => "OtherCluster",
            KubeError::Forbidden(_) => "NotPermitted",
            KubeError::Unreachable(_) => "ClusterUnreachable",
        };
        Self::Trouble(PublishError::new(reason, error))
    }
}
