//! Schedules, played by seed: times pass and jump, runs end late or are deleted, schedules are suspended, the server crashes
//! between any two cycles, and two servers work on the same store for a while.
//!
//! What must hold, seen from outside: each occurrence is made at most once, whatever happens; none is lost where the policy
//! keeps all; runs that may not overlap do not; and each end of other work makes one run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_engine::schedules::Schedules;
use muster_ports::clock::{Clock as _, ManualClock};
use muster_ports::store::{
    Batch, CommitError, Draft, History, Key, MemoryLog, Precondition, ResourceName, Store, Watch, WatchScope,
    Write,
};
use muster_types::schedule::{Concurrency, ScheduleSpec};
use muster_types::{Object, Resource, Schedule, State, Task, Timestamp};
use muster_workflows::schedule::occurrences_of;
use serde_json::json;

use crate::dice::Dice;

/// Schedules of one seed.
const SCHEDULES: u64 = 6;
/// Cycles of one seed.
const CYCLES: u32 = 400;

/// What a seed did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Played {
    /// Runs that were made for a time.
    pub runs: u32,
    /// Runs that were made because other work ended.
    pub triggered: u32,
    /// Crashes, second servers, clock jumps.
    pub faults: u32,
}

struct World {
    dice: Dice,
    clock: ManualClock,
    log: MemoryLog,
    store: Store,
    loops: Vec<Schedules>,
    watch: Watch,
    /// Times that were made, by schedule, in the order of making.
    made: BTreeMap<String, Vec<Timestamp>>,
    /// Work that made runs, by schedule.
    triggers: BTreeMap<String, BTreeSet<String>>,
    open: BTreeMap<String, BTreeSet<String>>,
    /// Schedules that were suspended, so that what they left out is not missed.
    suspended: BTreeSet<String>,
    played: Played,
}

/// Plays a seed; what went wrong, if anything did.
pub async fn simulate(seed: u64) -> Result<Played, String> {
    let mut world = World::new(seed)?;
    for index in 0..SCHEDULES {
        let schedule = world.new_schedule(index)?;
        world.write(schedule, |_| {}).await?;
    }
    for _ in 0..CYCLES {
        world.fault()?;
        world.users().await?;
        let which = usize::try_from(world.dice.below(world.loops.len() as u64)).unwrap_or(0);
        world.loops[which].step().await.map_err(|error| error.to_string())?;
        world.look()?;
        world.clock.advance(i64::try_from(world.dice.below(90_000)).unwrap_or(0));
    }
    world.settle().await?;
    world.check_complete()?;
    Ok(world.played)
}

impl World {
    fn new(seed: u64) -> Result<Self, String> {
        let clock = ManualClock::default();
        clock.advance(1_800_000_000_000);
        let log = MemoryLog::default();
        let store = open(&log, &clock)?;
        let loops = vec![start(&store, &clock)?];
        let watch = follow(&store)?;
        Ok(Self {
            dice: Dice::new(seed),
            clock,
            log,
            store,
            loops,
            watch,
            made: BTreeMap::new(),
            triggers: BTreeMap::new(),
            open: BTreeMap::new(),
            suspended: BTreeSet::new(),
            played: Played::default(),
        })
    }

    fn new_schedule(&mut self, index: u64) -> Result<Schedule, String> {
        let specs = ["R/PT1M", "R40/PT2M", "*/3 * * * *", "R/2027-01-15T08:00:00Z/PT5M", "* * * * *"];
        let spec = self.dice.pick(&specs).copied().unwrap_or("R/PT1M");
        let policy = match self.dice.below(5) {
            0 => json!({"allowConcurrent": true, "skipOutdated": false}),
            1 => json!({"concurrency": "Queue"}),
            2 => json!({"concurrency": "Replace"}),
            3 => json!({"allowConcurrent": true, "jitter": "30s"}),
            _ => json!({}),
        };
        let mut policy = policy;
        let triggered = index == SCHEDULES - 1;
        if !triggered {
            policy["timeSpec"] = json!(spec);
        }
        let triggers = if triggered {
            json!([{"on": {"kind": "Task", "selector": {"base": "yes"}}}])
        } else {
            json!([])
        };
        let labels = if index == 0 { json!({"base": "yes"}) } else { json!({}) };
        let limit = if self.dice.once_in(2) { json!(2) } else { json!(null) };
        let spec: ScheduleSpec = serde_json::from_value(json!({
            "schedulePolicy": policy,
            "triggers": triggers,
            "successfulHistoryLimit": limit,
            "template": {"metadata": {"labels": labels}, "spec": {"container": {"command": ["true"]}}},
        }))
        .map_err(|error| error.to_string())?;
        let mut schedule = Schedule::new("default", &format!("s{index}"), spec);
        schedule.metadata.uid = format!("uid-of-s{index}");
        schedule.metadata.generation = 1;
        schedule.metadata.creation_timestamp = Some(self.clock.wall().to_timestamp());
        Ok(schedule)
    }

