//! Runs attempts, on one thread and by events alone: it sleeps until a program writes, ends or runs out of time.
//!
//! [`Executor::start`] and [`Executor::stop`] are asked for, [`Executor::poll`] waits and answers with facts. Every attempt
//! that was asked for ends in exactly one of `StartFailed`, `Ended` and `Lost`, and only after nothing of its process groups
//! runs. An end is reported after all output is in the log files; they are complete for every reader, and forced to the disk
//! only if the settings say so.
//!
//! Starting what runs already does nothing. Starting what has a directory but does not run answers `Lost`: it was started
//! before, and is not started twice.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use muster_types::Millis;
use muster_types::attempt::{Cause, Fact, Handle, Launch, LaunchContainer, Limits, Observation};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::attempt::Attempt;
use crate::attempt_dir::{AttemptDirs, DirError};
use crate::cgroup::{Cgroups, Group};
use crate::course::{Course, Order};
use crate::household::{self, Household};
use crate::log_writer::LogWriter;
use crate::procfs::ticks_now;
use crate::settings::Settings;
use crate::spares::Spares;
use crate::spawn::{Spawned, end_at_once, spawn};
use crate::start_failure::{StartFailure, check};
use crate::timers::Timers;

/// A pipe holds this much.
const BUFFER: usize = 64 << 10;
/// Events taken at a time.
const EVENTS: usize = 256;
/// How long what was killed may take to be gone when the executor ends.
const LAST_WAIT: Duration = Duration::from_secs(5);
/// The longest single wait; longer ones are waited for in turns.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// Runs attempts as processes. Dropping it kills them.
pub struct Executor {
    settings: Settings,
    dirs: AttemptDirs,
    spares: Spares,
    epoll: OwnedFd,
    null: OwnedFd,
    buffer: Vec<u8>,
    events: Vec<epoll::Event>,
    attempts: HashMap<u64, Attempt>,
    ids: HashMap<Handle, u64>,
    next_id: u64,
    timers: Timers,
    facts: Vec<Fact>,
    household: Option<Household>,
    cgroups: Cgroups,
    /// Groups of attempts that ended, in which something is still dying.
    dying_groups: Vec<Group>,
    notices: Vec<String>,
}

/// What is watched: the end or the output of one container of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Token {
    id: u64,
    container: usize,
    is_output: bool,
}

impl Executor {
    /// An executor with nothing to do.
    pub fn new(settings: Settings) -> io::Result<Self> {
        let settings = Settings { work_root: std::path::absolute(&settings.work_root)?, ..settings };
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let null = rustix::fs::openat(CWD, "/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let (household, (cgroups, notices)) = if settings.owns_process {
            (Some(Household::adopt()?), Cgroups::detect())
        } else {
            let notice = "limits are not enforced: the executor shares its process".to_string();
            (None, (Cgroups::default(), vec![notice]))
        };
        let dirs = AttemptDirs::new(&settings.work_root);
        // If it cannot be made, every start will say so.
        dirs.prepare().ok();
        Ok(Self {
            dirs,
            spares: Spares::default(),
            epoll,
            null,
            buffer: vec![0; BUFFER],
            events: Vec::with_capacity(EVENTS),
            attempts: HashMap::new(),
            ids: HashMap::new(),
            next_id: 0,
            timers: Timers::default(),
            facts: Vec::new(),
            household,
            cgroups,
            dying_groups: Vec::new(),
            notices,
            settings,
        })
    }

    /// What this machine does not allow, in words.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// How many attempts run.
    pub fn running(&self) -> usize {
        self.attempts.len()
    }

    /// Starts an attempt. What became of it comes with the next [`Executor::poll`].
    pub fn start(&mut self, launch: Launch) {
        if self.ids.contains_key(&launch.handle) {
            return;
        }
        let handle = launch.handle.clone();
        match self.try_start(launch) {
            Ok(()) => {}
            Err(Refusal::Failed(failure)) => self.report(handle, failure.into_observation()),
            Err(Refusal::StartedBefore) => {
                let message = "it was started before and is not started twice".into();
                self.report(handle, Observation::Lost { message });
            }
        }
    }

    /// Asks an attempt to end and kills it after `grace`. Does nothing to one that does not run.
    pub fn stop(&mut self, handle: &Handle, grace: Duration) {
        let Some((id, attempt)) = self.ids.get(handle).and_then(|id| Some((*id, self.attempts.get_mut(id)?)))
        else {
            return;
        };
        let order = attempt.course.end(Cause::Stopped, None, grace, Instant::now());
        attempt.carry_out(order);
        self.settle(id);
    }

