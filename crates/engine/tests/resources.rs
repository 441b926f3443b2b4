//! The loop of managed resources on a store in memory: calls, sharding, families, adapters that come later.

use std::sync::Arc;

use muster_engine::resources::{Resources, Settings};
use muster_ports::clock::ManualClock;
use muster_ports::outbound::{OutboundAnswer, OutboundCall, ScriptedOutbound};
use muster_ports::store::{Batch, Draft, History, Key, MemoryLog, Precondition, ResourceName, Store, Write};
use muster_types::managed_resource::FINALIZER;
use muster_types::{ManagedResource, Task};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

struct World {
    clock: ManualClock,
    store: Store,
    resources: Resources,
    outbound: ScriptedOutbound,
    answers: UnboundedReceiver<OutboundAnswer>,
}

impl World {
    fn new(settings: Settings) -> Self {
        let clock = ManualClock::default();
        clock.advance(1_800_000_000_000);
        let store =
            Store::open_inline(MemoryLog::default(), History::default(), clock.clone()).expect("a store");
        let (sender, answers) = unbounded_channel();
        let outbound = ScriptedOutbound::new(sender, |call| match call {
            OutboundCall::Http(call) if call.url.ends_with("/busy") => Ok(json!({"status": 202, "body": {}})),
            OutboundCall::Http(_) => Ok(json!({"status": 200, "body": {"address": "10.0.0.1"}})),
            OutboundCall::Apply(manifest) => Ok(manifest.clone()),
            OutboundCall::Delete(_) => Ok(Value::Null),
        });
        let port = Some(Arc::new(outbound.clone()) as _);
        let resources =
            Resources::new(store.clone(), Arc::new(clock.clone()), port, settings).expect("a loop");
        Self { clock, store, resources, outbound, answers }
    }

    async fn put(&self, resource: &str, mut object: Value) {
        object["metadata"]["resourceVersion"] = json!("");
        let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
        let key = Key::new(&ResourceName::new(resource), &text("namespace"), &text("name"));
        let expect = if self.store.get(&key).is_some() { Precondition::Exists } else { Precondition::Absent };
        let draft = Draft::of_object(object.to_string().into_bytes()).expect("a place for the revision");
        self.store.commit(Batch::of(Write::Put { key, expect, draft })).await.expect("a commit");
    }

    async fn declare(&self, plural: &str, kind: &str, spec: Value) {
        let mut spec = spec;
        spec["names"] = json!({"kind": kind, "plural": plural});
        let object = json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": "ResourceType", "metadata": {"name": plural}, "spec": spec,
        });
        self.put("resourcetypes.muster.dev", object).await;
    }

    async fn adapt(&self, name: &str, spec: Value) {
        let object = json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": "Adapter",
            "metadata": {"name": name, "namespace": "n"}, "spec": spec,
        });
        self.put("adapters.muster.dev", object).await;
    }

    async fn create(&self, plural: &str, kind: &str, name: &str, change: impl FnOnce(&mut ManagedResource)) {
        let mut resource = ManagedResource::new(kind, "n", name, json!({"size": 1}));
        resource.metadata.uid = format!("uid-{name}");
        resource.metadata.generation = 1;
        resource.metadata.finalizers = vec![FINALIZER.to_owned()];
        change(&mut resource);
        let object = serde_json::to_value(resource).expect("JSON");
        self.put(&format!("{plural}.resources.muster.dev"), object).await;
    }

    /// Cycles until nothing is left to do at this time.
    async fn settle(&mut self) {
        for _ in 0..50 {
            let before = self.store.revision();
            self.resources.step().await.expect("a step");
            let mut answered = false;
            while let Ok(answer) = self.answers.try_recv() {
                answered = true;
                self.resources.answer(answer);
            }
            if self.store.revision() == before && !answered {
                return;
            }
        }
        unreachable!("it never comes to rest");
    }

    fn get(&self, plural: &str, name: &str) -> Option<ManagedResource> {
        let resource = ResourceName::new(&format!("{plural}.resources.muster.dev"));
        let stored = self.store.get(&Key::new(&resource, "n", name))?;
        Some(serde_json::from_slice(stored.json()).expect("a resource"))
    }

    fn tasks(&self) -> Vec<Task> {
        let snapshot = self.store.snapshot(&ResourceName::new("tasks.muster.dev"));
        snapshot.range(None, None).map(|it| serde_json::from_slice(it.json()).expect("a task")).collect()
    }

    async fn finish_tasks(&mut self) {
        for task in self.tasks().into_iter().filter(|task| !task.state().is_terminal()) {
            let mut object = serde_json::to_value(task).expect("JSON");
            object["status"]["state"] = json!("Succeeded");
            self.put("tasks.muster.dev", object).await;
        }
        self.settle().await;
    }
}

