//! An attempt as the executor holds it: the processes, their output and their logs, beside the decisions about them.
//!
//! Carries out what [`Course`] orders. A process group is signalled only while its first process has not been waited for:
//! until then its number cannot name anything else.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use muster_types::Millis;
use muster_types::attempt::{Ending, Handle};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid};

use crate::cgroup::Group;
use crate::course::{Course, Exit, Order};
use crate::log_writer::{LogError, LogWriter};
use crate::removal::Removal;
use crate::spawn::Spawned;
use crate::start_failure::StartFailure;

/// At most this much output of one container is taken at a time, so that a loud one does not keep others waiting.
const BURST: usize = 1 << 20;

/// One attempt that was started.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) handle: Handle,
    pub(crate) course: Course,
    programs: Vec<Program>,
    /// It has one of the executor's slots.
    pub(crate) has_slot: bool,
    /// Set if a container could not be started: the others are killed and this is reported.
    pub(crate) failure: Option<StartFailure>,
    pub(crate) group: Option<Group>,
    /// When it started, in clock ticks since boot.
    pub(crate) start_ticks: u64,
    /// The deadline it has in the table of timers.
    pub(crate) armed: Option<Instant>,
    leader_ended: Option<Millis>,
    /// When it was over, if that was seen before it was looked at here.
    pub(crate) over_at: Option<Millis>,
    /// Containers of docker or podman that are to be removed.
    pub(crate) removal: Option<Removal>,
    /// It is over but for processes that left its process groups: since when, and when they are looked for again.
    pub(crate) escaped: Option<(Instant, Instant)>,
}

/// The program of one container.
#[derive(Debug)]
struct Program {
    /// Until it was waited for.
    process: Option<(Pid, OwnedFd)>,
    /// Until its end was read, or given up on.
    output: Option<OwnedFd>,
    log: LogWriter,
    /// Not all of the output that was told of was taken.
    unread: bool,
    /// When output is no longer waited for.
    give_up_at: Option<Instant>,
}

impl Attempt {
    pub(crate) fn new(handle: Handle, course: Course, group: Option<Group>, start_ticks: u64) -> Self {
        Self {
            handle,
            course,
            programs: Vec::new(),
            has_slot: true,
            failure: None,
            group,
            start_ticks,
            armed: None,
            leader_ended: None,
            over_at: None,
            removal: None,
            escaped: None,
        }
    }

    pub(crate) fn join(&mut self, name: String, spawned: Spawned, log: LogWriter) {
        self.course.join(name);
        let Spawned { pid, pidfd, output } = spawned;
        self.programs.push(Program {
            process: Some((pid, pidfd)),
            output: Some(output),
            log,
            unread: false,
            give_up_at: None,
        });
    }

    /// Does to every program that still runs what was ordered.
    pub(crate) fn carry_out(&self, order: Option<Order>) {
        let signals: &[Signal] = match order {
            None => return,
            // One that is halted could not end.
            Some(Order::Ask) => &[Signal::TERM, Signal::CONT],
            Some(Order::Kill) => &[Signal::KILL],
        };
        for (pid, _) in self.programs.iter().filter_map(|program| program.process.as_ref()) {
            for signal in signals {
                kill_process_group(*pid, *signal).ok();
            }
        }
    }

    /// A program has ended, or may have. The leading one is looked at first: if both are gone, it led.
    pub(crate) fn observe_exit(
        &mut self,
        index: usize,
        now: Instant,
        wall: Millis,
        drain_timeout: Duration,
        buffer: &mut [u8],
    ) {
        if index != 0 && !self.course.has_ended(0) && self.programs[0].has_ended() {
            self.wait_for(0, now, wall, drain_timeout, buffer);
        }
        self.wait_for(index, now, wall, drain_timeout, buffer);
    }

    fn wait_for(
        &mut self,
        index: usize,
        now: Instant,
        wall: Millis,
        drain_timeout: Duration,
        buffer: &mut [u8],
    ) {
        let Some(program) = self.programs.get_mut(index) else { return };
        let Some(exit) = program.wait() else { return };
        if index == 0 {
            self.leader_ended = Some(wall);
        }
        let order = self.course.observe_exit(index, exit, now);
        self.carry_out(order);
        self.observe_output(index, now, wall, buffer);
        let program = &mut self.programs[index];
        if program.output.is_some() {
            program.give_up_at = Some(now + drain_timeout);
        }
    }

    /// A program wrote something, or closed its output.
    pub(crate) fn observe_output(&mut self, index: usize, now: Instant, wall: Millis, buffer: &mut [u8]) {
        let Some(program) = self.programs.get_mut(index) else { return };
        if let Err(error) = program.take_output(buffer, wall) {
            let order = self.course.observe_log_failure(error.to_string(), now);
            self.carry_out(order);
        }
    }

    /// Takes output that was left for later.
    pub(crate) fn observe_unread(&mut self, now: Instant, wall: Millis, buffer: &mut [u8]) {
        for index in 0..self.programs.len() {
            if self.programs[index].unread {
                self.observe_output(index, now, wall, buffer);
            }
        }
    }

