//! What becomes of one attempt: it is written down, its files are fetched, it is started once, its log is sent, its end is
//! reported.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_fleet_mqtt::messages::{Action, Dispatch};
use muster_ports::clock::{Clock as _, SystemClock};
use muster_ports::runtime::Runtime as _;
use muster_types::attempt::{EXECUTOR_LOST, Ending, Fact, Handle, Launch, Observation};

use super::{Agent, LastReport};
use crate::artifacts::{self, FetchFailure, Interrupt, fetch_all};
use crate::records::Record;
use crate::uploads::Upload;

/// What attempts are given of the agent's environment.
const PASSED_ON: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];
/// Names a file with the authority of the server's certificate.
const AUTHORITY_VARIABLE: &str = "MUSTER_CA_FILE";
/// What an attempt waits for while its files come.
const DOWNLOADING: &str = "Downloading";

/// An attempt whose files were fetched, or could not be.
pub(super) struct Fetched {
    launch: Launch,
    outcome: Result<(), FetchFailure>,
}

impl Agent {
    pub(super) async fn carry_out(&mut self, dispatch: Dispatch) -> anyhow::Result<()> {
        let handle = dispatch.handle();
        match (dispatch.action, dispatch.task) {
            (Action::Create, Some(launch)) if launch.handle == handle => {
                self.create(launch, dispatch.ran, &dispatch.log_offsets).await
            }
            (Action::Create, _) => {
                tracing::warn!(%handle, "a dispatch without a task of its own is ignored");
                Ok(())
            }
            (Action::Delete, _) => match dispatch.grace {
                Some(grace) => self.end(&handle, grace, &dispatch.log_offsets).await,
                None => self.delete(&handle).await,
            },
        }
    }