fn task() -> Value {
    json!({"spec": {"container": {"command": ["true"]}}})
}

#[tokio::test]
async fn a_call_goes_out_after_the_commit_and_its_answer_makes_the_resource_ready() {
    let mut world = World::new(Settings::default());
    world.declare("clusters", "Cluster", json!({"adapters": ["dns"]})).await;
    let http = json!({"url": "http://dns/{{ resource.metadata.name }}", "body": {"size": "{{ resource.spec.size }}"}});
    world
        .adapt("dns", json!({"resourceType": "clusters", "http": http, "reportData": "response.body"}))
        .await;
    world.create("clusters", "Cluster", "x", |_| {}).await;
    world.settle().await;
    let cluster = world.get("clusters", "x").unwrap();
    assert!(cluster.status.is_ready(), "{:?}", cluster.status);
    assert_eq!(cluster.status.standing("dns").unwrap().data, Some(json!({"address": "10.0.0.1"})));
    let asked = world.outbound.asked();
    let [OutboundCall::Http(call)] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((call.url.as_str(), &call.body), ("http://dns/x", &Some(json!({"size": 1}))));
}

#[tokio::test]
async fn a_call_whose_work_goes_on_is_made_again_with_the_next_pulse_only() {
    let mut world = World::new(Settings::default());
    world.declare("clusters", "Cluster", json!({"adapters": ["dns"]})).await;
    world.adapt("dns", json!({"resourceType": "clusters", "http": {"url": "http://dns/busy"}})).await;
    world.create("clusters", "Cluster", "x", |_| {}).await;
    world.settle().await;
    assert_eq!(world.outbound.asked().len(), 1);
    world.clock.advance(5_000);
    world.settle().await;
    assert_eq!(world.outbound.asked().len(), 1);
    world.clock.advance(6_000);
    world.settle().await;
    assert_eq!(world.outbound.asked().len(), 2);
}

#[tokio::test]
async fn a_manifest_is_applied_and_deleted_with_the_resource() {
    let mut world = World::new(Settings::default());
    world.declare("clusters", "Cluster", json!({"adapters": ["place"]})).await;
    let template = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ resource.metadata.name }}"}});
    world.adapt("place", json!({"resourceType": "clusters", "manifest": {"template": template}})).await;
    world.create("clusters", "Cluster", "x", |_| {}).await;
    world.settle().await;
    assert!(world.get("clusters", "x").unwrap().status.is_ready());
    let mut cluster = world.get("clusters", "x").unwrap();
    cluster.metadata.generation = 2;
    cluster.metadata.deletion_timestamp = Some(muster_types::Timestamp::from_second(1_800_000_000));
    world.put("clusters.resources.muster.dev", serde_json::to_value(cluster).unwrap()).await;
    world.settle().await;
    assert_eq!(world.get("clusters", "x"), None);
    assert!(matches!(world.outbound.asked()[..], [OutboundCall::Apply(_), OutboundCall::Delete(_)]));
}

#[tokio::test]
async fn resources_of_another_shard_are_left_alone() {
    let settings = Settings { selector: "shard=a".parse().unwrap(), ..Settings::default() };
    let mut world = World::new(settings);
    world.declare("clusters", "Cluster", json!({"adapters": ["dns"]})).await;
    let shard = |shard: &str| {
        let shard = shard.to_owned();
        move |resource: &mut ManagedResource| drop(resource.metadata.labels.insert("shard".to_owned(), shard))
    };
    world.create("clusters", "Cluster", "ours", shard("a")).await;
    world.create("clusters", "Cluster", "theirs", shard("b")).await;
    world.settle().await;
    assert!(world.get("clusters", "ours").unwrap().status.pulse.is_some());
    assert!(world.get("clusters", "theirs").unwrap().status.pulse.is_none());
}

