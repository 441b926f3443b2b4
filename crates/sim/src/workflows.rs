//! Groups and jobs under crashes: one seed, played by the real loop on a fake store, with a worker that ends tasks as the
//! dice say. Members are deleted, groups canceled and suspended, commits refused, and the server crashes between any two
//! cycles.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_engine::workflows::Workflows;
use muster_ports::clock::{Clock, ManualClock, Millis};
use muster_ports::store::{
    Batch, Draft, History, Key, LogError, MemoryLog, Precondition, ResourceName, Store, Watch, WatchScope,
    Write,
};
use muster_tasks::view::state_of;
use muster_types::job::{FailurePolicy, JobGroup, JobSpec, When};
use muster_types::task_group::{GroupMode, GroupTask, TaskGroupSpec};
use muster_types::{Counts, Job, Object, Resource, State, Task, TaskGroup, WorkState};
use muster_workflows::departure;
use muster_workflows::group_brief::{GroupBrief, group_name_of};

use crate::dice::Dice;

/// Jobs of one seed.
const JOBS: u64 = 4;
/// Cycles after which everything must have ended.
const MOST_CYCLES: u32 = 4_000;

/// What a seed did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkPlayed {
    /// Tasks that were made.
    pub tasks: u32,
    /// Groups that were made.
    pub groups: u32,
    /// Crashes, refused commits, deletions and changes of mind.
    pub faults: u32,
}

/// What is known of a group from outside.
#[derive(Debug, Default)]
struct Seen {
    group: TaskGroup,
    /// How each member is or was, by place.
    members: BTreeMap<u32, State>,
}

struct World {
    dice: Dice,
    clock: ManualClock,
    log: MemoryLog,
    store: Store,
    workflows: Workflows,
    watch: Watch,
    jobs: BTreeMap<String, Job>,
    groups: BTreeMap<String, Seen>,
    tasks: BTreeMap<String, Task>,
    /// Every name a task or group was ever made with.
    made: BTreeSet<String>,
    played: WorkPlayed,
}

/// Plays a seed; what went wrong, if anything did.
pub async fn simulate_workflows(seed: u64) -> Result<WorkPlayed, String> {
    let mut world = World::new(seed)?;
    for number in 0..JOBS {
        world.ask(number).await?;
    }
    for _ in 0..MOST_CYCLES {
        world.fault().await?;
        world.work().await?;
        world.workflows.step().await.map_err(|error| error.to_string())?;
        world.look()?;
        if world.jobs.values().all(|job| job.status.current_state().is_terminal()) {
            world.check_ends()?;
            return Ok(world.played);
        }
        let pause = world.dice.below(400);
        world.clock.advance(i64::try_from(pause).unwrap_or(0));
    }
    let open = world.jobs.values().filter(|job| !job.status.current_state().is_terminal());
    let open: Vec<_> = open.map(|job| format!("{} {:?}", job.metadata.name, job.status)).collect();
    Err(format!("after {MOST_CYCLES} cycles jobs still go on: {}", open.join("; ")))
}

impl World {
    fn new(seed: u64) -> Result<Self, String> {
        let clock = ManualClock::default();
        clock.advance(1_800_000_000_000);
        let log = MemoryLog::default();
        let (store, workflows, watch) = open(&log, &clock)?;
        Ok(Self {
            dice: Dice::new(seed),
            clock,
            log,
            store,
            workflows,
            watch,
            jobs: BTreeMap::new(),
            groups: BTreeMap::new(),
            tasks: BTreeMap::new(),
            made: BTreeSet::new(),
            played: WorkPlayed::default(),
        })
    }

