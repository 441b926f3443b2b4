//! The small process that runs attempts for a large one, told what to do over a socket on its input.
//!
//! The server may be killed at any instant; what it started must not outlive it. So it starts nothing itself: the shepherd
//! does, and when the other end of its socket is closed, for whatever reason, it kills everything at once and ends. The
//! shepherd itself runs below a [warden](crate::warden), which does the same if the shepherd is killed.
//!
//! The agent of a robot wants the opposite ([`WhenDeserted::GoOn`]): its shepherd goes on with what runs, holds timeouts, keeps logs
//! and how attempts ended, and leaves a [door](Door) open for the agent that comes next. It ends with its last attempt, and ends
//! them all if nobody came for too long.
//!
//! A server that runs attempts under a lease says up to when that lasts, again and again ([`Command::RunUntil`]). A server that is
//! paused says nothing, and its shepherd, which is not, ends everything at that moment: another server may begin soon after.
//!
//! The first message says how to work, then come orders; facts go back as they are seen.

mod control;
mod door;
mod orders;

use std::collections::VecDeque;
use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use muster_types::attempt::Fact;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use self::control::{Control, Stream};
pub(crate) use self::door::Door;
pub use self::door::knock;
pub use self::orders::{Command, Report};
use crate::executor::Executor;
use crate::launcher;
use crate::machine_time::{Alarm, machine_time};
use crate::settings::Settings;
use crate::warden::{self, Role};
use crate::when_deserted::WhenDeserted;

/// Attempts asked for between two looks at those that run.
const STARTS_PER_TURN: usize = 8;
/// Descriptors this process may have: three for each container.
const DESCRIPTORS: u64 = 1 << 16;
/// What the executor watches beside attempts.
const CONTROL: u16 = 0;
const WARDEN: u16 = 1;
const DOOR: u16 = 2;
const ALARM: u16 = 3;
/// Why everything is ended although the server is there.
const LEASE_OVER: &str = "the server's lease was over and it did not say that it was renewed";
/// Why attempts are ended that nobody came back for.
const FORSAKEN: &str = "the agent was away for too long";

/// The whole life of a shepherd, of its warden, or of a launcher: the program that is named as the shepherd calls this and ends with its
/// answer. Takes over the process: its input is the socket, and whatever descends from it is killed at the end.
pub fn shepherd_main() -> ExitCode {
    match Role::of_this_process() {
        Role::Warden { stays } => warden::run(stays),
        Role::Launcher => launcher::run(),
        Role::Shepherd { warden } => match run(warden) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
    }
}

/// Works until there is nothing more to do, or the warden is gone.
fn run(warden: Option<OwnedFd>) -> io::Result<()> {
    rustix::thread::set_name(c"muster-shepherd").ok();
    raise_descriptor_limit();
    // Without a warden there is nobody to kill what is left if this process is killed.
    let warden = warden.ok_or_else(|| io::Error::other("the warden is gone"))?;
    let control = Some(Control::take_over_input()?);
    let (commands, facts) = (VecDeque::new(), Vec::new());
    let mut shepherd = Shepherd { warden, control, commands, run_until: None, facts, work: None };
    while shepherd.turn()? == Next::Turn {}
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Turn,
    /// What still runs is killed.
    End,
}

struct Shepherd {
    /// Since it was told how. Goes first at the end: the socket is closed when nothing runs any more.
    work: Option<Work>,
    warden: OwnedFd,
    /// Whoever gives the orders; nobody if it is gone and attempts go on.
    control: Option<Control>,
    commands: VecDeque<Command>,
    /// A moment that was named and at which the alarm is not set yet.
    run_until: Option<Duration>,
    facts: Vec<Fact>,
}

struct Work {
    executor: Executor,
    /// How many of its notices were said to whoever gives the orders now.
    notices: usize,
    when_deserted: WhenDeserted,
    /// Only if attempts go on when they are deserted.
    door: Option<Door>,
    deserted: Option<Deserted>,
    /// The moment at which everything is to end, if one was named, and what wakes this process up then.
    run_until: Option<(Duration, Alarm)>,
}

/// Nobody is there to give orders.
struct Deserted {
    since: Instant,
    /// All attempts were told to end.
    given_up: bool,
}

/// What there is to do now, besides what the executor has done already.
#[derive(Debug, Default)]
struct News {
    control: bool,
    warden: bool,
    door: bool,
}

