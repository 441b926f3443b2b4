//! Managed resources, played by seed: specs change, tasks end well or badly, the reports of an outside adapter are lost, late,
//! doubled and out of order, resources are deleted, the server crashes between any two cycles, and two servers work on the
//! same store for a while.
//!
//! What must hold, seen from outside: generations never go back; Available is True only where all required adapters were;
//! Ready only at the latest generation; one adapter has one task at a time for a resource; nothing goes before all agreed;
//! and when the outside behaves again, everything becomes Ready or goes.

mod seen;

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_engine::resources::{Resources, Settings};
use muster_ports::clock::{Clock as _, ManualClock};
use muster_ports::store::{
    Batch, CommitError, Draft, History, Key, MemoryLog, Precondition, ResourceName, Revision, Store, Watch,
    WatchScope, Write,
};
use muster_resources::root_conditions::fold_conditions;
use muster_resources::{TypeRules, accept_report};
use muster_types::adapter::AdapterSpec;
use muster_types::adapter_report::{AdapterReport, FINALIZED, ReportedCondition};
use muster_types::condition::ConditionStatus;
use muster_types::managed_resource::{ADAPTER_LABEL, FINALIZER};
use muster_types::resource_type::ResourceTypeSpec;
use muster_types::timestamp::MicroTimestamp;
use muster_types::{Adapter, ManagedResource, ResourceType, State, Task};
use serde::Serialize;
use serde_json::json;

use crate::dice::Dice;
use seen::{Seen, says};

/// Resources of one seed.
const RESOURCES: u64 = 5;
/// Cycles of one seed.
const CYCLES: u32 = 300;
/// The adapter that is not ours: it reports by itself.
const OUTSIDE: &str = "outside";
/// All required adapters.
const REQUIRED: [&str; 3] = ["first", "second", OUTSIDE];

/// What a seed did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Played {
    /// Tasks that adapters made.
    pub tasks: u32,
    /// Pulses that were decided.
    pub pulses: u32,
    /// Resources that became Ready, each time it happened.
    pub ready: u32,
    /// Resources that went.
    pub gone: u32,
    /// Reports that were lost, late or doubled; crashes, second servers, clock jumps.
    pub faults: u32,
}

struct World {
    dice: Dice,
    clock: ManualClock,
    log: MemoryLog,
    store: Store,
    loops: Vec<Resources>,
    watch: Watch,
    rules: TypeRules,
    /// Reports on their way: to whom, and what.
    network: Vec<(String, AdapterReport)>,
    seen: BTreeMap<String, Seen>,
    open: BTreeMap<(String, String), String>,
    played: Played,
}

/// Plays a seed; what went wrong, if anything did.
pub async fn simulate(seed: u64) -> Result<Played, String> {
    let mut world = World::new(seed).await?;
    for index in 0..RESOURCES {
        world.create(&format!("r{index}")).await?;
    }
    for _ in 0..CYCLES {
        world.fault()?;
        world.users().await?;
        world.run_tasks(false).await?;
        world.outside(false).await?;
        let which = usize::try_from(world.dice.below(world.loops.len() as u64)).unwrap_or(0);
        world.loops[which].step().await.map_err(|error| error.to_string())?;
        world.look()?;
        world.clock.advance(i64::try_from(world.dice.below(8_000)).unwrap_or(0));
    }
    world.settle().await?;
    Ok(world.played)
}

