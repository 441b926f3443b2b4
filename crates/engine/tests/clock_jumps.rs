//! A wall clock that jumps: ages and deadlines do not notice, schedules follow it.

use std::sync::Arc;
use std::time::Duration;

use muster_engine::engine::{Engine, Outside};
use muster_engine::files::{Files, Keeper};
use muster_engine::fleet::Robots;
use muster_engine::schedules::Schedules;
use muster_engine::settings::{Mint, Prefetch, Settings};
use muster_fleet::liveness;
use muster_ports::blobs::{Blobs, MemoryBlobs};
use muster_ports::clock::{Clock as _, ManualClock, Millis};
use muster_ports::runtime::{Fact, FilesError, Handle, Launch, Observation, Runtime};
use muster_ports::store::{Batch, Draft, History, Key, MemoryLog, Precondition, ResourceName, Store, Write};
use muster_ports::telemetry::Telemetry;
use muster_ports::traces::Tracer;
use muster_tasks::capacity::Capacity;
use muster_tasks::reap::ReapSettings;
use muster_tasks::settings::Settings as QueueSettings;
use parking_lot::Mutex;
use serde_json::{Value, json};

const HOUR: i64 = 3_600_000;
/// A Friday, at 2027-01-15T08:00:00Z.
const START: i64 = 1_800_000_000_000;

/// A runtime that does what it is told and reports nothing by itself.
#[derive(Default)]
struct Obedient {
    started: Mutex<Vec<Handle>>,
    stopped: Mutex<Vec<Handle>>,
}