impl Shepherd {
    fn turn(&mut self) -> io::Result<Next> {
        let news = self.wait()?;
        if news.warden {
            return Ok(Next::End);
        }
        let closed = news.control
            && self.control.as_mut().is_some_and(|it| it.read(&mut self.commands) == Stream::Closed);
        if news.control {
            self.set_alarm()?;
        }
        if self.work.as_ref().is_some_and(Work::is_over) {
            return self.end_with_lease();
        }
        if closed && self.desert()? == Next::End {
            return Ok(Next::End);
        }
        if news.door {
            self.let_in()?;
        }
        // What has ended by itself is said also with the last word: it would run again.
        let (next, told) = (self.carry_out()?, self.tell()?);
        if next == Next::End || told == Next::End {
            return Ok(Next::End);
        }
        Ok(self.look_at_time())
    }

    /// Waits for everything at once.
    fn wait(&mut self) -> io::Result<News> {
        let at_once = (!self.commands.is_empty()).then_some(Duration::ZERO);
        let Some(work) = &mut self.work else {
            let Some(control) = &self.control else { return Err(io::Error::other("there is nobody")) };
            let [control, warden] = wait_for(
                [PollFd::new(control, PollFlags::IN), PollFd::new(&self.warden, PollFlags::IN)],
                at_once,
            )?;
            return Ok(News { control, warden, ..News::default() });
        };
        let mut timeout = at_once.or_else(|| work.given_up_in());
        if let Some(control) = self.control.as_ref().filter(|control| control.is_blocked()) {
            let due = work.executor.deadline().map(|at| at.saturating_duration_since(Instant::now()));
            let until = timeout.into_iter().chain(due).min();
            wait_for(
                [PollFd::new(control, PollFlags::OUT), PollFd::new(&work.executor, PollFlags::IN)],
                until,
            )?;
            timeout = Some(Duration::ZERO);
        }
        work.executor.poll(timeout, &mut self.facts)?;
        let is_readable = |name| work.executor.readable_others().contains(&name);
        // The alarm only wakes this up; whether it is time is seen by the clock.
        Ok(News { control: is_readable(CONTROL), warden: is_readable(WARDEN), door: is_readable(DOOR) })
    }

