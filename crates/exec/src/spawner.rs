//! Starts programs on other threads, and sees the short ones through.
//!
//! Whoever starts a program waits until it has become that program, which takes longer than everything else that is done about
//! a short attempt. With threads for it, one attempt ends or writes while the next is being started.
//!
//! Where there is a thread for each slot, it also waits for the end of what it started, for a moment, and starts the next at once. What
//! the one before left is looked at while the next one runs, and the executor hears of several such attempts at a time. Those that take
//! longer are followed by the executor alone. One that said nothing and left nothing needs its directory no more: another one gets it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};

use muster_types::attempt::{Handle, Launch};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::{Signal, kill_process_group};

use crate::attempt_dir::AttemptDirs;
use crate::moment::Moment;
use crate::procfs::ticks_now;
use crate::program_path::FoundPrograms;
use crate::queue::Queue;
use crate::spares::Spares;
use crate::spawn::{Place, Spawned, find, spawn_file};
use crate::start_failure::{Refusal, StartFailure, check};

/// More programs are not started at once.
const MOST_THREADS: usize = 16;
/// What ends within this is seen through.
const LINGER: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
/// Its output is closed within this, unless something that it left behind has it still. A program that another thread is just starting
/// has a copy of everything for a moment.
const CLOSES: Timespec = Timespec { tv_sec: 0, tv_nsec: 300_000 };
/// After one that took longer, so many are not waited for.
const DOUBTS: u32 = 16;
/// The executor hears of so many that ended at a time, while there are more to start.
const TOLD_AT_ONCE: usize = 16;

/// An attempt that a thread took from the queue.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) launch: Launch,
    pub(crate) outcome: Outcome,
}

/// What became of it.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Nothing: it has its slot still.
    Refused(Refusal),
    /// It has a directory and its slot.
    NotSpawned { work: PathBuf },
    /// It runs.
    Runs { spawned: Spawned, since: Moment, start_ticks: u64 },
    /// It ended since. Its slot was given back, and nothing of its process group runs. If it was silent, its directory may be gone.
    Ended { spawned: Spawned, since: Moment, start_ticks: u64, at: Moment, silent: bool },
}

/// The threads.
#[derive(Debug)]
pub(crate) struct Spawner {
    queue: Arc<Queue>,
    begun: mpsc::Receiver<Begun>,
    bell: Arc<OwnedFd>,
    threads: Vec<JoinHandle<()>>,
}

/// What all threads share.
#[derive(Debug)]
pub(crate) struct Shop {
    pub(crate) queue: Arc<Queue>,
    pub(crate) dirs: AttemptDirs,
    pub(crate) spares: Arc<Mutex<Spares>>,
    pub(crate) null: Arc<OwnedFd>,
    pub(crate) default_path: String,
    /// Whether a directory is needed no more when its attempt has ended and left nothing in it.
    pub(crate) reuses: bool,
}

impl Spawner {
    /// Threads for so many slots, if their number is limited.
    pub(crate) fn new(shop: Shop, slots: Option<usize>) -> io::Result<Self> {
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (told, begun) = mpsc::channel();
        let mut spawner = Self { queue: shop.queue.clone(), begun, bell, threads: Vec::new() };
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let count = slots.unwrap_or(cores).clamp(1, MOST_THREADS);
        let shop = Arc::new(shop);
        for _ in 0..count {
            let mut starter = Starter {
                shop: shop.clone(),
                told: told.clone(),
                bell: spawner.bell.clone(),
                untold: 0,
                lingers: slots == Some(count),
                doubts: 0,
                ended: None,
                empty: None,
                programs: FoundPrograms::default(),
            };
            let work = move || starter.work().unwrap_or_default();
            spawner.threads.push(thread::Builder::new().name("spawner".into()).spawn(work)?);
        }
        Ok(spawner)
    }

    /// What was begun meanwhile.
    pub(crate) fn take_begun(&self) -> Vec<Begun> {
        let mut rung = [0; 8];
        // Nobody rang if there is nothing to read.
        rustix::io::read(&*self.bell, &mut rung).ok();
        self.begun.try_iter().collect()
    }

    /// Waits for the next one. None if all threads are gone.
    pub(crate) fn wait(&self) -> Option<Begun> {
        self.begun.recv().ok()
    }
}

impl AsFd for Spawner {
    /// Readable when something was begun.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.queue.close();
        for thread in self.threads.drain(..) {
            thread.join().ok();
        }
    }
}

/// One thread.
struct Starter {
    shop: Arc<Shop>,
    told: mpsc::Sender<Begun>,
    bell: Arc<OwnedFd>,
    /// How many the executor was told of since it was rung for.
    untold: usize,
    lingers: bool,
    /// How many more are not waited for.
    doubts: u32,
    /// The last one, if nobody has looked at what it left.
    ended: Option<Ended>,
    /// The one before it, or an older one, if its directory is as good as new.
    empty: Option<Handle>,
    programs: FoundPrograms,
}