    /// Crashes, a second server that does not know it is one too many, and clocks that jump.
    fn fault(&mut self) -> Result<(), String> {
        if self.dice.once_in(12) {
            self.played.faults += 1;
            self.look()?;
            self.clock = self.clock.restarted();
            self.store = open(&self.log, &self.clock)?;
            self.loops = vec![start(&self.store, &self.clock)?];
            self.watch = follow(&self.store)?;
        }
        if self.dice.once_in(15) {
            self.played.faults += 1;
            if self.loops.len() > 1 {
                self.loops.pop();
            } else {
                self.loops.push(start(&self.store, &self.clock)?);
            }
        }
        if self.dice.once_in(20) {
            self.played.faults += 1;
            let jump = i64::try_from(self.dice.below(1_200_000)).unwrap_or(0) - 300_000;
            self.clock.jump_wall(jump);
        }
        Ok(())
    }

    /// Runs end, and users suspend schedules and delete what ended.
    async fn users(&mut self) -> Result<(), String> {
        let at = self.clock.now().to_timestamp();
        let tasks: Vec<Task> = self.all();
        for task in tasks {
            let ended = task.status.state.is_some_and(State::is_terminal);
            if !ended && (task.spec.cancel || self.dice.once_in(3)) {
                let state = if task.spec.cancel { State::Canceled } else { State::Succeeded };
                self.write(task, |task| {
                    task.status.state = Some(state);
                    task.status.terminated = Some(at.into());
                })
                .await?;
            } else if ended && self.dice.once_in(30) {
                let key = key_of(&task);
                let deletion = Write::Delete { key, expect: Precondition::Exists };
                drop(self.store.commit(Batch::of(deletion)).await);
            }
        }
        if self.dice.once_in(40) {
            let schedules: Vec<Schedule> = self.all();
            if let Some(schedule) = self.dice.pick(&schedules).cloned() {
                self.suspended.insert(schedule.metadata.name.clone());
                self.write(schedule, |schedule| {
                    schedule.spec.suspend = !schedule.spec.suspend;
                    schedule.metadata.generation += 1;
                })
                .await?;
            }
        }
        self.look()
    }

    /// Everybody who waits gets their turn, with one server and a clock that stands.
    async fn settle(&mut self) -> Result<(), String> {
        self.loops.truncate(1);
        for _ in 0..2_000 {
            let at = self.clock.now().to_timestamp();
            self.loops[0].step().await.map_err(|error| error.to_string())?;
            self.look()?;
            let open: Vec<Task> = self.all();
            let open: Vec<_> =
                open.into_iter().filter(|task| !task.status.state.is_some_and(State::is_terminal)).collect();
            if open.is_empty() {
                return Ok(());
            }
            for task in open {
                self.write(task, |task| {
                    task.status.state = Some(State::Succeeded);
                    task.status.terminated = Some(at.into());
                })
                .await?;
            }
        }
        Err("schedules never come to rest though the clock stands".to_owned())
    }

    /// Looks at everything that was committed since the last look.
    fn look(&mut self) -> Result<(), String> {
        loop {
            let changes = self.watch.poll_page(1024).map_err(|error| error.to_string())?;
            if changes.is_empty() {
                return Ok(());
            }
            for change in changes.iter().filter(|change| change.resource.as_str() == "tasks.muster.dev") {
                let task: Task =
                    serde_json::from_slice(change.object.json()).map_err(|error| error.to_string())?;
                self.look_at(&task, change.previous.is_none(), change.deleted)?;
            }
        }
    }