#[tokio::test]
async fn an_adapter_or_type_that_comes_later_is_noticed_at_once() {
    let mut world = World::new(Settings::default());
    world.create("clusters", "Cluster", "x", |_| {}).await;
    world.settle().await;
    assert!(world.get("clusters", "x").unwrap().status.pulse.is_none(), "nobody knows what it is");
    world.declare("clusters", "Cluster", json!({"adapters": ["dns"]})).await;
    world.settle().await;
    assert!(world.get("clusters", "x").unwrap().status.pulse.is_some());
    world.adapt("dns", json!({"resourceType": "clusters", "task": task()})).await;
    world.settle().await;
    assert_eq!(world.tasks().len(), 1);
}

#[tokio::test]
async fn a_bad_type_or_adapter_harms_only_its_own() {
    let mut world = World::new(Settings::default());
    world.put("resourcetypes.muster.dev", json!({"metadata": {"name": "bad"}, "spec": 7})).await;
    world.put("adapters.muster.dev", json!({"metadata": {"name": "bad", "namespace": "n"}})).await;
    world.declare("clusters", "Cluster", json!({"adapters": ["dns"]})).await;
    world.adapt("dns", json!({"resourceType": "clusters", "task": task()})).await;
    world
        .put(
            "clusters.resources.muster.dev",
            json!({"metadata": {"name": "odd", "namespace": "n"}, "status": 7}),
        )
        .await;
    world.create("clusters", "Cluster", "x", |_| {}).await;
    world.settle().await;
    world.finish_tasks().await;
    assert!(world.get("clusters", "x").unwrap().status.is_ready());
}

#[tokio::test]
async fn what_belongs_to_a_deleted_resource_is_deleted_first() {
    let mut world = World::new(Settings::default());
    world.declare("clusters", "Cluster", json!({"adapters": ["dns"]})).await;
    let parent = json!({"resourceType": "clusters", "field": "cluster"});
    world.declare("nodepools", "NodePool", json!({"adapters": ["pool"], "parent": parent})).await;
    let delete = json!({"task": task()});
    world.adapt("dns", json!({"resourceType": "clusters", "task": task(), "delete": delete})).await;
    world.adapt("pool", json!({"resourceType": "nodepools", "task": task(), "delete": delete})).await;
    world.create("clusters", "Cluster", "x", |_| {}).await;
    let owner = world.get("clusters", "x").unwrap().owner_reference();
    world.create("nodepools", "NodePool", "p", |pool| pool.metadata.owner_references = vec![owner]).await;
    world.settle().await;
    world.finish_tasks().await;
    let mut cluster = world.get("clusters", "x").unwrap();
    assert!(cluster.status.is_ready());
    cluster.metadata.generation = 2;
    cluster.metadata.deletion_timestamp = Some(muster_types::Timestamp::from_second(1_800_000_000));
    world.put("clusters.resources.muster.dev", serde_json::to_value(cluster).unwrap()).await;
    world.settle().await;
    let open: Vec<_> = world.tasks().into_iter().filter(|task| !task.state().is_terminal()).collect();
    let names: Vec<_> = open.iter().map(|task| task.metadata.name.as_str()).collect();
    assert_eq!(names, ["p-pool-2"], "the cluster waits for its pool");
    world.finish_tasks().await;
    assert_eq!(world.get("nodepools", "p"), None);
    assert!(world.get("clusters", "x").is_some());
    world.finish_tasks().await;
    assert_eq!(world.get("clusters", "x"), None);
}

/// A type whose condition looks at every pair of elements: with a long list in the spec that costs too much.
async fn declare_costly(world: &World) {
    let rule =
        json!({"type": "Even", "status": "resource.spec.l.all(a, resource.spec.l.all(b, a + b >= 0))"});
    world.declare("clusters", "Cluster", json!({"adapters": ["dns"], "conditions": [rule]})).await;
    world.adapt("dns", json!({"resourceType": "clusters", "task": task()})).await;
}

async fn create_with_list(world: &World, name: &str, length: usize) {
    world.create("clusters", "Cluster", name, |it| it.spec = json!({"l": vec![1; length]})).await;
}

