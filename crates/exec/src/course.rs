//! The life of an attempt from its start to its end: who is told to end, when, and why.
//!
//! Decides by values alone: it is given exits and moments and answers with what to do to the containers that still run. It
//! sends no signal and reads no clock.
//!
//! Rules: the first container leads. When it ends, the others are leftovers and are ended. A sidecar that ends with a code
//! other than 0 while the leader runs ends the attempt; one that ends with 0 does not. Whoever is told to end has a grace,
//! then is killed. The first cause to end an attempt is the one that is reported.

use std::time::{Duration, Instant};

use muster_types::attempt::{Cause, ContainerEnding, SERVER_STOPPED};

/// A grace longer than this is as good as this.
const FOR_EVER: Duration = Duration::from_hours(100 * 365 * 24);
/// Why an attempt that may not run unseen was ended.
const UNSEEN: &str = "the server was away for too long";
/// What people read of an attempt that ended because the server was stopped.
pub(crate) const STOPPED_WITH_SERVER: &str = "the server was stopped";

/// How one program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit {
    /// As a shell shows it: 128 + signal if a signal ended it.
    pub(crate) code: i32,
    pub(crate) signal: Option<i32>,
}

/// What to do to every container that still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Ask it to end (SIGTERM).
    Ask,
    /// End it (SIGKILL).
    Kill,
}

/// Where an attempt is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The leader runs and nobody wants it to end.
    Running { timeout_at: Option<Instant> },
    /// What still runs was asked to end, and is killed at the given time; without one it was killed already.
    Ending { kill_at: Option<Instant> },
    /// Nothing runs.
    Over,
}

#[derive(Debug)]
struct Member {
    name: String,
    exit: Option<Exit>,
    leftover: bool,
}

/// The life of one attempt. The leading container has index 0.
#[derive(Debug)]
pub(crate) struct Course {
    phase: Phase,
    cause: Cause,
    /// CamelCase, where the cause does not say it all.
    reason: Option<&'static str>,
    message: Option<String>,
    members: Vec<Member>,
    kill_timeout: Duration,
    leftover_grace: Duration,
    /// It may run unseen for this long.
    unseen: Option<Duration>,
    /// Since when nobody sees it.
    silent_since: Option<Instant>,
}

impl Course {
    /// An attempt that runs since `now`; its containers join one by one.
    pub(crate) fn new(
        now: Instant,
        timeout: Option<Duration>,
        kill_timeout: Duration,
        leftover_grace: Duration,
    ) -> Self {
        let timeout_at = timeout.and_then(|timeout| now.checked_add(timeout));
        Self {
            phase: Phase::Running { timeout_at },
            cause: Cause::Itself,
            reason: None,
            message: None,
            members: Vec::new(),
            kill_timeout,
            leftover_grace: leftover_grace.min(kill_timeout),
            unseen: None,
            silent_since: None,
        }
    }

    /// The same, which may run unseen only for so long.
    pub(crate) fn unseen_at_most(self, unseen: Option<Duration>) -> Self {
        Self { unseen, ..self }
    }

    /// A container of the attempt runs.
    pub(crate) fn join(&mut self, name: String) {
        self.members.push(Member { name, exit: None, leftover: false });
    }

    /// Somebody outside wants the attempt to end. Asking again can only hasten it.
    pub(crate) fn end(
        &mut self,
        cause: Cause,
        message: Option<String>,
        grace: Duration,
        now: Instant,
    ) -> Option<Order> {
        let kill_at = now.checked_add(grace).unwrap_or(now + FOR_EVER);
        match self.phase {
            Phase::Running { .. } => {
                self.cause = cause;
                self.message = message;
                self.phase = Phase::Ending { kill_at: Some(kill_at) };
                Some(if grace.is_zero() { self.kill() } else { Order::Ask })
            }
            Phase::Ending { kill_at: Some(_) } if grace.is_zero() => Some(self.kill()),
            Phase::Ending { kill_at: Some(old) } => {
                self.phase = Phase::Ending { kill_at: Some(kill_at.min(old)) };
                None
            }
            Phase::Ending { kill_at: None } | Phase::Over => None,
        }
    }

    /// Nobody will come back for the attempt: it ends with its own grace.
    pub(crate) fn give_up(&mut self, message: String, now: Instant) -> Option<Order> {
        self.end(Cause::Stopped, Some(message), self.kill_timeout, now)
    }