    fn look_at(&mut self, task: &Task, is_new: bool, deleted: bool) -> Result<(), String> {
        let name = &task.metadata.name;
        let owner = task.metadata.owner_references.first().ok_or("a run without an owner")?.name.clone();
        let ended = task.status.state.is_some_and(State::is_terminal);
        let open = self.open.entry(owner.clone()).or_default();
        if ended || deleted {
            open.remove(name);
        }
        if !is_new {
            return Ok(());
        }
        open.insert(name.clone());
        let may_overlap = self.policy(&owner)?.concurrency();
        let overlap = self.open.get(&owner).map_or(0, BTreeSet::len);
        if overlap > 1 && matches!(may_overlap, Concurrency::Forbid | Concurrency::Queue) {
            return Err(format!("{name} was made though another run of {owner} had not ended"));
        }
        let annotation = |key: &str| task.metadata.annotations.get(key);
        if let Some(time) = annotation("muster.dev/scheduled-at") {
            let time: Timestamp = time.parse().map_err(|_| format!("{name} is for no time"))?;
            let made = self.made.entry(owner).or_default();
            if made.last().is_some_and(|last| *last >= time) {
                return Err(format!("{name} was made again, or after a later one"));
            }
            made.push(time);
            self.played.runs += 1;
        } else if let Some(work) = annotation("muster.dev/triggered-by") {
            if !self.triggers.entry(owner).or_default().insert(work.clone()) {
                return Err(format!("{name} was made twice for the end of {work}"));
            }
            self.played.triggered += 1;
        }
        Ok(())
    }

    /// None is lost where the policy keeps all, and where there was no suspension that leaves some out on purpose.
    fn check_complete(&mut self) -> Result<(), String> {
        let schedules: Vec<Schedule> = self.all();
        let now = self.clock.wall().to_timestamp();
        for schedule in schedules {
            let name = &schedule.metadata.name;
            if schedule.spec.schedule_policy.skips_outdated() || self.suspended.contains(name) {
                continue;
            }
            let Some(occurrences) = occurrences_of(&schedule)? else { continue };
            let created = schedule.metadata.creation_timestamp.ok_or("no creation")?;
            let mut expected = Vec::new();
            let mut next = occurrences.next_at_or_after(created);
            while let Some(time) = next.filter(|time| *time <= now) {
                expected.push(time);
                next = occurrences.next_after(time);
            }
            let made = self.made.entry(name.clone()).or_default();
            // The clock may have gone back since the last ones were made.
            made.retain(|time| *time <= now);
            if *made != expected {
                return Err(format!("{name} made {} of {} occurrences", made.len(), expected.len()));
            }
        }
        Ok(())
    }

    fn policy(&self, name: &str) -> Result<muster_types::schedule::SchedulePolicy, String> {
        let key = Key::new(&resource::<ScheduleSpec>(), "default", name);
        let stored = self.store.get(&key).ok_or("a run of no schedule")?;
        let schedule: Schedule = serde_json::from_slice(stored.json()).map_err(|error| error.to_string())?;
        Ok(schedule.spec.schedule_policy)
    }

    fn all<S: Resource>(&self) -> Vec<Object<S>> {
        let snapshot = self.store.snapshot(&resource::<S>());
        snapshot.range(None, None).filter_map(|stored| serde_json::from_slice(stored.json()).ok()).collect()
    }

    /// Writes an object, changed; whoever was faster is not overwritten.
    async fn write<S: Resource>(
        &self,
        mut object: Object<S>,
        change: impl FnOnce(&mut Object<S>),
    ) -> Result<(), String> {
        let expect = match object.metadata.resource_version.parse() {
            Ok(revision) => Precondition::At(muster_ports::store::Revision(revision)),
            Err(_) => Precondition::Absent,
        };
        change(&mut object);
        object.metadata.resource_version.clear();
        let key = key_of(&object);
        let json = serde_json::to_vec(&object).map_err(|error| error.to_string())?;
        let draft = Draft::of_object(json).ok_or("no place for the revision")?;
        match self.store.commit(Batch::of(Write::Put { key, expect, draft })).await {
            Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn resource<S: Resource>() -> ResourceName {
    ResourceName::new(&format!("{}.{}", S::NAMES.plural, S::NAMES.group))
}

fn key_of<S: Resource>(object: &Object<S>) -> Key {
    Key::new(&resource::<S>(), &object.metadata.namespace, &object.metadata.name)
}

fn open(log: &MemoryLog, clock: &ManualClock) -> Result<Store, String> {
    Store::open_inline(log.clone(), History::default(), clock.clone()).map_err(|error| error.to_string())
}

fn start(store: &Store, clock: &ManualClock) -> Result<Schedules, String> {
    Schedules::new(store.clone(), Arc::new(clock.clone())).map_err(|error| error.to_string())
}

fn follow(store: &Store) -> Result<Watch, String> {
    store.watch(WatchScope::All, store.revision()).map_err(|error| error.to_string())
}
