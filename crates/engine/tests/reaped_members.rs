//! Members of a group that are deleted while it goes on: they count as they ended, whenever the server stops. And how long
//! groups are kept that have ended.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use muster_engine::engine::{Engine, Outside};
use muster_engine::files::{Files, Keeper};
use muster_engine::settings::{Mint, Prefetch, Settings};
use muster_engine::workflows::Workflows;
use muster_ports::blobs::{BlobKey, Blobs, MemoryBlobs};
use muster_ports::clock::{Clock as _, ManualClock};
use muster_ports::runtime::{FilesError, Handle, Launch, Runtime};
use muster_ports::store::{Batch, Draft, History, Key, MemoryLog, Precondition, ResourceName, Store, Write};
use muster_ports::telemetry::Telemetry;
use muster_ports::traces::Tracer;
use muster_tasks::capacity::Capacity;
use muster_tasks::reap::ReapSettings;
use muster_tasks::settings::Settings as QueueSettings;
use muster_types::task_group::TaskGroupSpec;
use muster_types::{Object, Resource, State, Task, TaskGroup, TaskSpec, WorkState};
use muster_workflows::lifetime::Lifetimes;
use serde_json::{Value, json};

/// How long groups are kept here, in seconds.
const LIFETIMES: Lifetimes = Lifetimes { succeeded: 3600, failed: 7200 };

/// A runtime on which no attempt ever says anything.
struct Silent;

impl Runtime for Silent {
    fn start(&self, _: Launch) {}

    fn stop(&self, _: &Handle, _: Duration) {}

    fn keep_logs(&self, _: &Handle, _: &dyn Blobs) -> Result<(), FilesError> {
        Ok(())
    }

    fn remove(&self, _: &Handle) -> Result<(), FilesError> {
        Ok(())
    }

    fn stored(&self) -> Result<Vec<Handle>, FilesError> {
        Ok(Vec::new())
    }
}

/// A server that can be stopped at any moment.
struct Server {
    log: MemoryLog,
    clock: ManualClock,
    store: Store,
    blobs: Arc<MemoryBlobs>,
    engine: Engine,
    workflows: Workflows,
}

impl Server {
    fn new() -> Self {
        let clock = ManualClock::default();
        clock.advance(1_800_000_000_000);
        Self::open(MemoryLog::default(), clock, Arc::default())
    }

    fn open(log: MemoryLog, clock: ManualClock, blobs: Arc<MemoryBlobs>) -> Self {
        let store = Store::open_inline(log.clone(), History::default(), clock.clone())
            .expect("the server of this test answers");
        let runtime = Arc::new(Silent);
        let files = Files::Inline(Keeper::new(runtime.clone(), blobs.clone()));
        let outside = Outside {
            store: store.clone(),
            runtime,
            blobs: blobs.clone(),
            clock: Arc::new(clock.clone()),
            telemetry: Telemetry::default(),
            tracer: Tracer::default(),
        };
        let settings = Settings {
            queue: QueueSettings::default(),
            reap: ReapSettings::default(),
            pods: None,
            robots: None,
            processes: Capacity { slots: 0, cpu_millis: None, memory: None },
            prefetch: Prefetch::Fixed(0),
            only_since: None,
            url: "http://127.0.0.1".into(),
            work_root: "/work".into(),
            base_env: Vec::new(),
            kill_timeout: Duration::from_secs(1),
            mint: Mint::worthless(),
        };
        let engine = Engine::new(settings, outside, files).expect("the server of this test answers");
        let workflows = Workflows::with_lifetimes(store.clone(), Arc::new(clock.clone()), LIFETIMES)
            .expect("the server of this test answers");
        Self { log, clock, store, blobs, engine, workflows }
    }

    /// The server is gone from one moment to the next, and comes back.
    fn crash(self) -> Self {
        Self::open(self.log, self.clock, self.blobs)
    }

    fn key<S: Resource>(name: &str) -> Key {
        Key::new(&ResourceName::new(&format!("{}.{}", S::NAMES.plural, S::NAMES.group)), "n", name)
    }