    /// The server is stopped: the attempt ends with its own grace, but with no more than `at_most`.
    pub(crate) fn stop_with_server(&mut self, at_most: Duration, now: Instant) -> Option<Order> {
        if let Phase::Running { .. } = self.phase {
            self.reason = Some(SERVER_STOPPED);
        }
        let grace = self.kill_timeout.min(at_most);
        self.end(Cause::Stopped, Some(STOPPED_WITH_SERVER.to_owned()), grace, now)
    }

    /// Nobody sees the attempt since then; or somebody does again.
    pub(crate) fn observe_silence(&mut self, since: Option<Instant>) {
        self.silent_since = since;
    }

    /// The log of the attempt can no longer be written. That counts even if its programs have ended meanwhile.
    pub(crate) fn observe_log_failure(&mut self, message: String, now: Instant) -> Option<Order> {
        match self.phase {
            Phase::Running { .. } => self.end(Cause::LogFailed, Some(message), self.kill_timeout, now),
            Phase::Ending { .. } | Phase::Over => {
                if self.cause == Cause::Itself {
                    self.cause = Cause::LogFailed;
                    self.message = Some(message);
                }
                None
            }
        }
    }

    /// A container ended.
    pub(crate) fn observe_exit(&mut self, index: usize, exit: Exit, now: Instant) -> Option<Order> {
        let member = self.members.get_mut(index)?;
        member.exit = Some(exit);
        let name = member.name.clone();
        if self.members.iter().all(|member| member.exit.is_some()) {
            self.phase = Phase::Over;
            return None;
        }
        match (self.phase, index) {
            (Phase::Running { .. }, 0) => {
                for member in self.members.iter_mut().filter(|member| member.exit.is_none()) {
                    member.leftover = true;
                }
                self.end(Cause::Itself, None, self.leftover_grace, now)
            }
            (Phase::Running { .. }, _) if exit.code != 0 => {
                let code = exit.code;
                let message =
                    format!("container `{name}` ended with code {code} before the leading container");
                self.end(Cause::Itself, Some(message), self.kill_timeout, now)
            }
            (Phase::Running { .. } | Phase::Ending { .. } | Phase::Over, _) => None,
        }
    }

    /// Time passed.
    pub(crate) fn observe_time(&mut self, now: Instant) -> Option<Order> {
        match self.phase {
            Phase::Running { timeout_at: Some(at) } if at <= now => {
                self.end(Cause::Timeout, None, self.kill_timeout, now)
            }
            Phase::Running { .. } if self.unseen_until().is_some_and(|at| at <= now) => {
                self.give_up(UNSEEN.to_owned(), now)
            }
            Phase::Ending { kill_at: Some(at) } if at <= now => Some(self.kill()),
            Phase::Running { .. } | Phase::Ending { .. } | Phase::Over => None,
        }
    }

