//! A place of files that is away for a while: logs are stored when it is back, and nothing is deleted by time before.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use muster_engine::engine::{Engine, Outside};
use muster_engine::files::{Files, Keeper};
use muster_engine::schedules::Schedules;
use muster_engine::settings::{Mint, Prefetch, Settings};
use muster_engine::workflows::Workflows;
use muster_ports::blobs::{BlobKey, Blobs, MemoryBlobs};
use muster_ports::clock::{Clock as _, ManualClock};
use muster_ports::runtime::{Cause, Ending, Fact, FilesError, Handle, Launch, Observation, Runtime};
use muster_ports::store::{Batch, Draft, History, Key, MemoryLog, Precondition, ResourceName, Store, Write};
use muster_ports::telemetry::Telemetry;
use muster_ports::traces::Tracer;
use muster_tasks::capacity::Capacity;
use muster_tasks::reap::ReapSettings;
use muster_tasks::settings::Settings as QueueSettings;
use parking_lot::Mutex;
use serde_json::{Value, json};

const DEADLINE: Duration = Duration::from_mins(1);
const UID: &str = "01a1b2c3-0000-7000-8000-000000000001";

/// A runtime whose attempts leave a log here until it is stored.
#[derive(Default)]
struct Logging {
    logs: Mutex<BTreeMap<Handle, String>>,
}

impl Logging {
    fn leaves(&self) -> usize {
        self.logs.lock().len()
    }
}

impl Runtime for Logging {
    fn start(&self, launch: Launch) {
        let text = format!("written by {}", launch.handle);
        self.logs.lock().insert(launch.handle, text);
    }

    fn stop(&self, _handle: &Handle, _grace: Duration) {}

    fn keep_logs(&self, handle: &Handle, blobs: &dyn Blobs) -> Result<(), FilesError> {
        if let Some(text) = self.logs.lock().get(handle) {
            let mut writer = blobs.write(&log_key(handle)?)?;
            writer.write_all(text.as_bytes())?;
            writer.finish()?;
        }
        Ok(())
    }

    fn remove(&self, handle: &Handle) -> Result<(), FilesError> {
        self.logs.lock().remove(handle);
        Ok(())
    }

    fn stored(&self) -> Result<Vec<Handle>, FilesError> {
        Ok(self.logs.lock().keys().cloned().collect())
    }
}

fn log_key(handle: &Handle) -> Result<BlobKey, FilesError> {
    Ok(BlobKey::of_task(&handle.task)?.join(&format!("{}.log", handle.attempt))?)
}

struct World {
    clock: ManualClock,
    store: Store,
    runtime: Arc<Logging>,
    blobs: MemoryBlobs,
}

impl World {
    fn new() -> Self {
        let clock = ManualClock::default();
        clock.advance(1_800_000_000_000);
        let store =
            Store::open_inline(MemoryLog::default(), History::default(), clock.clone()).expect("a store");
        Self { clock, store, runtime: Arc::default(), blobs: MemoryBlobs::default() }
    }

    async fn put(&self, plural: &str, name: &str, mut object: Value) {
        object["apiVersion"] = json!("muster.dev/v1alpha1");
        object["metadata"]["namespace"] = json!("default");
        object["metadata"]["name"] = json!(name);
        object["metadata"]["generation"] = json!(1);
        object["metadata"]["creationTimestamp"] = json!(self.clock.now().to_timestamp());
        object["metadata"]["resourceVersion"] = json!("");
        let draft = Draft::of_object(object.to_string().into_bytes()).expect("a place for the revision");
        let key = key(plural, name);
        let expect = if self.store.get(&key).is_some() { Precondition::Exists } else { Precondition::Absent };
        self.store.commit(Batch::of(Write::Put { key, expect, draft })).await.expect("a commit");
    }

    /// A task with a short life after it ended, and what else is said of it.
    async fn task(&self, name: &str, uid: &str, spec: Value, owners: Value) {
        let mut spec = spec;
        spec["container"] = json!({"command": ["echo", "hello"]});
        let metadata = json!({ "uid": uid, "ownerReferences": owners });
        self.put("tasks", name, json!({ "kind": "Task", "metadata": metadata, "spec": spec })).await;
    }

