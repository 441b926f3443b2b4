//! What was seen of the jobs of a cluster and of their pods, put together job by job.
//!
//! Jobs and pods come over two watches, each in order, in no order between the two. What is read out of both only grows: that a
//! job has begun, that it has run, how often it was tried again. So it does not matter which of two news came first.

use std::collections::{BTreeMap, BTreeSet};

use muster_types::{KubeJobView, KubePodView};

use crate::kube_job::SeenJob;

/// Jobs and the pods of those that have not ended.
#[derive(Debug, Default)]
pub struct JobBoard {
    jobs: BTreeMap<String, SeenJob>,
    /// Jobs whose end was looked at.
    ended: BTreeSet<String>,
    /// By the uid of their job and their own. A pod that is gone stays until its job ends.
    pods: BTreeMap<String, BTreeMap<String, KubePodView>>,
    /// Pods that were there when their job was told not to run: that they end is no failure.
    excused: BTreeSet<String>,
}

impl JobBoard {
    /// A board on which is what was seen before.
    pub fn new(seen: impl IntoIterator<Item = SeenJob>) -> Self {
        let jobs: BTreeMap<_, _> = seen.into_iter().map(|seen| (seen.job.uid.clone(), seen)).collect();
        let ended = jobs.iter().filter(|(_, seen)| seen.job.end.is_some()).map(|(uid, _)| uid.clone());
        Self { ended: ended.collect(), jobs, ..Self::default() }
    }

    /// Takes in a job as it is now.
    pub fn observe_job(&mut self, job: KubeJobView) {
        if job.suspended {
            let there = self.pods_of(&job.uid).filter(|pod| pod.failed.is_none() || pod.deleted);
            let there: Vec<String> = there.map(|pod| pod.uid.clone()).collect();
            self.excused.extend(there);
        }
        let seen = self.jobs.entry(job.uid.clone()).or_default();
        seen.job = job;
    }

    /// Takes in a pod as it is now. Of a job whose end was looked at, pods say nothing any more.
    pub fn observe_pod(&mut self, pod: KubePodView) {
        if self.ended.contains(&pod.job) {
            return;
        }
        if pod.deleted && self.jobs.get(&pod.job).is_some_and(|seen| seen.job.suspended) {
            self.excused.insert(pod.uid.clone());
        }
        let pods = self.pods.entry(pod.job.clone()).or_default();
        let known = pods.entry(pod.uid.clone()).or_default();
        // News may be repeated, and then older ones come behind younger ones.
        *known = KubePodView {
            started: known.started.max(pod.started),
            failed: pod.failed.or(known.failed),
            restarts: known.restarts.max(pod.restarts),
            // One that failed before it was deleted did fail.
            deleted: pod.deleted && (known.deleted || known.failed.is_none()),
            ..pod
        };
    }

    /// A pod is gone. If its job is not known, nobody will ask for it.
    pub fn forget_pod(&mut self, pod: &KubePodView) {
        if !self.jobs.contains_key(&pod.job) {
            self.pods.remove(&pod.job);
        }
    }

    /// A job is gone.
    pub fn forget(&mut self, uid: &str) {
        self.jobs.remove(uid);
        self.ended.remove(uid);
        self.let_pods_go(uid);
    }

    /// Uids of all jobs.
    pub fn uids(&self) -> Vec<String> {
        self.jobs.keys().cloned().collect()
    }

    /// True if a job ended and its pods have not shown all that must have been: they are to be looked at before it is told.
    pub fn needs_pods(&self, uid: &str) -> bool {
        let is_new = |seen: &&SeenJob| seen.job.end.is_some() && !self.ended.contains(uid);
        let Some(seen) = self.jobs.get(uid).filter(is_new) else { return false };
        let started = self.pods_of(uid).any(|pod| pod.started.is_some());
        (!seen.has_run && !started) || seen.job.failed > 0
    }

    /// Everything that was seen of a job; `None` if it was not seen itself. When it has ended, its pods are let go.
    pub fn look(&mut self, uid: &str) -> Option<SeenJob> {
        let before = self.jobs.get(uid)?;
        let job = before.job.clone();
        let restarts = self.pods_of(uid).fold(0_u32, |sum, pod| sum.saturating_add(pod.restarts));
        let latest = self.pods_of(uid).filter_map(|pod| pod.started).max();
        let failures = self.failures(uid, job.failed);
        // The count of the job may be ahead of its pods, which alone say what came before what.
        let retried = latest.map_or(0, |latest| count(failures.iter().filter(|at| **at < latest)));
        let failed = job.failed.max(count(failures.iter()));
        let has_run = before.has_run || latest.is_some() || job.succeeded > 0;
        let seen = SeenJob {
            begun: before.begun || !job.suspended || has_run || job.end.is_some(),
            has_run,
            retried: before.retried.max(retried.saturating_add(restarts)),
            failed: before.failed.max(failed.saturating_add(restarts)),
            job,
        };
        if seen.job.end.is_some() {
            self.let_pods_go(uid);
            self.ended.insert(uid.to_owned());
        }
        self.jobs.insert(uid.to_owned(), seen.clone());
        Some(seen)
    }

    fn let_pods_go(&mut self, uid: &str) {
        for pod in self.pods.remove(uid).unwrap_or_default().keys() {
            self.excused.remove(pod);
        }
    }

    /// When pods failed. Those that were deleted count as far as the job counts them: not those of a job that was suspended.
    fn failures(&self, uid: &str, counted: u32) -> Vec<i64> {
        let of = |deleted: bool| {
            let pods = self.pods_of(uid).filter(move |pod| pod.deleted == deleted);
            pods.filter(|pod| !pod.deleted || !self.excused.contains(&pod.uid)).filter_map(|pod| pod.failed)
        };
        let mut failures: Vec<i64> = of(false).collect();
        let mut deleted: Vec<i64> = of(true).collect();
        deleted.sort_unstable();
        let room = usize::try_from(counted).unwrap_or(usize::MAX).saturating_sub(failures.len());
        failures.extend(deleted.into_iter().take(room));
        failures
    }

    fn pods_of(&self, uid: &str) -> impl Iterator<Item = &KubePodView> {
        self.pods.get(uid).into_iter().flat_map(BTreeMap::values)
    }
}

fn count(items: impl Iterator) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}
