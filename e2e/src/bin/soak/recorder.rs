//! Writes the history of a soak: one order of everything that was seen, by one clock that never jumps.
//!
//! Programs of tasks are connected to it. Before anything is written down, whatever ended until then is: so the end of a program
//! stands before everything that followed from it, a start or a commit, and a start before everything that the program did.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use muster_sim::judge::history::{Entry, Program, What};
use parking_lot::Mutex;
use rustix::event::epoll;

use crate::store_probe::StoreProbe;

/// Between two looks at how late this machine is.
const PULSE: Duration = Duration::from_millis(5);
/// How long it counts that the machine was late, in milliseconds.
const REMEMBERED: i64 = 500;

/// How long nothing may happen before the recorder looks whether it is to end, in nanoseconds.
const LOOK: i64 = 100_000_000;

/// A history in the making. Clones write the same.
#[derive(Clone)]
pub struct Recorder(Arc<Shared>);

struct Shared {
    began: Instant,
    inner: Mutex<Inner>,
    ends: AtomicBool,
    /// When the machine was late last, and by how much, both in milliseconds.
    lag: Mutex<(i64, i64)>,
    /// How long a commit takes.
    store: OnceLock<StoreProbe>,
}

struct Inner {
    entries: Vec<Entry>,
    listener: UnixListener,
    poll: std::os::fd::OwnedFd,
    open: Vec<Connection>,
    /// Names of places, by the directory that all below it belongs to.
    places: BTreeMap<String, String>,
    /// How far the clocks on the wall are ahead, in milliseconds.
    wall_lead: i64,
    troubles: Vec<String>,
}

/// A program that runs.
struct Connection {
    stream: UnixStream,
    said: Vec<u8>,
    program: Option<Program>,
}

impl Recorder {
    /// Begins to write, with programs at a socket, until it is taken.
    pub fn start(socket: &Path) -> anyhow::Result<(Self, JoinHandle<()>)> {
        let listener = UnixListener::bind(socket).context("cannot listen for programs")?;
        listener.set_nonblocking(true)?;
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&poll, &listener, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        let watched = poll.try_clone()?;
        let inner = Inner {
            entries: Vec::new(),
            listener,
            poll,
            open: Vec::new(),
            places: BTreeMap::new(),
            wall_lead: 0,
            troubles: Vec::new(),
        };
        let (ends, lag) = (AtomicBool::new(false), Mutex::new((0, 0)));
        let recorder = Self(Arc::new(Shared {
            began: Instant::now(),
            inner: Mutex::new(inner),
            ends,
            lag,
            store: OnceLock::new(),
        }));
        let pulse = recorder.clone();
        std::thread::spawn(move || pulse.0.feel_pulse());
        let own = recorder.clone();
        let thread = std::thread::spawn(move || {
            while !own.0.ends.load(Ordering::Relaxed) {
                let mut events = Vec::with_capacity(16);
                let timeout = rustix::event::Timespec { tv_sec: 0, tv_nsec: LOOK };
                // An interruption is as good as an event.
                epoll::wait(&watched, rustix::buffer::spare_capacity(&mut events), Some(&timeout)).ok();
                own.0.look();
            }
        });
        Ok((recorder, thread))
    }

    /// From here on, a commit was decided as long before it was seen as this says.
    pub fn measure_by(&self, store: StoreProbe) {
        // There is one.
        drop(self.0.store.set(store));
    }

    /// What runs below a directory runs at this place.
    pub fn name_place(&self, directory: &Path, place: &str) {
        self.0.inner.lock().places.insert(format!("{}/", directory.display()), place.to_owned());
    }

    /// Something happened.
    pub fn note(&self, what: What) {
        self.note_with(|_| what);
    }

    /// Clocks on the wall are set, by so many milliseconds: `set` does it, and is told how far they are ahead then.
    pub fn jump(&self, millis: i64, set: impl FnOnce(i64)) {
        self.note_with(|inner| {
            inner.wall_lead += millis;
            set(inner.wall_lead);
            What::ClockJumped(millis)
        });
    }

    fn note_with(&self, make: impl FnOnce(&mut Inner) -> What) {
        let mut inner = self.0.inner.lock();
        inner.look(&self.0);
        let what = make(&mut inner);
        let store = self.0.store.get().filter(|_| matches!(what, What::Change(_)));
        inner.push(&self.0, what, store.map_or(0, StoreProbe::lag));
    }

