//! The small process that runs attempts for a large one, told what to do over a socket on its input.
//!
//! The server may be killed at any instant; what it started must not outlive it. So it starts nothing itself: the shepherd
//! does, and when the other end of its socket is closed, for whatever reason, it kills everything at once and ends. The
//! shepherd itself runs below a [warden](crate::warden), which does the same if the shepherd is killed.
//!
//! The first message says how to work, then come orders; facts go back as they are seen.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use muster_types::attempt::{Fact, Handle, Launch};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::executor::Executor;
use crate::frame::{Decoder, encode};
use crate::settings::Settings;
use crate::warden::{self, Role};

/// Attempts started between two looks at those that run.
const STARTS_PER_TURN: usize = 8;
/// Descriptors this process may have: three for each container.
const DESCRIPTORS: u64 = 1 << 16;
const READ: usize = 64 << 10;
/// What the executor watches beside attempts.
const CONTROL: u16 = 0;
const WARDEN: u16 = 1;

/// What a shepherd is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// How to work. Comes first, and once.
    Begin(Settings),
    /// Start an attempt.
    Start(Launch),
    /// End an attempt.
    Stop {
        /// Which one.
        handle: Handle,
        /// Time between asking and killing.
        grace: Duration,
    },
    /// End every attempt, and start none that waits.
    StopAll {
        /// Time between asking and killing.
        grace: Duration,
    },
}

/// What a shepherd says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// It is ready.
    Ready {
        /// Its process.
        shepherd: u32,
    },
    /// Something that the machine does not allow, in words.
    Notice(String),
    /// Something was seen.
    Fact(Fact),
    /// It cannot work, and ends.
    Failed {
        /// Why, for people.
        message: String,
    },
}

/// The whole life of a shepherd, or of its warden: the program that is named as the shepherd calls this and ends with its
/// answer. Takes over the process: its input is the socket, and whatever descends from it is killed at the end.
pub fn shepherd_main() -> ExitCode {
    match Role::of_this_process() {
        Role::Warden => warden::run(),
        Role::Shepherd { warden } => match run(warden) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
    }
}

/// Works until the socket is closed or the warden is gone.
fn run(warden: Option<OwnedFd>) -> io::Result<()> {
    rustix::thread::set_name(c"muster-shepherd").ok();
    raise_descriptor_limit();
    let mut control = Control::take_over_input()?;
    let mut shepherd: Option<Executor> = None;
    let mut commands = VecDeque::new();
    let mut facts = Vec::new();
    let mut notices = 0;
    // Without a warden there is nobody to kill what is left if this process is killed.
    let warden = warden.ok_or_else(|| io::Error::other("the warden is gone"))?;
    loop {
        let turn = match &mut shepherd {
            Some(executor) if control.out.is_empty() => Turn::follow(executor, &commands, &mut facts)?,
            executor => Turn::wait(&control, executor.as_mut(), &warden, &commands, &mut facts)?,
        };
        if turn.warden_gone || (turn.control_readable && control.read(&mut commands)? == Stream::Closed) {
            return Ok(());
        }
        for _ in 0..STARTS_PER_TURN {
            let Some(command) = commands.pop_front() else { break };
            match (command, &mut shepherd) {
                (Command::Begin(settings), _) => shepherd = Some(control.begin(settings, &warden)?),
                (Command::Start(launch), Some(executor)) => executor.start(launch),
                (Command::Stop { handle, grace }, Some(executor)) => executor.stop(&handle, grace),
                (Command::StopAll { grace }, Some(executor)) => executor.stop_all(grace),
                (Command::Start(_) | Command::Stop { .. } | Command::StopAll { .. }, None) => {
                    return Err(io::Error::other("an order before the settings"));
                }
            }
        }
        if let Some(executor) = &mut shepherd {
            executor.take_facts(&mut facts);
            for notice in executor.notices().iter().skip(notices) {
                control.say(&Report::Notice(notice.clone()))?;
            }
            notices = executor.notices().len();
        }
        for fact in facts.drain(..) {
            control.say(&Report::Fact(fact))?;
        }
        control.write()?;
    }
}

