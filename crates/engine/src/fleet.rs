//! The loop of robots: it decides on their phases and writes them down.
//!
//! It has no runtime and speaks to no robot: all it does is write to the store, from what the bridge wrote there. A robot costs
//! nothing until it changed or its silence is due. Decisions are those of `muster-fleet`.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::future::join_all;
use muster_fleet::liveness::{Settings, heard_before, judge};
use muster_ports::clock::{Clock, Millis};
use muster_ports::publisher::Boxed;
use muster_ports::store::{
    Batch, Change, CommitError, Key, Precondition, ResourceName, Store, Watch, WatchError, WatchScope, Write,
};
use muster_ports::telemetry::Telemetry;
use muster_ports::telemetry::catalog::ROBOTS;
use muster_types::robot_status::Phase;
use muster_types::{JsonText, Robot, Timestamp};

use crate::intake::Intake;
use crate::refusals::Refusals;
use crate::wake::{self, Cycle};
use crate::writes::put;

/// Robots looked at in one cycle.
const SLICE: usize = 1024;
/// Seconds for which a robot that worked must be silent still after its silence was noticed: a server that was paused, or whose disk was
/// full, has not taken in yet what it was told meanwhile.
const DOUBT: i64 = 2;

/// The loop's state.
pub struct Robots {
    store: Store,
    clock: Arc<dyn Clock>,
    settings: Settings,
    resource: ResourceName,
    watch: Watch,
    /// When this loop began to listen, in seconds.
    since: i64,
    known: HashMap<Arc<str>, Known>,
    /// How many of them were let in.
    members: usize,
    telemetry: Telemetry,
    /// When they are to be looked at.
    due: BTreeSet<(i64, Arc<str>)>,
    dirty: BTreeSet<Arc<str>>,
    refusals: Refusals,
}

/// What is known of a robot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    phase: Phase,
    /// Its last sign of life: as it is written down, on the clock of whoever heard it, and when this loop saw that.
    beat: Option<(Timestamp, i64)>,
    /// When it was noticed that it is silent for too long.
    silent: Option<i64>,
    /// When it is to be looked at.
    due: Option<i64>,
}

impl Known {
    fn is_member(self) -> bool {
        self.phase != Phase::Pending
    }
}

/// Sees to the phases of robots until the store closes.
pub fn run(
    store: Store,
    clock: Arc<dyn Clock>,
    settings: Settings,
    telemetry: Telemetry,
) -> Boxed<'static, ()> {
    Box::pin(async move {
        let robots = Robots::new(store.clone(), clock.clone(), settings);
        wake::run(store, clock, robots.map(|robots| Robots { telemetry, ..robots })).await;
    })
}

impl Robots {
    /// Reads what is stored.
    pub fn new(store: Store, clock: Arc<dyn Clock>, settings: Settings) -> Result<Self, WatchError> {
        let resource = ResourceName::new("robots.muster.dev");
        let mut robots = Self {
            watch: store.watch(WatchScope::Resource(resource.clone()), store.revision())?,
            since: clock.now().to_timestamp().as_second(),
            store,
            clock,
            settings,
            resource,
            known: HashMap::new(),
            members: 0,
            telemetry: Telemetry::default(),
            due: BTreeSet::new(),
            dirty: BTreeSet::new(),
            refusals: Refusals::of("the phases of robots"),
        };
        robots.read_all();
        Ok(robots)
    }

    fn read_all(&mut self) {
        self.known.clear();
        self.members = 0;
        self.due.clear();
        for stored in self.store.snapshot(&self.resource).range(None, None) {
            self.dirty.insert(stored.path.clone());
            if let Ok(robot) = Robot::from_json(stored.json()) {
                self.know(
                    &stored.path,
                    Some(Known { phase: robot.status.phase(), beat: None, silent: None, due: None }),
                );
            }
        }
    }

    /// Takes note of a robot, or that it is gone.
    fn know(&mut self, path: &Arc<str>, known: Option<Known>) {
        let before = match known {
            Some(known) => self.known.insert(path.clone(), known),
            None => self.known.remove(path),
        };
        self.members += usize::from(known.is_some_and(Known::is_member));
        self.members -= usize::from(before.is_some_and(Known::is_member));
        if let Some(at) = before.and_then(|before| before.due) {
            self.due.remove(&(at, path.clone()));
        }
        if let Some(at) = known.and_then(|known| known.due) {
            self.due.insert((at, path.clone()));
        }
    }

