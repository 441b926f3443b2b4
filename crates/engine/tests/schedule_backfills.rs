//! Backfills of schedules on a store in memory: what is there already, what runs, and what the next regular run waits for.

use std::sync::Arc;

use muster_engine::schedules::Schedules;
use muster_ports::clock::{Clock as _, ManualClock};
use muster_ports::store::{Batch, Draft, History, Key, MemoryLog, Precondition, ResourceName, Store, Write};
use serde_json::{Value, json};

const HOUR: i64 = 3_600_000;
/// 2027-01-15T08:00:00Z.
const START: i64 = 1_800_000_000_000;

struct World {
    clock: ManualClock,
    store: Store,
    schedules: Schedules,
}

impl World {
    /// A schedule that runs at nine, every day.
    async fn new(policy: Value, backfills: Value) -> Self {
        let clock = ManualClock::default();
        clock.advance(START);
        let store =
            Store::open_inline(MemoryLog::default(), History::default(), clock.clone()).expect("a store");
        let schedules = Schedules::new(store.clone(), Arc::new(clock.clone())).expect("a loop");
        let world = Self { clock, store, schedules };
        let mut policy = policy;
        policy["timeSpec"] = json!("0 9 * * *");
        let spec = json!({
            "schedulePolicy": policy, "backfills": backfills,
            "template": {"spec": {"container": {"command": ["true"]}}},
        });
        let created = world.clock.wall().to_timestamp();
        let metadata = json!({"name": "s", "uid": "u", "generation": 1, "creationTimestamp": created});
        world.put("schedules", json!({"kind": "Schedule", "metadata": metadata, "spec": spec})).await;
        world
    }

    async fn put(&self, plural: &str, mut object: Value) {
        object["apiVersion"] = json!("muster.dev/v1alpha1");
        object["metadata"]["namespace"] = json!("default");
        object["metadata"]["resourceVersion"] = json!("");
        let key = key(plural, object["metadata"]["name"].as_str().unwrap_or_default());
        let expect = if self.store.get(&key).is_some() { Precondition::Exists } else { Precondition::Absent };
        let draft = Draft::of_object(object.to_string().into_bytes()).expect("a place for the revision");
        self.store.commit(Batch::of(Write::Put { key, expect, draft })).await.expect("a commit");
    }

    fn get(&self, plural: &str, name: &str) -> Value {
        let stored = self.store.get(&key(plural, name));
        stored.map_or(Value::Null, |stored| serde_json::from_slice(stored.json()).expect("JSON"))
    }

    fn status(&self) -> Value {
        self.get("schedules", "s")["status"].clone()
    }

    /// Looks until nothing changes any more.
    async fn settle(&mut self) {
        for _ in 0..10 {
            self.schedules.step().await.expect("a step");
        }
    }

    /// Ends all runs that have not ended.
    async fn end_runs(&mut self, state: &str) {
        for name in self.runs("") {
            let mut task = self.get("tasks", &name);
            if task["status"]["terminated"].is_null() {
                task["status"] = json!({"state": state, "terminated": self.clock.now().to_timestamp()});
                self.put("tasks", task).await;
            }
        }
        self.settle().await;
    }

    /// Names of runs whose state is this, or of all.
    fn runs(&self, state: &str) -> Vec<String> {
        let tasks = self.store.snapshot(&ResourceName::new("tasks.muster.dev"));
        let names: Vec<String> = tasks.range(None, None).map(|task| task.name().to_owned()).collect();
        let is = |name: &String| self.get("tasks", name)["status"]["state"].as_str().unwrap_or("") == state;
        names.into_iter().filter(|name| state.is_empty() || is(name)).collect()
    }
}

fn key(plural: &str, name: &str) -> Key {
    Key::new(&ResourceName::new(&format!("{plural}.muster.dev")), "default", name)
}