impl World {
    async fn new(seed: u64) -> Result<Self, String> {
        let clock = ManualClock::default();
        clock.advance(1_800_000_000_000);
        let log = MemoryLog::default();
        let store = open(&log, &clock)?;
        let spec: ResourceTypeSpec = serde_json::from_value(json!({
            "names": {"kind": "Cluster", "plural": "clusters"}, "adapters": REQUIRED,
        }))
        .map_err(|error| error.to_string())?;
        let rules = TypeRules::compile(&spec).map_err(|problems| format!("{problems:?}"))?;
        let task = json!({"spec": {"container": {"command": ["true"]}}});
        let adapters = [
            ("first", json!({"resourceType": "clusters", "task": task, "delete": {"task": task}})),
            (
                "second",
                json!({
                    "resourceType": "clusters", "task": task, "lifecycle": {"ttl": "1h"},
                    "preconditions": [{"expression": "'first' in done"}],
                }),
            ),
        ];
        put(
            &store,
            "resourcetypes.muster.dev",
            &ResourceType::new("", "clusters", spec),
            Precondition::Absent,
        )
        .await?;
        for (name, spec) in adapters {
            let spec: AdapterSpec = serde_json::from_value(spec).map_err(|error| error.to_string())?;
            let adapter = Adapter::new("default", name, spec);
            put(&store, "adapters.muster.dev", &adapter, Precondition::Absent).await?;
        }
        let loops = vec![start(&store, &clock)?];
        let watch = follow(&store)?;
        Ok(Self {
            dice: Dice::new(seed),
            clock,
            log,
            store,
            loops,
            watch,
            rules,
            network: Vec::new(),
            seen: BTreeMap::new(),
            open: BTreeMap::new(),
            played: Played::default(),
        })
    }

    async fn create(&mut self, name: &str) -> Result<(), String> {
        let mut resource = ManagedResource::new("Cluster", "default", name, json!({"size": 1}));
        resource.metadata.uid = format!("uid-{name}-{}", self.dice.next());
        resource.metadata.generation = 1;
        resource.metadata.finalizers = vec![FINALIZER.to_owned()];
        resource.metadata.creation_timestamp = Some(self.clock.now().to_timestamp());
        fold_conditions(&self.rules, &mut resource, self.clock.now().to_timestamp());
        put(&self.store, "clusters.resources.muster.dev", &resource, Precondition::Absent).await
    }