    /// When [`Course::observe_time`] has something to say.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Running { timeout_at } => timeout_at.into_iter().chain(self.unseen_until()).min(),
            Phase::Ending { kill_at } => kill_at,
            Phase::Over => None,
        }
    }

    fn unseen_until(&self) -> Option<Instant> {
        self.silent_since?.checked_add(self.unseen?)
    }

    /// Whether a container has ended.
    pub(crate) fn has_ended(&self, index: usize) -> bool {
        self.members.get(index).is_none_or(|member| member.exit.is_some())
    }

    pub(crate) fn cause(&self) -> Cause {
        self.cause
    }

    pub(crate) fn reason(&self) -> Option<&'static str> {
        self.reason
    }

    pub(crate) fn take_message(&mut self) -> Option<String> {
        self.message.take()
    }

    /// How each container ended, given the sizes of their logs in order. Complete once all have ended.
    pub(crate) fn endings(&self, log_bytes: impl IntoIterator<Item = u64>) -> Vec<ContainerEnding> {
        let ending = |(member, log_bytes): (&Member, u64)| {
            let Exit { code, signal } = member.exit?;
            Some(ContainerEnding {
                name: member.name.clone(),
                exit_code: code,
                signal,
                killed_as_leftover: member.leftover,
                log_bytes,
            })
        };
        self.members.iter().zip(log_bytes).filter_map(ending).collect()
    }

    fn kill(&mut self) -> Order {
        self.phase = Phase::Ending { kill_at: None };
        Order::Kill
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KILL_TIMEOUT: Duration = Duration::from_secs(30);
    const LEFTOVER: Duration = Duration::from_secs(10);

    fn course(start: Instant, timeout: Option<u64>, names: &[&str]) -> Course {
        let mut course = Course::new(start, timeout.map(Duration::from_secs), KILL_TIMEOUT, LEFTOVER);
        for name in names {
            course.join((*name).into());
        }
        course
    }

    fn code(code: i32) -> Exit {
        Exit { code, signal: None }
    }

    fn shown(course: &Course) -> Vec<(i32, bool)> {
        let endings = course.endings([0, 0, 0]);
        endings.iter().map(|ending| (ending.exit_code, ending.killed_as_leftover)).collect()
    }

    #[test]
    fn an_attempt_that_may_not_run_unseen_is_ended_when_nobody_saw_it_for_so_long() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let course = || {
            let mut course = Course::new(start, Some(Duration::from_secs(100)), KILL_TIMEOUT, KILL_TIMEOUT)
                .unseen_at_most(Some(Duration::from_secs(10)));
            course.join("main".into());
            course
        };
        let mut seen = course();
        assert_eq!(seen.deadline(), Some(at(100)));
        seen.observe_silence(Some(at(5)));
        assert_eq!(seen.deadline(), Some(at(15)));
        seen.observe_silence(None);
        assert_eq!((seen.deadline(), seen.observe_time(at(15))), (Some(at(100)), None));
        let mut unseen = course();
        unseen.observe_silence(Some(at(5)));
        assert_eq!(unseen.observe_time(at(14)), None);
        assert_eq!(unseen.observe_time(at(15)), Some(Order::Ask));
        assert_eq!(unseen.deadline(), Some(at(15) + KILL_TIMEOUT));
        assert_eq!((unseen.cause(), unseen.take_message().as_deref()), (Cause::Stopped, Some(UNSEEN)));
    }

    #[test]
    fn an_attempt_whose_only_container_ends_is_over() {
        let start = Instant::now();
        let mut course = course(start, Some(60), &["main"]);
        assert_eq!(course.observe_exit(0, code(7), start), None);
        assert_eq!(
            (course.cause(), course.deadline(), shown(&course)),
            (Cause::Itself, None, vec![(7, false)])
        );
    }

    #[test]
    fn a_timeout_asks_then_kills() {
        let start = Instant::now();
        let mut course = course(start, Some(60), &["main", "side"]);
        let late = start + Duration::from_mins(1);
        assert_eq!(course.observe_time(start + Duration::from_millis(59_999)), None);
        assert_eq!(course.observe_time(late), Some(Order::Ask));
        assert_eq!(course.deadline(), Some(late + KILL_TIMEOUT));
        assert_eq!(course.observe_time(late + KILL_TIMEOUT), Some(Order::Kill));
        assert_eq!(course.deadline(), None);
        assert_eq!(course.observe_time(late + 2 * KILL_TIMEOUT), None);
        course.observe_exit(0, code(137), late);
        course.observe_exit(1, code(137), late);
        assert_eq!((course.cause(), shown(&course)), (Cause::Timeout, vec![(137, false), (137, false)]));
    }

    #[test]
    fn leftovers_are_asked_and_then_killed_sooner_than_others() {
        let start = Instant::now();
        let mut course = course(start, None, &["main", "done", "side"]);
        assert_eq!(course.observe_exit(1, code(0), start), None);
        assert_eq!(course.observe_exit(0, code(0), start), Some(Order::Ask));
        assert_eq!(course.deadline(), Some(start + LEFTOVER));
        assert_eq!(course.observe_time(start + LEFTOVER), Some(Order::Kill));
        assert_eq!(course.observe_exit(2, code(137), start), None);
        assert_eq!(
            (course.cause(), shown(&course)),
            (Cause::Itself, vec![(0, false), (0, false), (137, true)])
        );
    }

    #[test]
    fn a_sidecar_that_fails_first_ends_the_attempt_and_is_named() {
        let start = Instant::now();
        let mut course = course(start, None, &["main", "side"]);
        assert_eq!(course.observe_exit(1, code(3), start), Some(Order::Ask));
        assert_eq!(course.deadline(), Some(start + KILL_TIMEOUT));
        assert_eq!(course.observe_exit(0, code(143), start), None);
        assert_eq!((course.cause(), shown(&course)), (Cause::Itself, vec![(143, false), (3, false)]));
        let message = course.take_message();
        assert_eq!(
            message.as_deref(),
            Some("container `side` ended with code 3 before the leading container")
        );
    }

    #[test]
    fn a_failing_leftover_is_not_named() {
        let start = Instant::now();
        let mut course = course(start, None, &["main", "side"]);
        course.observe_exit(0, code(0), start);
        course.observe_exit(1, code(3), start);
        assert_eq!((course.take_message(), shown(&course)), (None, vec![(0, false), (3, true)]));
    }

    #[test]
    fn the_first_cause_stays_and_later_ones_only_hasten() {
        let start = Instant::now();
        let mut course = course(start, Some(1), &["main"]);
        let late = start + Duration::from_secs(1);
        assert_eq!(course.observe_time(late), Some(Order::Ask));
        assert_eq!(course.end(Cause::Stopped, None, KILL_TIMEOUT * 2, late), None);
        assert_eq!(course.deadline(), Some(late + KILL_TIMEOUT));
        assert_eq!(course.end(Cause::Stopped, None, Duration::from_secs(2), late), None);
        assert_eq!(course.deadline(), Some(late + Duration::from_secs(2)));
        assert_eq!(course.end(Cause::Stopped, None, Duration::ZERO, late), Some(Order::Kill));
        assert_eq!(course.end(Cause::Stopped, None, Duration::ZERO, late), None);
        assert_eq!(course.cause(), Cause::Timeout);
    }

    #[test]
    fn an_attempt_that_ends_with_the_server_has_its_own_grace_up_to_the_servers() {
        let start = Instant::now();
        for (at_most, grace) in [(KILL_TIMEOUT * 2, KILL_TIMEOUT), (LEFTOVER, LEFTOVER)] {
            let mut course = course(start, None, &["main"]);
            assert_eq!(course.stop_with_server(at_most, start), Some(Order::Ask));
            assert_eq!(course.deadline(), Some(start + grace));
            assert_eq!(course.observe_time(start + grace), Some(Order::Kill));
            assert_eq!((course.cause(), course.reason()), (Cause::Stopped, Some(SERVER_STOPPED)));
        }
    }

    #[test]
    fn an_attempt_that_is_ending_already_has_no_more_time_when_the_server_is_stopped() {
        let start = Instant::now();
        let mut course = course(start, Some(1), &["main"]);
        let late = start + Duration::from_secs(1);
        assert_eq!(course.observe_time(late), Some(Order::Ask));
        assert_eq!(course.stop_with_server(LEFTOVER, late), None);
        assert_eq!(course.deadline(), Some(late + LEFTOVER));
        assert_eq!((course.cause(), course.reason()), (Cause::Timeout, None));
    }

    #[test]
    fn no_grace_kills_at_once() {
        let start = Instant::now();
        let mut course = course(start, None, &["main"]);
        assert_eq!(course.end(Cause::Stopped, None, Duration::ZERO, start), Some(Order::Kill));
        assert_eq!(course.deadline(), None);
    }

    #[test]
    fn a_log_that_fails_ends_the_attempt_or_is_at_least_reported() {
        let start = Instant::now();
        let mut running = course(start, None, &["main"]);
        assert_eq!(running.observe_log_failure("disk full".into(), start), Some(Order::Ask));
        assert_eq!(running.observe_log_failure("again".into(), start), None);
        assert_eq!((running.cause(), running.take_message()), (Cause::LogFailed, Some("disk full".into())));
        let mut ended = course(start, None, &["main"]);
        ended.observe_exit(0, code(0), start);
        assert_eq!(ended.observe_log_failure("disk full".into(), start), None);
        assert_eq!((ended.cause(), ended.take_message()), (Cause::LogFailed, Some("disk full".into())));
        let mut stopped = course(start, None, &["main"]);
        stopped.end(Cause::Stopped, None, KILL_TIMEOUT, start);
        stopped.observe_log_failure("disk full".into(), start);
        assert_eq!(stopped.cause(), Cause::Stopped);
    }

    #[test]
    fn times_beyond_the_end_of_time_never_come() {
        let start = Instant::now();
        let mut course = Course::new(start, Some(Duration::MAX), Duration::MAX, LEFTOVER);
        course.join("main".into());
        assert_eq!(course.deadline(), None);
        assert_eq!(course.end(Cause::Stopped, None, Duration::MAX, start), Some(Order::Ask));
        assert_eq!(course.observe_time(start + FOR_EVER / 2), None);
        assert_eq!(course.end(Cause::Stopped, None, Duration::ZERO, start), Some(Order::Kill));
    }
}