    /// Asks for a job with some groups that depend on earlier ones.
    async fn ask(&mut self, number: u64) -> Result<(), String> {
        let mut spec = JobSpec::default();
        if self.dice.once_in(3) {
            spec.failure_policy = Some(FailurePolicy::Stop);
        }
        for place in 0..2 + self.dice.below(5) {
            let mut group = JobGroup { name: format!("g{place}"), ..JobGroup::default() };
            for earlier in 0..place {
                if self.dice.once_in(3) {
                    group.depends_on.push(format!("g{earlier}"));
                }
            }
            if !group.depends_on.is_empty() {
                group.when = self
                    .dice
                    .pick(&[None, None, Some(When::Failed), Some(When::Completed)])
                    .copied()
                    .flatten();
            }
            let tasks = usize::try_from(1 + self.dice.below(4)).unwrap_or(1);
            group.tasks = vec![GroupTask::default(); tasks];
            match self.dice.below(3) {
                0 => group.mode = Some(GroupMode::Pipeline),
                1 => {
                    group.count = {
                        let most = if self.dice.once_in(5) { 300 } else { 6 };
                        u32::try_from(1 + self.dice.below(most)).ok()
                    };
                    group.parallelism = self.dice.once_in(2).then_some(3);
                }
                _ => {}
            }
            spec.task_groups.push(group);
        }
        let mut job = Job::new("default", &format!("job{number}"), spec);
        job.metadata.uid = format!("0190b0a0-0000-7000-8000-{number:012x}");
        job.metadata.generation = 1;
        let key = Key::new(&resource::<JobSpec>(), "default", &job.metadata.name);
        self.write(key, Precondition::Absent, &mut job).await.map(drop)
    }

    async fn write<S: Resource>(
        &self,
        key: Key,
        expect: Precondition,
        object: &mut Object<S>,
    ) -> Result<bool, String> {
        object.metadata.resource_version.clear();
        let json = serde_json::to_vec(object).map_err(|error| error.to_string())?;
        let draft = Draft::of_object(json).ok_or("an object without a place for its revision")?;
        // What was changed meanwhile is left to the next try.
        Ok(self.store.commit(Batch::of(Write::Put { key, expect, draft })).await.is_ok())
    }

    /// Changes a stored object if it is there.
    async fn change<S: Resource>(
        &self,
        name: &str,
        change: impl FnOnce(&mut Object<S>),
    ) -> Result<bool, String> {
        let key = Key::new(&resource::<S>(), "default", name);
        let Some(stored) = self.store.get(&key) else { return Ok(false) };
        let mut object: Object<S> =
            serde_json::from_slice(stored.json()).map_err(|error| error.to_string())?;
        change(&mut object);
        self.write(key, Precondition::At(stored.revision), &mut object).await
    }

    async fn fault(&mut self) -> Result<(), String> {
        if self.dice.once_in(6) {
            self.look()?;
            (self.store, self.workflows, self.watch) = open(&self.log, &self.clock)?;
            self.played.faults += 1;
        }
        if self.dice.once_in(12) {
            self.log.fail_next(LogError::Full("the dice say no".into()));
            self.played.faults += 1;
        }
        if self.dice.once_in(60) {
            let names: Vec<String> = self.tasks.keys().cloned().collect();
            if let Some(name) = self.dice.pick(&names).cloned() {
                self.played.faults += u32::from(self.delete_task(&name).await?);
            }
        }
        let names: Vec<String> = self.groups.keys().cloned().collect();
        if self.dice.once_in(80)
            && let Some(name) = self.dice.pick(&names)
        {
            let name = name.clone();
            let changed = self.change::<TaskGroupSpec>(&name, |it| it.spec.cancel = true).await?;
            self.played.faults += u32::from(changed);
        }
        // Now and then everything rests for a while.
        let suspend = if self.dice.once_in(50) { Some(true) } else { self.dice.once_in(8).then_some(false) };
        if let Some(suspend) = suspend {
            for number in 0..JOBS {
                self.change::<JobSpec>(&format!("job{number}"), |it| it.spec.suspend = suspend).await?;
            }
        }
        Ok(())
    }