    /// Crashes, a second server that does not know it is one too many, and clocks that jump.
    fn fault(&mut self) -> Result<(), String> {
        if self.dice.once_in(12) {
            self.played.faults += 1;
            self.look()?;
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
        if self.dice.once_in(40) {
            self.played.faults += 1;
            let jump = i64::try_from(self.dice.below(2_400_000)).unwrap_or(0) - 60_000;
            self.clock.advance(jump);
        }
        Ok(())
    }

    /// Users change specs, delete resources, and make them again.
    async fn users(&mut self) -> Result<(), String> {
        let now = self.clock.now().to_timestamp();
        if self.dice.once_in(10) {
            let resources = self.resources();
            let Some(mut resource) = self.dice.pick(&resources).cloned() else { return Ok(()) };
            if resource.is_deleting() {
                return Ok(());
            }
            resource.metadata.generation += 1;
            if self.dice.once_in(4) {
                resource.metadata.deletion_timestamp = Some(now);
            } else {
                resource.spec = json!({"size": self.dice.below(100)});
            }
            fold_conditions(&self.rules, &mut resource, now);
            self.write(resource).await?;
        }
        if self.dice.once_in(25) {
            let name = format!("r{}", self.dice.below(RESOURCES));
            if !self.resources().iter().any(|resource| resource.metadata.name == name) {
                self.create(&name).await?;
            }
        }
        self.look()
    }

    /// Tasks end, well or badly; somebody deletes one now and then.
    async fn run_tasks(&mut self, well: bool) -> Result<(), String> {
        for stored in self.store.snapshot(&ResourceName::new("tasks.muster.dev")).range(None, None) {
            let mut task: Task = serde_json::from_slice(stored.json()).map_err(|error| error.to_string())?;
            if task.state().is_terminal() || !(well || self.dice.once_in(4)) {
                continue;
            }
            let key = Key::new(&ResourceName::new("tasks.muster.dev"), "default", &task.metadata.name);
            let expect = Precondition::At(stored.revision);
            if !well && self.dice.once_in(30) {
                drop(self.store.commit(Batch::of(Write::Delete { key, expect })).await);
                continue;
            }
            let fails = !well && self.dice.once_in(4);
            task.status.state = Some(match (task.spec.cancel, fails) {
                (true, _) => State::Canceled,
                (false, true) => State::Failed,
                (false, false) => State::Succeeded,
            });
            task.metadata.resource_version.clear();
            put(&self.store, "tasks.muster.dev", &task, expect).await?;
        }
        self.look()
    }

    /// The outside adapter answers what it sees, through a network that loses, delays, doubles and reorders.
    async fn outside(&mut self, well: bool) -> Result<(), String> {
        for resource in self.resources() {
            let Some(pulse) = &resource.status.pulse else { continue };
            if !well && !self.dice.once_in(3) {
                continue;
            }
            let status = match self.dice.below(8) {
                _ if well => ConditionStatus::True,
                0 => ConditionStatus::False,
                1 => ConditionStatus::Unknown,
                _ => ConditionStatus::True,
            };
            let now = MicroTimestamp::from_microsecond(self.clock.now().0 * 1000);
            let report = report_of(&resource, pulse.generation, status, now);
            if !well && self.dice.once_in(5) {
                self.played.faults += 1;
                continue;
            }
            let copies = if !well && self.dice.once_in(5) { 2 } else { 1 };
            for _ in 0..copies {
                let room = self.network.len() as u64 + 1;
                let place = usize::try_from(self.dice.below(room)).unwrap_or(0);
                self.network.insert(place, (resource.metadata.name.clone(), report.clone()));
            }
        }
        while let Some((name, report)) = self.network.pop() {
            self.deliver(&name, &report).await?;
            if !well && self.dice.once_in(2) {
                break;
            }
        }
        self.look()
    }

    /// Hands in a report, as the API does.
    async fn deliver(&mut self, name: &str, report: &AdapterReport) -> Result<(), String> {
        let found = self.resources().into_iter().find(|resource| resource.metadata.name == name);
        let Some(mut resource) = found else { return Ok(()) };
        let now = MicroTimestamp::from_microsecond(self.clock.now().0 * 1000);
        // One that is too old is refused; that is as good as lost.
        let Ok(verdict) = accept_report(&self.rules, &resource, report, false, now) else { return Ok(()) };
        let Some(status) = verdict.into_status() else { return Ok(()) };
        resource.status = status;
        self.write(resource).await
    }

    /// The outside behaves: everything becomes Ready, or goes.
    async fn settle(&mut self) -> Result<(), String> {
        self.loops.truncate(1);
        for _ in 0..400 {
            self.loops[0].step().await.map_err(|error| error.to_string())?;
            self.run_tasks(true).await?;
            self.outside(true).await?;
            self.loops[0].step().await.map_err(|error| error.to_string())?;
            self.look()?;
            let settled = |it: &ManagedResource| it.status.is_ready() && !it.is_deleting();
            if self.resources().iter().all(settled) {
                return Ok(());
            }
            self.clock.advance(400_000);
        }
        let left: Vec<_> = self.resources().into_iter().filter(|it| !it.status.is_ready()).collect();
        Err(format!("never Ready, or never gone: {left:#?}"))
    }

    fn resources(&self) -> Vec<ManagedResource> {
        let snapshot = self.store.snapshot(&ResourceName::new("clusters.resources.muster.dev"));
        snapshot.range(None, None).filter_map(|stored| serde_json::from_slice(stored.json()).ok()).collect()
    }

    /// Writes a resource that was read; whoever was faster is not overwritten.
    async fn write(&self, mut resource: ManagedResource) -> Result<(), String> {
        let revision = resource.metadata.resource_version.parse().map_err(|_| "no revision")?;
        resource.metadata.resource_version.clear();
        put(&self.store, "clusters.resources.muster.dev", &resource, Precondition::At(Revision(revision)))
            .await
    }

    /// Looks at everything that was committed since the last look.
    fn look(&mut self) -> Result<(), String> {
        loop {
            let changes = self.watch.poll_page(1024).map_err(|error| error.to_string())?;
            if changes.is_empty() {
                return Ok(());
            }
            for change in changes {
                let json = change.object.json();
                match change.resource.as_str() {
                    "tasks.muster.dev" => {
                        let task = serde_json::from_slice(json).map_err(|error| error.to_string())?;
                        self.look_at_task(&task, change.previous.is_none(), change.deleted)?;
                    }
                    "clusters.resources.muster.dev" => {
                        let resource = serde_json::from_slice(json).map_err(|error| error.to_string())?;
                        self.look_at_resource(&resource, change.deleted)?;
                    }
                    _ => {}
                }
            }
        }
    }

    fn look_at_task(&mut self, task: &Task, is_new: bool, deleted: bool) -> Result<(), String> {
        let name = task.metadata.name.clone();
        let owner = task.metadata.owner_references.first().ok_or("a task without an owner")?.uid.clone();
        let adapter = task.metadata.labels.get(ADAPTER_LABEL).ok_or("a task of no adapter")?.clone();
        let key = (owner, adapter);
        if deleted || task.state().is_terminal() {
            if self.open.get(&key) == Some(&name) {
                self.open.remove(&key);
            }
        } else if is_new {
            self.played.tasks += 1;
            if let Some(other) = self.open.insert(key, name.clone()) {
                return Err(format!("{name} was made while {other} went on"));
            }
        }
        Ok(())
    }

    fn look_at_resource(&mut self, resource: &ManagedResource, deleted: bool) -> Result<(), String> {
        let uid = &resource.metadata.uid;
        let seen = self.seen.entry(uid.clone()).or_default();
        seen.take_in(resource).map_err(|wrong| format!("{uid}: {wrong}"))?;
        if deleted {
            self.played.gone += 1;
            if !REQUIRED.iter().all(|adapter| seen.finalized.contains(*adapter)) {
                // The change that lets it go carries the last report along.
                let last = resource.status.adapters.iter().filter(|standing| says(standing, FINALIZED));
                let last: Vec<_> = last.map(|standing| &standing.adapter).collect();
                return Err(format!("{uid} went though only {:?} and {last:?} agreed", seen.finalized));
            }
        }
        let status = &resource.status;
        let sequence = status.pulse.as_ref().map_or(0, |pulse| pulse.sequence);
        self.played.pulses += u32::try_from(sequence - seen.sequence).unwrap_or(0);
        seen.sequence = sequence;
        self.played.ready += u32::from(status.is_ready() && !seen.ready);
        seen.ready = status.is_ready();
        Ok(())
    }
}

fn report_of(
    resource: &ManagedResource,
    generation: i64,
    status: ConditionStatus,
    now: MicroTimestamp,
) -> AdapterReport {
    let condition = |r#type: &str, status| ReportedCondition {
        r#type: r#type.to_owned(),
        status,
        reason: String::new(),
        message: String::new(),
    };
    let cleans_up = resource.is_deleting() && generation == resource.metadata.generation;
    let status = if cleans_up && status == ConditionStatus::True { ConditionStatus::False } else { status };
    let mut conditions = vec![
        condition("Applied", ConditionStatus::True),
        condition("Available", status),
        condition("Health", ConditionStatus::True),
    ];
    if cleans_up && status == ConditionStatus::False {
        conditions.push(condition(FINALIZED, ConditionStatus::True));
    }
    AdapterReport {
        adapter: OUTSIDE.to_owned(),
        observed_generation: generation,
        observed_time: Some(now),
        conditions,
        data: None,
        uid: resource.metadata.uid.clone(),
    }
}

/// Stores an object; whoever was faster is not overwritten.
async fn put<T: Serialize>(
    store: &Store,
    resource: &str,
    object: &T,
    expect: Precondition,
) -> Result<(), String> {
    let document = serde_json::to_value(object).map_err(|error| error.to_string())?;
    let text = |name: &str| document["metadata"][name].as_str().unwrap_or_default().to_owned();
    let key = Key::new(&ResourceName::new(resource), &text("namespace"), &text("name"));
    let json = serde_json::to_vec(object).map_err(|error| error.to_string())?;
    let draft = Draft::of_object(json).ok_or("no place for the revision")?;
    match store.commit(Batch::of(Write::Put { key, expect, draft })).await {
        Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

fn open(log: &MemoryLog, clock: &ManualClock) -> Result<Store, String> {
    Store::open_inline(log.clone(), History::default(), clock.clone()).map_err(|error| error.to_string())
}

fn start(store: &Store, clock: &ManualClock) -> Result<Resources, String> {
    Resources::new(store.clone(), Arc::new(clock.clone()), None, Settings::default())
        .map_err(|error| error.to_string())
}

fn follow(store: &Store) -> Result<Watch, String> {
    store.watch(WatchScope::All, store.revision()).map_err(|error| error.to_string())
}
