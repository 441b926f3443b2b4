//! Runs attempts, by events alone: it sleeps until a program writes, ends or runs out of time. All of that happens on one thread; while
//! several run, others start programs for it and see short ones through.
//!
//! [`Executor::start`] and [`Executor::stop`] are asked for, [`Executor::poll`] waits and answers with facts. Every attempt
//! that was asked for ends in exactly one of `StartFailed`, `Ended` and `Lost`, and only after nothing of its process groups
//! runs. An end is reported after all output is in the log files; they are complete for every reader, and forced to the disk
//! only if the settings say so.
//!
//! Starting what runs already does nothing. Starting what has a directory but does not run answers `Lost`: it was started
//! before, and is not started twice.
//!
//! No more run at a time than the settings allow. What is asked for beyond that waits, the highest priority first, and starts as
//! soon as another has ended. Until then it can be taken back ([`Executor::recall`]), and stopping it ends it without containers;
//! in both cases nothing of it ever ran.

mod deserted;
mod images;
mod starting;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use muster_types::Millis;
use muster_types::attempt::{Cause, Ending, Fact, Handle, Launch, Observation};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::attempt::Attempt;
use crate::attempt_dir::AttemptDirs;
use crate::cgroup::{Cgroups, Group};
use crate::course::{Course, Order};
use crate::household::{self, Household};
use crate::moment::wall_now;
use crate::program_path::FoundPrograms;
use crate::queue::Queue;
use crate::settings::Settings;
use crate::spares::Spares;
use crate::spawn::mark_of;
use crate::spawner::Spawner;
use crate::start_failure::Refusal;
use crate::timers::Timers;
use crate::token::{REMOVAL, SPAWNER, Token};
use crate::unmarked::Unmarked;
use crate::when_deserted::WhenDeserted;

