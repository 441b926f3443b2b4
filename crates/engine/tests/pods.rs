//! What the engine makes of news about pods: refusals, removals, and pods that find no node.

use std::sync::Arc;
use std::time::Duration;

use muster_engine::engine::{Engine, Outside};
use muster_engine::files::{Files, Keeper};
use muster_engine::settings::{Mint, Pods, Prefetch, Settings};
use muster_ports::blobs::{Blobs, MemoryBlobs};
use muster_ports::clock::{Clock as _, ManualClock};
use muster_ports::runtime::{
    CLUSTER_UNAVAILABLE, Cause, Ending, Fact, FilesError, Handle, Launch, NOT_PERMITTED, Observation,
    Runtime, UNSCHEDULABLE,
};
use muster_ports::store::{Batch, Draft, History, Key, MemoryLog, Precondition, ResourceName, Store, Write};
use muster_ports::telemetry::Telemetry;
use muster_ports::traces::Tracer;
use muster_tasks::capacity::Capacity;
use muster_tasks::reap::ReapSettings;
use muster_tasks::settings::Settings as QueueSettings;
use muster_types::task::Runtime as RuntimeName;
use muster_types::task_status::{RecordKind, Stopping};
use muster_types::{State, Task, TaskSpec, Timestamp};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Remembers what was started; nothing of it ever happens by itself.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Launch>>>);

impl Runtime for Recorder {
    fn start(&self, launch: Launch) {
        self.0.lock().push(launch);
    }

    fn stop(&self, _handle: &Handle, _grace: Duration) {}

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

struct World {
    clock: ManualClock,
    store: Store,
    runtime: Recorder,
    engine: Engine,
    tasks: u32,
}

impl World {
    fn new() -> Self {
        Self::with_pods_in(None)
    }

    fn with_pods_in(namespace: Option<&str>) -> Self {
        let clock = ManualClock::default();
        clock.advance(1_800_000_000_000);
        let store = Store::open_inline(MemoryLog::default(), History::default(), clock.clone())
            .expect("the server of this test answers");
        let pods = Capacity { slots: 100, cpu_millis: None, memory: None };
        let settings = Settings {
            queue: QueueSettings { default_runtime: RuntimeName::Pod, ..QueueSettings::default() },
            reap: ReapSettings::default(),
            pods: Some(Pods {
                capacity: pods,
                url: String::new(),
                namespace: namespace.map(str::to_owned),
                base_env: Vec::new(),
            }),
            robots: None,
            processes: Capacity { slots: 1, ..pods },
            prefetch: Prefetch::Fixed(0),
            only_since: None,
            url: String::new(),
            work_root: "/work".into(),
            base_env: Vec::new(),
            kill_timeout: Duration::from_secs(1),
            mint: Mint::worthless(),
        };
        let (runtime, blobs) = (Recorder::default(), Arc::new(MemoryBlobs::default()));
        let files = Files::Inline(Keeper::new(Arc::new(runtime.clone()), blobs.clone()));
        let outside = Outside {
            store: store.clone(),
            runtime: Arc::new(runtime.clone()),
            blobs,
            clock: Arc::new(clock.clone()),
            telemetry: Telemetry::default(),
            tracer: Tracer::default(),
        };
        let engine = Engine::new(settings, outside, files).expect("the server of this test answers");
        Self { clock, store, runtime, engine, tasks: 0 }
    }

    fn key(name: &str) -> Key {
        Key::new(&ResourceName::new("tasks.muster.dev"), "d", name)
    }

    async fn make(&mut self, name: &str, more: Value) {
        self.make_in("d", name, more).await;
    }

    async fn make_in(&mut self, namespace: &str, name: &str, more: Value) {
        let mut spec = json!({ "container": { "image": "i", "command": ["true"] } });
        spec.as_object_mut()
            .expect("the server of this test answers")
            .extend(more.as_object().expect("the server of this test answers").clone());
        let spec: TaskSpec = serde_json::from_value(spec).expect("the server of this test answers");
        let mut task = Task::new(namespace, name, spec);
        self.tasks += 1;
        task.metadata.uid = format!("00000000-0000-7000-8000-{:012x}", self.tasks);
        task.metadata.creation_timestamp = Some(self.clock.now().to_timestamp());
        let draft = Draft::of_object(serde_json::to_vec(&task).expect("the server of this test answers"))
            .expect("the server of this test answers");
        let key = Key::new(&ResourceName::new("tasks.muster.dev"), namespace, name);
        let write = Write::Put { key, expect: Precondition::Absent, draft };
        self.store.commit(Batch::of(write)).await.expect("the server of this test answers");
    }

