//! The clock of the machine that all its processes read alike, and an alarm by it.
//!
//! It counts from the start of the machine and runs on while the machine sleeps; no one sets it. A moment that one process names is
//! the same moment for another, however long either of them was paused.

use std::io;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, clock_gettime, timerfd_create,
    timerfd_settime,
};

/// Time since the machine was started, with the time that it slept.
pub fn machine_time() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// A descriptor that can be read from a moment on.
#[derive(Debug)]
pub(crate) struct Alarm(OwnedFd);

impl Alarm {
    /// An alarm that is not set.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?))
    }

    /// Sets it to a moment of [`machine_time`], instead of the one before. If that has passed, it can be read at once.
    pub(crate) fn set(&self, moment: Duration) -> io::Result<()> {
        // Zero would mean never.
        let moment = moment.max(Duration::from_nanos(1));
        let it_value = Timespec::try_from(moment).map_err(io::Error::other)?;
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval, it_value })?;
        Ok(())
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