fn says_too_costly(world: &World, name: &str) -> bool {
    let conditions = world.get("clusters", name).expect("a resource").status.conditions;
    conditions.iter().any(|it| it.r#type == "Evaluated" && it.reason == "TooCostly")
}

async fn edit_list(world: &World, name: &str, length: usize) {
    let mut resource = world.get("clusters", name).expect("a resource");
    resource.spec = json!({"l": vec![1; length]});
    resource.metadata.generation += 1;
    world.put("clusters.resources.muster.dev", serde_json::to_value(resource).expect("JSON")).await;
}

#[tokio::test]
async fn what_costs_too_much_is_set_aside_and_changes_of_it_alone_bring_no_look_before_its_time() {
    let mut world = World::new(Settings::default());
    declare_costly(&world).await;
    create_with_list(&world, "costly", 2000).await;
    create_with_list(&world, "plain", 3).await;
    world.settle().await;
    assert!(says_too_costly(&world, "costly") && !says_too_costly(&world, "plain"));
    world.finish_tasks().await;
    assert!(world.get("clusters", "plain").unwrap().status.is_ready());
    let pulses = |world: &World| world.get("clusters", "costly").unwrap().status.pulse.unwrap().sequence;
    let before = pulses(&world);
    edit_list(&world, "costly", 3).await;
    world.settle().await;
    assert_eq!(pulses(&world), before, "it is left alone, although its spec is better now");
    world.clock.advance(10_000);
    world.settle().await;
    assert_eq!((pulses(&world), says_too_costly(&world, "costly")), (before + 1, false));
}

#[tokio::test]
async fn it_is_left_alone_for_longer_each_time_until_its_type_changes_or_it_is_deleted() {
    let mut world = World::new(Settings::default());
    declare_costly(&world).await;
    for name in ["repaired", "deleted"] {
        create_with_list(&world, name, 2000).await;
    }
    world.settle().await;
    let pulses =
        |world: &World, name: &str| world.get("clusters", name).unwrap().status.pulse.unwrap().sequence;
    for (pause, name) in [(10_000, "repaired"), (20_000, "repaired")] {
        let before = pulses(&world, name);
        edit_list(&world, name, 2001).await;
        world.clock.advance(pause - 1);
        world.settle().await;
        assert_eq!(pulses(&world, name), before, "not before {pause} ms have passed");
        world.clock.advance(1);
        world.settle().await;
        assert_eq!(pulses(&world, name), before + 1);
    }
    let mut resource = world.get("clusters", "deleted").unwrap();
    resource.metadata.generation += 1;
    resource.metadata.deletion_timestamp = Some(muster_types::Timestamp::from_second(1_800_000_000));
    world.put("clusters.resources.muster.dev", serde_json::to_value(resource).unwrap()).await;
    world.settle().await;
    assert!(world.get("clusters", "deleted").is_none(), "there is nothing to clean up, so it goes at once");
    world.declare("clusters", "Cluster", json!({"adapters": ["dns"]})).await;
    world.settle().await;
    assert!(!says_too_costly(&world, "repaired"), "its type changed, so it is looked at at once");
}

#[tokio::test]
async fn one_cycle_takes_no_more_steps_than_it_may_and_the_rest_comes_in_the_next() {
    let mut world = World::new(Settings::default());
    declare_costly(&world).await;
    for number in 0..60 {
        create_with_list(&world, &format!("c{number:03}"), 400).await;
    }
    world.resources.step().await.expect("a step");
    let looked = |world: &World| {
        let is_looked_at =
            |number: &u32| world.get("clusters", &format!("c{number:03}")).unwrap().status.pulse.is_some();
        (0..60).filter(is_looked_at).count()
    };
    let first = looked(&world);
    assert!(first > 0 && first < 60, "{first} of 60 in one cycle");
    world.settle().await;
    assert_eq!(looked(&world), 60);
}

#[tokio::test]
async fn what_cost_too_much_is_left_alone_after_a_restart_too() {
    let mut world = World::new(Settings::default());
    declare_costly(&world).await;
    create_with_list(&world, "costly", 2000).await;
    world.settle().await;
    let (clock, outbound) = (Arc::new(world.clock.clone()), Some(Arc::new(world.outbound.clone()) as _));
    world.resources =
        Resources::new(world.store.clone(), clock, outbound, Settings::default()).expect("a loop");
    edit_list(&world, "costly", 3).await;
    world.settle().await;
    assert!(says_too_costly(&world, "costly"));
    world.clock.advance(10_000);
    world.settle().await;
    assert!(!says_too_costly(&world, "costly"));
}
