//! The runtime as the engine sees it: orders that never wait, facts on a channel, and the files of attempts.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use muster_exec::{AttemptDirs, WhenDeserted};
use muster_ports::runtime::{Fact, Handle, Launch};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

use crate::link::Link;
use crate::live_logs::LiveLogs;
use crate::supervise::{Service, supervise};

/// Beyond the grace given to attempts, how long their ends may take to be heard of.
const LAST_FACTS: Duration = Duration::from_secs(5);

/// How processes are run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program that becomes the shepherd: it calls [`shepherd_main`](crate::shepherd_main).
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// How attempts are run, and where.
    pub executor: muster_exec::Settings,
    /// How long a shepherd of an earlier server may take to end, or to answer.
    pub patience: Duration,
}

impl Settings {
    /// Attempts below `work_root`, run by this same program called with `arguments`.
    pub fn this_program(work_root: impl Into<PathBuf>, arguments: &[&str]) -> Self {
        Self {
            // The running file itself, even if another was put in its place since.
            program: "/proc/self/exe".into(),
            arguments: arguments.iter().map(OsString::from).collect(),
            executor: muster_exec::Settings::new(work_root),
            patience: Duration::from_secs(10),
        }
    }

    /// The same, but attempts go on when this process is gone, for as long as is said, and are taken up by the next one with
    /// [`ProcessRuntime::take_up`].
    #[must_use]
    pub fn that_go_on(mut self, at_most: Duration) -> Self {
        self.executor.when_deserted = WhenDeserted::GoOn { at_most };
        self
    }
}

/// Runs attempts as local processes. Dropping it kills them, unless they are to go on.
pub struct ProcessRuntime {
    link: Arc<Link>,
    dirs: AttemptDirs,
    service: watch::Sender<Service>,
    /// What becomes of the shepherd when nobody says anything else.
    when_dropped: Service,
    supervisor: Mutex<Option<JoinHandle<()>>>,
}

impl ProcessRuntime {
    /// A runtime and what it observes. Must be called from within tokio; the shepherd is started in the background.
    ///
    /// The channel has no bound of its own: it holds at most two facts for each attempt that was started, and the caller
    /// bounds those.
    pub fn new(mut settings: Settings) -> io::Result<(Self, UnboundedReceiver<Fact>)> {
        settings.executor.work_root = std::path::absolute(&settings.executor.work_root)?;
        let (sender, facts) = unbounded_channel();
        let link = Arc::new(Link::new(sender));
        let dirs = AttemptDirs::new(&settings.executor.work_root);
        let when_dropped = match settings.executor.when_deserted {
            WhenDeserted::End => Service::Ended,
            WhenDeserted::GoOn { .. } => Service::Left,
        };
        let (service, wanted) = watch::channel(Service::Wanted);
        let supervisor = Mutex::new(Some(tokio::spawn(supervise(Arc::clone(&link), settings, wanted))));
        Ok((Self { link, dirs, service, when_dropped, supervisor }, facts))
    }

    /// Starts an attempt. Does not wait; every start is answered by one `StartFailed`, `Ended` or `Lost`, except that
    /// starting what has not been answered for yet does nothing. What was started in an earlier life is `Lost`.
    pub fn start(&self, launch: Launch) {
        self.link.start([launch]);
    }

    /// Starts several attempts with one message.
    pub fn start_all(&self, launches: impl IntoIterator<Item = Launch>) {
        self.link.start(launches);
    }

    /// Asks what became of attempts of an earlier life. Each is answered for as if it had been started: `Started` if it runs, and what
    /// becomes of it later; or how it ended; or that it is `Lost`. Does not wait.
    pub fn take_up(&self, handles: impl IntoIterator<Item = Handle>) {
        self.link.take_up(handles);
    }

    /// Whether somebody is there who sees what becomes of attempts: those that may not run unseen end after a while.
    pub fn observe_hearing(&self, hears: bool) {
        self.link.observe_hearing(hears);
    }

    /// Attempts may run up to a moment of [`machine_time`](crate::machine_time), in place of the one before. At that moment whatever runs
    /// is killed, also if this process is paused or cannot say anything; then each is `Lost`. Without a first moment there is no such
    /// limit.
    pub fn run_until(&self, moment: Duration) {
        self.link.run_until(moment);
    }

    /// Takes back an attempt that has not started: it is answered by `Returned`. Does nothing to one that has, or is not known.
    pub fn recall(&self, handle: &Handle) {
        self.link.recall(handle);
    }

    /// Asks an attempt to end, and kills it after `grace`. Does not wait; does nothing if it does not run.
    pub fn stop(&self, handle: &Handle, grace: Duration) {
        self.link.stop(handle, grace);
    }

    /// The attempts that were started and not answered for.
    pub fn open(&self) -> Vec<Handle> {
        self.link.open()
    }

    /// What this machine does not allow, in words; known once the shepherd runs.
    pub fn notices(&self) -> Vec<String> {
        self.link.notices()
    }

    /// The process that runs attempts, while there is one.
    pub fn shepherd(&self) -> Option<u32> {
        self.link.shepherd()
    }

    /// Stops everything, waits until it has ended, and for the shepherd to be gone. The channel of facts ends with the last
    /// one; attempts that did not end in time are `Lost`.
    pub async fn shutdown(&self, grace: Duration) {
        self.link.close(grace);
        self.end_within(grace).await;
    }

    /// The same because the server is told to stop: each attempt has its own grace, but no more than `at_most`. They end with the
    /// reason [`SERVER_STOPPED`](muster_ports::runtime::SERVER_STOPPED), which uses up no limit of a retry policy.
    pub async fn stop_with_server(&self, at_most: Duration) {
        self.link.stop_with_server(at_most);
        self.end_within(at_most).await;
    }

    async fn end_within(&self, grace: Duration) {
        let patience = grace.saturating_add(LAST_FACTS);
        if tokio::time::timeout(patience, self.link.until_idle()).await.is_err() {
            tracing::warn!(left = self.link.open().len(), "attempts did not end in time and are killed");
        }
        self.end().await;
    }

    /// Kills what runs, and waits for it and for the shepherd to be gone. What ran is `Lost`.
    pub async fn end(&self) {
        self.service.send_replace(Service::Ended);
        let mut supervisor = self.supervisor.lock().await;
        if let Some(running) = supervisor.as_mut() {
            // It stays there until it has ended: a caller that gives up leaves the wait to the next one.
            let ended = running.await;
            *supervisor = None;
            if let Err(error) = ended {
                tracing::error!(%error, "the supervisor of the shepherd failed");
            }
        }
    }

    /// Where files can be put before an attempt with artifacts starts: the directory becomes the one its programs run in.
    pub fn staging(&self, handle: &Handle) -> PathBuf {
        self.dirs.staging(handle)
    }

    /// The logs of attempts, until they are kept elsewhere.
    pub fn logs(&self) -> LiveLogs {
        LiveLogs::new(self.dirs.clone())
    }

    pub(crate) fn dirs(&self) -> &AttemptDirs {
        &self.dirs
    }

    /// Whether an attempt was started and not answered for.
    pub(crate) fn is_open(&self, handle: &Handle) -> bool {
        self.link.is_open(handle)
    }
}

impl Drop for ProcessRuntime {
    fn drop(&mut self) {
        // After a shutdown nobody listens.
        self.service.send_replace(self.when_dropped);
    }
}
