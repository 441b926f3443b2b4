//! Sees to one sink for as long as it is there: one turn after the other, with pauses after trouble.

use std::sync::Arc;
use std::time::Duration;

use muster_ports::publisher::PublishError;
use muster_ports::store::{CommitError, LeaseError, WatchError};
use muster_types::EventSink;
use muster_types::event_sink::{Journal, KubeJobSource, REPLAY_REQUEST, TEST_REQUEST};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::cursor::Cursor;
use super::job_source::{JobSource, JobSourceStanding, forget_jobs};
use super::standing::Standing;
use super::telling::Telling;
use super::{Outside, Seen, Settings, hold_name};

/// Pause after the first trouble; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A turn that lasted longer than this, in milliseconds, was no failure to connect.
const LASTING: i64 = 10_000;

/// Why a turn ended.
#[derive(Debug)]
pub enum Ending {
    /// The sink was changed, or is gone.
    Changed,
    /// The store closed.
    Closed,
    /// Messages cannot be sent.
    Trouble(PublishError),
}

impl From<PublishError> for Ending {
    fn from(error: PublishError) -> Self {
        Self::Trouble(error)
    }
}

impl From<CommitError> for Ending {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Closed => Self::Closed,
            CommitError::Conflict { .. } => {
                Self::Trouble(PublishError::new("LeaseLost", "another server tells about changes now"))
            }
            error => Self::Trouble(PublishError::new("StoreFailed", error)),
        }
    }
}

impl From<LeaseError> for Ending {
    fn from(error: LeaseError) -> Self {
        match error {
            LeaseError::Store(error) => error.into(),
            error @ (LeaseError::Held { .. } | LeaseError::Lost) => Self::Trouble(PublishError::new(
                "Standby",
                format!("another server tells about changes: {error}"),
            )),
        }
    }
}

impl From<WatchError> for Ending {
    fn from(error: WatchError) -> Self {
        match error {
            WatchError::Closed => Self::Closed,
            error => Self::Trouble(PublishError::new("FellBehind", error)),
        }
    }
}

/// What a worker has.
pub struct Worker {
    pub outside: Outside,
    pub settings: Arc<Settings>,
    pub path: Arc<str>,
    pub uid: String,
    news: watch::Receiver<Option<Arc<Seen>>>,
    jobs: Option<Jobs>,
}

/// What sees to the jobs of a cluster for the sink.
struct Jobs {
    wanted: (KubeJobSource, Option<Journal>),
    standing: watch::Receiver<JobSourceStanding>,
    /// It ends with this.
    _running: JoinSet<()>,
}

impl Worker {
    /// A worker for a sink.
    pub fn new(
        outside: Outside,
        settings: Arc<Settings>,
        path: Arc<str>,
        uid: String,
        news: watch::Receiver<Option<Arc<Seen>>>,
    ) -> Self {
        Self { outside, settings, path, uid, news, jobs: None }
    }

    /// The sink as it is now; `None` if it is gone.
    pub fn seen(&mut self) -> Option<Arc<Seen>> {
        self.news.borrow_and_update().clone()
    }

    /// Waits for the sink to change. Can be given up without loss.
    pub async fn changed(&mut self) {
        if self.news.changed().await.is_err() {
            // Nobody will tell any more; whoever started this ends it.
            std::future::pending::<()>().await;
        }
    }

    /// Sees to the sink until it is gone.
    pub async fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        let mut standing: Option<Standing> = None;
        while let Some(seen) = self.seen() {
            let standing =
                standing.get_or_insert_with(|| Standing::new(&self.path, seen.sink.status.clone()));
            self.tend_jobs(&seen.sink);
            if seen.sink.spec.suspend {
                self.rest(standing).await;
                continue;
            }
            let begun = self.outside.clock.now();
            let ending = Telling::new(&mut self, standing, seen.clone()).run().await;
            match ending {
                Ending::Closed => return,
                Ending::Changed => pause = FIRST_PAUSE,
                Ending::Trouble(error) => {
                    let now = self.outside.clock.now();
                    if now.0 - begun.0 > LASTING {
                        pause = FIRST_PAUSE;
                    }
                    tracing::warn!(sink = &*self.path, reason = error.reason, %error, "a sink takes no messages");
                    standing.disconnected(&error, now);
                    if let Some(jobs) = self.jobs() {
                        standing.watching(&jobs, now);
                    }
                    // Where a new sink begins is written down first: its own revision says it until then.
                    if Cursor::read(&self.outside.store, &self.uid).is_some() {
                        standing.write(&self.outside.store, now).await;
                    }
                    self.pause(&seen.sink, pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
        self.forget().await;
    }

    /// Jobs of a cluster are seen also while the sink takes no messages, or is told to pause.
    fn tend_jobs(&mut self, sink: &EventSink) {
        let wanted = sink.spec.sources.kube_jobs.clone().map(|wanted| (wanted, sink.spec.journal.clone()));
        if self.jobs.as_ref().map(|jobs| &jobs.wanted) == wanted.as_ref() {
            return;
        }
        self.jobs = wanted.map(|wanted| {
            let (sender, standing) = watch::channel(JobSourceStanding::default());
            let source = JobSource {
                outside: self.outside.clone(),
                settings: self.settings.clone(),
                path: self.path.clone(),
                uid: self.uid.clone(),
                wanted: wanted.0.clone(),
                // A journal that cannot be had is told by the turn.
                journal: self.outside.sinks.journal(sink).ok().flatten(),
                standing: sender,
            };
            let mut running = JoinSet::new();
            running.spawn(source.run());
            Jobs { wanted, standing, _running: running }
        });
    }

    /// How it stands with jobs of a cluster, if they are wanted.
    pub fn jobs(&self) -> Option<JobSourceStanding> {
        self.jobs.as_ref().map(|jobs| jobs.standing.borrow().clone())
    }

    async fn rest(&mut self, standing: &mut Standing) {
        self.outside.store.hold(&hold_name(&self.uid), None);
        let now = self.outside.clock.now();
        standing.paused(now);
        standing.write(&self.outside.store, now).await;
        self.changed().await;
    }

    /// Waits, unless the user changes something about the sink.
    async fn pause(&mut self, sink: &EventSink, pause: Duration) {
        let mut over = self.outside.clock.pause(pause);
        loop {
            tokio::select! {
                biased;
                () = &mut over => return,
                () = self.changed() => {}
            }
            if self.seen().is_none_or(|now| is_changed(sink, &now.sink)) {
                return;
            }
        }
    }

    /// The sink is gone, and so is what was held for it.
    async fn forget(mut self) {
        self.outside.store.hold(&hold_name(&self.uid), None);
        if self.jobs.take().is_some() {
            forget_jobs(&self.outside.store, &self.uid).await;
        }
        if let Err(error) = Cursor::remove(&self.outside.store, &self.uid).await {
            tracing::debug!(sink = &*self.path, %error, "the cursor of a sink that is gone stays behind");
        }
    }
}

/// True if a user changed what a sink is to do.
pub fn is_changed(before: &EventSink, after: &EventSink) -> bool {
    let request = |sink: &EventSink, name: &str| sink.metadata.annotations.get(name).cloned();
    let differs = |name| request(before, name) != request(after, name);
    before.spec != after.spec || differs(TEST_REQUEST) || differs(REPLAY_REQUEST)
}
