//! One seed of a fleet, played: robots join, vanish, come back, reboot and lie, what they say is late, doubled, reordered or
//! lost, the server crashes between any two cycles, and tasks are canceled and deleted meanwhile.
//!
//! Holds throughout: an attempt is started once, on the robot that is committed with it; no robot is given more than it has slots
//! for; of one task no two attempts run on robots that are Online, but for one that was lost and is awaited (`keepOriginal`) beside
//! the one that replaced it; what has ended never changes. In the end everything has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use muster_engine::engine::{Engine, Outside};
use muster_engine::files::{Files, Keeper};
use muster_engine::fleet::Robots as Phases;
use muster_engine::settings::{Mint, Prefetch, Robots, Settings};
use muster_fleet::liveness;
use muster_ports::blobs::MemoryBlobs;
use muster_ports::clock::{Clock, ManualClock};
use muster_ports::store::{
    Batch, Draft, History, Key, MemoryLog, Precondition, ResourceName, Revision, Store, Watch, WatchScope,
    Write,
};
use muster_ports::telemetry::Telemetry;
use muster_ports::traces::Tracer;
use muster_tasks::capacity::Capacity;
use muster_tasks::reap::ReapSettings;
use muster_tasks::settings::Settings as QueueSettings;
use muster_tasks::view::{robot_of, state_of};
use muster_types::container::Container;
use muster_types::recovery::{Disconnect, Reconcile, Reschedule};
use muster_types::robot::RobotSpec;
use muster_types::robot_status::Phase;
use muster_types::task::{Retry, Runtime, TaskSpec};
use muster_types::{Object, Resource, Robot, State, Task};
use serde::de::DeserializeOwned;

use crate::dice::Dice;
use crate::fake_fleet::FakeFleet;

/// Robots of a seed, and tasks each runs at once.
const ROBOTS: u64 = 5;
const SLOTS: u32 = 2;
/// Tasks that are asked for in one seed.
const TASKS: u32 = 60;
/// Cycles after which everything must have ended.
const MOST_CYCLES: u32 = 6_000;
/// Seconds of silence after which a robot is Offline.
const OFFLINE_AFTER: i64 = 60;

/// What a seed did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Played {
    /// Tasks that were asked for.
    pub tasks: u32,
    /// Attempts that robots started.
    pub attempts: usize,
    /// Times a robot vanished or rebooted, or the server crashed.
    pub faults: u32,
    /// Attempts that were lost with their robot.
    pub lost: u32,
    /// Attempts that were lost, came back, and were kept.
    pub kept: u32,
}

struct World {
    dice: Dice,
    clock: ManualClock,
    log: MemoryLog,
    store: Store,
    fleet: FakeFleet,
    engine: Engine,
    phases: Phases,
    watch: Watch,
    ended: BTreeMap<String, State>,
    open: BTreeMap<String, Task>,
    played: Played,
}

/// Plays a seed; what went wrong, if anything did.
pub async fn simulate_fleet(seed: u64) -> Result<Played, String> {
    let mut world = World::new(seed)?;
    world.declare_robots().await?;
    let mut cycles = 0;
    while world.played.tasks < TASKS || !world.open.is_empty() {
        cycles += 1;
        if cycles > MOST_CYCLES {
            let waits = world.open.values().next().map(|task| format!("{:?}", task.status));
            return Err(format!(
                "after {cycles} cycles {} tasks have not ended: {waits:?}",
                world.open.len()
            ));
        }
        world.ask().await?;
        world.fault()?;
        world.hear().await?;
        world.cycle().await?;
        world.clock.advance(i64::try_from(world.dice.below(3000)).unwrap_or(0));
    }
    world.played.attempts = world.fleet.started();
    Ok(world.played)
}

impl World {
    fn new(seed: u64) -> Result<Self, String> {
        let clock = ManualClock::default();
        clock.advance(1_800_000_000_000);
        let (log, fleet) = (MemoryLog::default(), FakeFleet::new(ROBOTS));
        let (store, engine, phases) = open(&log, &clock, &fleet)?;
        let watch = follow(&store)?;
        Ok(Self {
            dice: Dice::new(seed),
            clock,
            log,
            store,
            fleet,
            engine,
            phases,
            watch,
            ended: BTreeMap::new(),
            open: BTreeMap::new(),
            played: Played::default(),
        })
    }

    async fn declare_robots(&mut self) -> Result<(), String> {
        for number in 0..ROBOTS {
            let spec = RobotSpec { max_tasks: Some(SLOTS), ..RobotSpec::default() };
            let mut robot = Object::new("d", &format!("r{number}"), spec);
            robot.metadata.uid = format!("00000000-0000-7000-9000-{number:012x}");
            let zone = if number % 2 == 0 { "even" } else { "odd" };
            robot.spec.labels.insert("zone".to_owned(), zone.to_owned());
            robot.status.last_heartbeat_time = Some(self.clock.now().to_timestamp());
            self.put(robot, Precondition::Absent).await?;
        }
        Ok(())
    }