    /// Whether output was left for later.
    pub(crate) fn has_unread(&self) -> bool {
        self.programs.iter().any(|program| program.unread && program.output.is_some())
    }

    /// Time passed.
    pub(crate) fn observe_time(&mut self, now: Instant, wall: Millis, buffer: &mut [u8]) {
        let order = self.course.observe_time(now);
        self.carry_out(order);
        if self.removal.as_ref().and_then(Removal::deadline).is_some_and(|at| at <= now) {
            self.end_removal();
        }
        for index in 0..self.programs.len() {
            if self.programs[index].give_up_at.is_some_and(|at| at <= now) {
                self.observe_output(index, now, wall, buffer);
                self.programs[index].output = None;
                self.programs[index].give_up_at = None;
            }
        }
    }

    /// When [`Attempt::observe_time`] has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let give_up = self.programs.iter().filter_map(|program| program.give_up_at);
        let removal = self.removal.as_ref().and_then(Removal::deadline);
        let escaped = self.escaped.map(|(_, again)| again);
        give_up.chain(self.course.deadline()).chain(removal).chain(escaped).min()
    }

    /// The output of its leading program, while it can be read.
    pub(crate) fn output(&self) -> Option<&OwnedFd> {
        self.programs.first()?.output.as_ref()
    }

    /// Whether any of its programs was started.
    pub(crate) fn has_programs(&self) -> bool {
        !self.programs.is_empty()
    }

    /// The client that removes its containers has ended, or takes too long.
    pub(crate) fn end_removal(&mut self) {
        if let Some(Removal::UnderWay(removing)) =
            self.removal.take_if(|it| matches!(it, Removal::UnderWay(_)))
        {
            removing.end();
        }
    }

    /// Whether nothing of it runs and all its output was taken.
    pub(crate) fn is_over(&self) -> bool {
        self.programs.iter().all(|program| program.process.is_none() && program.output.is_none())
    }

    /// How it ended, once it is over. Its logs are complete when this returns.
    pub(crate) fn finish(&mut self, sync_logs: bool, now: Instant, wall: Millis) -> Ending {
        for index in 0..self.programs.len() {
            if let Err(error) = self.programs[index].log.finish(sync_logs) {
                self.course.observe_log_failure(error.to_string(), now);
            }
        }
        let message = self.course.take_message();
        Ending {
            containers: self.course.endings(self.programs.iter().map(|program| program.log.total())),
            cause: self.course.cause(),
            at: self.leader_ended.unwrap_or(wall),
            message: message.or_else(|| self.group.as_ref()?.out_of_memory()),
            reason: self.course.reason().map(str::to_owned),
            files: Vec::new(),
        }
    }

    /// Whether its leading program has ended and was not waited for.
    pub(crate) fn leader_has_ended(&self) -> bool {
        self.programs.first().is_some_and(Program::has_ended)
    }

    /// The numbers of its programs that still run.
    pub(crate) fn pids(&self) -> BTreeSet<i32> {
        let processes = self.programs.iter().filter_map(|program| program.process.as_ref());
        processes.map(|(pid, _)| pid.as_raw_nonzero().get()).collect()
    }
}

impl Program {
    /// Whether it has ended and was not waited for.
    fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let Some((_, pidfd)) = &self.process else { return false };
        matches!(waitid(WaitId::PidFd(pidfd.as_fd()), look), Ok(Some(_)))
    }

    /// Ends whatever it left in its group, then takes its exit; `None` if it still runs.
    fn wait(&mut self) -> Option<Exit> {
        let (pid, pidfd) = self.process.as_ref()?;
        // Before its number can be used again.
        kill_process_group(*pid, Signal::KILL).ok();
        let status = loop {
            match waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED) {
                Err(Errno::INTR) => {}
                status => break status,
            }
        };
        self.process = None;
        let status = status.ok().flatten();
        let signal = status.as_ref().and_then(WaitIdStatus::terminating_signal);
        let code = status.as_ref().and_then(WaitIdStatus::exit_status);
        Some(match (signal, code) {
            (Some(signal), _) => Exit { code: 128 + signal, signal: Some(signal) },
            (None, Some(code)) => Exit { code, signal: None },
            // Somebody else waited for it; all that is known is that it is gone.
            (None, None) => Exit { code: 255, signal: None },
        })
    }

    /// Moves output to the log until there is none right now; closes it at its end. What is more than enough for once is
    /// left for later: nobody tells of it again.
    fn take_output(&mut self, buffer: &mut [u8], wall: Millis) -> Result<(), LogError> {
        let (mut taken, mut written) = (0, Ok(()));
        self.unread = false;
        while let Some(output) = &self.output {
            match rustix::io::read(output, &mut *buffer) {
                Ok(0) => {
                    self.output = None;
                    self.give_up_at = None;
                }
                Ok(read) => {
                    written = written.and(self.log.write(&buffer[..read], wall));
                    taken += read;
                }
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
            if taken >= BURST {
                self.unread = true;
                break;
            }
        }
        written
    }
}