    async fn create(
        &mut self,
        mut launch: Launch,
        ran: bool,
        log_offsets: &BTreeMap<String, u64>,
    ) -> anyhow::Result<()> {
        let handle = launch.handle.clone();
        if self.records.get(&handle).is_some() {
            self.answer(&handle, log_offsets).await;
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
        let artifacts = robot.map(|robot| robot.artifacts.clone()).unwrap_or_default();
        self.records.put(record)?;
        if ran {
            return self.tell(&handle, &lost("the robot does not know it any more")).await;
        }
        // This acknowledges the dispatch: the attempt is written down.
        self.tell(&handle, &Observation::Created).await?;
        give_environment(&mut launch, self.authority.as_deref());
        if artifacts.is_empty() {
            self.runtime.start(launch);
            return Ok(());
        }
        let message = format!("{} artifacts are fetched", artifacts.len());
        self.tell(&handle, &Observation::Waiting { reason: DOWNLOADING.to_owned(), message }).await?;
        let interrupt = Interrupt::default();
        self.fetching.insert(handle.clone(), interrupt.clone());
        let (dir, fetched) = (self.runtime.staging(&handle), self.fetched.clone());
        tokio::task::spawn_blocking(move || {
            let outcome = fetch_all(&artifacts, &dir, &interrupt);
            // Nobody listens when the agent is ending.
            drop(fetched.send(Fetched { launch, outcome }));
        });
        Ok(())
    }

    /// The files of an attempt are there, or cannot be had.
    pub(super) async fn start_fetched(&mut self, fetched: Fetched) -> anyhow::Result<()> {
        let Fetched { launch, outcome } = fetched;
        let handle = launch.handle.clone();
        if self.fetching.remove(&handle).is_none() {
            // It was stopped meanwhile.
            artifacts::remove(&self.runtime.staging(&handle));
            return Ok(());
        }
        match outcome {
            Ok(()) => self.runtime.start(launch),
            Err(failure) => self.tell(&handle, &failure.into_observation()).await?,
        }
        Ok(())
    }

    /// The server asks how it stands: its log goes first, and everything that was said of it again, in order.
    async fn answer(&mut self, handle: &Handle, log_offsets: &BTreeMap<String, u64>) {
        let Some(record) = self.records.get(handle) else { return };
        let sent =
            record.containers.iter().map(|name| (name.clone(), log_offsets.get(name).copied().unwrap_or(0)));
        drop(self.uploads.send(Upload::Follow(handle.clone(), sent.collect())));
        if record.ended {
            drop(self.uploads.send(Upload::Finish(handle.clone(), 0)));
            return;
        }
        if let Some(last) = self.ends.iter_mut().find(|last| last.handle == *handle) {
            // The end waits for this log as well, which may begin before what was sent.
            last.asked += 1;
            drop(self.uploads.send(Upload::Finish(handle.clone(), last.asked)));
        }
        self.repeat(record).await;
    }

    /// Ends an attempt for a server that waits to hear of its end, also of one that has ended before.
    async fn end(
        &mut self,
        handle: &Handle,
        grace: Duration,
        log_offsets: &BTreeMap<String, u64>,
    ) -> anyhow::Result<()> {
        match self.records.get(handle) {
            Some(record) if !record.ended => {
                tracing::info!(%handle, "told to end it");
                self.stop(handle, grace).await
            }
            Some(_) => {
                self.answer(handle, log_offsets).await;
                Ok(())
            }
            None => {
                self.records.forget(handle)?;
                self.say(handle, &lost("the robot does not know it")).await
            }
        }
    }

    /// Lets go of an attempt that the server does not wait for. One that runs is ended first.
    async fn delete(&mut self, handle: &Handle) -> anyhow::Result<()> {
        match self.records.get(handle) {
            Some(record) if !record.ended => {
                let grace = record.kill_timeout;
                tracing::info!(%handle, "told to end it");
                self.stop(handle, grace).await
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

    /// Ends an attempt, also one whose files are still being fetched.
    pub(super) async fn stop(&mut self, handle: &Handle, grace: Duration) -> anyhow::Result<()> {
        if let Some(interrupt) = self.fetching.remove(handle) {
            interrupt.set();
            let ending = Ending::before_start(SystemClock.now());
            return self.tell(handle, &Observation::Ended(ending)).await;
        }
        self.runtime.stop(handle, grace);
        Ok(())
    }

    pub(super) async fn observe(&mut self, fact: Fact) -> anyhow::Result<()> {
        let Fact { handle, what, .. } = fact;
        let Some(record) = self.records.get(&handle) else { return Ok(()) };
        match &what {
            // It was taken up, and a former agent has said so.
            Observation::Started if record.has_started() => {
                tracing::info!(%handle, "it goes on");
                Ok(())
            }
            Observation::Started => {
                let sent = record.containers.iter().map(|name| (name.clone(), 0)).collect();
                drop(self.uploads.send(Upload::Follow(handle.clone(), sent)));
                self.tell(&handle, &what).await
            }
            Observation::Ended(_) | Observation::Lost { .. } | Observation::StartFailed { .. } => {
                if let Observation::Ended(Ending { message: Some(why), .. }) = &what {
                    tracing::warn!(%handle, %why, "it ended");
                }
                // Its log goes first.
                drop(self.uploads.send(Upload::Finish(handle.clone(), 0)));
                self.ends.push(LastReport { handle, what, asked: 0 });
                Ok(())
            }
            Observation::Created
            | Observation::Waiting { .. }
            | Observation::Blocked { .. }
            | Observation::Removed
            | Observation::Returned { .. } => self.tell(&handle, &what).await,
        }
    }

    /// The log of an attempt that ended was sent, as far as it was asked for up to a number.
    pub(super) async fn report_end(&mut self, handle: &Handle, number: u32) -> anyhow::Result<()> {
        let Some(place) = self.ends.iter().position(|last| last.handle == *handle) else {
            // It had ended before, and the server asked again.
            if let Some(record) = self.records.get(handle) {
                self.repeat(record).await;
            }
            return Ok(());
        };
        if number < self.ends[place].asked {
            return Ok(());
        }
        let LastReport { handle, what, .. } = self.ends.swap_remove(place);
        self.tell(&handle, &what).await
    }
}

fn lost(why: &str) -> Observation {
    Observation::Lost { reason: EXECUTOR_LOST.to_owned(), message: why.to_owned() }
}

/// Programs find what this machine offers, unless the task says otherwise. The home of the agent is not that of other users, and an image
/// has an environment of its own. Whom the agent trusts, its programs trust, if they reach the server at all.
fn give_environment(launch: &mut Launch, authority: Option<&str>) {
    let other_user = launch.robot.as_ref().is_some_and(|robot| !robot.user.is_empty());
    let passed_on = if launch.image.is_some() { &[][..] } else { &PASSED_ON[..] };
    let passed_on = passed_on.iter().filter(|name| !other_user || **name != "HOME");
    let offered = passed_on.filter_map(|name| Some((*name, std::env::var(name).ok()?)));
    let authority = authority.map(|path| (AUTHORITY_VARIABLE, path.to_owned()));
    for (name, value) in offered.chain(authority) {
        for container in &mut launch.containers {
            if !container.env.iter().any(|(known, _)| known == name) {
                container.env.push((name.to_owned(), value.clone()));
            }
        }
    }
}
