//! One seed, played: tasks are asked for, canceled and deleted, attempts live and die, news is late, doubled or lost, the
//! clock jumps, and the server crashes between any two cycles.

mod pipelines;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use muster_engine::engine::{Engine, Outside};
use muster_engine::files::{Files, Keeper};
use muster_engine::settings::{Mint, Prefetch, Settings};
use muster_engine::workflows::Workflows;
use muster_ports::blobs::MemoryBlobs;
use muster_ports::clock::{Clock, ManualClock, Millis};
use muster_ports::runtime::Fact;
use muster_ports::store::{
    Batch, Draft, History, Key, MemoryLog, Precondition, ResourceName, Store, Watch, WatchScope, Write,
};
use muster_ports::telemetry::Telemetry;
use muster_ports::traces::Tracer;
use muster_tasks::capacity::Capacity;
use muster_tasks::reap::ReapSettings;
use muster_tasks::settings::{Rule, Settings as QueueSettings};
use muster_tasks::view::state_of;
use muster_types::application::ApplicationSpec;
use muster_types::container::Container;
use muster_types::task::{Policy, Retry, Subject, TaskSpec, Ttl};
use muster_types::task_kind::TaskKindSpec;
use muster_types::{Object, Resource, State, Task};

use crate::dice::Dice;
use crate::fake_runtime::FakeRuntime;

use crate::watchers::{
    MEMORY, Released, SLOTS, check_history, check_live, check_removed, check_started, effective_priority,
    needs,
};

/// Applications that tasks are about.
const SUBJECTS: u64 = 6;
/// Tasks that are asked for in one seed.
const TASKS: u32 = 220;
/// Faults that are played in one seed, at least.
const FAULTS: u32 = 20;
/// Cycles after which everything must have ended.
const MOST_CYCLES: u32 = 6_000;

/// What a seed did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Played {
    /// Tasks that were asked for.
    pub tasks: u32,
    /// Crashes, lost and doubled news, clock jumps.
    pub faults: u32,
    /// Attempts that were started.
    pub attempts: u32,
    /// Attempts that were preempted.
    pub preempted: u32,
    /// Members of pipelines that the engine itself submitted, with the end of the one before.
    pub handed_on: u32,
}

struct World {
    dice: Dice,
    clock: ManualClock,
    log: MemoryLog,
    store: Store,
    runtime: FakeRuntime,
    engine: Engine,
    workflows: Workflows,
    without: Option<Rule>,
    /// Tasks that have not ended, as they are stored, by uid.
    known: BTreeMap<String, Task>,
    /// How the others ended.
    ended: BTreeMap<String, State>,
    /// Uids of all tasks ever made, by name.
    names: BTreeMap<String, String>,
    /// Names of all groups ever made.
    groups: Vec<String>,
    /// Tasks that were not deleted, and whether their files may be let go.
    files: BTreeMap<String, Released>,
    /// Attempts that may wait at the runtime.
    ahead: u32,
    watch: Watch,
    /// The latest time the clock ever showed; it may go back, what was over stays over.
    latest: Millis,
    /// News on its way.
    underway: Vec<Fact>,
    played: Played,
}

/// Plays a seed; what went wrong, if anything did. `without` takes a rule away.
pub async fn simulate(seed: u64, without: Option<Rule>) -> Result<Played, String> {
    let mut world = World::new(seed, without)?;
    world.declare_kinds().await?;
    let mut cycles = 0;
    while world.played.tasks < TASKS || world.played.faults < FAULTS || !world.all_ended() {
        cycles += 1;
        if cycles > MOST_CYCLES {
            return Err(format!("after {cycles} cycles tasks still wait: {}", world.unfinished()));
        }
        world.ask().await?;
        world.ask_pipelines().await?;
        world.fault()?;
        world.deliver();
        world.cycle().await?;
        world.step_groups().await?;
        world.clock.advance(i64::try_from(world.dice.below(1500)).unwrap_or(0));
    }
    Ok(world.played)
}