    /// Sets the alarm to the moment that was named last. It does not wait for the orders before it.
    fn set_alarm(&mut self) -> io::Result<()> {
        self.commands.retain(|command| match command {
            Command::RunUntil(moment) => {
                self.run_until = Some(*moment);
                false
            }
            _ => true,
        });
        match (&mut self.work, self.run_until) {
            (Some(work), Some(moment)) => {
                work.run_until(moment)?;
                self.run_until = None;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The server did not say in time that its lease was renewed.
    fn end_with_lease(&mut self) -> io::Result<Next> {
        if let Some(control) = &mut self.control {
            control.say(&Report::Failed { message: LEASE_OVER.to_owned() })?;
            control.write();
        }
        Ok(Next::End)
    }

    /// Whoever gave the orders is gone.
    fn desert(&mut self) -> io::Result<Next> {
        let control = self.control.take();
        let Some(work) = self.work.as_mut().filter(|work| work.door.is_some()) else { return Ok(Next::End) };
        if let Some(control) = control {
            work.executor.forget(&control)?;
            // One that came and went without a word leaves things as they were.
            if control.has_begun {
                work.hear(false);
                work.deserted = Some(Deserted { since: Instant::now(), given_up: false });
            }
        }
        Ok(Next::Turn)
    }

    /// Somebody stands before the door. While somebody gives orders, nobody else does.
    fn let_in(&mut self) -> io::Result<()> {
        let Some(work) = &mut self.work else { return Ok(()) };
        let Some(socket) = work.door.as_ref().and_then(Door::let_in) else { return Ok(()) };
        if self.control.as_ref().is_some_and(|control| control.has_begun) {
            return Ok(());
        }
        if let Some(silent) = self.control.take() {
            work.executor.forget(&silent)?;
        }
        let control = Control::over(socket)?;
        work.executor.watch(&control, CONTROL)?;
        self.control = Some(control);
        Ok(())
    }

    fn carry_out(&mut self) -> io::Result<Next> {
        for _ in 0..STARTS_PER_TURN {
            let Some(command) = self.commands.pop_front() else { break };
            match (command, &mut self.work) {
                (Command::Begin(settings), _) => self.begin(settings)?,
                (Command::End, _) => return Ok(Next::End),
                (Command::Start(launch), Some(work)) => work.executor.start(launch),
                (Command::TakeUp(handle), Some(work)) => work.executor.take_up(&handle),
                (Command::Recall(handle), Some(work)) => work.executor.recall(&handle),
                (Command::Stop { handle, grace }, Some(work)) => work.executor.stop(&handle, grace),
                (Command::StopAll { grace }, Some(work)) => work.executor.stop_all(grace),
                (Command::StopWithServer { at_most }, Some(work)) => work.executor.stop_with_server(at_most),
                (Command::Hears(hears), Some(work)) => work.hear(hears),
                // Taken out as it was read.
                (Command::RunUntil(_), _) => {}
                (
                    Command::Start(_)
                    | Command::TakeUp(_)
                    | Command::Recall(_)
                    | Command::Stop { .. }
                    | Command::StopAll { .. }
                    | Command::StopWithServer { .. }
                    | Command::Hears(_),
                    None,
                ) => return Err(io::Error::other("an order before the settings")),
            }
        }
        Ok(Next::Turn)
    }

    fn begin(&mut self, settings: Settings) -> io::Result<()> {
        let Some(control) = &mut self.control else { return Ok(()) };
        match &mut self.work {
            Some(work) => {
                if let WhenDeserted::GoOn { .. } = settings.when_deserted {
                    work.when_deserted = settings.when_deserted;
                }
                (work.deserted, work.notices) = (None, 0);
            }
            None => match Work::begin(settings, control, &self.warden) {
                Ok(work) => self.work = Some(work),
                Err(error) => {
                    control.say(&Report::Failed { message: error.to_string() })?;
                    control.write();
                    return Err(error);
                }
            },
        }
        control.has_begun = true;
        control.say(&Report::Ready { shepherd: std::process::id() })?;
        self.set_alarm()
    }

    /// Says what was seen, if somebody listens. If nobody does, it is written down where it must be.
    fn tell(&mut self) -> io::Result<Next> {
        let Some(work) = &mut self.work else { return Ok(Next::Turn) };
        work.executor.take_facts(&mut self.facts);
        let Some(control) = self.control.as_mut().filter(|control| control.has_begun) else {
            self.facts.clear();
            return Ok(Next::Turn);
        };
        for notice in work.executor.notices().iter().skip(work.notices) {
            control.say(&Report::Notice(notice.clone()))?;
        }
        work.notices = work.executor.notices().len();
        for fact in self.facts.drain(..) {
            control.say(&Report::Fact(fact))?;
        }
        if control.write() == Stream::Closed { self.desert() } else { Ok(Next::Turn) }
    }

    /// While nobody is there, it ends with the last attempt, and ends them all when it waited for too long.
    fn look_at_time(&mut self) -> Next {
        let Some(work) = &mut self.work else { return Next::Turn };
        if work.deserted.is_some() && self.commands.is_empty() && work.executor.is_idle() {
            return Next::End;
        }
        if work.given_up_in().is_some_and(|left| left.is_zero())
            && let Some(deserted) = &mut work.deserted
        {
            deserted.given_up = true;
            work.executor.give_up(FORSAKEN);
        }
        Next::Turn
    }
}

impl Work {
    fn begin(settings: Settings, control: &Control, warden: &OwnedFd) -> io::Result<Self> {
        let when_deserted = settings.when_deserted;
        let mut executor = Executor::new(Settings { owns_process: true, ..settings })?;
        executor.watch(control, CONTROL)?;
        executor.watch(warden, WARDEN)?;
        let door = executor.open_door();
        if let Some(door) = &door {
            executor.watch(door, DOOR)?;
            executor.observe_silence(Some(Instant::now()));
        }
        Ok(Self { executor, notices: 0, when_deserted, door, deserted: None, run_until: None })
    }

    /// Everything ends at a moment of the machine, unless another one is named before.
    fn run_until(&mut self, moment: Duration) -> io::Result<()> {
        if let Some((set_to, alarm)) = &mut self.run_until {
            *set_to = moment;
            return alarm.set(moment);
        }
        let alarm = Alarm::new()?;
        alarm.set(moment)?;
        self.executor.watch(&alarm, ALARM)?;
        self.run_until = Some((moment, alarm));
        Ok(())
    }

    /// Whether the moment has come at which everything is to end.
    fn is_over(&self) -> bool {
        self.run_until.as_ref().is_some_and(|(moment, _)| *moment <= machine_time())
    }

    fn hear(&mut self, hears: bool) {
        let since = self.executor.silent_since().or_else(|| Some(Instant::now()));
        self.executor.observe_silence(if hears { None } else { since });
    }

    /// How long nobody may be there from now on, before all attempts are given up; none if somebody is, or they were.
    fn given_up_in(&self) -> Option<Duration> {
        let Deserted { since, .. } = self.deserted.as_ref().filter(|deserted| !deserted.given_up)?;
        Some(self.when_deserted.at_most()?.saturating_sub(since.elapsed()))
    }
}

/// Waits until one of these is as wanted, or its other side is gone.
fn wait_for<const N: usize>(mut fds: [PollFd<'_>; N], timeout: Option<Duration>) -> io::Result<[bool; N]> {
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(fds.map(|fd| !fd.revents().is_empty())),
        Err(errno) => Err(errno.into()),
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