    fn is_there(&self, plural: &str, name: &str) -> bool {
        self.store.get(&key(plural, name)).is_some()
    }

    fn engine(&self) -> Engine {
        self.engine_with(Files::Inline(self.keeper()))
    }

    fn keeper(&self) -> Keeper {
        Keeper::new(self.runtime.clone(), Arc::new(self.blobs.clone()))
    }

    fn engine_with(&self, files: Files) -> Engine {
        let settings = Settings {
            queue: QueueSettings::default(),
            reap: ReapSettings::default(),
            pods: None,
            robots: None,
            processes: Capacity { slots: 4, cpu_millis: None, memory: None },
            prefetch: Prefetch::Fixed(0),
            only_since: None,
            url: "http://127.0.0.1".into(),
            work_root: "/work".into(),
            base_env: Vec::new(),
            kill_timeout: Duration::from_secs(1),
            mint: Mint::worthless(),
        };
        let outside = Outside {
            store: self.store.clone(),
            runtime: self.runtime.clone(),
            blobs: Arc::new(self.blobs.clone()),
            clock: Arc::new(self.clock.clone()),
            telemetry: Telemetry::default(),
            tracer: Tracer::default(),
        };
        Engine::new(settings, outside, files).expect("an engine")
    }

    /// Time passes, second by second, and the engine looks at each.
    async fn seconds(&self, engine: &mut Engine, count: usize) {
        for _ in 0..count {
            self.clock.advance(1000);
            engine.step().await.expect("a step");
        }
    }

    /// Starts what can be, and has the first attempt of each of these end with a code.
    async fn run(&self, engine: &mut Engine, uids: &[&str], code: i32) {
        engine.step().await.expect("a step");
        for uid in uids {
            let handle = Handle { task: (*uid).to_owned(), attempt: 1 };
            let fact = |what| Fact { handle: handle.clone(), at: self.clock.now(), what };
            engine.report(fact(Observation::Started));
            engine.report(fact(Observation::Ended(Ending::of_leader(code, Cause::Itself, self.clock.now()))));
        }
        engine.step().await.expect("a step");
    }

    fn has_log(&self, uid: &str) -> bool {
        let handle = Handle { task: uid.to_owned(), attempt: 1 };
        self.blobs.size(&log_key(&handle).expect("a key")).is_ok()
    }
}

fn key(plural: &str, name: &str) -> Key {
    Key::new(&ResourceName::new(&format!("{plural}.muster.dev")), "default", name)
}

fn short_life() -> Value {
    json!({ "ttl": { "succeeded": "2s" }, "retention": { "succeeded": "0s" } })
}

#[tokio::test]
async fn a_task_is_not_deleted_by_its_lifetime_before_its_log_is_stored() {
    let world = World::new();
    world.task("t", UID, short_life(), json!([])).await;
    let mut engine = world.engine();
    world.blobs.set_away(true);
    world.run(&mut engine, &[UID], 0).await;
    world.seconds(&mut engine, 30).await;
    assert!(world.is_there("tasks", "t"), "its log is not stored");
    assert_eq!(world.runtime.leaves(), 1, "the log is where it was written");
    world.blobs.set_away(false);
    world.seconds(&mut engine, 5).await;
    assert!(!world.is_there("tasks", "t"), "its log was stored, so its time is over");
    assert_eq!(world.runtime.leaves(), 0);
}

/// No relay runs here, as in the moment before it notices a new sink.
#[tokio::test]
async fn a_task_is_not_deleted_by_its_lifetime_before_a_sink_that_was_just_made_was_told() {
    let world = World::new();
    world.task("t", UID, short_life(), json!([])).await;
    let mut engine = world.engine();
    let sink = json!({"kind": "EventSink", "metadata": {"uid": "s"}, "spec": {"file": {"path": "a"}}});
    world.put("eventsinks", "new", sink).await;
    world.run(&mut engine, &[UID], 0).await;
    world.seconds(&mut engine, 30).await;
    assert!(world.is_there("tasks", "t"), "the sink was not told of its end");
    let paused = json!({
        "kind": "EventSink", "metadata": {"uid": "s"}, "spec": {"file": {"path": "a"}, "suspend": true},
    });
    world.put("eventsinks", "new", paused).await;
    world.seconds(&mut engine, 5).await;
    assert!(!world.is_there("tasks", "t"), "nothing waits for a sink that is suspended");
}

