//! Everything that descends from this process: taken in when its parent is gone, ended when nobody can own it any more.
//!
//! A program may leave its process group (`setsid`) and its parents (double fork). With this process as the subreaper such
//! an orphan becomes its child. Which attempt it came from is not known, but it started while that attempt ran: an orphan
//! that is older than every running attempt belongs to one that ended, and is killed. An orphan is never killed while the
//! attempt it came from may still run.
//!
//! Most orphans say themselves where they came from: the mark of their attempt is in their environment. Those are ended before
//! the end of the attempt counts, because whatever may start only then would run beside them. The sweep is for the others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_child_subreaper, waitpid};

use crate::procfs::{ProcessStat, processes, stat_of};

/// Between two looks at all processes, at least; a look may take a hundredth of the time.
const PERIOD: Duration = Duration::from_secs(1);
/// After something was killed: its children come next.
const SOON: Duration = Duration::from_millis(20);
/// Start times are known to the tick; what started in the same moment may belong together.
const SLACK_TICKS: u64 = 2;

/// The orphans of this process.
#[derive(Debug)]
pub(crate) struct Household {
    me: i32,
    sweep_at: Option<Instant>,
    /// The children of the thread that orphans become children of, if the kernel lists them.
    children: Option<File>,
}

impl Household {
    /// From now on orphans of this process's descendants become its children.
    pub(crate) fn adopt() -> io::Result<Self> {
        let me = rustix::process::getpid();
        set_child_subreaper(Some(me))?;
        let me = me.as_raw_nonzero().get();
        let children = File::open(format!("/proc/self/task/{me}/children")).ok();
        Ok(Self { me, sweep_at: None, children })
    }

    /// Kills the orphans that carry the mark of an attempt which is over otherwise, with all that descends from them. True if
    /// some are not gone yet, or, with `for_dying`, if an orphan is just exiting: it does not show its mark any more, and its own
    /// children become orphans next. `programs` are those that the executor follows.
    pub(crate) fn end_marked(
        &self,
        mark: &str,
        for_dying: bool,
        programs: impl FnOnce() -> BTreeSet<i32>,
    ) -> bool {
        let children = self.read_children();
        if children.is_empty() {
            return false;
        }
        let programs = programs();
        let mut left = BTreeSet::new();
        let mut is_dying = false;
        for child in children.into_iter().filter(|child| !programs.contains(child)) {
            match fs::read(format!("/proc/{child}/environ")) {
                Ok(environ) if environ.split(|byte| *byte == 0).any(|it| it == mark.as_bytes()) => {
                    left.insert(child);
                }
                // It has no memory any more.
                Ok(environ) if environ.is_empty() => match stat_of(child) {
                    Some(stat) if stat.zombie => reap(child),
                    Some(_) => {
                        is_dying |= fs::read(format!("/proc/{child}/cmdline")).is_ok_and(|it| it.is_empty());
                    }
                    None => {}
                },
                Ok(_) | Err(_) => {}
            }
        }
        if !left.is_empty() {
            kill_all(&with_descendants(&left, &processes().collect::<Vec<_>>()));
        }
        for_dying && is_dying || !left.is_empty()
    }

    fn read_children(&self) -> Vec<i32> {
        let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
        let Some(file) = &self.children else { return Vec::new() };
        while let Ok(read @ 1..) = file.read_at(&mut buffer, text.len() as u64) {
            text.extend_from_slice(&buffer[..read]);
        }
        let text = String::from_utf8_lossy(&text);
        text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// Something runs that may leave orphans.
    pub(crate) fn watch(&mut self, now: Instant) {
        self.sweep_at.get_or_insert(now + PERIOD);
    }

    /// When to sweep, if at all.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.sweep_at
    }

    /// Waits for orphans that ended and kills those that nobody can own. `programs` are the children that the executor
    /// itself started and follows; `oldest` is when the first of the running attempts started, in ticks.
    pub(crate) fn sweep(&mut self, programs: &BTreeSet<i32>, oldest: Option<u64>) {
        let begun = Instant::now();
        let all: Vec<ProcessStat> = processes().collect();
        let owned =
            |orphan: &ProcessStat| oldest.is_some_and(|start| start <= orphan.start_ticks + SLACK_TICKS);
        let mut orphans = 0;
        let mut unowned = BTreeSet::new();
        for orphan in
            all.iter().filter(|process| process.parent == self.me && !programs.contains(&process.pid))
        {
            if orphan.zombie {
                reap(orphan.pid);
                continue;
            }
            orphans += 1;
            if !owned(orphan) {
                unowned.insert(orphan.pid);
            }
        }
        kill_all(&with_descendants(&unowned, &all));
        let now = Instant::now();
        self.sweep_at = if !unowned.is_empty() {
            Some(now + SOON)
        } else if orphans > 0 || oldest.is_some() {
            Some(now + PERIOD.max(now.duration_since(begun) * 100))
        } else {
            None
        };
    }
}

/// Kills every descendant of this process and waits for them; false if some did not end in time.
pub(crate) fn end_descendants(deadline: Instant) -> bool {
    let me = rustix::process::getpid().as_raw_nonzero().get();
    loop {
        let all: Vec<ProcessStat> = processes().collect();
        let children: BTreeSet<i32> =
            all.iter().filter(|process| process.parent == me).map(|process| process.pid).collect();
        if children.is_empty() {
            return true;
        }
        kill_all(&with_descendants(&children, &all));
        for child in &children {
            wait_until(*child, deadline);
        }
        if Instant::now() >= deadline {
            return false;
        }
    }
}

/// Waits for a killed child and takes its status, so that its number is free.
fn wait_until(child: i32, deadline: Instant) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{PidfdFlags, pidfd_open};

    let Some(pid) = Pid::from_raw(child) else { return };
    if let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], timeout.as_ref()).ok();
    }
    reap(child);
}

fn reap(child: i32) {
    if let Some(pid) = Pid::from_raw(child) {
        waitpid(Some(pid), WaitOptions::NOHANG).ok();
    }
}

fn kill_all(processes: &BTreeSet<i32>) {
    for pid in processes.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        kill_process(pid, Signal::KILL).ok();
    }
}

/// The given processes and all that descend from them.
fn with_descendants(roots: &BTreeSet<i32>, all: &[ProcessStat]) -> BTreeSet<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(process.pid);
    }
    let mut found = BTreeSet::new();
    let mut open: Vec<i32> = roots.iter().copied().collect();
    while let Some(pid) = open.pop() {
        if found.insert(pid) {
            open.extend(children.get(&pid).into_iter().flatten());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_through_every_generation() {
        let process = |pid, parent| ProcessStat { pid, parent, zombie: false, session: 1, start_ticks: 0 };
        let all = [process(2, 1), process(3, 2), process(4, 3), process(5, 1), process(6, 5)];
        assert_eq!(with_descendants(&BTreeSet::from([2]), &all), BTreeSet::from([2, 3, 4]));
        assert_eq!(with_descendants(&BTreeSet::from([9]), &all), BTreeSet::from([9]));
        assert_eq!(with_descendants(&BTreeSet::new(), &all), BTreeSet::new());
    }
}
