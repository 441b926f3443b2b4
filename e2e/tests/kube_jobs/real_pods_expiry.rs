//! A relay that was away: it goes on where it was, and finds out what it missed if the cluster no longer knows.

use muster_e2e::cluster::POD;
use muster_e2e::wait::wait_for;
use muster_ports::clock::SystemClock;
use muster_ports::store::{Batch, Draft, History, Key, Precondition, ResourceName, Store, Write};
use muster_store_sql::SqliteLog;
use serde_json::json;

use crate::world::World;

/// Makes the server, which does not run, believe that it last looked long ago.
fn set_back(world: &World, version: &str) {
    let log = SqliteLog::open(&world.server.data().join("muster.db")).expect("the database can be opened");
    let store = Store::open(log, History::default(), SystemClock).expect("a store");
    let resource = ResourceName::new("kubejobplaces.internal");
    let snapshot = store.snapshot(&resource);
    let kept = snapshot.range(None, None).next().expect("a place is kept");
    let place = format!(r#","place":{{"jobs":"{version}","pods":"{version}"}}}}"#);
    let draft = Draft::joined("{\"revision\":", &place);
    let key = Key { resource, path: kept.path.clone() };
    let write = Write::Put { key, expect: Precondition::At(kept.revision), draft };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(store.commit(Batch::of(write))).expect("it is committed");
    store.close();
}

#[test]
fn a_relay_that_was_killed_tells_of_jobs_that_ended_and_went_meanwhile() {
    let mut world = World::new(&json!({}));
    world.job("long", "while ! test -e /scratch/end; do sleep 0.2; done", &json!({}));
    world.expect("long", &["starting", "running"]);
    world.server.kill();
    world.job("short", "true", &json!({}));
    wait_for("it to end", POD, || world.field("short", ".status.conditions[*].type").contains("Complete"));
    world.cluster.kubectl(&["delete", "job", "short", "--wait=true"]);
    world.cluster.kubectl(&["exec", "job/long", "--", "touch", "/scratch/end"]);
    world.server.restart();
    world.expect("short", &["starting", "running", "success"]);
    world.expect("long", &["starting", "running", "success"]);
}

#[test]
fn what_a_cluster_has_forgotten_is_found_by_comparison_and_the_sink_says_so() {
    let mut world = World::new(&json!({}));
    world.job("long", "while ! test -e /scratch/end; do sleep 0.2; done", &json!({}));
    world.expect("long", &["starting", "running"]);
    world.server.kill();
    world.job("short", "exit 1", &json!({}));
    world.cluster.kubectl(&["exec", "job/long", "--", "touch", "/scratch/end"]);
    for (job, end) in [("long", "Complete"), ("short", "Failed")] {
        wait_for("it to end", POD, || world.field(job, ".status.conditions[*].type").contains(end));
    }
    set_back(&world, "1");
    world.server.restart();
    world.expect("long", &["starting", "running", "success"]);
    world.expect("short", &["starting", "running", "failed"]);
    let said = world.wait_for_watching("AfterGap");
    assert!(said.contains("what was missed is told"), "{said}");
    world.job("next", "true", &json!({}));
    world.expect("next", &["starting", "running", "success"]);
}

#[test]
fn who_wants_the_latest_alone_does_not_hear_what_was_forgotten() {
    let mut world = World::new(&json!({"onExpired": "latest"}));
    world.job("first", "true", &json!({}));
    world.expect("first", &["starting", "running", "success"]);
    world.server.kill();
    world.job("missed", "true", &json!({}));
    wait_for("it to end", POD, || world.field("missed", ".status.conditions[*].type").contains("Complete"));
    set_back(&world, "1");
    world.server.restart();
    world.wait_for_watching("AfterGap");
    world.job("next", "true", &json!({}));
    world.expect("next", &["starting", "running", "success"]);
    assert_eq!(world.told("missed"), []);
}