    /// One cycle; what it started.
    async fn step(&mut self) -> Vec<Launch> {
        self.engine.step().await.expect("the server of this test answers");
        std::mem::take(&mut *self.runtime.0.lock())
    }

    fn report(&mut self, handle: &Handle, what: Observation) {
        self.engine.report(Fact { handle: handle.clone(), at: self.clock.now(), what });
    }

    fn refuse(&mut self, handle: &Handle, refusal: u32) {
        self.report(handle, Observation::Blocked { message: "exceeded quota: q".into(), refusal });
    }

    fn task(&self, name: &str) -> Task {
        serde_json::from_slice(
            self.store.get(&Self::key(name)).expect("the server of this test answers").json(),
        )
        .expect("the server of this test answers")
    }
}

/// Names of tasks that were started.
fn names(launches: &[Launch]) -> Vec<&str> {
    launches
        .iter()
        .map(|launch| launch.pod.as_ref().expect("the server of this test answers").task.as_str())
        .collect()
}

#[tokio::test]
async fn a_refused_attempt_is_started_again_under_its_number_and_knows_its_refusals() {
    let mut world = World::new();
    world.make("a", json!({})).await;
    for refusals in 0..3 {
        let started = world.step().await;
        let [launch] = &started[..] else { panic!("{:?}", names(&started)) };
        let pod = launch.pod.as_ref().unwrap();
        assert_eq!((launch.handle.attempt, pod.refusals), (1, refusals));
        assert_eq!(pod.knows_refusals, u64::from(refusals));
        world.refuse(&launch.handle.clone(), refusals + 1);
        assert!(world.step().await.is_empty(), "it is not asked for again at once");
        assert_eq!(world.task("a").state(), State::QuotaBlocked);
        world.clock.advance(60_000);
    }
    assert_eq!(world.task("a").status.attempt, 0);
}

#[tokio::test]
async fn what_was_chosen_before_a_refusal_was_reported_says_so() {
    let mut world = World::new();
    world.make("high", json!({ "priority": 9 })).await;
    let high = world.step().await.remove(0);
    world.make("low", json!({ "priority": 1 })).await;
    let low = world.step().await.remove(0);
    assert_eq!(low.pod.as_ref().unwrap().knows_refusals, 0, "nobody has told of a refusal yet");
    world.refuse(&high.handle, 1);
    world.refuse(&low.handle, 1);
    world.step().await;
    world.clock.advance(60_000);
    let again = world.step().await;
    assert_eq!(names(&again)[0], "high", "in order of rank");
    assert_eq!(again[0].pod.as_ref().unwrap().knows_refusals, 2);
}

/// A world in which the quota of namespace `a` has refused a pod for the third time a moment ago: none is tried for 4 s.
async fn refused_in_a(pods_in: Option<&str>) -> World {
    let mut world = World::with_pods_in(pods_in);
    world.make_in("a", "refused", json!({ "priority": 5 })).await;
    for refusal in 1..=3 {
        let launch = world.step().await.remove(0);
        world.refuse(&launch.handle, refusal);
        world.step().await;
        if refusal < 3 {
            world.clock.advance(60_000);
        }
    }
    world
}

fn end_of(world: &World) -> Observation {
    Observation::Ended(Ending::of_leader(0, Cause::Itself, world.clock.now()))
}

#[tokio::test]
async fn a_refusal_in_one_namespace_holds_back_no_pod_of_another() {
    let mut world = refused_in_a(None).await;
    world.make_in("a", "behind", json!({})).await;
    world.make_in("b", "b1", json!({})).await;
    world.make_in("b", "b2", json!({})).await;
    assert_eq!(names(&world.step().await), ["b1", "b2"]);
    world.clock.advance(4_000);
    assert_eq!(names(&world.step().await), ["refused"], "one at a time is tried");
}

#[tokio::test]
async fn where_all_pods_are_in_one_namespace_a_refusal_holds_back_all() {
    let mut world = refused_in_a(Some("shared")).await;
    world.make_in("b", "b1", json!({})).await;
    assert!(world.step().await.is_empty());
    world.clock.advance(4_000);
    assert_eq!(names(&world.step().await), ["refused"]);
}

#[tokio::test]
async fn a_task_that_a_quota_refuses_preempts_no_pod_of_another_namespace() {
    let mut world = World::new();
    world.make_in("b", "b1", json!({})).await;
    let other = world.step().await.remove(0).handle;
    world.report(&other, Observation::Created);
    world.report(&other, Observation::Started);
    world.clock.advance(1_000);
    world.step().await;
    world.make_in("a", "high", json!({ "priority": 9, "policy": { "preemptEnabled": true } })).await;
    for refusal in 1..=5 {
        for launch in world.step().await {
            world.refuse(&launch.handle, refusal);
        }
        world.step().await;
        world.clock.advance(90_000);
    }
    world.step().await;
    let key = Key::new(&ResourceName::new("tasks.muster.dev"), "b", "b1");
    let stored = world.store.get(&key).unwrap();
    let task: Task = serde_json::from_slice(stored.json()).unwrap();
    assert_eq!((task.state(), task.status.stopping), (State::Running, None));
}

#[tokio::test]
async fn only_the_end_of_a_pod_of_its_namespace_hastens_the_next_try_of_a_refused_one() {
    let mut world = refused_in_a(None).await;
    world.make_in("a", "process", json!({ "runtime": "process" })).await;
    world.make_in("b", "b1", json!({})).await;
    for launch in world.step().await {
        let end = end_of(&world);
        world.report(&launch.handle, end);
    }
    world.step().await;
    world.clock.advance(3_000);
    assert!(world.step().await.is_empty(), "neither of them used anything of the quota");
    world.clock.advance(1_000);
    let tried = world.step().await.remove(0);
    world.report(&tried.handle, Observation::Created);
    world.make_in("a", "second", json!({})).await;
    let second = world.step().await.remove(0);
    world.refuse(&second.handle, 1);
    world.step().await;
    world.clock.advance(1_000);
    let again = world.step().await.remove(0);
    world.refuse(&again.handle, 2);
    assert!(world.step().await.is_empty());
    let end = end_of(&world);
    world.report(&tried.handle, end);
    assert_eq!(names(&world.step().await), ["second"], "a pod of its namespace has ended");
}

#[tokio::test]
async fn a_pod_that_is_removed_after_its_task_ended_is_recorded() {
    for spec in [json!({}), json!({"ttl": {"succeeded": 0}})] {
        let mut world = World::new();
        world.make("a", spec).await;
        let handle = world.step().await.remove(0).handle;
        let at = world.clock.now();
        world.report(&handle, Observation::Ended(Ending::of_leader(0, Cause::Itself, at)));
        world.step().await;
        assert_eq!(world.task("a").state(), State::Succeeded);
        world.report(&handle, Observation::Removed);
        world.step().await;
        let task = world.task("a");
        let deleted = task.status.events.iter().filter(|record| record.kind == RecordKind::PodDeleted);
        assert_eq!((deleted.count(), task.state()), (1, State::Succeeded));
    }
}

#[tokio::test]
async fn a_pod_that_finds_no_node_leaves_other_tasks_alone_and_is_named_to_those_like_it() {
    let mut world = World::new();
    let nowhere = json!({ "pod": { "nodeSelector": { "no-such": "node" } } });
    world.make("nowhere", nowhere.clone()).await;
    let stuck = world.step().await.remove(0).handle;
    let (reason, message) = (UNSCHEDULABLE.to_owned(), "0/1 nodes are available".to_owned());
    world.report(&stuck, Observation::Waiting { reason, message });
    world.step().await;
    world.make("alike", nowhere).await;
    world.make("other", json!({})).await;
    assert_eq!(names(&world.step().await), ["other"]);
    let waits = world.task("alike").status.waiting_for.unwrap();
    assert_eq!((waits.reason.as_str(), waits.task.as_str()), ("Unschedulable", "d/nowhere"));
    world.clock.advance(301_000);
    assert_eq!(names(&world.step().await), ["alike"], "its time limit is over");
}

#[tokio::test]
async fn a_pod_that_has_a_node_and_cannot_run_there_yet_lets_the_others_like_it_start() {
    let mut world = World::new();
    world.make("nowhere", json!({})).await;
    let stuck = world.step().await.remove(0).handle;
    let waits = |reason: &str| Observation::Waiting { reason: reason.to_owned(), message: String::new() };
    world.report(&stuck, waits(UNSCHEDULABLE));
    world.step().await;
    world.make("tries", json!({})).await;
    world.make("alike", json!({})).await;
    world.clock.advance(301_000);
    let tries = world.step().await.remove(0).handle;
    for reason in [CLUSTER_UNAVAILABLE, NOT_PERMITTED] {
        world.report(&tries, waits(reason));
        assert!(world.step().await.is_empty(), "{reason} says nothing of nodes");
    }
    world.report(&tries, waits("CreateContainerConfigError"));
    assert_eq!(names(&world.step().await), ["alike"]);
}

#[tokio::test]
async fn an_isolated_pod_that_finds_no_node_goes_back_to_the_queue_uses_up_nothing_and_lets_others_start() {
    let mut world = World::new();
    let nowhere = json!({ "policy": { "isolated": true }, "pod": { "nodeSelector": { "no-such": "node" } } });
    world.make("alone", nowhere).await;
    let alone = world.step().await.remove(0).handle;
    let (reason, message) = (UNSCHEDULABLE.to_owned(), "0/1 nodes are available".to_owned());
    world.report(&alone, Observation::Waiting { reason, message });
    world.step().await;
    world.make("other", json!({})).await;
    assert!(world.step().await.is_empty(), "it may find a node yet");
    world.clock.advance(61_000);
    world.step().await;
    assert_eq!(world.task("alone").status.stopping, Some(Stopping::Unschedulable));
    let at = world.clock.now();
    world.report(&alone, Observation::Ended(Ending::of_leader(143, Cause::Stopped, at)));
    assert_eq!(names(&world.step().await), ["other"]);
    let status = world.task("alone").status;
    assert_eq!((status.state, status.retries, status.lost), (Some(State::Ready), 0, 0));
    assert_eq!(status.rest_until.map(Timestamp::as_second), Some(at.to_timestamp().as_second() + 300));
    assert_eq!(status.waiting_for.map(|it| it.reason), Some(UNSCHEDULABLE.to_owned()));
    world.clock.advance(400_000);
    assert!(world.step().await.is_empty(), "the other one is active");
    world.make("later", json!({})).await;
    assert_eq!(names(&world.step().await), ["later"], "nobody waits for it");
}

#[tokio::test]
async fn an_isolated_pod_that_a_quota_refused_is_tried_when_nothing_else_is_active_and_holds_back_nobody() {
    let mut world = World::new();
    world.make("alone", json!({ "priority": 9, "policy": { "isolated": true } })).await;
    let alone = world.step().await.remove(0).handle;
    world.refuse(&alone, 1);
    world.make("other", json!({ "runtime": "process" })).await;
    assert_eq!(world.step().await.len(), 1);
    world.clock.advance(60_000);
    world.make("pod", json!({})).await;
    let started = world.step().await;
    assert_eq!(names(&started), ["pod"], "nobody waits until it can be tried");
    let at = world.clock.now();
    for uid in [2, 3] {
        let handle = Handle { task: format!("00000000-0000-7000-8000-{uid:012x}"), attempt: 1 };
        assert!(world.step().await.is_empty(), "something is active");
        world.report(&handle, Observation::Ended(Ending::of_leader(0, Cause::Itself, at)));
    }
    world.step().await;
    world.clock.advance(60_000);
    world.step().await;
    assert_eq!(world.task("alone").state(), State::Pending);
}