/// A pipe holds this much.
const BUFFER: usize = 64 << 10;
/// Events taken at a time.
const EVENTS: usize = 256;
/// How long what was killed may take to be gone when the executor ends.
const LAST_WAIT: Duration = Duration::from_secs(5);
/// Between two looks for what an attempt left outside of its process groups, when that was told to end.
const AGAIN: Duration = Duration::from_millis(2);
/// How long an orphan that is exiting holds up the end of an attempt: it may belong to another one.
const EXIT_WAIT: Duration = Duration::from_millis(50);
/// The longest single wait; longer ones are waited for in turns.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// Runs attempts as processes. Dropping it kills them.
pub struct Executor {
    settings: Settings,
    dirs: AttemptDirs,
    spares: Arc<Mutex<Spares>>,
    epoll: OwnedFd,
    null: Arc<OwnedFd>,
    /// Made when an attempt comes while another runs.
    spawner: Option<Spawner>,
    /// It could not be.
    starts_alone: bool,
    programs: FoundPrograms,
    buffer: Vec<u8>,
    events: Vec<epoll::Event>,
    readable_others: Vec<u16>,
    attempts: HashMap<u64, Attempt>,
    ids: HashMap<Handle, u64>,
    /// What waits for a slot, and how many are in use.
    queue: Arc<Queue>,
    /// What ended lately and may have no directory to say so.
    unmarked: Unmarked,
    /// Attempts of which output was left for later.
    unread: BTreeSet<u64>,
    next_id: u64,
    timers: Timers,
    facts: Vec<Fact>,
    household: Option<Household>,
    cgroups: Cgroups,
    /// Since when nobody is there to see attempts; none if somebody is, or need not be.
    silent_since: Option<Instant>,
    /// Groups of attempts that ended, in which something is still dying.
    dying_groups: Vec<Group>,
    notices: Vec<String>,
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
        let mut executor = Self {
            dirs,
            spares: Arc::default(),
            epoll,
            null: null.into(),
            spawner: None,
            starts_alone: false,
            programs: FoundPrograms::default(),
            buffer: vec![0; BUFFER],
            events: Vec::with_capacity(EVENTS),
            readable_others: Vec::new(),
            attempts: HashMap::new(),
            ids: HashMap::new(),
            queue: Arc::new(Queue::new(settings.max_running)),
            unmarked: Unmarked::default(),
            unread: BTreeSet::new(),
            next_id: 0,
            timers: Timers::default(),
            facts: Vec::new(),
            household,
            cgroups,
            silent_since: None,
            dying_groups: Vec::new(),
            notices,
            settings,
        };
        if executor.settings.owns_process {
            executor.sweep_containers();
        }
        Ok(executor)
    }

    /// What this machine does not allow, in words.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// How many attempts run.
    pub fn running(&self) -> usize {
        self.queue.running()
    }

    /// How many attempts wait for others to end.
    pub fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    /// Starts an attempt, now or when there is room for it. What became of it comes with a later [`Executor::poll`].
    pub fn start(&mut self, launch: Launch) {
        if self.ids.contains_key(&launch.handle) {
            return;
        }
        if self.unmarked.contains(&launch.handle) {
            return self.report(launch.handle, Refusal::StartedBefore.into_observation());
        }
        self.queue.push(launch);
        self.start_waiting();
    }

    /// Takes back an attempt that waits for a slot. Does nothing to one that a program was started for, or that is not known.
    pub fn recall(&mut self, handle: &Handle) {
        if let Some(Launch { handle, prefetch, .. }) = self.queue.remove(handle) {
            self.report(handle, Observation::Returned { prefetch });
        }
    }

    /// Asks an attempt to end and kills it after `grace`. Does nothing to one that neither runs nor waits.
    pub fn stop(&mut self, handle: &Handle, grace: Duration) {
        if self.queue.remove(handle).is_some() {
            self.report(handle.clone(), Observation::Ended(Ending::before_start(wall_now())));
            return;
        }
        if self.queue.is_begun(handle) {
            self.hold_starts();
            self.go_on_starting();
        }
        if let Some(id) = self.ids.get(handle) {
            self.order(*id, |course| course.end(Cause::Stopped, None, grace, Instant::now()));
        }
    }

    /// Does to an attempt what its course then says.
    fn order(&mut self, id: u64, decide: impl FnOnce(&mut Course) -> Option<Order>) {
        let Some(attempt) = self.attempts.get_mut(&id) else { return };
        let order = decide(&mut attempt.course);
        attempt.carry_out(order);
        self.settle(id);
    }

    /// Stops all that run and all that wait; none of the latter starts meanwhile.
    pub fn stop_all(&mut self, grace: Duration) {
        for launch in self.queue.remove_all() {
            self.report(launch.handle, Observation::Ended(Ending::before_start(wall_now())));
        }
        self.hold_starts();
        self.go_on_starting();
        for handle in self.ids.keys().cloned().collect::<Vec<_>>() {
            self.stop(&handle, grace);
        }
    }

    /// Makes [`Executor::poll`] come back also when something else can be read, and say so by this name, which is any but the
    /// last one.
    pub fn watch(&mut self, other: impl AsFd, name: u16) -> io::Result<()> {
        let data = epoll::EventData::new_u64(Token::of_other(name));
        Ok(epoll::add(&self.epoll, other, data, epoll::EventFlags::IN)?)
    }

    /// No longer.
    pub fn forget(&mut self, other: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, other)?)
    }

    /// The names of what else can be read, as the last [`Executor::poll`] found it.
    pub fn readable_others(&self) -> &[u16] {
        &self.readable_others
    }

    /// Adds to `facts` what was seen since the last [`Executor::poll`], without waiting.
    pub fn take_facts(&mut self, facts: &mut Vec<Fact>) {
        facts.append(&mut self.facts);
    }

    /// Waits for something to happen, at most for `timeout`, deals with it and adds what was seen to `facts`.
    pub fn poll(&mut self, timeout: Option<Duration>, facts: &mut Vec<Fact>) -> io::Result<()> {
        self.wait(if self.facts.is_empty() { timeout } else { Some(Duration::ZERO) })?;
        let mut events = std::mem::take(&mut self.events);
        self.readable_others.clear();
        for event in events.drain(..) {
            match Token::unpack(event.data.u64()) {
                Ok(token) => self.observe(token),
                Err(SPAWNER) => self.take_begun(),
                Err(other) => self.readable_others.push(other),
            }
            self.start_waiting();
        }
        self.events = events;
        for id in std::mem::take(&mut self.unread) {
            if let Some(attempt) = self.attempts.get_mut(&id) {
                attempt.observe_unread(Instant::now(), wall_now(), &mut self.buffer);
                self.settle(id);
            }
        }
        self.observe_time(Instant::now());
        self.start_waiting();
        facts.append(&mut self.facts);
        Ok(())
    }

    /// When [`Executor::poll`] must be called even if nothing happens. `None`: not before the executor's descriptor is
    /// readable.
    pub fn deadline(&self) -> Option<Instant> {
        if !self.facts.is_empty() || !self.unread.is_empty() {
            return Some(Instant::now());
        }
        let household = self.household.as_ref().and_then(Household::deadline);
        [self.timers.next(), household].into_iter().flatten().min()
    }

    /// Kills everything that runs and waits until it is gone, for a few seconds at most; forgets what waits for its start.
    /// Reports nothing.
    pub fn kill_all(&mut self) {
        // That they end now says nothing about them: whoever asks is told that they are lost.
        self.settings.when_deserted = WhenDeserted::End;
        self.queue.remove_all();
        self.hold_starts();
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
        if container == REMOVAL {
            // What it says is of no interest.
            if !is_output {
                attempt.end_removal();
            }
        } else if is_output {
            attempt.observe_output(container, now, wall_now(), &mut self.buffer);
        } else {
            attempt.observe_exit(container, now, wall_now(), self.settings.drain_timeout, &mut self.buffer);
        }
        self.settle(id);
    }

    fn observe_time(&mut self, now: Instant) {
        for id in self.timers.due(now) {
            if let Some(attempt) = self.attempts.get_mut(&id) {
                attempt.observe_time(now, wall_now(), &mut self.buffer);
                self.settle(id);
            }
        }
        let is_due = |own: &Household| own.deadline().is_some_and(|at| at <= now);
        if self.household.as_ref().is_some_and(is_due) {
            // A program that nobody follows yet would be taken for an orphan.
            self.hold_starts();
        }
        if let Some(household) = self.household.as_mut().filter(|own| is_due(own)) {
            let programs: BTreeSet<i32> = self.attempts.values().flat_map(Attempt::pids).collect();
            let oldest = self.attempts.values().map(|attempt| attempt.start_ticks).min();
            household.sweep(&programs, oldest);
            self.dying_groups.retain(|group| !group.remove());
            self.go_on_starting();
        }
    }

    /// After anything happened to an attempt: sets its timer, or reports its end.
    fn settle(&mut self, id: u64) {
        let Some(attempt) = self.attempts.get_mut(&id) else { return };
        let over = attempt.is_over();
        if over && attempt.removal.is_some() {
            let is_under_way = self.begin_removal(id);
            let Some(attempt) = self.attempts.get_mut(&id).filter(|_| is_under_way) else {
                return self.settle(id);
            };
            let deadline = attempt.deadline();
            return self.timers.rearm(id, &mut attempt.armed, deadline);
        }
        let deadline = if over { None } else { attempt.deadline() };
        self.timers.rearm(id, &mut attempt.armed, deadline);
        if !over {
            if attempt.has_unread() {
                self.unread.insert(id);
            }
            return;
        }
        if self.await_escaped(id) {
            return;
        }
        let Some(mut attempt) = self.attempts.remove(&id) else { return };
        let handle = attempt.handle.clone();
        self.ids.remove(&handle);
        if attempt.has_slot {
            self.queue.release();
        }
        // Also what escaped from its process groups.
        attempt.group.iter().for_each(Group::kill);
        let what = if let Some(failure) = attempt.failure.take() {
            // Nothing of it ran to its end: without its mark it can be started again.
            self.dirs.remove(&handle).ok();
            failure.into_observation()
        } else {
            let ending = attempt.finish(self.settings.sync_logs, Instant::now(), wall_now());
            self.keep_ending(&handle, &ending);
            Observation::Ended(ending)
        };
        self.dying_groups.extend(attempt.group.take().filter(|group| !group.remove()));
        self.report_at(attempt.over_at.unwrap_or_else(wall_now), handle, what);
    }

    /// Ends what left the process groups of an attempt that is over otherwise. True while it has to be waited for.
    fn await_escaped(&mut self, id: u64) -> bool {
        let Some(own) = &self.household else { return false };
        let Some(attempt) = self.attempts.get(&id) else { return false };
        let mark = mark_of(&attempt.handle);
        let now = Instant::now();
        // An orphan of another attempt may take long to exit: that must not hold up this one.
        let for_dying = attempt.escaped.is_none_or(|(since, _)| now.duration_since(since) < EXIT_WAIT);
        let programs = || self.attempts.values().flat_map(Attempt::pids).collect();
        if !own.end_marked(&mark, for_dying, programs) {
            return false;
        }
        let Some(attempt) = self.attempts.get_mut(&id) else { return false };
        let (since, _) = *attempt.escaped.get_or_insert((now, now));
        if now.duration_since(since) >= LAST_WAIT {
            // What cannot be killed is left to the sweep.
            return false;
        }
        let again = now + AGAIN;
        attempt.escaped = Some((since, again));
        self.timers.rearm(id, &mut attempt.armed, Some(again));
        true
    }

    fn report(&mut self, handle: Handle, what: Observation) {
        self.report_at(wall_now(), handle, what);
    }

    fn report_at(&mut self, at: Millis, handle: Handle, what: Observation) {
        self.facts.push(Fact { handle, at, what });
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