#[tokio::test]
async fn a_run_that_is_there_already_and_has_ended_does_not_hold_the_schedule_up() {
    let mut world = World::new(json!({}), json!([])).await;
    // Somebody made the run of the next time ahead of it.
    let owner = json!([{"apiVersion": "muster.dev/v1alpha1", "kind": "Schedule", "name": "s", "uid": "u", "controller": true}]);
    let task = json!({
        "kind": "Task", "metadata": {"name": "s-20270115t090000", "uid": "t", "ownerReferences": owner},
        "spec": {}, "status": {"state": "Succeeded", "terminated": world.clock.now().to_timestamp()},
    });
    world.put("tasks", task).await;
    world.settle().await;
    world.clock.advance(2 * HOUR);
    world.settle().await;
    let status = world.status();
    assert_eq!((&status["active"], &status["made"]), (&Value::Null, &Value::Null), "{status}");
    assert_eq!(status["lastScheduledTime"], "2027-01-15T09:00:00Z");
    world.clock.advance(24 * HOUR);
    world.settle().await;
    assert_eq!(world.runs(""), ["s-20270115t090000", "s-20270116t090000"]);
}

#[tokio::test]
async fn a_backfill_runs_one_after_the_other_up_to_now_and_the_schedule_goes_on() {
    let backfill =
        json!([{"name": "b", "from": "2027-01-13T00:00:00Z", "to": "2027-03-01T00:00:00Z", "maxActive": 3}]);
    let mut world = World::new(json!({}), backfill).await;
    world.settle().await;
    assert_eq!(
        world.status()["active"],
        json!([{"kind": "Task", "name": "s-20270113t090000", "backfill": "b", "scheduledAt": "2027-01-13T09:00:00Z"}])
    );
    world.end_runs("Succeeded").await;
    assert_eq!(world.runs(""), ["s-20270113t090000", "s-20270114t090000"]);
    let annotations = world.get("tasks", "s-20270114t090000")["metadata"]["annotations"].clone();
    assert_eq!(annotations["muster.dev/backfill"], "b");
    // The regular run is due while one of the backfill is active.
    world.clock.advance(2 * HOUR);
    world.settle().await;
    assert_eq!(world.runs("").len(), 2);
    world.end_runs("Failed").await;
    assert_eq!(world.runs("").last().map(String::as_str), Some("s-20270115t090000"));
    world.end_runs("Succeeded").await;
    let status = world.status();
    assert_eq!(status["backfills"][0]["made"], 2);
    assert_eq!(
        (&status["active"], &status["backfills"][0]["next"]),
        (&Value::Null, &Value::Null),
        "{status}"
    );
    assert_eq!(status["made"], 3);
    let last = &status["recentRuns"][0];
    assert_eq!((&last["name"], &last["state"]), (&json!("s-20270115t090000"), &json!("Succeeded")));
}

#[tokio::test]
async fn a_backfill_makes_no_run_twice_and_is_taken_up_after_a_restart() {
    let backfill = json!([{"name": "b", "from": "2027-01-11T00:00:00Z", "to": "2027-01-15T00:00:00Z"}]);
    let mut world = World::new(json!({}), backfill).await;
    world.settle().await;
    world.end_runs("Succeeded").await;
    world.schedules = Schedules::new(world.store.clone(), Arc::new(world.clock.clone())).expect("a loop");
    for _ in 0..4 {
        world.end_runs("Succeeded").await;
    }
    assert_eq!(world.runs("Succeeded").len(), 4);
    let mut schedule = world.get("schedules", "s");
    schedule["spec"]["backfills"] =
        json!([{"name": "again", "from": "2027-01-11T00:00:00Z", "to": "2027-01-15T00:00:00Z"}]);
    world.put("schedules", schedule).await;
    world.settle().await;
    let status = world.status();
    assert_eq!(
        (status["backfills"][0]["made"].clone(), status["backfills"][0]["next"].clone()),
        (Value::Null, Value::Null)
    );
    assert_eq!(world.runs("").len(), 4);
}