    async fn put<S: Resource>(&self, mut object: Object<S>, expect: Precondition) -> Result<(), String> {
        object.metadata.resource_version.clear();
        let resource = ResourceName::new(&format!("{}.{}", S::NAMES.plural, S::NAMES.group));
        let key = Key::new(&resource, &object.metadata.namespace, &object.metadata.name);
        let json = serde_json::to_vec(&object).map_err(|error| error.to_string())?;
        let draft = Draft::of_object(json).ok_or("no place for the revision")?;
        let committed = self.store.commit(Batch::of(Write::Put { key, expect, draft })).await;
        committed.map(drop).map_err(|error| error.to_string())
    }

    fn get<T: DeserializeOwned>(&self, plural: &str, name: &str) -> Option<(Revision, T)> {
        let key = Key::new(&ResourceName::new(&format!("{plural}.muster.dev")), "d", name);
        let stored = self.store.get(&key)?;
        Some((stored.revision, serde_json::from_slice(stored.json()).ok()?))
    }

    /// Users ask for tasks, and change their minds.
    async fn ask(&mut self) -> Result<(), String> {
        if self.played.tasks < TASKS && self.dice.once_in(2) {
            self.played.tasks += 1;
            let task = self.new_task();
            self.put(task, Precondition::Absent).await?;
        }
        if self.dice.once_in(25) {
            let open: Vec<String> = self.open.values().map(|task| task.metadata.name.clone()).collect();
            if let Some(name) = self.dice.pick(&open).cloned()
                && let Some((revision, mut task)) = self.get::<Task>("tasks", &name)
            {
                if self.dice.once_in(2) && !task.metadata.finalizers.is_empty() {
                    task.metadata.deletion_timestamp = Some(self.clock.now().to_timestamp());
                } else {
                    task.spec.cancel = true;
                }
                self.put(task, Precondition::At(revision)).await?;
            }
        }
        Ok(())
    }

    fn new_task(&mut self) -> Task {
        let (number, dice) = (self.played.tasks, &mut self.dice);
        let seconds = |seconds| Some(muster_types::Duration::from_secs(seconds));
        let zone = if dice.once_in(2) { "even" } else { "odd" };
        let mut spec = TaskSpec {
            container: Some(Container { command: vec!["true".into()], ..Container::default() }),
            runtime: Some(Runtime::Robot),
            retry: Retry { limit: Some(2), lost_limit: Some(50), ..Retry::default() },
            ..TaskSpec::default()
        };
        if dice.once_in(2) {
            spec.robot_selector.insert("zone".to_owned(), zone.to_owned());
        }
        spec.disconnect = dice.once_in(2).then(|| Disconnect {
            lost_after: dice.once_in(2).then(|| seconds(10)).flatten(),
            reconcile: if dice.once_in(2) { Reconcile::KeepOriginal } else { Reconcile::KeepReplacement },
            ..Disconnect::default()
        });
        spec.reschedule = dice.once_in(4).then(|| Reschedule {
            unlimited: true,
            delay: seconds(5),
            max_delay: seconds(20),
            ..Reschedule::default()
        });
        let mut task = Object::new("d", &format!("t{number:04}"), spec);
        task.metadata.uid = format!("00000000-0000-7000-8000-{number:012x}");
        task.metadata.generation = 1;
        task.metadata.creation_timestamp = Some(self.clock.now().to_timestamp());
        task
    }

    /// The outside goes wrong.
    fn fault(&mut self) -> Result<(), String> {
        self.played.faults += self.fleet.break_something(&mut self.dice);
        if self.dice.once_in(60) {
            self.played.faults += 1;
            self.look()?;
            self.fleet.forget_bridge();
            (self.store, self.engine, self.phases) = open(&self.log, &self.clock, &self.fleet)?;
            self.watch = follow(&self.store)?;
        }
        Ok(())
    }

    /// What robots say reaches the server: signs of life are written down, reports become facts.
    async fn hear(&mut self) -> Result<(), String> {
        let now = self.clock.now();
        for fact in self.fleet.move_on(&mut self.dice, now) {
            self.engine.report(fact);
        }
        for number in 0..ROBOTS {
            let name = format!("r{number}");
            let Some((revision, mut robot)) = self.get::<Robot>("robots", &name) else { continue };
            let connected = self.fleet.is_connected(&name);
            let mut changed = self.fleet.fold_connection(&mut robot, &name, now);
            if connected && self.dice.once_in(3) {
                robot.status.last_heartbeat_time = Some(now.to_timestamp());
                changed = true;
            }
            if changed {
                self.put(robot, Precondition::At(revision)).await?;
            }
        }
        Ok(())
    }

    async fn cycle(&mut self) -> Result<(), String> {
        self.phases.step().await.map_err(|error| error.to_string())?;
        self.engine.step().await.map_err(|error| error.to_string())?;
        self.look()?;
        let mut wrong = self.fleet.take_wrong();
        wrong.extend(self.check_slots());
        wrong.extend(self.check_copies());
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }

    /// No robot is given more than it has slots for.
    fn check_slots(&self) -> Vec<String> {
        let mut held: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        for robot in self.open.values().filter_map(robot_of) {
            *held.entry(robot).or_default() += 1;
        }
        let over = held.into_iter().filter(|(_, count)| *count > SLOTS);
        over.map(|(robot, count)| format!("{robot} was given {count} tasks")).collect()
    }

    /// Of one task no two attempts run on robots that are Online and connected and were told.
    fn check_copies(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for task in self.open.values() {
            let current = task.status.attempt;
            let others: BTreeSet<u32> = self
                .fleet
                .running(&task.metadata.uid)
                .into_iter()
                .filter(|(attempt, robot)| {
                    let online = self
                        .get::<Robot>("robots", robot)
                        .is_some_and(|(_, it)| it.status.phase() == Phase::Online);
                    *attempt != current
                        && task.status.original != Some(*attempt)
                        && online
                        && self.fleet.was_told_to_end(&task.metadata.uid, *attempt) == Some(false)
                })
                .map(|(attempt, _)| attempt)
                .collect();
            if !others.is_empty() {
                let name = &task.metadata.name;
                wrong.push(format!("{name} runs as attempt {current}, and nobody ends attempts {others:?}"));
            }
        }
        wrong
    }

    /// The number of an attempt goes back only to that of one that was awaited, and only if the task wants that.
    fn check_return(&mut self, task: &Task) -> Option<String> {
        let wants = task.spec.disconnect.is_some_and(|it| it.reconcile == Reconcile::KeepOriginal);
        let (name, number) = (&task.metadata.name, task.status.attempt);
        if task.status.original.is_some_and(|original| !wants || original > number) {
            return Some(format!("{name} awaits {:?} while it has attempt {number}", task.status.original));
        }
        let before = self.open.get(&task.metadata.uid)?;
        if number >= before.status.attempt {
            return None;
        }
        self.played.kept += 1;
        let unwanted = before.status.original != Some(number) || !wants;
        unwanted.then(|| format!("{name} went back to attempt {number}"))
    }

    /// Takes in what was committed.
    fn look(&mut self) -> Result<(), String> {
        for change in self.watch.poll_page(usize::MAX).map_err(|error| error.to_string())? {
            let task: Task =
                serde_json::from_slice(change.object.json()).map_err(|error| error.to_string())?;
            let (uid, state) = (task.metadata.uid.clone(), state_of(&task));
            if let Some(end) = self.ended.get(&uid).filter(|end| **end != state) {
                return Err(format!("{} was {end} and became {state}", task.metadata.name));
            }
            if let Some(wrong) = self.check_return(&task) {
                return Err(wrong);
            }
            let lost = task.status.attempts.last().is_some_and(|attempt| attempt.reason == "RobotLost");
            if lost && matches!(state, State::Ready | State::Failed) {
                self.played.lost += 1;
            }
            if change.deleted || state.is_terminal() {
                if change.deleted && task.status.attempts.iter().any(|attempt| attempt.finished_at.is_none())
                {
                    return Err(format!("{} went before its robot let go of it", task.metadata.name));
                }
                self.open.remove(&uid);
                self.ended.insert(uid, state);
            } else {
                self.open.insert(uid, task);
            }
        }
        Ok(())
    }
}

fn follow(store: &Store) -> Result<Watch, String> {
    let tasks = WatchScope::Resource(ResourceName::new("tasks.muster.dev"));
    store.watch(tasks, store.revision()).map_err(|error| error.to_string())
}

fn open(log: &MemoryLog, clock: &ManualClock, fleet: &FakeFleet) -> Result<(Store, Engine, Phases), String> {
    let store = Store::open_inline(log.clone(), History::default(), clock.clone())
        .map_err(|error| error.to_string())?;
    let settings = Settings {
        queue: QueueSettings::default(),
        reap: ReapSettings { succeeded: 36_000, failed: 36_000, keep_failed: 60, ..ReapSettings::default() },
        pods: None,
        robots: Some(Robots::default()),
        processes: Capacity { slots: 1, cpu_millis: None, memory: None },
        prefetch: Prefetch::Fixed(0),
        only_since: None,
        url: "http://127.0.0.1".into(),
        work_root: "/work".into(),
        base_env: Vec::new(),
        kill_timeout: Duration::from_secs(1),
        mint: Mint::worthless(),
    };
    let (runtime, blobs) = (Arc::new(fleet.clone()), Arc::new(MemoryBlobs::default()));
    let files = Files::Inline(Keeper::new(runtime.clone(), blobs.clone()));
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let telemetry = Telemetry::default();
    let outside = Outside {
        store: store.clone(),
        runtime,
        blobs,
        clock: shared.clone(),
        telemetry,
        tracer: Tracer::default(),
    };
    let engine = Engine::new(settings, outside, files).map_err(|error| error.to_string())?;
    let judged = liveness::Settings { offline_after: OFFLINE_AFTER, approve: true, max_robots: None };
    let phases = Phases::new(store.clone(), shared, judged).map_err(|error| error.to_string())?;
    Ok((store, engine, phases))
}