    /// Waits for something to happen, at most for `timeout`, deals with it and adds what was seen to `facts`.
    pub fn poll(&mut self, timeout: Option<Duration>, facts: &mut Vec<Fact>) -> io::Result<()> {
        self.wait(if self.facts.is_empty() { timeout } else { Some(Duration::ZERO) })?;
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            self.observe(Token::unpack(event.data.u64()));
        }
        self.events = events;
        self.observe_time(Instant::now());
        facts.append(&mut self.facts);
        Ok(())
    }

    /// When [`Executor::poll`] must be called even if nothing happens. `None`: not before the executor's descriptor is
    /// readable.
    pub fn deadline(&self) -> Option<Instant> {
        if !self.facts.is_empty() {
            return Some(Instant::now());
        }
        let household = self.household.as_ref().and_then(Household::deadline);
        [self.timers.next(), household].into_iter().flatten().min()
    }

    /// Kills everything that runs and waits until it is gone, for a few seconds at most. Reports nothing.
    pub fn kill_all(&mut self) {
        for attempt in self.attempts.values() {
            attempt.carry_out(Some(Order::Kill));
            attempt.group.iter().for_each(Group::kill);
        }
        let deadline = Instant::now() + LAST_WAIT;
        let left = || deadline.saturating_duration_since(Instant::now());
        while !self.attempts.is_empty()
            && !left().is_zero()
            && self.poll(Some(left()), &mut Vec::new()).is_ok()
        {}
        if self.household.is_some() {
            household::end_descendants(deadline);
        }
        for group in self.dying_groups.drain(..) {
            group.remove();
        }
    }

    fn try_start(&mut self, launch: Launch) -> Result<(), Refusal> {
        check(&launch).map_err(Refusal::Failed)?;
        let Launch { handle, containers, timeout, kill_timeout, limits } = launch;
        let work = self.dirs.create(&handle, &mut self.spares).map_err(|error| match error {
            DirError::Exists => Refusal::StartedBefore,
            DirError::Io(error) => {
                Refusal::Failed(StartFailure::of_directory(&self.dirs.path(&handle), &error))
            }
            other @ (DirError::NotFound | DirError::BadName(_)) => Refusal::Failed(
                StartFailure::of_directory(&self.dirs.path(&handle), &io::Error::other(other)),
            ),
        })?;
        let group = self.enter_group(&handle, &limits);
        let now = Instant::now();
        let course = Course::new(now, timeout, kill_timeout, self.settings.leftover_grace);
        let mut attempt = Attempt::new(handle.clone(), course, group, ticks_now());
        let id = self.next_id;
        self.next_id += 1;
        for (index, container) in containers.into_iter().enumerate() {
            match self.spawn(id, index, &container, &work) {
                Ok(spawned) => {
                    let max_bytes = self.settings.log_max_bytes;
                    let log =
                        LogWriter::new(self.dirs.clone(), handle.clone(), container.name.clone(), max_bytes);
                    attempt.join(container.name, spawned, log);
                }
                Err(failure) => {
                    let order = attempt.course.end(Cause::Stopped, None, Duration::ZERO, now);
                    attempt.carry_out(order);
                    attempt.failure = Some(failure);
                    break;
                }
            }
        }
        self.leave_group(attempt.group.as_ref());
        if attempt.failure.is_none() {
            self.report(handle.clone(), Observation::Started);
        }
        if let Some(household) = &mut self.household {
            household.watch(now);
        }
        self.ids.insert(handle, id);
        self.attempts.insert(id, attempt);
        self.settle(id);
        Ok(())
    }

    fn enter_group(&mut self, handle: &Handle, limits: &Limits) -> Option<Group> {
        let entered = self.cgroups.create(&handle.to_string(), limits).and_then(|group| {
            let Some(group) = group else { return Ok(None) };
            group.enter().inspect_err(|_| drop(group.leave())).map(|()| Some(group))
        });
        entered.unwrap_or_else(|error| {
            self.note(format!("limits of some attempts are not enforced: {error}"));
            None
        })
    }

    fn leave_group(&mut self, group: Option<&Group>) {
        let left = group.map_or(Ok(()), |group| group.leave().and_then(|()| group.limit_cpu()));
        if let Err(error) = left {
            self.note(format!("limits of some attempts are not enforced: {error}"));
        }
    }

    fn note(&mut self, notice: String) {
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }

    /// Starts the program of one container and watches it.
    fn spawn(
        &self,
        id: u64,
        container: usize,
        launch: &LaunchContainer,
        work: &Path,
    ) -> Result<Spawned, StartFailure> {
        let spawned = spawn(launch, work, &self.null, &self.settings.default_path)?;
        let data = |is_output| epoll::EventData::new_u64(Token { id, container, is_output }.pack());
        epoll::add(&self.epoll, &spawned.output, data(true), epoll::EventFlags::IN)
            .and_then(|()| epoll::add(&self.epoll, &spawned.pidfd, data(false), epoll::EventFlags::IN))
            .map_err(|errno| {
                end_at_once(spawned.pid);
                StartFailure::of_resources("follow the process", &errno.into())
            })?;
        Ok(spawned)
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let until = self.deadline().map(|at| at.saturating_duration_since(Instant::now()));
        let wait = [timeout, until].into_iter().flatten().min().map(|wait| wait.min(LONGEST_WAIT));
        let timespec = wait.and_then(|wait| Timespec::try_from(wait).ok());
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timespec.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn observe(&mut self, token: Token) {
        let Token { id, container, is_output } = token;
        // What ended meanwhile may still have had events waiting.
        let Some(attempt) = self.attempts.get_mut(&id) else { return };
        let now = Instant::now();
        if is_output {
            attempt.observe_output(container, now, &mut self.buffer);
        } else {
            attempt.observe_exit(container, now, wall_now(), self.settings.drain_timeout, &mut self.buffer);
        }
        self.settle(id);
    }

    fn observe_time(&mut self, now: Instant) {
        for id in self.timers.due(now) {
            if let Some(attempt) = self.attempts.get_mut(&id) {
                attempt.observe_time(now, &mut self.buffer);
                self.settle(id);
            }
        }
        if let Some(household) =
            self.household.as_mut().filter(|own| own.deadline().is_some_and(|at| at <= now))
        {
            let programs: BTreeSet<i32> = self.attempts.values().flat_map(Attempt::pids).collect();
            let oldest = self.attempts.values().map(|attempt| attempt.start_ticks).min();
            household.sweep(&programs, oldest);
            self.dying_groups.retain(|group| !group.remove());
        }
    }

    /// After anything happened to an attempt: sets its timer, or reports its end.
    fn settle(&mut self, id: u64) {
        let Some(attempt) = self.attempts.get_mut(&id) else { return };
        let over = attempt.is_over();
        let deadline = if over { None } else { attempt.deadline() };
        self.timers.rearm(id, &mut attempt.armed, deadline);
        if !over {
            return;
        }
        let Some(mut attempt) = self.attempts.remove(&id) else { return };
        let handle = attempt.handle.clone();
        self.ids.remove(&handle);
        // Also what escaped from its process groups.
        attempt.group.iter().for_each(Group::kill);
        let what = match attempt.failure.take() {
            Some(failure) => {
                // Nothing of it ran to its end: without its mark it can be started again.
                self.dirs.remove(&handle).ok();
                failure.into_observation()
            }
            None => Observation::Ended(attempt.finish(self.settings.sync_logs, Instant::now(), wall_now())),
        };
        self.dying_groups.extend(attempt.group.take().filter(|group| !group.remove()));
        self.report(handle, what);
    }

    fn report(&mut self, handle: Handle, what: Observation) {
        self.facts.push(Fact { handle, at: wall_now(), what });
    }
}

impl AsFd for Executor {
    /// Readable when [`Executor::poll`] has something to deal with.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.kill_all();
    }
}

enum Refusal {
    Failed(StartFailure),
    StartedBefore,
}

impl Token {
    fn pack(self) -> u64 {
        self.id << 16 | (self.container as u64 & 0x7fff) << 1 | u64::from(self.is_output)
    }

    fn unpack(packed: u64) -> Self {
        let container = usize::try_from(packed >> 1 & 0x7fff).unwrap_or(0);
        Self { id: packed >> 16, container, is_output: packed & 1 == 1 }
    }
}

fn wall_now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_as_they_went() {
        for token in [
            Token { id: 0, container: 0, is_output: false },
            Token { id: 1 << 40, container: 300, is_output: true },
        ] {
            assert_eq!(Token::unpack(token.pack()), token);
        }
    }
}