#[tokio::test]
async fn a_run_of_a_backfill_that_is_replaced_is_made_again_under_another_name() {
    let backfill = json!([{"name": "b", "from": "2027-01-14T00:00:00Z", "to": "2027-01-15T00:00:00Z"}]);
    let mut world = World::new(json!({"concurrency": "Replace"}), backfill).await;
    world.settle().await;
    assert_eq!(world.runs(""), ["s-20270114t090000"]);
    for day in [15, 16] {
        world.clock.advance(if day == 15 { 2 } else { 24 } * HOUR);
        world.settle().await;
        let regular = format!("s-202701{day}t090000");
        assert!(world.runs("").contains(&regular), "it starts at once: {:?}", world.runs(""));
        let replaced: Vec<Value> = world.runs("").iter().map(|name| world.get("tasks", name)).collect();
        let replaced = replaced.iter().filter(|run| run["spec"]["cancel"] == true);
        let by = |run: &Value| run["metadata"]["annotations"]["muster.dev/replaced-by"].clone();
        assert!(replaced.clone().any(|run| by(run) == json!(regular)), "it says by which run");
        assert_eq!(world.status()["backfills"][0]["next"], "2027-01-14T09:00:00Z");
        // The canceled run ends with the regular one; the time of the backfill follows.
        world.end_runs("Canceled").await;
        let active = world.status()["active"].clone();
        assert_eq!(
            (&active[0]["backfill"], &active[0]["scheduledAt"]),
            (&json!("b"), &json!("2027-01-14T09:00:00Z"))
        );
    }
    world.end_runs("Succeeded").await;
    let status = world.status();
    assert_eq!(
        (&status["backfills"][0]["next"], &status["active"]),
        (&Value::Null, &Value::Null),
        "{status}"
    );
    assert_eq!(world.runs("Succeeded").len(), 1);
    assert_eq!((&status["backfills"][0]["made"], &status["made"]), (&json!(3), &json!(5)));
}

#[tokio::test]
async fn a_run_of_a_backfill_that_a_user_canceled_is_not_made_again() {
    let backfill = json!([{"name": "b", "from": "2027-01-14T00:00:00Z", "to": "2027-01-15T00:00:00Z"}]);
    let mut world = World::new(json!({"concurrency": "Replace"}), backfill).await;
    world.settle().await;
    let mut run = world.get("tasks", "s-20270114t090000");
    run["spec"]["cancel"] = json!(true);
    world.put("tasks", run).await;
    world.clock.advance(2 * HOUR);
    world.settle().await;
    world.end_runs("Canceled").await;
    assert_eq!(world.runs(""), ["s-20270114t090000", "s-20270115t090000"]);
    let status = world.status();
    assert_eq!((&status["backfills"][0]["next"], &status["backfills"][0]["made"]), (&Value::Null, &json!(1)));
}

#[tokio::test]
async fn a_run_of_a_backfill_that_a_user_canceled_or_deleted_is_not_made_again_though_it_is_gone() {
    for deleted in [false, true] {
        let backfill = json!([{"name": "b", "from": "2027-01-14T00:00:00Z", "to": "2027-01-15T00:00:00Z"}]);
        let mut world = World::new(json!({"concurrency": "Replace"}), backfill).await;
        world.settle().await;
        let name = "s-20270114t090000";
        let mut run = world.get("tasks", name);
        if deleted {
            run["metadata"]["deletionTimestamp"] = json!(world.clock.now().to_timestamp());
            run["metadata"]["finalizers"] = json!(["muster.dev/attempt"]);
        } else {
            run["spec"]["cancel"] = json!(true);
        }
        world.put("tasks", run).await;
        // The regular run is due while the other one still ends.
        world.clock.advance(2 * HOUR);
        world.settle().await;
        world
            .store
            .commit(Batch::of(Write::Delete { key: key("tasks", name), expect: Precondition::Exists }))
            .await
            .expect("a commit");
        world.settle().await;
        world.end_runs("Succeeded").await;
        assert_eq!(world.runs(""), ["s-20270115t090000"], "deleted: {deleted}");
        assert_eq!(world.status()["backfills"][0]["next"], Value::Null);
    }
}
