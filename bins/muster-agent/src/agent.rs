//! The loop of the agent: what the server orders is done once, what happens is written down and reported.

mod attempts;

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use muster_fleet_mqtt::messages::{
    ConnectionNews, Dispatch, Heartbeat, KnownAttempts, Response, Status, VERSION,
};
use muster_fleet_mqtt::{Connection, Event, Will};
use muster_ports::clock::{Clock as _, SystemClock};
use muster_runtime_process::{ProcessRuntime, Settings};
use muster_types::attempt::{Fact, Handle, Observation};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use self::attempts::Fetched;
use crate::args::Args;
use crate::artifacts::{self, Interrupt};
use crate::device::device_info;
use crate::identity::Identity;
use crate::private;
use crate::records::{Record, Records};
use crate::sent_places::SentPlaces;
use crate::tails::read_tails;
use crate::uploads::{Upload, upload};

/// Between two looks at how long the server was silent.
const TICK: Duration = Duration::from_secs(1);
/// Time for attempts to end when the agent ends.
const LAST_GRACE: Duration = Duration::from_secs(5);
/// A report about what is not known is not counted.
const UNCOUNTED: u64 = 0;

/// Runs the agent until it is told to end.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let work_dir = choose_work_dir(&args)?;
    let _lock = lock(&work_dir)?;
    let identity = Identity::of(&args, &work_dir)?;
    let attempts = work_dir.join("attempts");
    private::make_attempts_dir(&attempts).with_context(|| describe(&work_dir))?;
    std::fs::create_dir_all(attempts.join("cache")).with_context(|| describe(&work_dir))?;
    let records = Records::open(&work_dir.join("records")).with_context(|| describe(&work_dir))?;
    let places = SentPlaces::open(&work_dir.join("sent")).with_context(|| describe(&work_dir))?;
    let credential = identity.credential().await?;
    let settings =
        Settings::this_program(&attempts, &["shepherd"]).that_go_on(args.orphans_end_after.as_std());
    let (runtime, facts) = ProcessRuntime::new(settings)?;
    let will = Will {
        topic: identity.topics.connection(&identity.id),
        payload: encode(&ConnectionNews { connected: false }),
    };
    let filters = identity.topics.robot_filters(&identity.id);
    let login = identity.login(&credential);
    let (connection, events) =
        Connection::open(&identity.url, &login, Some(will), filters, identity.trust.clone());
    let (uploads, told) = mpsc::unbounded_channel();
    let (done, uploaded) = mpsc::unbounded_channel();
    let (fetched, ready) = mpsc::unbounded_channel();
    tokio::spawn(upload(
        identity.id.clone(),
        identity.topics.clone(),
        connection.clone(),
        runtime.logs(),
        places.clone(),
        told,
        done,
    ));
    let authority = args.ca_file.as_deref().and_then(|path| std::path::absolute(path).ok());
    let mut agent = Agent {
        identity,
        authority: authority.and_then(|path| Some(path.to_str()?.to_owned())),
        credential,
        records,
        places,
        runtime,
        connection,
        uploads,
        ends: Vec::new(),
        fetching: BTreeMap::new(),
        fetched,
        silent_since: Some(Instant::now()),
    };
    agent.take_up_former();
    agent.work(args.heartbeat.as_std(), facts, events, uploaded, ready).await
}

/// How an attempt ended, which is said after its log.
struct LastReport {
    handle: Handle,
    what: Observation,
    /// How often the log was asked for since, each time from an earlier place: only the last time counts.
    asked: u32,
}

struct Agent {
    identity: Identity,
    /// The file with the authority that it trusts, if that is not one of this machine's.
    authority: Option<String>,
    credential: String,
    records: Records,
    places: SentPlaces,
    runtime: ProcessRuntime,
    connection: Connection,
    uploads: mpsc::UnboundedSender<Upload>,
    /// Ends that are reported when the log was sent.
    ends: Vec<LastReport>,
    /// Attempts whose files are being fetched.
    fetching: BTreeMap<Handle, Interrupt>,
    fetched: mpsc::UnboundedSender<Fetched>,
    /// Since when there is no connection.
    silent_since: Option<Instant>,
}

