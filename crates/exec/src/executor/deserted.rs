//! Attempts whose master is gone or goes: taken up by whoever comes next, given up, or stopped with their server.

use std::time::{Duration, Instant};

use muster_types::attempt::{EXECUTOR_LOST, Ending, Handle, Observation, SERVER_STOPPED};

use super::Executor;
use crate::attempt::Attempt;
use crate::course::{Course, Order, STOPPED_WITH_SERVER};
use crate::moment::wall_now;
use crate::shepherd::Door;
use crate::when_deserted::WhenDeserted;

impl Executor {
    /// Somebody wants to know what became of an attempt that was asked for in an earlier life. If it runs, that is said, and its end
    /// later; if it has ended, how; if neither is known, that it is lost. Nothing is started.
    pub fn take_up(&mut self, handle: &Handle) {
        // That it was started, or why it could not be, is said when it is.
        if self.queue.waits(handle) || self.queue.is_begun(handle) {
            return;
        }
        let what = match self.ids.get(handle).and_then(|id| self.attempts.get(id)) {
            Some(attempt) if attempt.failure.is_none() => Observation::Started,
            // Why it could not be started is said in a moment.
            Some(_) => return,
            None => self.dirs.kept_ending(handle).map_or_else(|| self.lost(handle), Observation::Ended),
        };
        self.report(handle.clone(), what);
    }

    fn lost(&self, handle: &Handle) -> Observation {
        let message = if self.dirs.exists(handle) {
            "what ran it was killed, or the machine was restarted"
        } else {
            "it was not started before its agent ended"
        };
        Observation::Lost { reason: EXECUTOR_LOST.into(), message: message.into() }
    }

    /// Nobody sees attempts since then, or somebody does again. Those that may not run unseen end when their time is over.
    pub fn observe_silence(&mut self, since: Option<Instant>) {
        self.silent_since = since;
        // What is begun meanwhile is told when it is taken in.
        for id in self.attempts.keys().copied().collect::<Vec<_>>() {
            self.order(id, |course| {
                course.observe_silence(since);
                None
            });
        }
    }

    /// Since when nobody sees attempts.
    pub(crate) fn silent_since(&self) -> Option<Instant> {
        self.silent_since
    }

    /// Opens the door for whoever comes next, if attempts are to go on. Where that is not possible they end with whoever asked for
    /// them, and that is said.
    pub(crate) fn open_door(&mut self) -> Option<Door> {
        let WhenDeserted::GoOn { .. } = self.settings.when_deserted else { return None };
        match Door::open(&self.settings.work_root) {
            Ok(door) => Some(door),
            Err(error) => {
                self.note(format!("attempts end with their agent: no socket can be made: {error}"));
                None
            }
        }
    }

    /// Nobody will come back: all end, each with its own grace, and for this reason.
    pub fn give_up(&mut self, why: &str) {
        let now = Instant::now();
        self.end_all(why, None, |course| course.give_up(why.to_owned(), now));
    }

    /// The server is stopped: all end for this reason, each with its own grace, but with no more than `at_most`.
    pub fn stop_with_server(&mut self, at_most: Duration) {
        let now = Instant::now();
        self.end_all(STOPPED_WITH_SERVER, Some(SERVER_STOPPED), |course| {
            course.stop_with_server(at_most, now)
        });
    }

    /// None that waits starts any more; to all others that is done which their courses say.
    fn end_all(&mut self, why: &str, reason: Option<&str>, decide: impl Fn(&mut Course) -> Option<Order>) {
        for launch in self.queue.remove_all() {
            let (message, reason) = (Some(why.to_owned()), reason.map(str::to_owned));
            let ending = Ending { message, reason, ..Ending::before_start(wall_now()) };
            self.report(launch.handle, Observation::Ended(ending));
        }
        self.hold_starts();
        self.go_on_starting();
        for id in self.attempts.keys().copied().collect::<Vec<_>>() {
            // One that has ended by itself is about to be taken in as such.
            if !self.attempts.get(&id).is_some_and(Attempt::leader_has_ended) {
                self.order(id, &decide);
            }
        }
    }

    /// Writes down how an attempt ended, if somebody may come and ask for it.
    pub(super) fn keep_ending(&mut self, handle: &Handle, ending: &Ending) {
        let WhenDeserted::GoOn { .. } = self.settings.when_deserted else { return };
        if let Err(error) = self.dirs.keep_ending(handle, ending, self.settings.sync_logs) {
            self.note(format!("how some attempts ended cannot be written down: {error}"));
        }
    }

    /// Whether nothing runs, nothing waits, and all was said.
    pub fn is_idle(&self) -> bool {
        // In this order: what a thread takes from the queue is begun at once.
        let waits = self.queue.waiting() > 0 || self.queue.has_begun();
        !waits && self.attempts.is_empty() && self.facts.is_empty()
    }
}
