//! The loop of the agent: what the server orders is done once, what happens is written down and reported.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use muster_fleet_mqtt::messages::{
    Action, ConnectionNews, Dispatch, Heartbeat, KnownAttempts, Response, Status, VERSION,
};
use muster_fleet_mqtt::{Connection, Event, Will};
use muster_ports::clock::{Clock as _, SystemClock};
use muster_ports::runtime::Runtime as _;
use muster_runtime_process::{ProcessRuntime, Settings};
use muster_types::attempt::{EXECUTOR_LOST, Fact, Handle, Launch, Observation};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::args::Args;
use crate::device::device_info;
use crate::identity::Identity;
use crate::records::{Record, Records};
use crate::uploads::{Upload, upload};

/// Between two looks at how long the server was silent.
const TICK: Duration = Duration::from_secs(1);
/// Time for attempts to end when the agent ends.
const LAST_GRACE: Duration = Duration::from_secs(5);
/// What attempts are given of the agent's environment.
const PASSED_ON: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];
/// A report about what is not known is not counted.
const UNCOUNTED: u64 = 0;

/// Runs the agent until it is told to end.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let work_dir = choose_work_dir(&args)?;
    let identity = Identity::of(&args, &work_dir)?;
    let attempts = work_dir.join("attempts");
    std::fs::create_dir_all(attempts.join("cache")).with_context(|| describe(&work_dir))?;
    let records = Records::open(&work_dir.join("records")).with_context(|| describe(&work_dir))?;
    let credential = identity.credential().await?;
    let (runtime, facts) = ProcessRuntime::new(Settings::this_program(&attempts, &["shepherd"]))?;
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
    let logs = runtime.logs();
    tokio::spawn(upload(identity.id.clone(), identity.topics.clone(), connection.clone(), logs, told, done));
    let mut agent = Agent {
        identity,
        credential,
        records,
        runtime,
        connection,
        uploads,
        ends: Vec::new(),
        silent_since: Some(Instant::now()),
    };
    agent.settle_former()?;
    agent.work(args.heartbeat.as_std(), facts, events, uploaded).await
}

struct Agent {
    identity: Identity,
    credential: String,
    records: Records,
    runtime: ProcessRuntime,
    connection: Connection,
    uploads: mpsc::UnboundedSender<Upload>,
    /// Ends that are reported when the log was sent.
    ends: Vec<(Handle, Observation)>,
    /// Since when there is no connection.
    silent_since: Option<Instant>,
}

impl Agent {
    /// What a former agent ran ended with it.
    fn settle_former(&mut self) -> anyhow::Result<()> {
        let open: Vec<Handle> =
            self.records.iter().filter(|record| !record.ended).map(|record| record.handle.clone()).collect();
        for handle in open {
            self.note(&handle, &lost("the agent was restarted"))?;
        }
        Ok(())
    }