impl Runtime for Obedient {
    fn start(&self, launch: Launch) {
        self.started.lock().push(launch.handle);
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

struct World {
    clock: ManualClock,
    store: Store,
}

impl World {
    fn new() -> Self {
        let clock = ManualClock::default();
        clock.advance(START);
        let store =
            Store::open_inline(MemoryLog::default(), History::default(), clock.clone()).expect("a store");
        Self { clock, store }
    }

    async fn put(&self, plural: &str, name: &str, mut object: Value) {
        object["apiVersion"] = json!("muster.dev/v1alpha1");
        object["metadata"]["namespace"] = json!("default");
        object["metadata"]["name"] = json!(name);
        object["metadata"]["resourceVersion"] = json!("");
        let key = key(plural, name);
        let expect = if self.store.get(&key).is_some() { Precondition::Exists } else { Precondition::Absent };
        let draft = Draft::of_object(object.to_string().into_bytes()).expect("a place for the revision");
        self.store.commit(Batch::of(Write::Put { key, expect, draft })).await.expect("a commit");
    }

    fn get(&self, plural: &str, name: &str) -> Value {
        let stored = self.store.get(&key(plural, name));
        stored.map_or(Value::Null, |stored| serde_json::from_slice(stored.json()).expect("JSON"))
    }

    fn engine(&self, runtime: &Arc<Obedient>) -> Engine {
        let (runtime, blobs) = (runtime.clone(), Arc::new(MemoryBlobs::default()));
        let files = Files::Inline(Keeper::new(runtime.clone(), blobs.clone()));
        let settings = Settings {
            queue: QueueSettings::default(),
            reap: ReapSettings::default(),
            pods: None,
            robots: None,
            processes: Capacity { slots: 1, cpu_millis: None, memory: None },
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
            runtime,
            blobs,
            clock: Arc::new(self.clock.clone()),
            telemetry: Telemetry::default(),
            tracer: Tracer::default(),
        };
        Engine::new(settings, outside, files).expect("an engine")
    }

    fn schedules(&self) -> Schedules {
        Schedules::new(self.store.clone(), Arc::new(self.clock.clone())).expect("a loop")
    }

    fn runs(&self) -> Vec<String> {
        let tasks = self.store.snapshot(&ResourceName::new("tasks.muster.dev"));
        tasks.range(None, None).map(|task| task.name().to_owned()).collect()
    }
}

fn key(plural: &str, name: &str) -> Key {
    Key::new(&ResourceName::new(&format!("{plural}.muster.dev")), "default", name)
}

fn task(world: &World) -> Value {
    json!({
        "kind": "Task",
        "metadata": {
            "uid": "01a1b2c3-0000-7000-8000-000000000001", "generation": 1,
            "creationTimestamp": world.clock.now().to_timestamp(),
        },
        "spec": {
            "container": {"command": ["sleep", "1d"]},
            "ttl": {"created": "1h", "pending": "1h", "running": "1h"},
        },
    })
}

#[tokio::test]
async fn a_clock_that_jumps_lets_no_time_limit_of_a_task_pass_and_none_begin_anew() {
    for jumps in [[2 * HOUR, -4 * HOUR], [-2 * HOUR, 4 * HOUR]] {
        let (world, runtime) = (World::new(), Arc::new(Obedient::default()));
        let mut engine = world.engine(&runtime);
        world.put("tasks", "t", task(&world)).await;
        engine.step().await.expect("a step");
        let handle = runtime.started.lock().first().cloned().expect("an attempt");
        world.clock.jump_wall(jumps[0]);
        // The executor goes by the wall clock of its own process.
        engine.report(Fact { handle, at: world.clock.wall(), what: Observation::Started });
        world.clock.advance(1000);
        for jump in [0, jumps[1]] {
            world.clock.jump_wall(jump);
            world.clock.advance(1000);
            engine.step().await.expect("a step");
            engine.step().await.expect("a step");
            let status = world.get("tasks", "t")["status"].clone();
            assert_eq!((&status["state"], runtime.stopped.lock().len()), (&json!("Running"), 0), "{status}");
        }
        world.clock.advance(HOUR);
        engine.step().await.expect("a step");
        assert_eq!(runtime.stopped.lock().len(), 1, "an hour has passed");
    }
}

#[tokio::test]
async fn a_task_that_rests_by_a_clock_that_was_years_ahead_rests_no_longer_than_it_was_to() {
    let (world, runtime) = (World::new(), Arc::new(Obedient::default()));
    let ahead = |seconds: i64| Millis(START + 3 * 365 * 24 * HOUR + seconds * 1000).to_timestamp();
    let mut task = task(&world);
    task["status"] = json!({"state": "Ready", "stateSince": ahead(0), "restUntil": ahead(60)});
    world.put("tasks", "t", task).await;
    let mut engine = world.engine(&runtime);
    engine.step().await.expect("a step");
    world.clock.advance(59_000);
    engine.step().await.expect("a step");
    assert_eq!(runtime.started.lock().len(), 0);
    world.clock.advance(2_000);
    engine.step().await.expect("a step");
    assert_eq!(runtime.started.lock().len(), 1);
}

#[tokio::test]
async fn a_clock_that_jumps_takes_no_robot_offline_and_keeps_none_online() {
    for jump in [2 * HOUR, -2 * HOUR] {
        let world = World::new();
        let settings = liveness::Settings { offline_after: 300, approve: true, max_robots: None };
        let clock = Arc::new(world.clock.clone());
        let mut robots = Robots::new(world.store.clone(), clock, settings).expect("a loop");
        let beat = world.clock.now().to_timestamp();
        let robot = json!({
            "kind": "Robot", "metadata": {"uid": "u"}, "spec": {},
            "status": {"phase": "Online", "lastHeartbeatTime": beat},
        });
        world.put("robots", "r1", robot).await;
        robots.step().await.expect("a step");
        world.clock.jump_wall(jump);
        for (seconds, phase) in [(240, "Online"), (59, "Online"), (2, "Online"), (2, "Offline")] {
            world.clock.advance(seconds * 1000);
            robots.step().await.expect("a step");
            assert_eq!(world.get("robots", "r1")["status"]["phase"], phase, "{jump} {seconds}");
        }
    }
}

/// Signs of life come in the moment in which the server goes on, and not all of them at once.
#[tokio::test]
async fn a_server_that_was_paused_takes_no_robot_offline_before_it_heard_what_it_was_told_meanwhile() {
    let world = World::new();
    let settings = liveness::Settings { offline_after: 12, approve: true, max_robots: None };
    let clock = Arc::new(world.clock.clone());
    let mut robots = Robots::new(world.store.clone(), clock, settings).expect("a loop");
    let robot = |world: &World| {
        json!({
            "kind": "Robot", "metadata": {"uid": "u"}, "spec": {},
            "status": {"phase": "Online", "lastHeartbeatTime": world.clock.now().to_timestamp()},
        })
    };
    world.put("robots", "r1", robot(&world)).await;
    robots.step().await.expect("a step");
    world.clock.advance(20_000);
    robots.step().await.expect("a step");
    world.clock.advance(500);
    world.put("robots", "r1", robot(&world)).await;
    for (millis, phase) in [(0, "Online"), (11_000, "Online"), (2_000, "Online"), (2_000, "Offline")] {
        world.clock.advance(millis);
        robots.step().await.expect("a step");
        assert_eq!(world.get("robots", "r1")["status"]["phase"], phase, "{millis}");
    }
}

#[tokio::test]
async fn a_sign_of_life_counts_from_when_it_is_seen_though_the_server_that_heard_it_is_hours_behind() {
    let world = World::new();
    let settings = liveness::Settings { offline_after: 300, approve: true, max_robots: None };
    let clock = Arc::new(world.clock.clone());
    let mut robots = Robots::new(world.store.clone(), clock, settings).expect("a loop");
    for _ in 0..5 {
        let beat = Millis(world.clock.now().0 - 2 * HOUR).to_timestamp();
        let robot = json!({
            "kind": "Robot", "metadata": {"uid": "u"}, "spec": {},
            "status": {"phase": "Online", "lastHeartbeatTime": beat},
        });
        world.put("robots", "r1", robot).await;
        robots.step().await.expect("a step");
        world.clock.advance(200_000);
        robots.step().await.expect("a step");
        assert_eq!(world.get("robots", "r1")["status"]["phase"], "Online");
    }
}

fn daily(world: &World) -> Value {
    json!({
        "kind": "Schedule",
        "metadata": {"uid": "u", "generation": 1, "creationTimestamp": world.clock.wall().to_timestamp()},
        "spec": {
            "schedulePolicy": {"timeSpec": "R/T09:00:00/P1D"},
            "template": {"spec": {"container": {"command": ["true"]}}},
        },
    })
}

#[tokio::test]
async fn a_schedule_follows_the_wall_clock_and_makes_no_time_twice() {
    let world = World::new();
    world.put("schedules", "s", daily(&world)).await;
    let mut schedules = world.schedules();
    let due = schedules.step().await.expect("a step").expect("a next time");
    assert_eq!((due.0, world.runs().len()), (START + HOUR, 0));
    world.clock.jump_wall(2 * HOUR);
    schedules.step().await.expect("a step");
    assert_eq!(world.runs(), ["s-20270115t090000"]);
    let made = world.get("tasks", "s-20270115t090000");
    let created = json!(world.clock.now().to_timestamp());
    assert_eq!(made["metadata"]["creationTimestamp"], created, "its age is that of a task");
    world.clock.jump_wall(-2 * HOUR);
    for _ in 0..4 {
        world.clock.advance(HOUR);
        schedules.step().await.expect("a step");
    }
    assert_eq!(world.runs().len(), 1);
}

#[tokio::test]
async fn a_loop_whose_clock_jumped_waits_for_the_next_time_of_the_new_clock() {
    let world = World::new();
    world.put("schedules", "s", daily(&world)).await;
    let mut schedules = world.schedules();
    schedules.step().await.expect("a step");
    world.clock.jump_wall(-2 * HOUR);
    let due = schedules.step().await.expect("a step").expect("a next time");
    assert_eq!(due.0, START + 3 * HOUR);
}
