//! An engine on fakes, and a test that tells it what happens: names of tasks in, states of tasks out.

#![allow(dead_code, reason = "each test uses its own part of it")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use muster_engine::engine::{Engine, Outside};
use muster_engine::files::{Files, Keeper};
use muster_engine::settings::{Mint, Pods, Prefetch, Settings};
use muster_ports::blobs::{Blobs, MemoryBlobs};
use muster_ports::clock::{Clock, ManualClock};
use muster_ports::runtime::{Cause, Ending, Fact, FilesError, Handle, Launch, Observation, Runtime};
use muster_ports::store::{
    Batch, Change, Draft, Forget, Header, History, Key, Log, LogError, MemoryLog, Precondition, ResourceName,
    Revision, Row, Store, Write,
};
use muster_ports::telemetry::Telemetry;
use muster_ports::traces::Tracer;
use muster_tasks::capacity::Capacity;
use muster_tasks::reap::ReapSettings;
use muster_tasks::settings::Settings as QueueSettings;
use muster_types::application::ApplicationSpec;
use muster_types::container::Container;
use muster_types::task_kind::TaskKindSpec;
use muster_types::{Object, Resource, State, Task, TaskSpec, Timestamp};
use parking_lot::Mutex;

/// Changes that can be watched.
const HISTORY: usize = 64;

/// A task with a command, of this priority.
pub fn task(name: &str, priority: i32) -> Task {
    let container = Some(Container { command: vec!["true".into()], ..Container::default() });
    Task::new("d", name, TaskSpec { container, priority: Some(priority), ..TaskSpec::default() })
}

/// A log whose disk may be full or slow.
#[derive(Clone, Default)]
struct Disk {
    log: MemoryLog,
    clock: ManualClock,
    state: Arc<Mutex<DiskState>>,
}

#[derive(Default)]
struct DiskState {
    is_full: bool,
    /// Milliseconds that each write takes.
    takes: i64,
    writes: u32,
}

impl Log for Disk {
    fn header(&mut self) -> Result<Header, LogError> {
        self.log.header()
    }

    fn load(&mut self, sink: &mut dyn FnMut(Row<'_>)) -> Result<(), LogError> {
        self.log.load(sink)
    }

    fn append(&mut self, changes: &[Arc<Change>], forget: &Forget) -> Result<(), LogError> {
        let mut state = self.state.lock();
        state.writes += 1;
        self.clock.advance(state.takes);
        if state.is_full {
            return Err(LogError::Full("the disk is full".to_owned()));
        }
        self.log.append(changes, forget)
    }
}

/// Remembers what it was told to end, what it was handed, and what it was asked to give back.
#[derive(Default)]
struct Recorder {
    stopped: Mutex<Vec<Handle>>,
    handed: Mutex<Vec<Launch>>,
    recalled: Mutex<Vec<Handle>>,
}

impl Runtime for Recorder {
    fn start(&self, launch: Launch) {
        self.handed.lock().push(launch);
    }

    fn recall(&self, handle: &Handle) {
        self.recalled.lock().push(handle.clone());
    }

    fn stop(&self, handle: &Handle, _grace: Duration) {
        self.stopped.lock().push(handle.clone());
    }

    fn keep_logs(&self, _handle: &Handle, _blobs: &dyn Blobs) -> Result<(), FilesError> {
        Ok(())
    }

    fn remove(&self, _handle: &Handle) -> Result<(), FilesError> {
        Ok(())
    }

    fn stored(&self) -> Result<Vec<Handle>, FilesError> {
        Ok(Vec::new())
    }
}

/// The engine and all around it.
pub struct Queue {
    clock: ManualClock,
    disk: Disk,
    store: Store,
    runtime: Arc<Recorder>,
    engine: Engine,
    slots: u32,
    prefetch: u32,
    made: u32,
    /// Names of all tasks ever made, by uid, and the uid that had a name last.
    names: BTreeMap<String, String>,
    uids: BTreeMap<String, String>,
}

impl Queue {
    /// A server that runs so many processes at once.
    pub fn with_slots(slots: u32) -> Self {
        Self::with_prefetch(slots, 0)
    }

    /// The same, and so many attempts may wait for a slot.
    pub fn with_prefetch(slots: u32, prefetch: u32) -> Self {
        let clock = ManualClock::default();
        clock.advance(1_800_000_000_000);
        let disk = Disk { clock: clock.clone(), ..Disk::default() };
        let runtime = Arc::new(Recorder::default());
        let (store, engine) = open(&disk, &clock, &runtime, slots, prefetch);
        let (names, uids) = (BTreeMap::new(), BTreeMap::new());
        Self { clock, disk, store, runtime, engine, slots, prefetch, made: 0, names, uids }
    }