impl Agent {
    /// What a former agent ran may still run, or have ended: whoever ran it says so. What it was still fetching files for did not start.
    fn take_up_former(&self) {
        let open: Vec<&Record> = self.records.iter().filter(|record| !record.ended).collect();
        for record in &open {
            artifacts::remove(&self.runtime.staging(&record.handle));
            let sent = self.places.get(&record.handle, &record.containers);
            drop(self.uploads.send(Upload::Follow(record.handle.clone(), sent)));
        }
        if !open.is_empty() {
            tracing::info!(count = open.len(), "asking what became of the attempts of a former agent");
        }
        self.runtime.take_up(open.into_iter().map(|record| record.handle.clone()));
    }

    async fn work(
        &mut self,
        every: Duration,
        mut facts: mpsc::UnboundedReceiver<Fact>,
        mut events: mpsc::Receiver<Event>,
        mut uploaded: mpsc::UnboundedReceiver<(Handle, u32)>,
        mut fetched: mpsc::UnboundedReceiver<Fetched>,
    ) -> anyhow::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut heartbeat = interval(every.max(Duration::from_millis(100)));
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => self.take(event).await?,
                    None => anyhow::bail!("the connection ended"),
                },
                Some(fact) = facts.recv() => self.observe(fact).await?,
                Some((handle, number)) = uploaded.recv() => self.report_end(&handle, number).await?,
                Some(fetched) = fetched.recv() => self.start_fetched(fetched).await?,
                _ = heartbeat.tick() => self.beat().await,
                _ = tick.tick(), if self.silent_since.is_some() => self.look_at_silence().await?,
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
            }
        }
        tracing::info!("ending");
        self.runtime.shutdown(LAST_GRACE).await;
        while let Ok(fact) = facts.try_recv() {
            if let Some(status) = self.note(&fact.handle, &fact.what)?
                && self.silent_since.is_none()
            {
                let topic = self.topic_of(&status);
                let sent = self.connection.publish_confirmed(&topic, encode(&status));
                drop(tokio::time::timeout(LAST_GRACE, sent).await);
            }
        }
        Ok(())
    }

    async fn take(&mut self, event: Event) -> anyhow::Result<()> {
        match event {
            Event::Connected => {
                self.silent_since = None;
                self.runtime.observe_hearing(true);
                tracing::info!(robot = self.identity.id, "connected");
                self.introduce().await;
            }
            Event::Disconnected { why, refused } => {
                self.silent_since.get_or_insert_with(Instant::now);
                self.runtime.observe_hearing(false);
                if refused {
                    tracing::error!(
                        "the broker refuses this robot: it was removed, or its credential is of another server; \
                         remove the file credential in the work directory and give --token-file to join again"
                    );
                } else {
                    tracing::warn!(%why, "no connection to the broker; trying again");
                }
            }
            Event::Message { topic, payload } => {
                if topic == self.identity.topics.dispatch(&self.identity.id) {
                    match serde_json::from_slice::<Dispatch>(&payload) {
                        Ok(dispatch) => self.carry_out(dispatch).await?,
                        Err(error) => tracing::warn!(%error, "a dispatch cannot be read and is ignored"),
                    }
                } else if let Ok(response) = serde_json::from_slice::<Response>(&payload) {
                    tracing::info!(success = response.success, "the fleet says: {}", response.message);
                }
            }
        }
        Ok(())
    }

    /// After each connection: that it is there, that it lives, and what it knows. The server asks about what it waits for.
    async fn introduce(&self) {
        let (topics, id) = (&self.identity.topics, &self.identity.id);
        let news = encode(&ConnectionNews { connected: true });
        self.connection.publish(&topics.connection(id), news, None).await;
        self.beat().await;
        let attempts = self.records.iter().map(|record| record.handle.clone()).collect();
        let known = encode(&KnownAttempts { version: VERSION, attempts });
        self.connection.publish(&topics.state(id), known, None).await;
    }

    async fn repeat(&self, record: &Record) {
        for status in &record.reports {
            self.send(status).await;
        }
    }

    async fn beat(&self) {
        if self.silent_since.is_some() {
            return;
        }
        let heartbeat = Heartbeat {
            version: VERSION,
            robot_id: self.identity.id.clone(),
            token: self.credential.clone(),
            device_info: device_info(),
            running: self.records.running(),
        };
        self.connection.publish(&self.identity.topics.heartbeat(), encode(&heartbeat), None).await;
    }

    /// Attempts that are not to run without a server do not begin when it was away for too long. Those that run are ended by whoever
    /// runs them, also when there is no agent.
    async fn look_at_silence(&mut self) -> anyhow::Result<()> {
        let Some(since) = self.silent_since else { return Ok(()) };
        let is_late = |most: Duration| since.elapsed() >= most;
        let late = self.fetching.keys().filter_map(|handle| self.records.get(handle));
        let late = late.filter(|record| record.stop_after_silence.is_some_and(is_late));
        let late: Vec<_> = late.map(|record| (record.handle.clone(), record.kill_timeout)).collect();
        for (handle, grace) in late {
            tracing::warn!(%handle, "stopped: the server was away for too long");
            self.stop(&handle, grace).await?;
        }
        Ok(())
    }

    /// Writes down what happened to an attempt, then reports it.
    async fn tell(&mut self, handle: &Handle, what: &Observation) -> anyhow::Result<()> {
        if let Some(status) = self.note(handle, what)? {
            self.send(&status).await;
        }
        Ok(())
    }

    /// Writes down what happened to an attempt; nothing if it is not known or has ended.
    fn note(&mut self, handle: &Handle, what: &Observation) -> anyhow::Result<Option<Status>> {
        let Some(mut record) = self.records.get(handle).filter(|record| !record.ended).cloned() else {
            return Ok(None);
        };
        let sequence = record.reports.len() as u64 + 1;
        let mut status = Status::of(handle, &self.identity.id, sequence, Some(what), SystemClock.now());
        if matches!(what, Observation::Ended(_)) {
            status.log_tails = read_tails(&self.runtime.logs(), handle, &record.containers);
        }
        record.ended = match what {
            Observation::Created
            | Observation::Waiting { .. }
            | Observation::Started
            | Observation::Removed => false,
            Observation::Blocked { .. }
            | Observation::Returned { .. }
            | Observation::StartFailed { .. }
            | Observation::Ended(_)
            | Observation::Lost { .. } => true,
        };
        record.reports.push(status.clone());
        self.records.put(record).context("cannot write down what happened; is the disk full?")?;
        Ok(Some(status))
    }

    /// Reports on an attempt of which nothing is written down.
    async fn say(&self, handle: &Handle, what: &Observation) -> anyhow::Result<()> {
        self.send(&Status::of(handle, &self.identity.id, UNCOUNTED, Some(what), SystemClock.now())).await;
        Ok(())
    }

    /// Sends a report, unless there is no connection: then it is sent with the next one.
    async fn send(&self, status: &Status) {
        if self.silent_since.is_none() {
            self.connection.publish(&self.topic_of(status), encode(status), None).await;
        }
    }

    fn topic_of(&self, status: &Status) -> String {
        self.identity.topics.status(&self.identity.id, &status.task_uid)
    }
}

fn choose_work_dir(args: &Args) -> anyhow::Result<PathBuf> {
    let home = || std::env::home_dir().map(|home| home.join(".k8s4r/tasks"));
    let dir = args.work_dir.clone().or_else(home).context("there is no home directory; give --work-dir")?;
    private::make_work_dir(&dir).with_context(|| describe(&dir))?;
    std::path::absolute(&dir).with_context(|| describe(&dir))
}

/// One agent at a time works in a directory.
fn lock(work_dir: &Path) -> anyhow::Result<File> {
    let file = private::open(&work_dir.join("lock"));
    let file = file.with_context(|| describe(work_dir))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            anyhow::bail!("another agent works in {}; end it, or choose --work-dir", work_dir.display())
        }
        Err(TryLockError::Error(error)) => Err(error).with_context(|| describe(work_dir)),
    }
}

fn describe(dir: &Path) -> String {
    format!("cannot use the work directory {}; choose another with --work-dir", dir.display())
}

fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    serde_json::to_vec(message).unwrap_or_default()
}