    /// A user deletes a task. One that has ended leaves a group that goes on, as through the API.
    async fn delete_task(&mut self, name: &str) -> Result<bool, String> {
        let key = Key::new(&resource::<muster_types::TaskSpec>(), "default", name);
        let Some(stored) = self.store.get(&key) else { return Ok(false) };
        let task: Task = read(stored.json())?;
        let group = group_name_of(&task).unwrap_or_default();
        let group = self.store.get(&Key::new(&resource::<TaskGroupSpec>(), "default", group));
        let is_counted =
            group.and_then(|it| GroupBrief::read(it.json())).is_some_and(|group| group.counts(&task));
        if is_counted && state_of(&task).is_terminal() {
            let now = self.clock.now().to_timestamp();
            return self
                .change::<muster_types::TaskSpec>(name, |task| {
                    departure::leave(task, now);
                })
                .await;
        }
        let gone = Write::Delete { key, expect: Precondition::At(stored.revision) };
        Ok(self.store.commit(Batch::of(gone)).await.is_ok())
    }

    /// The worker: starts some tasks that were submitted, and ends some that run.
    async fn work(&mut self) -> Result<(), String> {
        let names: Vec<String> = self.tasks.keys().cloned().collect();
        for name in names {
            let Some(task) = self.tasks.get(&name) else { continue };
            let (state, cancel) = (state_of(task), task.spec.cancel);
            let next = match state {
                State::Ready | State::Running if cancel => State::Canceled,
                State::Ready if self.dice.once_in(2) => State::Running,
                State::Running if self.dice.once_in(12) => State::Failed,
                State::Running if self.dice.once_in(2) => State::Succeeded,
                _ => continue,
            };
            self.change::<muster_types::TaskSpec>(&name, |task| task.status.state = Some(next)).await?;
        }
        Ok(())
    }

    /// Takes in what was committed, and checks that it was allowed.
    fn look(&mut self) -> Result<(), String> {
        loop {
            let changes = self.watch.poll_page(1024).map_err(|error| error.to_string())?;
            if changes.is_empty() {
                return Ok(());
            }
            for change in changes {
                let (name, json, deleted) = (change.object.name(), change.object.json(), change.deleted);
                let is_new = change.previous.is_none() && !deleted;
                match change.resource.as_str() {
                    "tasks.muster.dev" => self.see_task(name, &read(json)?, is_new, deleted)?,
                    "taskgroups.muster.dev" => self.see_group(name, read(json)?, is_new)?,
                    "jobs.muster.dev" => self.see_job(name, read(json)?)?,
                    _ => {}
                }
            }
        }
    }

    fn see_task(&mut self, name: &str, task: &Task, is_new: bool, deleted: bool) -> Result<(), String> {
        if is_new {
            self.played.tasks += 1;
            if !self.made.insert(name.to_owned()) {
                return Err(format!("task {name} was made twice"));
            }
        }
        let owner = &task.metadata.owner_references[0].name;
        let place: u32 = task.metadata.annotations["muster.dev/place"].parse().map_err(|_| "no place")?;
        let seen = self.groups.get_mut(owner).ok_or_else(|| format!("task {name} of no group"))?;
        let before = seen.members.get(&place).copied();
        if deleted {
            self.tasks.remove(name);
            seen.members.insert(place, before.filter(|state| state.is_terminal()).unwrap_or(State::Canceled));
            return Ok(());
        }
        self.tasks.insert(name.to_owned(), task.clone());
        let state = state_of(task);
        seen.members.insert(place, state);
        let submitted = state == State::Ready && before.is_none_or(|before| before == State::Created);
        if submitted && seen.group.spec.mode() == GroupMode::Pipeline && place > 0 {
            let former = seen.members.get(&(place - 1));
            if former != Some(&State::Succeeded) {
                return Err(format!("{name} was submitted when the one before it was {former:?}"));
            }
        }
        let open =
            seen.members.values().filter(|state| matches!(state, State::Ready | State::Running)).count();
        let most = seen.group.spec.parallelism.map_or(usize::MAX, |most| most as usize);
        if submitted && open > most {
            return Err(format!("{open} tasks of {owner} are submitted, {most} are allowed"));
        }
        Ok(())
    }

