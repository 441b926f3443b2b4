//! Starting attempts: when there is room, with a directory of their own, all containers or none.

use std::time::{Duration, Instant};

use muster_types::attempt::{Cause, Handle, Launch, LaunchContainer, Limits, Observation};
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::Executor;
use crate::account::Account;
use crate::attempt::Attempt;
use crate::cgroup::Group;
use crate::course::Course;
use crate::data_file::give_data;
use crate::image_run::container_name;
use crate::log_writer::LogWriter;
use crate::moment::Moment;
use crate::procfs::ticks_now;
use crate::removal::Removal;
use crate::spawn::{Place, Spawned, end_at_once, spawn};
use crate::spawner::{Begun, Outcome, Shop, Spawner};
use crate::start_failure::{Refusal, StartFailure, check};
use crate::token::{SPAWNER, Token};
use crate::when_deserted::WhenDeserted;

impl Executor {
    /// Starts what there is room for and no thread starts.
    pub(super) fn start_waiting(&mut self) {
        if self.spawner.is_none() && !self.starts_alone && self.queue.wants_threads() {
            self.make_spawner();
        }
        while let Some(launch) = self.queue.take(self.spawner.is_some()) {
            self.start_now(launch);
        }
    }

    fn start_now(&mut self, launch: Launch) {
        let handle = launch.handle.clone();
        if let Err(refusal) = self.try_start(launch) {
            self.queue.release();
            self.report(handle, refusal.into_observation());
        }
    }