    /// The history cannot be trusted, and why.
    pub fn trouble(&self, why: String) {
        self.0.inner.lock().troubles.push(why);
    }

    /// How many programs run.
    pub fn running(&self) -> usize {
        self.0.inner.lock().open.len()
    }

    /// How much was written down.
    pub fn entries(&self) -> usize {
        self.0.inner.lock().entries.len()
    }

    /// Everything that was seen, in the order in which it was, and why it cannot be trusted.
    pub fn take(&self) -> (Vec<Entry>, Vec<String>) {
        self.0.look();
        self.0.ends.store(true, Ordering::Relaxed);
        let mut inner = self.0.inner.lock();
        (std::mem::take(&mut inner.entries), std::mem::take(&mut inner.troubles))
    }
}

impl Shared {
    fn now(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    fn look(&self) {
        self.inner.lock().look(self);
    }

    /// Notices how much later than it should somebody runs on this machine who only sleeps.
    fn feel_pulse(&self) {
        while !self.ends.load(Ordering::Relaxed) {
            let began = Instant::now();
            std::thread::sleep(PULSE);
            let late = i64::try_from(began.elapsed().saturating_sub(PULSE).as_millis()).unwrap_or(i64::MAX);
            let (now, mut lag) = (self.now(), self.lag.lock());
            if late >= lag.1 || now - lag.0 > REMEMBERED {
                *lag = (now, late);
            }
        }
    }

    /// By how much the machine was late within the last moment.
    fn lag(&self) -> i64 {
        self.lag.lock().1
    }
}

impl Inner {
    fn push(&mut self, shared: &Shared, what: What, late: i64) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall = i64::try_from(since.as_millis()).unwrap_or(i64::MAX) + self.wall_lead;
        self.entries.push(Entry { at: shared.now(), wall, late, what });
    }

    /// Writes down which programs ended, and then which began.
    fn look(&mut self, shared: &Shared) {
        let mut open = std::mem::take(&mut self.open);
        while let Ok((stream, _)) = self.listener.accept() {
            let data = epoll::EventData::new_u64(0);
            if stream.set_nonblocking(true).is_ok()
                && epoll::add(&self.poll, &stream, data, epoll::EventFlags::IN).is_ok()
            {
                open.push(Connection { stream, said: Vec::new(), program: None });
            }
        }
        for is_new in [false, true] {
            open.retain_mut(|it| it.program.is_none() != is_new || self.hear(shared, it));
        }
        self.open = open;
    }

    /// Hears what a program says; false if it has ended.
    fn hear(&mut self, shared: &Shared, it: &mut Connection) -> bool {
        let mut chunk = [0; 1024];
        let is_over = loop {
            match it.stream.read(&mut chunk) {
                Ok(0) => break true,
                Ok(count) => it.said.extend_from_slice(&chunk[..count]),
                Err(error) => break error.kind() != std::io::ErrorKind::WouldBlock,
            }
        };
        if it.program.is_none()
            && let Some(line) = it.take_line()
        {
            match self.program_of(&line) {
                Some((program, late)) => {
                    self.push(shared, What::Started(program.clone()), late + shared.lag());
                    it.program = Some(program);
                    // One that was killed meanwhile hears nothing.
                    drop(it.stream.write_all(b"go\n"));
                }
                None => self.troubles.push(format!("a program said `{line}`")),
            }
        }
        if is_over && let Some(program) = it.program.take() {
            let code = it.take_line().and_then(|line| line.parse().ok());
            self.push(shared, What::Ended(program, code), 0);
        }
        !is_over
    }

    /// The program that says its age and where it runs: below the directory of a place, in `UID-ATTEMPT/work`.
    fn program_of(&self, line: &str) -> Option<(Program, i64)> {
        let (age, directory) = line.split_once(' ')?;
        let place = self.places.iter().find(|(root, _)| directory.starts_with(root.as_str()))?.1;
        let handle = directory.strip_suffix("/work")?.rsplit('/').next()?;
        let (task, attempt) = handle.rsplit_once('-')?;
        let program = Program { task: task.to_owned(), attempt: attempt.parse().ok()?, place: place.clone() };
        Some((program, age.parse().ok()?))
    }
}

impl Connection {
    fn take_line(&mut self) -> Option<String> {
        let end = self.said.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.said.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line).trim_end().to_owned())
    }
}
