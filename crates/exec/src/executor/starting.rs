//! Starting attempts: when there is room, with a directory of their own, all containers or none.

use std::io;
use std::time::{Duration, Instant};

use muster_types::attempt::{Cause, EXECUTOR_LOST, Handle, Launch, LaunchContainer, Limits, Observation};
use rustix::event::epoll;

use super::Executor;
use crate::account::Account;
use crate::attempt::Attempt;
use crate::attempt_dir::DirError;
use crate::cgroup::Group;
use crate::course::Course;
use crate::log_writer::LogWriter;
use crate::procfs::ticks_now;
use crate::spawn::{Place, Spawned, end_at_once, spawn};
use crate::start_failure::{StartFailure, check};
use crate::token::Token;

enum Refusal {
    Failed(StartFailure),
    StartedBefore,
}

impl Executor {
    pub(super) fn has_room(&self) -> bool {
        self.settings.max_running.is_none_or(|max| self.attempts.len() < max)
    }

    /// Fills the room that others left.
    pub(super) fn start_waiting(&mut self) {
        while self.has_room()
            && let Some(launch) = self.waiting.pop()
        {
            self.start_now(launch);
        }
    }

    pub(super) fn start_now(&mut self, launch: Launch) {
        let handle = launch.handle.clone();
        match self.try_start(launch) {
            Ok(()) => {}
            Err(Refusal::Failed(failure)) => self.report(handle, failure.into_observation()),
            Err(Refusal::StartedBefore) => self.report(handle, started_before()),
        }
    }

    fn try_start(&mut self, launch: Launch) -> Result<(), Refusal> {
        check(&launch).map_err(Refusal::Failed)?;
        let Launch { handle, containers, timeout, kill_timeout, limits, pod: _, robot } = launch;
        let user = robot.as_ref().map(|robot| robot.user.as_str()).filter(|user| !user.is_empty());
        let account = user.map_or(Ok(None), Account::find).map_err(Refusal::Failed)?;
        let is_staged = robot.is_some_and(|robot| !robot.artifacts.is_empty());
        let made = if is_staged {
            self.dirs.create_staged(&handle)
        } else {
            self.dirs.create(&handle, &mut self.spares)
        };
        let work = made.map_err(|error| match error {
            DirError::Exists => Refusal::StartedBefore,
            DirError::Io(error) => {
                Refusal::Failed(StartFailure::of_directory(&self.dirs.path(&handle), &error))
            }
            other @ (DirError::NotFound | DirError::BadName(_)) => Refusal::Failed(
                StartFailure::of_directory(&self.dirs.path(&handle), &io::Error::other(other)),
            ),
        })?;
        if let Some(account) = account
            && let Err(error) = account.take_over(&work, self.dirs.root())
        {
            // Without its mark it can be started again.
            self.dirs.remove(&handle).ok();
            return Err(Refusal::Failed(StartFailure::of_directory(&work, &error)));
        }
        let place = Place { work: &work, account };
        let group = self.enter_group(&handle, &limits);
        let now = Instant::now();
        let course = Course::new(now, timeout, kill_timeout, self.settings.leftover_grace);
        let mut attempt = Attempt::new(handle.clone(), course, group, ticks_now());
        let id = self.next_id;
        self.next_id += 1;
        for (index, container) in containers.into_iter().enumerate() {
            match self.spawn(id, index, &container, place) {
                Ok(spawned) => {
                    let max_bytes = self.settings.log_max_bytes;
                    let log =
                        LogWriter::new(self.dirs.clone(), handle.clone(), container.name.clone(), max_bytes);
                    attempt.join(container.name, spawned, log);
                }
                Err(failure) => {
                    let order = attempt.course.end(Cause::Stopped, None, Duration::ZERO, now);
                    attempt.carry_out(order);
                    attempt.failure = Some(failure);
                    break;
                }
            }
        }
        self.leave_group(attempt.group.as_ref());
        if attempt.failure.is_none() {
            self.report(handle.clone(), Observation::Started);
        }
        if let Some(household) = &mut self.household {
            household.watch(now);
        }
        self.ids.insert(handle, id);
        self.attempts.insert(id, attempt);
        self.settle(id);
        Ok(())
    }

    fn enter_group(&mut self, handle: &Handle, limits: &Limits) -> Option<Group> {
        let entered = self.cgroups.create(&handle.to_string(), limits).and_then(|group| {
            let Some(group) = group else { return Ok(None) };
            group.enter().inspect_err(|_| drop(group.leave())).map(|()| Some(group))
        });
        entered.unwrap_or_else(|error| {
            self.note(format!("limits of some attempts are not enforced: {error}"));
            None
        })
    }

    fn leave_group(&mut self, group: Option<&Group>) {
        let left = group.map_or(Ok(()), |group| group.leave().and_then(|()| group.limit_cpu()));
        if let Err(error) = left {
            self.note(format!("limits of some attempts are not enforced: {error}"));
        }
    }

    fn note(&mut self, notice: String) {
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }

    /// Starts the program of one container and watches it.
    fn spawn(
        &mut self,
        id: u64,
        container: usize,
        launch: &LaunchContainer,
        place: Place<'_>,
    ) -> Result<Spawned, StartFailure> {
        let spawned = spawn(launch, place, &self.null, &self.settings.default_path, &mut self.programs)?;
        let data = |is_output| epoll::EventData::new_u64(Token { id, container, is_output }.pack());
        // Told once, not as long as it is so: a program that is just being started holds copies of all descriptors for a moment,
        // and what is closed here meanwhile would be told of over and over.
        let once = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&self.epoll, &spawned.output, data(true), once)
            .and_then(|()| epoll::add(&self.epoll, &spawned.pidfd, data(false), once))
            .map_err(|errno| {
                end_at_once(spawned.pid);
                StartFailure::of_resources("follow the process", &errno.into())
            })?;
        Ok(spawned)
    }
}

fn started_before() -> Observation {
    Observation::Lost {
        reason: EXECUTOR_LOST.into(),
        message: "it was started before and is not started twice".into(),
    }
}
