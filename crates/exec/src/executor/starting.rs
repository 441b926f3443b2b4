//! Starting attempts: when there is room, with a directory of their own, all containers or none.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use muster_types::attempt::{Cause, EXECUTOR_LOST, Handle, Launch, LaunchContainer, Limits, Observation};
use rustix::event::epoll;

use super::Executor;
use crate::account::Account;
use crate::attempt::Attempt;
use crate::attempt_dir::DirError;
use crate::cgroup::Group;
use crate::course::Course;
use crate::image_run::container_name;
use crate::log_writer::LogWriter;
use crate::procfs::ticks_now;
use crate::removal::Removal;
use crate::spawn::{Place, Spawned, end_at_once, find, spawn};
use crate::spawner::{Spawner, Start, Started};
use crate::start_failure::{StartFailure, check};
use crate::token::{SPAWNER, Token};

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
        let Launch { handle, containers, timeout, kill_timeout, limits, pod: _, robot, image } = launch;
        let user = robot.as_ref().map(|robot| robot.user.clone()).filter(|user| !user.is_empty());
        let account = match &image {
            // Users of an image are its own.
            Some(image) => self.find_driver(image.driver).map(|()| None),
            None => user.as_deref().map_or(Ok(None), Account::find),
        };
        let account = account.map_err(Refusal::Failed)?;
        let unseen = robot.as_ref().and_then(|robot| robot.stop_after_silence);
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
        // Clients are small; what they run has its own limits.
        let group = if image.is_none() { self.enter_group(&handle, &limits) } else { None };
        let containers = match &image {
            Some(image) => self.render_clients(&handle, &containers, image, limits, user.as_deref()),
            None => containers,
        };
        let now = Instant::now();
        let mut course = Course::new(now, timeout, kill_timeout, self.settings.leftover_grace);
        course = course.unseen_at_most(unseen);
        course.observe_silence(self.silent_since);
        let mut attempt = Attempt::new(handle.clone(), course, group, ticks_now());
        let id = self.next_id;
        self.next_id += 1;
        let removal = image.map(|image| Removal::Due {
            driver: image.driver,
            names: containers.iter().map(|container| container_name(&handle, &container.name)).collect(),
        });
        let alone = attempt.group.is_none() && account.is_none() && removal.is_none();
        let containers =
            if alone { self.start_elsewhere(&mut attempt, id, &work, containers) } else { containers };
        for (index, container) in containers.into_iter().enumerate() {
            match self.spawn(id, index, &container, place) {
                Ok(spawned) => self.join(&mut attempt, container.name, spawned),
                Err(failure) => {
                    let order = attempt.course.end(Cause::Stopped, None, Duration::ZERO, now);
                    attempt.carry_out(order);
                    attempt.failure = Some(failure);
                    break;
                }
            }
        }
        self.leave_group(attempt.group.as_ref());
        attempt.removal = removal.filter(|_| attempt.has_programs());
        if attempt.failure.is_none() && !attempt.starting {
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

    /// Has another thread start the program of an attempt with one container, if others run meanwhile. Answers with the
    /// containers that are left to be started here.
    fn start_elsewhere(
        &mut self,
        attempt: &mut Attempt,
        id: u64,
        work: &Path,
        mut containers: Vec<LaunchContainer>,
    ) -> Vec<LaunchContainer> {
        if containers.len() != 1 || self.attempts.is_empty() {
            return containers;
        }
        let found = find(&containers[0], work, &self.settings.default_path, &mut self.programs);
        let (Ok(path), Some(spawner)) = (found, self.spawner()) else { return containers };
        let Some(container) = containers.pop() else { return containers };
        spawner.start(Start { id, container, path, work: work.to_owned() });
        attempt.starting = true;
        containers
    }

    /// The threads that start programs, if there can be any.
    fn spawner(&mut self) -> Option<&Spawner> {
        if self.spawner.is_none() {
            let made = Spawner::new(&self.null).and_then(|spawner| {
                self.watch(&spawner, SPAWNER)?;
                Ok(spawner)
            });
            match made {
                Ok(spawner) => self.spawner = Some(spawner),
                Err(error) => self.note(format!("attempts are started one after the other: {error}")),
            }
        }
        self.spawner.as_ref()
    }

    /// Takes in what other threads have started.
    pub(super) fn take_started(&mut self) {
        let started = self.spawner.as_ref().map(Spawner::take_started).unwrap_or_default();
        for started in started {
            self.observe_started(started);
        }
    }

    /// Waits until nothing is being started by other threads.
    pub(super) fn finish_starts(&mut self) {
        while self.attempts.values().any(|attempt| attempt.starting) {
            let Some(started) = self.spawner.as_ref().and_then(Spawner::wait) else { return };
            self.observe_started(started);
        }
    }

    /// Forgets what other threads were to start and have not begun to.
    pub(super) fn take_back_starts(&mut self) {
        for start in self.spawner.as_ref().map(Spawner::take_back).unwrap_or_default() {
            let Some(attempt) = self.attempts.remove(&start.id) else { continue };
            self.ids.remove(&attempt.handle);
            // Without its mark it can be started again.
            self.dirs.remove(&attempt.handle).ok();
        }
    }

    fn observe_started(&mut self, Started { start, spawned }: Started) {
        let Start { id, container, work, .. } = start;
        let Some(mut attempt) = self.attempts.remove(&id) else { return };
        attempt.starting = false;
        let spawned = if let Ok(spawned) = spawned {
            self.follow(id, 0, spawned)
        } else {
            // It may have been taken away since it was found.
            self.programs.forget();
            self.spawn(id, 0, &container, Place { work: &work, account: None })
        };
        match spawned {
            Ok(spawned) => {
                self.join(&mut attempt, container.name, spawned);
                // What it was to be told meanwhile.
                attempt.carry_out(attempt.course.order());
                self.report(attempt.handle.clone(), Observation::Started);
            }
            Err(failure) => attempt.failure = Some(failure),
        }
        self.attempts.insert(id, attempt);
        self.settle(id);
    }

    fn join(&self, attempt: &mut Attempt, name: String, spawned: Spawned) {
        let handle = attempt.handle.clone();
        let log = LogWriter::new(self.dirs.clone(), handle, name.clone(), self.settings.log_max_bytes);
        attempt.join(name, spawned, log);
    }

    fn enter_group(&mut self, handle: &Handle, limits: &Limits) -> Option<Group> {
        let made = self.cgroups.create(&handle.to_string(), limits);
        if matches!(made, Ok(Some(_))) {
            // What other threads start must not be born into the group of this one.
            self.finish_starts();
        }
        let entered = made.and_then(|group| {
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

    pub(super) fn note(&mut self, notice: String) {
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }

    /// Starts the program of one container and watches it.
    pub(super) fn spawn(
        &mut self,
        id: u64,
        container: usize,
        launch: &LaunchContainer,
        place: Place<'_>,
    ) -> Result<Spawned, StartFailure> {
        let spawned = spawn(launch, place, &self.null, &self.settings.default_path, &mut self.programs)?;
        self.follow(id, container, spawned)
    }

    /// Watches a program that was started.
    fn follow(&self, id: u64, container: usize, spawned: Spawned) -> Result<Spawned, StartFailure> {
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