impl World {
    fn new(seed: u64, without: Option<Rule>) -> Result<Self, String> {
        let clock = ManualClock::default();
        clock.advance(1_800_000_000_000);
        let log = MemoryLog::default();
        let runtime = FakeRuntime::default();
        let mut dice = Dice::new(seed);
        let ahead = u32::try_from(dice.below(4)).unwrap_or(0);
        let (store, engine) = open(&log, &clock, &runtime, without, ahead)?;
        let (watch, workflows) = (follow(&store)?, open_groups(&store, &clock)?);
        let (known, ended, underway, played) =
            (BTreeMap::new(), BTreeMap::new(), Vec::new(), Played::default());
        Ok(Self {
            dice,
            clock,
            log,
            store,
            runtime,
            engine,
            workflows,
            without,
            known,
            ended,
            names: BTreeMap::new(),
            groups: Vec::new(),
            files: BTreeMap::new(),
            ahead,
            watch,
            latest: Millis(0),
            underway,
            played,
        })
    }

    async fn declare_kinds(&self) -> Result<(), String> {
        for kind in ["discover", "analyze", "report"] {
            let dependencies = needs(kind).iter().map(|need| (*need).to_owned()).collect();
            let object = Object::new("d", kind, TaskKindSpec { dependencies, ..TaskKindSpec::default() });
            self.put(object, Precondition::Absent).await?;
        }
        for number in 0..SUBJECTS {
            let object = Object::new("d", &format!("s{number}"), ApplicationSpec::default());
            self.put(object, Precondition::Absent).await?;
        }
        Ok(())
    }