    fn try_start(&mut self, launch: Launch) -> Result<(), Refusal> {
        check(&launch).map_err(Refusal::Failed)?;
        let Launch {
            handle,
            mut containers,
            timeout,
            kill_timeout,
            priority: _,
            prefetch: _,
            limits,
            pod: _,
            robot,
            image,
            data,
        } = launch;
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
            self.dirs.create(&handle, &self.spares)
        };
        let work = made.map_err(|error| Refusal::of_directory(&self.dirs.path(&handle), error))?;
        let given = data.map_or(Ok(()), |data| give_data(&data, &work, &mut containers));
        let taken = || account.map_or(Ok(()), |account| account.take_over(&work, self.dirs.root()));
        if let Err(error) = given.and_then(|()| taken()) {
            // Without its mark it can be started again.
            self.dirs.remove(&handle).ok();
            return Err(Refusal::Failed(StartFailure::of_directory(&work, &error)));
        }
        // Clients are small; what they run has its own limits.
        let group = if image.is_none() { self.make_group(&handle, &limits) } else { None };
        let containers = match &image {
            Some(image) => self.render_clients(&handle, &containers, image, limits, user.as_deref()),
            None => containers,
        };
        let now = Instant::now();
        let course = self.course(now, timeout, kill_timeout, unseen);
        let mut attempt = Attempt::new(handle.clone(), course, group, ticks_now());
        let id = self.next_id;
        self.next_id += 1;
        let removal = image.map(|image| Removal::Due {
            driver: image.driver,
            names: containers.iter().map(|container| container_name(&handle, &container.name)).collect(),
        });
        for (index, container) in containers.into_iter().enumerate() {
            let place = Place { attempt: &handle, work: &work, account, group: attempt.group.as_ref() };
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
        attempt.removal = removal.filter(|_| attempt.has_programs());
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

    fn course(
        &self,
        now: Instant,
        timeout: Option<Duration>,
        kill_timeout: Duration,
        unseen: Option<Duration>,
    ) -> Course {
        let mut course = Course::new(now, timeout, kill_timeout, self.settings.leftover_grace);
        course = course.unseen_at_most(unseen);
        course.observe_silence(self.silent_since);
        course
    }

    /// Makes the threads that start programs.
    fn make_spawner(&mut self) {
        let shop = Shop {
            queue: self.queue.clone(),
            dirs: self.dirs.clone(),
            spares: self.spares.clone(),
            null: self.null.clone(),
            default_path: self.settings.default_path.clone(),
            // Whoever comes next looks there for how an attempt ended.
            reuses: self.settings.when_deserted == WhenDeserted::End,
        };
        let made = Spawner::new(shop, self.settings.max_running).and_then(|spawner| {
            self.watch(&spawner, SPAWNER)?;
            Ok(spawner)
        });
        match made {
            Ok(spawner) => self.spawner = Some(spawner),
            Err(error) => {
                self.starts_alone = true;
                self.note(format!("attempts are started one after the other: {error}"));
            }
        }
    }

    /// Takes in what other threads have begun.
    pub(super) fn take_begun(&mut self) {
        for begun in self.spawner.as_ref().map(Spawner::take_begun).unwrap_or_default() {
            self.take_in(begun);
        }
    }

    /// Has other threads start nothing more, and takes in all that they have begun.
    pub(super) fn hold_starts(&mut self) {
        self.queue.hold(true);
        while self.queue.has_begun() {
            let Some(begun) = self.spawner.as_ref().and_then(Spawner::wait) else { return };
            self.take_in(begun);
        }
    }

    /// Ends what [`Executor::hold_starts`] began.
    pub(super) fn go_on_starting(&mut self) {
        self.queue.hold(false);
    }

    fn take_in(&mut self, Begun { launch, outcome }: Begun) {
        let Launch { handle, containers, timeout, kill_timeout, robot, .. } = launch;
        self.queue.take_in(&handle);
        let Some(container) = containers.into_iter().next() else { return self.queue.release() };
        let id = self.next_id;
        self.next_id += 1;
        let (spawned, since, start_ticks, ended) = match outcome {
            Outcome::Refused(refusal) => {
                self.queue.release();
                return self.report(handle, refusal.into_observation());
            }
            Outcome::NotSpawned { work } => {
                let start_ticks = ticks_now();
                let place = Place { attempt: &handle, work: &work, account: None, group: None };
                let spawned = self.spawn(id, 0, &container, place);
                (spawned, Moment::now(), start_ticks, None)
            }
            Outcome::Runs { spawned, since, start_ticks } => {
                (self.follow(id, 0, spawned), since, start_ticks, None)
            }
            Outcome::Ended { spawned, since, start_ticks, at, silent } => {
                if silent {
                    self.unmarked.insert(handle.clone(), Instant::now());
                }
                (Ok(spawned), since, start_ticks, Some(at))
            }
        };
        let unseen = robot.and_then(|robot| robot.stop_after_silence);
        let course = self.course(since.at, timeout, kill_timeout, unseen);
        let mut attempt = Attempt::new(handle.clone(), course, None, start_ticks);
        match spawned {
            Ok(spawned) => {
                self.join(&mut attempt, container.name, spawned);
                self.report_at(since.wall, handle.clone(), Observation::Started);
            }
            Err(failure) => attempt.failure = Some(failure),
        }
        if let Some(Moment { at, wall }) = ended {
            (attempt.has_slot, attempt.over_at) = (false, Some(wall));
            attempt.observe_exit(0, at, wall, self.settings.drain_timeout, &mut self.buffer);
            if let Some(output) = attempt.output() {
                // Something that it left behind writes still; if that cannot be followed, it is not waited for.
                self.add(id, 0, true, output).ok();
                attempt.over_at = None;
            }
        }
        if let Some(household) = &mut self.household {
            household.watch(Instant::now());
        }
        self.ids.insert(handle, id);
        self.attempts.insert(id, attempt);
        self.settle(id);
    }

    fn join(&self, attempt: &mut Attempt, name: String, spawned: Spawned) {
        let handle = attempt.handle.clone();
        let log = LogWriter::new(self.dirs.clone(), handle, name.clone(), self.settings.log_max_bytes);
        attempt.join(name, spawned, log);
    }

    fn make_group(&mut self, handle: &Handle, limits: &Limits) -> Option<Group> {
        self.cgroups.create(&handle.to_string(), limits).unwrap_or_else(|error| {
            self.note(format!("limits of some attempts are not enforced: {error}"));
            None
        })
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
        self.add(id, container, true, &spawned.output)
            .and_then(|()| self.add(id, container, false, &spawned.pidfd))
            .map_err(|errno| {
                end_at_once(spawned.pid);
                StartFailure::of_resources("follow the process", &errno.into())
            })?;
        Ok(spawned)
    }

    fn add(&self, id: u64, container: usize, is_output: bool, what: &OwnedFd) -> Result<(), Errno> {
        let data = epoll::EventData::new_u64(Token { id, container, is_output }.pack());
        // Told once, not as long as it is so: a program that is just being started holds copies of all descriptors for a moment,
        // and what is closed here meanwhile would be told of over and over.
        epoll::add(&self.epoll, what, data, epoll::EventFlags::IN | epoll::EventFlags::ET)
    }
}