    fn get<S: Resource>(&self, name: &str) -> Option<Object<S>> {
        let stored = self.store.get(&Self::key::<S>(name))?;
        Some(serde_json::from_slice(stored.json()).expect("the server of this test answers"))
    }

    async fn put<S: Resource>(&self, object: &Object<S>) {
        let draft = Draft::of_object(serde_json::to_vec(object).expect("the server of this test answers"))
            .expect("the server of this test answers");
        let key = Self::key::<S>(&object.metadata.name);
        let expect = match self.store.get(&key) {
            Some(stored) => Precondition::At(stored.revision),
            None => Precondition::Absent,
        };
        self.store
            .commit(Batch::of(Write::Put { key, expect, draft }))
            .await
            .expect("the server of this test answers");
    }

    async fn make_group(&mut self, spec: Value) {
        let spec: TaskGroupSpec = serde_json::from_value(spec).expect("the server of this test answers");
        let mut group = TaskGroup::new("n", "g", spec);
        "0190b0a0-0000-7000-8000-000000000001".clone_into(&mut group.metadata.uid);
        group.metadata.resource_version.clear();
        self.put(&group).await;
        self.step_groups().await;
    }

    fn member(&self, place: u32) -> Option<Task> {
        self.get::<TaskSpec>(&format!("g-t{place}"))
    }

    async fn succeed(&self, place: u32) {
        self.end(place, State::Succeeded).await;
    }

    async fn end(&self, place: u32, state: State) {
        let mut task = self.member(place).expect("the server of this test answers");
        task.status.state = Some(state);
        task.status.terminated = Some(self.clock.now().to_milli_timestamp());
        task.metadata.resource_version.clear();
        self.put(&task).await;
    }

    /// Has a file kept of an object.
    fn keep_file(&self, uid: &str) {
        let key = BlobKey::of_task(uid)
            .expect("the server of this test answers")
            .join("file")
            .expect("the server of this test answers");
        let mut file = self.blobs.write(&key).expect("the server of this test answers");
        file.write_all(b"text").expect("the server of this test answers");
        file.finish().expect("the server of this test answers");
    }

    fn has_files(&self, uid: &str) -> bool {
        self.blobs.tasks().expect("the server of this test answers").iter().any(|kept| kept == uid)
    }

    fn group(&self) -> TaskGroup {
        self.get::<TaskGroupSpec>("g").expect("the server of this test answers")
    }

    /// Lets time pass for the engine alone.
    async fn step_engine(&mut self, millis: i64) {
        self.clock.advance(millis);
        self.engine.step().await.expect("the server of this test answers");
    }

    /// Lets the loop of groups look until it has nothing to do at once.
    async fn step_groups(&mut self) {
        for _ in 0..8 {
            self.workflows.step().await.expect("the server of this test answers");
        }
    }
}

/// Members with data: the status of their group is written seldom.
fn large(mode: &str, members: usize, ttl: &Value) -> Value {
    let task =
        json!({"spec": {"container": {"command": ["true"]}, "data": {"text": "x".repeat(4096)}, "ttl": ttl}});
    json!({"mode": mode, "tasks": vec![task; members]})
}

#[tokio::test]
async fn members_that_succeeded_and_were_reaped_count_as_succeeded_after_a_crash() {
    let mut server = Server::new();
    server.make_group(large("batch", 300, &json!({"succeeded": "1s"}))).await;
    for place in 0..299 {
        server.succeed(place).await;
    }
    server.step_groups().await;
    for _ in 0..4 {
        server.step_engine(1_000).await;
    }
    let mut server = server.crash();
    // Whatever is left to be done after the crash is done.
    for _ in 0..8 {
        server.step_engine(60_000).await;
        server.step_groups().await;
    }
    assert!((0..299).all(|place| server.member(place).is_none()), "the members were not reaped");
    let counts = server.group().status.counts;
    assert_eq!((counts.succeeded, counts.canceled), (299, 0));
    server.succeed(299).await;
    server.step_groups().await;
    assert_eq!(server.group().status.current_state(), WorkState::Succeeded);
    let mut server = server.crash();
    server.step_engine(60_000).await;
    server.step_groups().await;
    assert!(server.member(299).is_none(), "a member of a group that has ended is reaped as well");
}