    /// The server is killed and started again; processes end with it.
    pub fn restart(&mut self) {
        (self.store, self.engine) = open(&self.disk, &self.clock, &self.runtime, self.slots, self.prefetch);
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now().to_timestamp()
    }

    pub fn wait_seconds(&self, seconds: i64) {
        self.clock.advance(seconds * 1000);
    }

    /// One cycle, some time after the last.
    pub async fn step(&mut self) {
        self.step_after(100).await;
    }

    /// One cycle, so many milliseconds after the last.
    pub async fn step_after(&mut self, millis: i64) {
        self.clock.advance(millis);
        self.engine.step().await.expect("the store is open");
    }

    /// Cycles whenever the engine wants to, for so many milliseconds, and so many times at most.
    pub async fn run_for(&mut self, millis: i64, most: u32) {
        let end = self.clock.now().0 + millis;
        for _ in 0..most {
            let due = self.engine.step().await.expect("the store is open");
            let now = self.clock.now().0;
            let next = due.map_or(now + 1000, |due| due.0.clamp(now, now + 1000));
            if next >= end {
                break;
            }
            self.clock.advance(next - now);
        }
    }

    pub async fn submit(&mut self, mut task: Task) {
        self.made += 1;
        let uid = format!("00000000-0000-7000-8000-{:012x}", self.made);
        self.names.insert(uid.clone(), task.metadata.name.clone());
        self.uids.insert(task.metadata.name.clone(), uid.clone());
        task.metadata.uid = uid;
        task.metadata.generation = 1;
        task.metadata.creation_timestamp = Some(self.now());
        self.put(task, Precondition::Absent).await;
    }

    pub async fn change(&mut self, name: &str, change: impl FnOnce(&mut Task)) {
        let (revision, mut task) = self.read(name).expect("a task");
        change(&mut task);
        self.put(task, Precondition::At(revision)).await;
    }

    pub async fn delete(&mut self, name: &str) {
        let write = Write::Delete { key: key(name), expect: Precondition::Exists };
        self.store.commit(Batch::of(write)).await.expect("it is there");
    }

    /// A user asks for the deletion of a task, which waits for its finalizers.
    pub async fn ask_to_delete(&mut self, name: &str) {
        if self.get(name).metadata.finalizers.is_empty() {
            return self.delete(name).await;
        }
        let now = self.now();
        self.change(name, |task| task.metadata.deletion_timestamp = Some(now)).await;
    }

    /// So much happens that nobody can watch all of it.
    pub async fn overflow_history(&mut self) {
        for number in 0..HISTORY * 2 {
            let mut other = task("noise", 0);
            other.spec.suspend = true;
            "00000000-0000-7000-8000-ffffffffffff".clone_into(&mut other.metadata.uid);
            let expect = if number == 0 { Precondition::Absent } else { Precondition::Exists };
            self.put(other, expect).await;
        }
    }

    /// The server is about to stop: nothing is started any more.
    pub fn leave(&mut self) {
        self.engine.leave();
    }

    /// True if nothing is left to be committed before the server stops, or before it stops and its processes have `ended`.
    pub fn has_left(&mut self, ended: bool) -> bool {
        self.engine.has_left(ended)
    }

    /// A user deletes an application or a kind.
    pub async fn undeclare(&mut self, resource: &str, name: &str) {
        let key = Key::new(&ResourceName::new(resource), "d", name);
        self.store
            .commit(Batch::of(Write::Delete { key, expect: Precondition::Exists }))
            .await
            .expect("it is there");
    }

    /// Makes the kind `write` and the application `x`.
    pub async fn declare_subjects(&mut self) {
        self.put(Object::new("d", "write", TaskKindSpec::default()), Precondition::Absent).await;
        self.put(Object::new("d", "x", ApplicationSpec::default()), Precondition::Absent).await;
    }

    async fn put<S: Resource>(&self, mut object: Object<S>, expect: Precondition) {
        object.metadata.resource_version.clear();
        let json = serde_json::to_vec(&object).expect("JSON");
        let draft = Draft::of_object(json).expect("a place for the revision");
        let resource = ResourceName::new(&format!("{}.{}", S::NAMES.plural, S::NAMES.group));
        let key = Key::new(&resource, "d", &object.metadata.name);
        self.store.commit(Batch::of(Write::Put { key, expect, draft })).await.expect("a commit");
    }

