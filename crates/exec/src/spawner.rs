//! Starts programs on other threads.
//!
//! Whoever starts a program waits until it has become that program, which takes longer than everything else that is done about
//! a short attempt. With threads for it, one attempt ends or writes while the next is being started.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use muster_types::attempt::LaunchContainer;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::spawn::{Place, Spawned, spawn_file};
use crate::start_failure::StartFailure;

/// More programs are not started at once: the kernel is busy enough with these.
const MOST_THREADS: usize = 4;

/// A program to start.
#[derive(Debug)]
pub(crate) struct Start {
    /// The attempt.
    pub(crate) id: u64,
    pub(crate) container: LaunchContainer,
    /// The file it is.
    pub(crate) path: PathBuf,
    /// Where it runs.
    pub(crate) work: PathBuf,
}

/// What became of it.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) start: Start,
    pub(crate) spawned: Result<Spawned, StartFailure>,
}

/// The threads.
#[derive(Debug)]
pub(crate) struct Spawner {
    queue: Arc<Queue>,
    started: mpsc::Receiver<Started>,
    bell: Arc<OwnedFd>,
    threads: Vec<JoinHandle<()>>,
}

/// What is to be started, and nobody has begun to.
#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    starts: VecDeque<Start>,
    /// Nothing comes after them.
    closed: bool,
}

impl Queue {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next one, when there is one. None when nothing comes any more.
    fn next(&self) -> Option<Start> {
        let is_empty = |waiting: &mut Waiting| waiting.starts.is_empty() && !waiting.closed;
        let waiting = self.changed.wait_while(self.waiting(), is_empty);
        waiting.unwrap_or_else(PoisonError::into_inner).starts.pop_front()
    }
}

impl Spawner {
    pub(crate) fn new(null: &Arc<OwnedFd>) -> io::Result<Self> {
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (done, started) = mpsc::channel();
        let mut spawner = Self { queue: Arc::default(), started, bell, threads: Vec::new() };
        let count = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        for _ in 0..count {
            let (queue, done) = (spawner.queue.clone(), done.clone());
            let (bell, null) = (spawner.bell.clone(), null.clone());
            let spawning = move || run(&queue, &done, &bell, &null);
            spawner.threads.push(thread::Builder::new().name("spawner".into()).spawn(spawning)?);
        }
        Ok(spawner)
    }

    /// Starts a program as soon as a thread has time for it.
    pub(crate) fn start(&self, start: Start) {
        self.queue.waiting().starts.push_back(start);
        self.queue.changed.notify_one();
    }

    /// Takes back what no thread has begun to start.
    pub(crate) fn take_back(&self) -> Vec<Start> {
        self.queue.waiting().starts.drain(..).collect()
    }

    /// What was started meanwhile.
    pub(crate) fn take_started(&self) -> Vec<Started> {
        let mut rung = [0; 8];
        // Nobody rang if there is nothing to read.
        rustix::io::read(&*self.bell, &mut rung).ok();
        self.started.try_iter().collect()
    }

    /// Waits for the next one. None if all threads are gone.
    pub(crate) fn wait(&self) -> Option<Started> {
        self.started.recv().ok()
    }
}

impl AsFd for Spawner {
    /// Readable when something was started.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.queue.waiting().closed = true;
        self.queue.changed.notify_all();
        for thread in self.threads.drain(..) {
            thread.join().ok();
        }
    }
}

fn run(queue: &Queue, done: &mpsc::Sender<Started>, bell: &OwnedFd, null: &OwnedFd) {
    while let Some(start) = queue.next() {
        let place = Place { work: &start.work, account: None };
        // Somebody waits for an answer, whatever happens.
        let spawned =
            catch_unwind(AssertUnwindSafe(|| spawn_file(&start.container, &start.path, place, null)));
        let panicked =
            |_| Err(StartFailure::of_resources("start the program", &io::Error::other("it panicked")));
        if done.send(Started { start, spawned: spawned.unwrap_or_else(panicked) }).is_err() {
            return;
        }
        rustix::io::write(bell, &1_u64.to_ne_bytes()).ok();
    }
}