    /// One whole cycle. Returns when to look again even if nothing happens.
    pub async fn step(&mut self) -> Result<Option<Millis>, WatchError> {
        self.take_in()?;
        let now = self.clock.now();
        let second = now.to_timestamp().as_second();
        while let Some((at, path)) = self.due.first().cloned()
            && at <= second
        {
            self.due.pop_first();
            self.dirty.insert(path);
        }
        let slice: Vec<_> = self.dirty.iter().take(SLICE).cloned().collect();
        let looked = !slice.is_empty();
        let mut writes = Vec::new();
        for path in slice {
            self.dirty.remove(&path);
            writes.extend(self.look_at(&path, second).map(|write| (path, write)));
        }
        let commits = writes.into_iter().map(|(path, write)| {
            let store = self.store.clone();
            async move { (path, store.commit(Batch::of(write)).await) }
        });
        for (path, outcome) in join_all(commits).await {
            self.refusals.observe(&outcome);
            match outcome {
                Ok(_) => {}
                // Its change brings it here again.
                Err(CommitError::Conflict { .. }) => drop(self.dirty.insert(path)),
                Err(error) => {
                    tracing::debug!(path = &*path, %error, "the phase of a robot could not be committed");
                    if let Some(known) = self.known.get(&path).copied() {
                        self.know(&path, Some(Known { silent: None, due: Some(second + 1), ..known }));
                    }
                }
            }
        }
        self.refusals.tell(now);
        if looked {
            self.tell();
        }
        let due = self.due.first().map(|(at, _)| Millis(at.saturating_mul(1000)));
        Ok(if self.dirty.is_empty() { due } else { Some(now) })
    }

    /// How many robots are in which phase.
    fn tell(&self) {
        for phase in Phase::ALL {
            let count = self.known.values().filter(|robot| robot.phase == *phase).count();
            self.telemetry.set(ROBOTS, &[phase.as_str()], u64::try_from(count).unwrap_or(u64::MAX));
        }
    }

    /// When the last sign of life of a robot was seen. The clocks of those that hear robots need not agree with this one: a sign
    /// that is new was seen now, whatever its time says.
    fn observe_beat(&self, path: &Arc<str>, robot: &Robot, second: i64) -> Option<(Timestamp, i64)> {
        let written = robot.status.last_heartbeat_time?;
        let seen = match self.known.get(path).and_then(|known| known.beat) {
            Some((known, seen)) if known == written => seen,
            Some(_) => second,
            None => heard_before(robot.status.phase(), written.as_second(), second),
        };
        Some((written, seen))
    }

    /// Decides on one robot; what is to be written, if anything is.
    fn look_at(&mut self, path: &Arc<str>, second: i64) -> Option<Write> {
        let key = Key { resource: self.resource.clone(), path: path.clone() };
        let stored = self.store.get(&key)?;
        let mut robot: Robot = match Robot::from_json(stored.json()) {
            Ok(robot) => robot,
            Err(error) => {
                tracing::error!(%key, %error, "a stored robot cannot be read; it is left alone");
                return None;
            }
        };
        let is_member = self.known.get(path).is_some_and(|known| known.is_member());
        let others = self.members - usize::from(is_member);
        let beat = self.observe_beat(path, &robot, second);
        let heard = beat.map(|(_, seen)| seen);
        let verdict = judge(&robot, heard, &self.settings, others, self.since, second);
        if robot.status.phase() == Phase::Online && verdict.phase == Phase::Offline {
            let silent = self.known.get(path).and_then(|known| known.silent).unwrap_or(second);
            let sure = silent.saturating_add(DOUBT);
            if second < sure {
                let known = Known { phase: Phase::Online, beat, silent: Some(silent), due: Some(sure) };
                self.know(path, Some(known));
                return None;
            }
        }
        self.know(path, Some(Known { phase: verdict.phase, beat, silent: None, due: verdict.wake_at }));
        if robot.status.phase == Some(verdict.phase) && robot.status.message == verdict.message {
            return None;
        }
        robot.status.phase = Some(verdict.phase);
        robot.status.message = verdict.message;
        put(key, Precondition::At(stored.revision), &mut robot)
    }
}

impl Intake for Robots {
    fn watch(&mut self) -> &mut Watch {
        &mut self.watch
    }

    fn observe(&mut self, change: &Change) {
        let path = &change.object.path;
        if change.deleted {
            self.dirty.remove(path);
            self.know(path, None);
        } else {
            self.dirty.insert(path.clone());
        }
    }

    fn start_over(&mut self) -> Result<(), WatchError> {
        let scope = WatchScope::Resource(self.resource.clone());
        self.watch = self.store.watch(scope, self.store.revision())?;
        self.read_all();
        Ok(())
    }
}

impl Cycle for Robots {
    const WHAT: &'static str = "the loop of robots";

    fn step(&mut self) -> impl Future<Output = Result<Option<Millis>, WatchError>> + Send {
        Self::step(self)
    }
}