/// One that was seen through. Its slot is free.
struct Ended {
    launch: Launch,
    spawned: Spawned,
    since: Moment,
    start_ticks: u64,
    at: Moment,
}

/// The executor is gone.
struct Deserted;

impl Starter {
    fn work(&mut self) -> Result<(), Deserted> {
        loop {
            let mut next = self.shop.queue.take_plain(self.ended.is_some());
            if next.is_none() {
                self.look_at_ended()?;
                self.ring();
                next = self.shop.queue.wait_plain();
            }
            let Some(launch) = next else { return Ok(()) };
            // Somebody waits for an answer, whatever happens.
            let started = catch_unwind(AssertUnwindSafe(|| self.start(&launch)));
            // What the one before left is looked at while this one runs.
            self.look_at_ended()?;
            let outcome = started.unwrap_or_else(|_| {
                let panicked = io::Error::other("it panicked");
                Outcome::Refused(Refusal::Failed(StartFailure::of_resources("start the program", &panicked)))
            });
            match outcome {
                Outcome::Runs { spawned, since, start_ticks } => match self.linger(&spawned) {
                    Some(at) => self.ended = Some(Ended { launch, spawned, since, start_ticks, at }),
                    None => self.tell(launch, Outcome::Runs { spawned, since, start_ticks })?,
                },
                outcome => self.tell(launch, outcome)?,
            }
        }
    }

    /// Tells of the one that ended last, and keeps its directory for another if it left nothing there.
    fn look_at_ended(&mut self) -> Result<(), Deserted> {
        let Some(Ended { launch, spawned, since, start_ticks, at }) = self.ended.take() else {
            return Ok(());
        };
        let silent = is_closed_and_empty(&spawned.output);
        if silent
            && self.shop.reuses
            && self.empty.is_none()
            && self.shop.dirs.is_as_good_as_new(&launch.handle)
        {
            self.empty = Some(launch.handle.clone());
        }
        self.tell(launch, Outcome::Ended { spawned, since, start_ticks, at, silent })
    }

    fn tell(&mut self, launch: Launch, outcome: Outcome) -> Result<(), Deserted> {
        let can_wait = matches!(outcome, Outcome::Ended { .. });
        self.told.send(Begun { launch, outcome }).map_err(|_| Deserted)?;
        self.untold += 1;
        if !can_wait || self.untold >= TOLD_AT_ONCE {
            self.ring();
        }
        Ok(())
    }

    fn ring(&mut self) {
        if std::mem::take(&mut self.untold) > 0 {
            rustix::io::write(&*self.bell, &1_u64.to_ne_bytes()).ok();
        }
    }

    fn start(&mut self, launch: &Launch) -> Outcome {
        let shop = &self.shop;
        if let Err(failure) = check(launch) {
            return Outcome::Refused(Refusal::Failed(failure));
        }
        let reused = self.empty.take().map_or(Ok(None), |empty| shop.dirs.reuse(&empty, &launch.handle));
        let made = match reused {
            Ok(Some(work)) => Ok(work),
            Ok(None) => shop.dirs.create(&launch.handle, &shop.spares),
            Err(error) => Err(error),
        };
        let work = match made {
            Ok(work) => work,
            Err(error) => {
                return Outcome::Refused(Refusal::of_directory(&shop.dirs.path(&launch.handle), error));
            }
        };
        let start_ticks = ticks_now();
        let spawned = launch.containers.first().and_then(|container| {
            let path = find(container, &work, &shop.default_path, &mut self.programs).ok()?;
            let place = Place { attempt: &launch.handle, work: &work, account: None, group: None };
            spawn_file(container, &path, place, &shop.null).ok()
        });
        let Some(spawned) = spawned else {
            // It may have been taken away since it was found.
            self.programs.forget();
            return Outcome::NotSpawned { work };
        };
        Outcome::Runs { spawned, since: Moment::now(), start_ticks }
    }

    /// Waits for the end of a program, if it is likely to come soon.
    fn linger(&mut self, spawned: &Spawned) -> Option<Moment> {
        if !self.lingers {
            return None;
        }
        if self.doubts > 0 {
            self.doubts -= 1;
            return None;
        }
        let has_ended = poll(&mut [PollFd::new(&spawned.pidfd, PollFlags::IN)], Some(&LINGER));
        if !matches!(has_ended, Ok(1..)) {
            self.doubts = DOUBTS;
            return None;
        }
        // Its slot is free when nothing of it runs. Nobody has waited for it, so its number is its own.
        kill_process_group(spawned.pid, Signal::KILL).ok();
        Some(Moment::now())
    }
}

/// Whether nobody writes to a pipe any more, or soon, and nothing is in it.
fn is_closed_and_empty(output: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(output, PollFlags::IN)];
    matches!(poll(&mut fds, Some(&CLOSES)), Ok(1)) && fds[0].revents() == PollFlags::HUP
}