#[tokio::test]
async fn logs_are_stored_when_the_place_of_files_is_back() {
    let world = World::new();
    world.task("t", UID, json!({ "retention": { "succeeded": "0s" } }), json!([])).await;
    let mut engine = world.engine();
    world.blobs.set_away(true);
    world.run(&mut engine, &[UID], 0).await;
    world.seconds(&mut engine, 10).await;
    world.blobs.set_away(false);
    assert!(!world.has_log(UID));
    world.seconds(&mut engine, 2).await;
    assert!(world.has_log(UID));
    assert_eq!(world.runtime.leaves(), 0);
}

#[tokio::test]
async fn a_lifetime_that_is_shorter_than_the_retention_stores_the_log_and_then_deletes_the_task() {
    let world = World::new();
    let spec =
        json!({ "ttl": { "failed": "2s" }, "retention": { "failed": "72h" }, "retry": { "limit": 0 } });
    world.task("t", UID, spec, json!([])).await;
    let mut engine = world.engine();
    world.run(&mut engine, &[UID], 1).await;
    world.seconds(&mut engine, 10).await;
    assert!(!world.is_there("tasks", "t"));
    assert_eq!(world.runtime.leaves(), 0);
}

#[tokio::test]
async fn a_user_may_delete_a_task_whose_log_is_not_stored() {
    let world = World::new();
    world.task("t", UID, short_life(), json!([])).await;
    let mut engine = world.engine();
    world.blobs.set_away(true);
    world.run(&mut engine, &[UID], 0).await;
    world.seconds(&mut engine, 3).await;
    let write = Write::Delete { key: key("tasks", "t"), expect: Precondition::Exists };
    world.store.commit(Batch::of(write)).await.expect("a commit");
    world.seconds(&mut engine, 1).await;
    world.blobs.set_away(false);
    world.seconds(&mut engine, 1).await;
    assert_eq!(world.runtime.leaves(), 0);
    assert!(!world.has_log(UID), "nothing is stored of a task that is gone");
    assert!(!world.store.pins().is_pinned(UID));
}

#[tokio::test]
async fn after_a_restart_logs_that_were_left_still_keep_their_tasks() {
    let world = World::new();
    world.task("t", UID, short_life(), json!([])).await;
    let mut engine = world.engine();
    world.blobs.set_away(true);
    world.run(&mut engine, &[UID], 0).await;
    drop(engine);
    let mut engine = world.engine();
    world.seconds(&mut engine, 10).await;
    assert!(world.is_there("tasks", "t"));
    world.blobs.set_away(false);
    world.seconds(&mut engine, 3).await;
    assert!(!world.is_there("tasks", "t"));
}

#[tokio::test]
async fn the_thread_that_stores_files_goes_on_when_the_place_is_back() {
    let world = World::new();
    let uids: Vec<String> =
        (1..=4).map(|number| format!("01a1b2c3-0000-7000-8000-00000000000{number}")).collect();
    for (number, uid) in uids.iter().enumerate() {
        world
            .task(&format!("t{number}"), uid, json!({ "retention": { "succeeded": "0s" } }), json!([]))
            .await;
    }
    let mut engine = world.engine_with(world.keeper().spawn().expect("a thread"));
    world.blobs.set_away(true);
    world.run(&mut engine, &uids.iter().map(String::as_str).collect::<Vec<_>>(), 0).await;
    world.seconds(&mut engine, 2).await;
    world.blobs.set_away(false);
    let stored = async {
        while !uids.iter().all(|uid| world.has_log(uid)) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, stored).await.expect("all logs are stored without a restart");
}