    /// News of the attempt of a task, which may be deleted.
    pub fn report(&mut self, name: &str, what: Observation) {
        let attempt = self.read(name).map_or(1, |(_, task)| task.status.current_attempt());
        let handle = Handle { task: self.uids[name].clone(), attempt };
        self.engine.report(Fact { handle, at: self.clock.now(), what });
    }

    /// The attempt of a task ended.
    pub fn end(&mut self, name: &str) {
        let ending = Ending::of_leader(0, Cause::Itself, self.clock.now());
        self.report(name, Observation::Ended(ending));
    }

    /// An attempt of a task ended whose name another one has.
    pub fn end_of(&mut self, uid: &str, attempt: u32) {
        let at = self.clock.now();
        let what = Observation::Ended(Ending::of_leader(0, Cause::Itself, at));
        self.engine.report(Fact { handle: Handle { task: uid.to_owned(), attempt }, at, what });
    }

    /// Tasks whose attempt was told to end since the last call.
    pub fn take_stopped(&mut self) -> Vec<String> {
        let stopped = std::mem::take(&mut *self.runtime.stopped.lock());
        stopped.into_iter().map(|handle| self.names[&handle.task].clone()).collect()
    }

    /// Tasks whose attempt was handed over since the last call.
    pub fn take_handed(&mut self) -> Vec<String> {
        let handed = std::mem::take(&mut *self.runtime.handed.lock());
        handed.into_iter().map(|launch| self.names[&launch.handle.task].clone()).collect()
    }

    /// Tasks whose attempt was asked for again since the last call.
    pub fn take_recalled(&mut self) -> Vec<String> {
        let recalled = std::mem::take(&mut *self.runtime.recalled.lock());
        recalled.into_iter().map(|handle| self.names[&handle.task].clone()).collect()
    }

    pub fn fill_disk(&self, full: bool) {
        self.disk.state.lock().is_full = full;
    }

    /// From now on each write takes so many milliseconds.
    pub fn slow_disk_down(&self, millis: i64) {
        self.disk.state.lock().takes = millis;
    }

    /// How often something was written, or tried to be.
    pub fn tries(&self) -> u32 {
        self.disk.state.lock().writes
    }

    pub fn find(&self, name: &str) -> Option<Task> {
        self.read(name).map(|(_, task)| task)
    }

    pub fn get(&self, name: &str) -> Task {
        self.find(name).expect("a task")
    }

    pub fn state(&self, name: &str) -> State {
        self.get(name).state()
    }

    fn read(&self, name: &str) -> Option<(Revision, Task)> {
        let stored = self.store.get(&key(name))?;
        Some((stored.revision, serde_json::from_slice(stored.json()).expect("a task")))
    }
}

fn key(name: &str) -> Key {
    Key::new(&ResourceName::new("tasks.muster.dev"), "d", name)
}

fn open(
    disk: &Disk,
    clock: &ManualClock,
    runtime: &Arc<Recorder>,
    slots: u32,
    prefetch: u32,
) -> (Store, Engine) {
    let history = History { max_changes: HISTORY, ..History::default() };
    let store = Store::open_inline(disk.clone(), history, clock.clone()).expect("a store");
    let settings = Settings {
        queue: QueueSettings::default(),
        reap: ReapSettings::default(),
        pods: Some(Pods {
            capacity: Capacity { slots, cpu_millis: None, memory: None },
            url: "http://127.0.0.1".into(),
            namespace: None,
            base_env: Vec::new(),
        }),
        robots: None,
        processes: Capacity { slots, cpu_millis: None, memory: None },
        prefetch: Prefetch::Fixed(prefetch),
        only_since: None,
        url: "http://127.0.0.1".into(),
        work_root: "/work".into(),
        base_env: Vec::new(),
        kill_timeout: Duration::from_secs(10),
        mint: Mint::worthless(),
    };
    let blobs = Arc::new(MemoryBlobs::default());
    let files = Files::Inline(Keeper::new(runtime.clone(), blobs.clone()));
    let outside = Outside {
        store: store.clone(),
        runtime: runtime.clone(),
        blobs,
        clock: Arc::new(clock.clone()),
        telemetry: Telemetry::default(),
        tracer: Tracer::default(),
    };
    let engine = Engine::new(settings, outside, files).expect("the store can be watched");
    (store, engine)
}