/// What there is to do now, besides what the executor has done already.
struct Turn {
    control_readable: bool,
    warden_gone: bool,
}

impl Turn {
    /// Waits for everything at once.
    fn follow(
        executor: &mut Executor,
        commands: &VecDeque<Command>,
        facts: &mut Vec<Fact>,
    ) -> io::Result<Self> {
        let wait = if commands.is_empty() { None } else { Some(Duration::ZERO) };
        executor.poll(wait, facts)?;
        let others = executor.readable_others();
        Ok(Self { control_readable: others.contains(&CONTROL), warden_gone: others.contains(&WARDEN) })
    }

    /// The same while there is no executor, or something that could not be written at once.
    fn wait(
        control: &Control,
        executor: Option<&mut Executor>,
        warden: &OwnedFd,
        commands: &VecDeque<Command>,
        facts: &mut Vec<Fact>,
    ) -> io::Result<Self> {
        let wait = match executor.as_ref().and_then(|executor| executor.deadline()) {
            _ if !commands.is_empty() => Some(Duration::ZERO),
            until => until.map(|at| at.saturating_duration_since(Instant::now())),
        };
        let timeout = wait.and_then(|wait| Timespec::try_from(wait).ok());
        let for_control = if control.out.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        let mut fds = vec![PollFd::new(&control.socket, for_control), PollFd::new(warden, PollFlags::IN)];
        fds.extend(executor.as_deref().map(|executor| PollFd::new(executor, PollFlags::IN)));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let readable = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
        let turn = Self {
            control_readable: fds[0].revents().intersects(readable),
            warden_gone: fds[1].revents().intersects(readable),
        };
        drop(fds);
        executor.map_or(Ok(()), |executor| executor.poll(Some(Duration::ZERO), facts))?;
        Ok(turn)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Open,
    Closed,
}

/// The socket to whoever gives the orders.
struct Control {
    socket: UnixStream,
    decoder: Decoder,
    out: Vec<u8>,
    buffer: Vec<u8>,
}

impl Control {
    /// Takes the socket from the input, so that no program inherits it.
    fn take_over_input() -> io::Result<Self> {
        let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        warden::close_input()?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, decoder: Decoder::default(), out: Vec::new(), buffer: vec![0; READ] })
    }

    fn begin(&mut self, settings: Settings, warden: &OwnedFd) -> io::Result<Executor> {
        let begun = Executor::new(Settings { owns_process: true, ..settings }).and_then(|mut executor| {
            executor.watch(&self.socket, CONTROL)?;
            executor.watch(warden, WARDEN)?;
            Ok(executor)
        });
        match begun {
            Ok(executor) => {
                self.say(&Report::Ready { shepherd: std::process::id() })?;
                Ok(executor)
            }
            Err(error) => {
                self.say(&Report::Failed { message: error.to_string() })?;
                self.write()?;
                Err(error)
            }
        }
    }

    fn read(&mut self, commands: &mut VecDeque<Command>) -> io::Result<Stream> {
        loop {
            match self.socket.read(&mut self.buffer) {
                Ok(0) => return Ok(Stream::Closed),
                Ok(read) => {
                    self.decoder.extend(&self.buffer[..read]);
                    // Less than there was room for: there is no more right now.
                    if read < self.buffer.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Ok(Stream::Closed),
            }
        }
        while let Some(command) = self.decoder.next_message().map_err(io::Error::other)? {
            commands.push_back(command);
        }
        Ok(Stream::Open)
    }

    fn say(&mut self, report: &Report) -> io::Result<()> {
        encode(report, &mut self.out).map_err(io::Error::other)
    }

    /// Writes what can be written now; never waits for the reader.
    fn write(&mut self) -> io::Result<()> {
        while !self.out.is_empty() {
            match self.socket.write(&self.out) {
                Ok(written) => drop(self.out.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The usual limit is too low for some hundred attempts at once. Programs inherit it, so it is not raised beyond need.
fn raise_descriptor_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(DESCRIPTORS, |maximum| maximum.min(DESCRIPTORS));
    if current.is_some_and(|current| current < wanted) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).ok();
    }
}