#[tokio::test]
async fn a_run_is_not_pushed_out_of_the_history_before_its_log_is_stored() {
    let world = World::new();
    let template = json!({ "spec": { "container": { "command": ["true"] } } });
    let spec = json!({
        "schedulePolicy": { "timeSpec": "R/PT1M" }, "template": template, "successfulHistoryLimit": 0,
    });
    let schedule = "01a1b2c3-0000-7000-8000-0000000000aa";
    world
        .put("schedules", "s", json!({ "kind": "Schedule", "metadata": { "uid": schedule }, "spec": spec }))
        .await;
    let owner = json!([{
        "apiVersion": "muster.dev/v1alpha1", "kind": "Schedule", "name": "s", "uid": schedule, "controller": true,
    }]);
    world.task("run", UID, json!({ "retention": { "succeeded": "0s" } }), owner).await;
    let mut engine = world.engine();
    let mut schedules = Schedules::new(world.store.clone(), Arc::new(world.clock.clone())).expect("a loop");
    world.blobs.set_away(true);
    world.run(&mut engine, &[UID], 0).await;
    for _ in 0..10 {
        world.seconds(&mut engine, 1).await;
        schedules.step().await.expect("a step");
    }
    assert!(world.is_there("tasks", "run"));
    world.blobs.set_away(false);
    for _ in 0..5 {
        world.seconds(&mut engine, 1).await;
        schedules.step().await.expect("a step");
    }
    assert!(!world.is_there("tasks", "run"));
}

#[tokio::test]
async fn a_group_and_a_job_outlive_the_retention_of_their_tasks_only_until_the_logs_are_stored() {
    let world = World::new();
    let (job, group) = ("01a1b2c3-0000-7000-8000-0000000000bb", "01a1b2c3-0000-7000-8000-0000000000cc");
    let owner = |kind: &str, name: &str, uid: &str| {
        json!([{
            "apiVersion": "muster.dev/v1alpha1", "kind": kind, "name": name, "uid": uid, "controller": true,
        }])
    };
    let ended = world.clock.now().to_timestamp();
    let status = json!({ "state": "Failed", "terminated": ended });
    let spec = json!({ "ttl": "2s", "taskGroups": [] });
    world
        .put(
            "jobs",
            "j",
            json!({ "kind": "Job", "metadata": { "uid": job }, "spec": spec, "status": status }),
        )
        .await;
    let metadata = json!({ "uid": group, "ownerReferences": owner("Job", "j", job) });
    world
        .put(
            "taskgroups",
            "g",
            json!({ "kind": "TaskGroup", "metadata": metadata, "spec": {}, "status": status }),
        )
        .await;
    let spec = json!({ "retention": { "failed": "72h" }, "retry": { "limit": 0 } });
    world.task("t", UID, spec, owner("TaskGroup", "g", group)).await;
    let mut engine = world.engine();
    world.run(&mut engine, &[UID], 1).await;
    assert!([UID, group, job].iter().all(|uid| world.store.pins().is_pinned(uid)));
    let mut workflows = Workflows::new(world.store.clone(), Arc::new(world.clock.clone())).expect("a loop");
    world.blobs.set_away(true);
    for _ in 0..10 {
        workflows.step().await.expect("a step");
        world.seconds(&mut engine, 1).await;
    }
    assert!(world.is_there("jobs", "j"));
    world.blobs.set_away(false);
    for _ in 0..5 {
        workflows.step().await.expect("a step");
        world.seconds(&mut engine, 1).await;
    }
    assert!(!world.is_there("jobs", "j"));
    assert!(world.has_log(UID), "the log was stored before");
}

/// Those that have files are fewer than the tasks there are, and those that have none are more: counting them says nothing.
#[tokio::test]
async fn after_a_restart_files_of_a_group_are_there_however_many_tasks_there_are() {
    let world = World::new();
    let group = "01a1b2c3-0000-7000-8000-0000000000cc";
    let kind = json!({ "kind": "TaskGroup", "metadata": { "uid": group }, "spec": {} });
    world.put("taskgroups", "g", kind).await;
    let key = BlobKey::of_task(group).and_then(|key| key.join("bucket/f")).expect("a key");
    for tasks in 0..4 {
        let uid = format!("01a1b2c3-0000-7000-8000-00000000000{tasks}");
        world.task(&format!("t{tasks}"), &uid, json!({ "suspend": true }), json!([])).await;
        let mut writer = world.blobs.write(&key).expect("a file");
        writer.write_all(b"kept").expect("it is written");
        writer.finish().expect("it is kept");
        let mut engine = world.engine();
        world.seconds(&mut engine, 3).await;
        assert!(world.blobs.size(&key).is_ok(), "it went with {} tasks", tasks + 1);
    }
}