    async fn work(
        &mut self,
        every: Duration,
        mut facts: mpsc::UnboundedReceiver<Fact>,
        mut events: mpsc::Receiver<Event>,
        mut uploaded: mpsc::UnboundedReceiver<Handle>,
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
                Some(handle) = uploaded.recv() => self.report_end(&handle).await?,
                _ = heartbeat.tick() => self.beat().await,
                _ = tick.tick(), if self.silent_since.is_some() => self.look_at_silence(),
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
                tracing::info!(robot = self.identity.id, "connected");
                self.introduce().await;
            }
            Event::Disconnected { why, refused } => {
                self.silent_since.get_or_insert_with(Instant::now);
                if refused {
                    tracing::error!(
                        "the broker refuses this robot: it was removed, or its credential is of another server; \
                         remove the file credential in the work directory and give --token to join again"
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

    async fn carry_out(&mut self, dispatch: Dispatch) -> anyhow::Result<()> {
        let handle = dispatch.handle();
        match (dispatch.action, dispatch.task) {
            (Action::Create, Some(launch)) if launch.handle == handle => {
                self.create(launch, dispatch.ran, &dispatch.log_offsets).await
            }
            (Action::Create, _) => {
                tracing::warn!(%handle, "a dispatch without a task of its own is ignored");
                Ok(())
            }
            (Action::Delete, _) => self.delete(&handle, dispatch.grace).await,
        }
    }

    async fn create(
        &mut self,
        mut launch: Launch,
        ran: bool,
        log_offsets: &BTreeMap<String, u64>,
    ) -> anyhow::Result<()> {
        let handle = launch.handle.clone();
        if let Some(record) = self.records.get(&handle) {
            // The server asks how it stands: its log goes first, and everything that was said of it again, in order.
            let sent = record
                .containers
                .iter()
                .map(|name| (name.clone(), log_offsets.get(name).copied().unwrap_or(0)));
            drop(self.uploads.send(Upload::Follow(handle.clone(), sent.collect())));
            if record.ended {
                drop(self.uploads.send(Upload::Finish(handle)));
            } else {
                self.repeat(record).await;
            }
            return Ok(());
        }
        if self.records.is_forgotten(&handle) {
            return self.say(&handle, &lost("it was run and forgotten")).await;
        }
        let robot = launch.robot.as_ref();
        let record = Record {
            handle: handle.clone(),
            containers: launch.containers.iter().map(|container| container.name.clone()).collect(),
            kill_timeout: launch.kill_timeout,
            stop_after_silence: robot.and_then(|robot| robot.stop_after_silence),
            reports: Vec::new(),
            ended: false,
        };
        let artifacts = robot.is_some_and(|robot| !robot.artifacts.is_empty());
        self.records.put(record)?;
        if ran {
            return self.tell(&handle, &lost("the robot does not know it any more")).await;
        }
        // This acknowledges the dispatch: the attempt is written down.
        self.tell(&handle, &Observation::Created).await?;
        if artifacts {
            let what = Observation::StartFailed {
                reason: "ArtifactsNotSupported".to_owned(),
                message: "this agent fetches no artifacts; let the command fetch what it needs".to_owned(),
                transient: false,
            };
            return self.tell(&handle, &what).await;
        }
        give_environment(&mut launch);
        self.runtime.start(launch);
        Ok(())
    }

    async fn delete(&mut self, handle: &Handle, grace: Option<Duration>) -> anyhow::Result<()> {
        match self.records.get(handle) {
            Some(record) if !record.ended => {
                let grace = grace.unwrap_or(record.kill_timeout);
                tracing::info!(%handle, "told to end it");
                self.runtime.stop(handle, grace);
                Ok(())
            }
            Some(_) => {
                self.records.forget(handle)?;
                if let Err(error) = self.runtime.remove(handle) {
                    tracing::warn!(%handle, %error, "what an attempt left cannot be removed");
                }
                Ok(())
            }
            None => {
                let known = self.records.is_forgotten(handle);
                self.records.forget(handle)?;
                if known { Ok(()) } else { self.say(handle, &lost("the robot does not know it")).await }
            }
        }
    }

    async fn observe(&mut self, fact: Fact) -> anyhow::Result<()> {
        match &fact.what {
            Observation::Started => {
                let containers = self.records.get(&fact.handle).map(|record| record.containers.clone());
                let sent = containers.into_iter().flatten().map(|name| (name, 0)).collect();
                drop(self.uploads.send(Upload::Follow(fact.handle.clone(), sent)));
                self.tell(&fact.handle, &fact.what).await
            }
            Observation::Ended(_) => {
                // Its log goes first.
                drop(self.uploads.send(Upload::Finish(fact.handle.clone())));
                self.ends.push((fact.handle, fact.what));
                Ok(())
            }
            Observation::Created
            | Observation::Waiting { .. }
            | Observation::Blocked { .. }
            | Observation::StartFailed { .. }
            | Observation::Lost { .. } => self.tell(&fact.handle, &fact.what).await,
        }
    }

    async fn report_end(&mut self, handle: &Handle) -> anyhow::Result<()> {
        let Some(place) = self.ends.iter().position(|(ended, _)| ended == handle) else {
            // It had ended before, and the server asked again.
            if let Some(record) = self.records.get(handle) {
                self.repeat(record).await;
            }
            return Ok(());
        };
        let (handle, what) = self.ends.swap_remove(place);
        self.tell(&handle, &what).await
    }

    /// Programs that are not to run without a server are stopped when it was away for too long.
    fn look_at_silence(&self) {
        let Some(since) = self.silent_since else { return };
        for record in self.records.iter().filter(|record| !record.ended) {
            if record.stop_after_silence.is_some_and(|most| since.elapsed() >= most) {
                tracing::warn!(handle = %record.handle, "stopped: the server was away for too long");
                self.runtime.stop(&record.handle, record.kill_timeout);
            }
        }
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
        let status = Status::of(handle, &self.identity.id, sequence, Some(what), SystemClock.now());
        record.ended = match what {
            Observation::Created | Observation::Waiting { .. } | Observation::Started => false,
            Observation::Blocked { .. }
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

fn lost(why: &str) -> Observation {
    Observation::Lost { reason: EXECUTOR_LOST.to_owned(), message: why.to_owned() }
}

/// Programs find what this machine offers, unless the task says otherwise.
fn give_environment(launch: &mut Launch) {
    for container in &mut launch.containers {
        for name in PASSED_ON {
            if let Ok(value) = std::env::var(name)
                && !container.env.iter().any(|(known, _)| known == name)
            {
                container.env.push((name.to_owned(), value));
            }
        }
    }
}

fn choose_work_dir(args: &Args) -> anyhow::Result<PathBuf> {
    let home = || std::env::home_dir().map(|home| home.join(".k8s4r/tasks"));
    let dir = args.work_dir.clone().or_else(home).context("there is no home directory; give --work-dir")?;
    std::fs::create_dir_all(&dir).with_context(|| describe(&dir))?;
    std::path::absolute(&dir).with_context(|| describe(&dir))
}

fn describe(dir: &Path) -> String {
    format!("cannot use the work directory {}; choose another with --work-dir", dir.display())
}

fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    serde_json::to_vec(message).unwrap_or_default()
}