#[tokio::test]
async fn a_pipeline_goes_on_after_a_crash_although_its_first_members_are_gone() {
    let mut server = Server::new();
    server.make_group(large("pipeline", 3, &json!({"succeeded": "1s"}))).await;
    server.succeed(0).await;
    server.step_engine(2_000).await;
    let mut server = server.crash();
    for _ in 0..4 {
        server.step_engine(60_000).await;
        server.step_groups().await;
    }
    assert!(server.member(0).is_none());
    // This server runs nothing, so that it waits for a slot.
    assert_eq!(server.member(1).unwrap().state(), State::QuotaBlocked);
    assert_eq!(server.group().status.current_state(), WorkState::Running);
}

#[tokio::test]
async fn a_member_that_waits_for_its_turn_in_a_pipeline_is_not_reaped() {
    let mut server = Server::new();
    server.make_group(large("pipeline", 2, &json!({"created": "1s"}))).await;
    // As an earlier version stored it.
    let mut waiting = server.member(1).unwrap();
    waiting.spec.ttl.created = Some(muster_types::Duration::from_secs(1));
    waiting.metadata.resource_version.clear();
    server.put(&waiting).await;
    server.step_engine(3_600_000).await;
    server.step_groups().await;
    assert_eq!(server.member(1).unwrap().state(), State::Created);
    assert_eq!(server.group().status.counts.canceled, 0);
}

#[tokio::test]
async fn a_group_that_failed_is_released_with_its_members_and_stays() {
    let mut server = Server::new();
    server.make_group(large("batch", 2, &json!({}))).await;
    server.succeed(0).await;
    server.end(1, State::Failed).await;
    server.step_groups().await;
    assert_eq!(server.group().status.current_state(), WorkState::Failed);
    let uids: Vec<String> = (0..2).map(|place| server.member(place).unwrap().metadata.uid).collect();
    let group = server.group().metadata.uid;
    for uid in uids.iter().chain([&group]) {
        server.keep_file(uid);
    }
    server.step_engine(7_000_000).await;
    server.step_groups().await;
    server.step_engine(0).await;
    assert!(uids.iter().chain([&group]).all(|uid| server.has_files(uid)), "files were let go too early");
    server.clock.advance(300_000);
    server.step_groups().await;
    assert!(server.group().status.released.is_some());
    // A crash before the engine saw it: the files go with the next start.
    let mut server = server.crash();
    server.step_engine(0).await;
    assert!(!uids.iter().chain([&group]).any(|uid| server.has_files(uid)), "files are still there");
    assert!((0..2).all(|place| server.member(place).unwrap().status.released.is_some()));
    server.step_engine(100_000_000).await;
    server.step_groups().await;
    assert_eq!(server.group().status.current_state(), WorkState::Failed);
    assert_eq!(server.member(0).unwrap().state(), State::Succeeded);
}

#[tokio::test]
async fn the_engine_lets_go_of_the_files_of_members_that_their_group_released() {
    let mut server = Server::new();
    server.make_group(large("batch", 1, &json!({}))).await;
    server.end(0, State::Failed).await;
    server.step_groups().await;
    let (member, group) = (server.member(0).unwrap().metadata.uid, server.group().metadata.uid);
    server.keep_file(&member);
    server.keep_file(&group);
    server.step_engine(7_300_000).await;
    server.step_groups().await;
    server.step_engine(0).await;
    assert!(!server.has_files(&member) && !server.has_files(&group));
}

#[tokio::test]
async fn a_group_that_succeeded_is_deleted_when_the_servers_time_for_it_is_over() {
    let mut server = Server::new();
    server.make_group(large("batch", 1, &json!({}))).await;
    server.succeed(0).await;
    server.step_groups().await;
    server.clock.advance(3_500_000);
    server.step_groups().await;
    assert_eq!(server.group().status.current_state(), WorkState::Succeeded);
    server.clock.advance(200_000);
    server.step_groups().await;
    assert!(server.get::<TaskGroupSpec>("g").is_none());
}