    fn see_group(&mut self, name: &str, group: TaskGroup, is_new: bool) -> Result<(), String> {
        if is_new {
            self.played.groups += 1;
            if !self.made.insert(name.to_owned()) {
                return Err(format!("group {name} was made twice"));
            }
            self.check_made(name, &group)?;
        }
        let seen = self.groups.entry(name.to_owned()).or_default();
        let before = seen.group.status.current_state();
        if before.is_terminal() && before != group.status.current_state() {
            return Err(format!("group {name} was {before} and is {}", group.status.current_state()));
        }
        seen.group = group;
        Ok(())
    }

    /// A group is made only when what it depends on ended as it says.
    fn check_made(&self, name: &str, group: &TaskGroup) -> Result<(), String> {
        let owner = &group.metadata.owner_references[0].name;
        let job = self.jobs.get(owner).ok_or("a group of no job")?;
        let own = job.spec.task_groups.iter().find(|own| format!("{owner}-{}", own.name) == name);
        let own = own.ok_or("a group its job does not know")?;
        let state = |need: &String| {
            let seen = self.groups.get(&format!("{owner}-{need}"));
            seen.map_or(WorkState::Skipped, |seen| seen.group.status.current_state())
        };
        let states: Vec<WorkState> = own.depends_on.iter().map(state).collect();
        let allowed = match own.when() {
            When::Succeeded => states.iter().all(|state| *state == WorkState::Succeeded),
            When::Failed => states.contains(&WorkState::Failed) && states.iter().all(|it| it.is_terminal()),
            When::Completed => states.iter().all(|state| state.is_terminal()),
        };
        if allowed { Ok(()) } else { Err(format!("group {name} ({}) was made when {states:?}", own.when())) }
    }

    fn see_job(&mut self, name: &str, job: Job) -> Result<(), String> {
        let before = self.jobs.get(name).map_or(WorkState::Created, |job| job.status.current_state());
        if before.is_terminal() && before != job.status.current_state() {
            return Err(format!("job {name} was {before} and is {}", job.status.current_state()));
        }
        self.jobs.insert(name.to_owned(), job);
        Ok(())
    }

    /// At the end everything agrees from below upwards.
    fn check_ends(&self) -> Result<(), String> {
        for (name, seen) in &self.groups {
            let mut counts = Counts::default();
            for state in seen.members.values() {
                *counts.of(*state) += 1;
            }
            let status = &seen.group.status;
            if !status.current_state().is_terminal() {
                return Err(format!("the job of group {name} ended and the group did not: {status:?}"));
            }
            if status.counts != counts {
                return Err(format!("group {name} counts {:?}, there are {counts:?}", status.counts));
            }
        }
        for (name, job) in &self.jobs {
            let failed = job.status.groups.iter().any(|group| group.state == WorkState::Failed);
            if failed != (job.status.current_state() == WorkState::Failed) {
                return Err(format!("job {name} is {:?}", job.status));
            }
        }
        Ok(())
    }
}

fn resource<S: Resource>() -> ResourceName {
    ResourceName::new(&format!("{}.{}", S::NAMES.plural, S::NAMES.group))
}

fn read<S: Resource>(json: &[u8]) -> Result<Object<S>, String> {
    serde_json::from_slice(json).map_err(|error| error.to_string())
}

fn open(log: &MemoryLog, clock: &ManualClock) -> Result<(Store, Workflows, Watch), String> {
    let words = |error: &dyn std::fmt::Display| error.to_string();
    let store =
        Store::open_inline(log.clone(), History::default(), clock.clone()).map_err(|it| words(&it))?;
    let workflows = Workflows::new(store.clone(), Arc::new(clock.clone())).map_err(|it| words(&it))?;
    let watch = store.watch(WatchScope::All, store.revision()).map_err(|it| words(&it))?;
    debug_assert!(clock.now() > Millis(0));
    Ok((store, workflows, watch))
}