    async fn put<S: Resource>(&self, mut object: Object<S>, expect: Precondition) -> Result<(), String> {
        object.metadata.resource_version.clear();
        let resource = ResourceName::new(&format!("{}.{}", S::NAMES.plural, S::NAMES.group));
        let key = Key::new(&resource, &object.metadata.namespace, &object.metadata.name);
        let json = serde_json::to_vec(&object).map_err(|error| error.to_string())?;
        let draft = Draft::of_object(json).ok_or("no place for the revision")?;
        self.store
            .commit(Batch::of(Write::Put { key, expect, draft }))
            .await
            .map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Users ask for tasks, and change their minds.
    async fn ask(&mut self) -> Result<(), String> {
        for _ in 0..self.dice.below(4) {
            if self.played.tasks < TASKS {
                self.played.tasks += 1;
                let task = self.new_task();
                self.put(task, Precondition::Absent).await?;
            }
        }
        if self.dice.once_in(12) {
            self.look()?;
            let open: Vec<&Task> = self.known.values().collect();
            if let Some(task) = self.dice.pick(&open) {
                let mut task = (*task).clone();
                let revision = task.metadata.resource_version.parse().map_err(|_| "no revision")?;
                task.spec.cancel = true;
                self.put(task, Precondition::At(muster_ports::store::Revision(revision))).await?;
            }
        }
        Ok(())
    }

    fn new_task(&mut self) -> Task {
        let number = self.played.tasks;
        let dice = &mut self.dice;
        let subject = (!dice.once_in(3))
            .then(|| Subject { kind: "Application".into(), name: format!("s{}", dice.below(SUBJECTS)) });
        let kinds = ["discover", "analyze", "report"];
        let kind = dice.pick(&kinds).copied().unwrap_or("discover");
        let policy = Policy {
            isolated: dice.once_in(25),
            preempt_enabled: dice.once_in(4),
            preempt_exempt: dice.once_in(6),
        };
        let memory = dice.once_in(4).then(|| (dice.below(MEMORY) + 1).to_string().parse().ok()).flatten();
        let minutes = |dice: &mut Dice| Some(muster_types::Duration::from_secs(60 * (dice.below(60) + 1)));
        let ttl = Ttl {
            pending: dice.once_in(10).then(|| minutes(dice)).flatten(),
            running: dice.once_in(10).then(|| minutes(dice)).flatten(),
            succeeded: dice.once_in(4).then(|| minutes(dice)).flatten(),
            failed: dice.once_in(4).then(|| minutes(dice)).flatten(),
            ..Ttl::default()
        };
        let spec = TaskSpec {
            kind: kind.to_owned(),
            container: Some(Container { command: vec!["true".into()], ..Container::default() }),
            subject,
            priority: Some(i32::try_from(dice.below(5)).unwrap_or(0)),
            policy,
            resources: muster_types::container::Resources { cpu: None, memory },
            ttl,
            retry: Retry { limit: Some(2), lost_limit: Some(50), ..Retry::default() },
            ..TaskSpec::default()
        };
        let mut task = Object::new("d", &format!("t{number:04}"), spec);
        task.metadata.uid = format!("00000000-0000-7000-8000-{number:012x}");
        task.metadata.generation = 1;
        task.metadata.creation_timestamp = Some(self.clock.now().to_timestamp());
        task
    }

    /// The outside goes wrong.
    fn fault(&mut self) -> Result<(), String> {
        if self.dice.once_in(40) {
            self.played.faults += 1;
            self.crash()?;
        }
        if self.dice.once_in(30) {
            self.played.faults += 1;
            self.clock.advance(i64::try_from(self.dice.below(300_000)).unwrap_or(0) - 20_000);
        }
        Ok(())
    }

    /// The server is gone between two cycles; its attempts die with it. What was committed is all there is.
    fn crash(&mut self) -> Result<(), String> {
        self.runtime.die();
        self.underway.clear();
        self.look()?;
        (self.store, self.engine) = open(&self.log, &self.clock, &self.runtime, self.without, self.ahead)?;
        self.watch = follow(&self.store)?;
        self.workflows = open_groups(&self.store, &self.clock)?;
        Ok(())
    }

    /// News arrives: late, and sometimes twice.
    fn deliver(&mut self) {
        let news = self.runtime.move_on(&mut self.dice, self.clock.now());
        self.underway.extend(news);
        for fact in std::mem::take(&mut self.underway) {
            if self.dice.once_in(6) {
                self.underway.push(fact);
                continue;
            }
            if self.dice.once_in(10) {
                self.played.faults += 1;
                self.underway.push(fact.clone());
            }
            self.engine.report(fact);
        }
    }

    async fn cycle(&mut self) -> Result<(), String> {
        self.look()?;
        self.latest = self.latest.max(self.clock.now());
        let before = self.known.clone();
        // A step sees what was committed before it; its own decisions are seen by the next.
        self.engine.step().await.map_err(|error| error.to_string())?;
        self.look()?;
        let after = std::mem::take(&mut self.known);
        let started = self.runtime.take_started();
        self.played.attempts += u32::try_from(started.len()).unwrap_or(u32::MAX);
        let mut wrong = check_live(&after, &self.runtime.live(), self.ahead as usize);
        wrong.extend(check_removed(&self.files, &self.runtime.take_removed()));
        let offered = pipelines::with_submitted(&before, &after);
        wrong.extend(check_started(self.latest.to_timestamp(), &offered, &after, &started));
        wrong.extend(check_history(&before, &after));
        wrong.extend(self.check_pipelines(&before, &after, &started)?);
        self.played.handed_on += pipelines::handed_on(&before, &after);
        wrong.extend(self.check_preempted(&before, &after));
        wrong.extend(self.runtime.started_twice().iter().map(|handle| format!("{handle} was started twice")));
        let pictures =
            if wrong.is_empty() { String::new() } else { picture(&before) + "after:\n" + &picture(&after) };
        self.known = after;
        if wrong.is_empty() { Ok(()) } else { Err(format!("{}\nbefore:\n{pictures}", wrong.join("\n"))) }
    }

    /// A task is preempted only for one of higher effective priority, and never if it is exempt.
    fn check_preempted(
        &mut self,
        before: &BTreeMap<String, Task>,
        after: &BTreeMap<String, Task>,
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        for (uid, task) in after {
            let stopping = |task: &Task| task.status.stopping.is_some_and(|why| why.as_str() == "Preempted");
            if !stopping(task) || before.get(uid).is_some_and(stopping) {
                continue;
            }
            self.played.preempted += 1;
            let by = task.status.message.trim_start_matches("Making room for d/").to_owned();
            let by = after.values().find(|other| other.metadata.name == by);
            if task.spec.policy.preempt_exempt {
                wrong.push(format!("{} is exempt and was preempted", task.metadata.name));
            }
            // What lends priority may come or go within the cycle.
            let rank = |task: &Task| [before, after].map(|tasks| effective_priority(task, tasks));
            let lowest = rank(task).into_iter().min();
            if by.is_none_or(|by| rank(by).into_iter().max() <= lowest) {
                wrong.push(format!("{} was preempted by one of no higher priority", task.metadata.name));
            }
        }
        wrong
    }

    /// Takes in what was committed.
    fn look(&mut self) -> Result<(), String> {
        for change in self.watch.poll_page(usize::MAX).map_err(|error| error.to_string())? {
            let task: Task =
                serde_json::from_slice(change.object.json()).map_err(|error| error.to_string())?;
            let (uid, state) = (task.metadata.uid.clone(), state_of(&task));
            if change.deleted {
                self.files.remove(&uid);
                if !self.ended.contains_key(&uid) {
                    return Err(format!("{} was deleted before it ended", task.metadata.name));
                }
                continue;
            }
            self.names.insert(task.metadata.name.clone(), uid.clone());
            let released = if task.status.released.is_some() { Released::Yes } else { Released::No };
            self.files.insert(uid.clone(), released);
            if let Some(end) = self.ended.get(&uid).filter(|end| **end != state) {
                return Err(format!("{} was {end} and became {state}", task.metadata.name));
            }
            if state.is_terminal() {
                self.known.remove(&uid);
                self.ended.insert(uid, state);
            } else {
                self.known.insert(uid, task);
            }
        }
        Ok(())
    }

    fn all_ended(&self) -> bool {
        self.known.is_empty()
    }

    fn unfinished(&self) -> String {
        let open = self.known.values().take(5);
        let shown: Vec<_> =
            open.map(|task| format!("{} {:?}", task.metadata.name, task.status.waiting_for)).collect();
        shown.join(", ")
    }
}

/// The tasks that have not ended, a line each.
fn picture(tasks: &BTreeMap<String, Task>) -> String {
    let mut lines = String::new();
    for task in tasks.values() {
        let spec = &task.spec;
        lines += &format!(
            "  {} {} prio={:?} {}/{} {:?} memory={:?} rest={:?} stopping={:?}\n",
            task.metadata.name,
            state_of(task),
            spec.priority.unwrap_or(0),
            spec.kind,
            spec.subject.as_ref().map_or("-", |subject| &subject.name),
            spec.policy,
            spec.resources.memory.as_ref().map(ToString::to_string),
            task.status.rest_until.map(|until| until.to_string()),
            task.status.stopping,
        );
    }
    lines
}

fn follow(store: &Store) -> Result<Watch, String> {
    let tasks = WatchScope::Resource(ResourceName::new("tasks.muster.dev"));
    store.watch(tasks, store.revision()).map_err(|error| error.to_string())
}

fn open_groups(store: &Store, clock: &ManualClock) -> Result<Workflows, String> {
    Workflows::new(store.clone(), Arc::new(clock.clone())).map_err(|error| error.to_string())
}

fn open(
    log: &MemoryLog,
    clock: &ManualClock,
    runtime: &FakeRuntime,
    without: Option<Rule>,
    ahead: u32,
) -> Result<(Store, Engine), String> {
    let store = Store::open_inline(log.clone(), History::default(), clock.clone())
        .map_err(|error| error.to_string())?;
    let settings = Settings {
        queue: QueueSettings { without, ..QueueSettings::default() },
        reap: ReapSettings { succeeded: 3600, failed: 1800, keep_failed: 60, ..ReapSettings::default() },
        pods: None,
        robots: None,
        processes: Capacity {
            slots: u32::try_from(SLOTS).unwrap_or(u32::MAX),
            cpu_millis: None,
            memory: Some(MEMORY),
        },
        prefetch: Prefetch::Fixed(ahead),
        only_since: None,
        url: "http://127.0.0.1".into(),
        work_root: "/work".into(),
        base_env: Vec::new(),
        kill_timeout: Duration::from_secs(1),
        mint: Mint::worthless(),
    };
    let (runtime, blobs) = (Arc::new(runtime.clone()), Arc::new(MemoryBlobs::default()));
    let files = Files::Inline(Keeper::new(runtime.clone(), blobs.clone()));
    let outside = Outside {
        store: store.clone(),
        runtime,
        blobs,
        clock: Arc::new(clock.clone()),
        telemetry: Telemetry::default(),
        tracer: Tracer::default(),
    };
    let engine = Engine::new(settings, outside, files);
    Ok((store, engine.map_err(|error| error.to_string())?))
}
