//! What leaves keeps its place until the last fact of its attempt: preempted, canceled, expired and deleted tasks, whatever
//! happens to the server meanwhile.

mod queue;

use muster_ports::clock::Millis;
use muster_ports::runtime::{Cause, EXECUTOR_LOST, Ending, Observation, SERVER_STOPPED};
use muster_types::container::Container;
use muster_types::task::{Policy, Runtime};
use muster_types::{Duration, State, Task};
use queue::{Queue, task};

fn preempting(name: &str, priority: i32) -> Task {
    let mut task = task(name, priority);
    task.spec.policy = Policy { preempt_enabled: true, ..Policy::default() };
    task
}

fn about(name: &str) -> Task {
    let mut task = task(name, 0);
    "write".clone_into(&mut task.spec.kind);
    task.spec.subject =
        Some(muster_types::task::Subject { kind: "Application".to_owned(), name: "x".to_owned() });
    task
}

fn isolated(name: &str) -> Task {
    let mut task = task(name, 0);
    task.spec.policy = Policy { isolated: true, ..Policy::default() };
    task
}

/// One slot: `low` runs and is preempted for `high`, and has not ended.
async fn preempted() -> Queue {
    let mut queue = Queue::with_slots(1);
    queue.submit(task("low", 1)).await;
    queue.step().await;
    queue.report("low", Observation::Started);
    queue.step().await;
    queue.submit(preempting("high", 9)).await;
    queue.step().await;
    queue.wait_seconds(61);
    queue.step().await;
    assert_eq!(
        queue.get("low").status.stopping.map(muster_types::task_status::Stopping::as_str),
        Some("Preempted")
    );
    assert_eq!(queue.take_stopped(), ["low"]);
    queue
}

#[tokio::test]
async fn a_preempted_task_goes_back_to_the_queue_when_the_server_is_killed_during_its_grace() {
    let mut queue = preempted().await;
    queue.restart();
    queue.step().await;
    let low = queue.get("low");
    assert_eq!((low.state(), low.status.retries, low.status.lost), (State::Ready, 0, 0));
    assert!(low.status.rest_until.is_some(), "it rests");
    assert_eq!(queue.state("high"), State::Pending);
}

#[tokio::test]
async fn a_preempted_task_goes_back_to_the_queue_when_its_executor_is_lost() {
    let mut queue = preempted().await;
    let what =
        Observation::Lost { reason: EXECUTOR_LOST.to_owned(), message: "the shepherd died".to_owned() };
    queue.report("low", what);
    queue.step().await;
    assert_eq!(queue.state("low"), State::Ready);
    assert_eq!(queue.get("low").status.lost, 0);
}

#[tokio::test]
async fn a_task_that_is_canceled_while_it_is_preempted_ends_canceled() {
    let mut queue = preempted().await;
    queue.change("low", |task| task.spec.cancel = true).await;
    queue.step().await;
    assert_eq!(
        queue.get("low").status.stopping.map(muster_types::task_status::Stopping::as_str),
        Some("Canceled")
    );
    queue.end("low");
    queue.step().await;
    assert_eq!(queue.state("low"), State::Canceled);
}

#[tokio::test]
async fn a_task_that_is_canceled_while_it_is_preempted_ends_canceled_although_the_server_is_killed() {
    let mut queue = preempted().await;
    queue.change("low", |task| task.spec.cancel = true).await;
    queue.restart();
    queue.step().await;
    queue.step().await;
    assert_eq!(queue.state("low"), State::Canceled);
}

#[tokio::test]
async fn a_task_that_is_deleted_while_it_is_preempted_ends_although_a_finalizer_keeps_it() {
    let mut queue = preempted().await;
    let now = queue.now();
    queue
        .change("low", |task| {
            task.metadata.finalizers = vec!["example.com/keep".to_owned()];
            task.metadata.deletion_timestamp = Some(now);
        })
        .await;
    queue.step().await;
    queue.end("low");
    queue.step().await;
    assert_eq!(queue.state("low"), State::Canceled);
}

#[tokio::test]
async fn a_task_that_expires_while_it_is_preempted_ends_and_is_deleted() {
    let mut queue = Queue::with_slots(1);
    let mut low = task("low", 1);
    low.spec.ttl.running = Some(Duration::from_secs(90));
    queue.submit(low).await;
    queue.step().await;
    queue.report("low", Observation::Started);
    queue.step().await;
    queue.submit(preempting("high", 9)).await;
    queue.step().await;
    queue.wait_seconds(61);
    queue.step().await;
    queue.wait_seconds(60);
    queue.step().await;
    queue.end("low");
    queue.step().await;
    // Its log is stored first.
    for _ in 0..2 {
        queue.wait_seconds(1);
        queue.step().await;
    }
    assert!(queue.find("low").is_none(), "{:?}", queue.find("low").map(|task| task.status));
}

/// Runs a task, deletes it, and sees that another one starts only when its attempt has ended.
async fn assert_keeps_its_place(first: Task, second: Task, slots: u32) {
    let mut queue = Queue::with_slots(slots);
    queue.declare_subjects().await;
    let (one, other) = (first.metadata.name.clone(), second.metadata.name.clone());
    queue.submit(first).await;
    queue.step().await;
    queue.report(&one, Observation::Started);
    queue.step().await;
    queue.submit(second).await;
    queue.delete(&one).await;
    for _ in 0..3 {
        queue.step().await;
        assert_ne!(queue.state(&other), State::Pending, "{one} has not ended");
    }
    assert_eq!(queue.take_stopped(), [one.as_str()]);
    queue.end(&one);
    queue.step().await;
    assert_eq!(queue.state(&other), State::Pending);
}

#[tokio::test]
async fn a_deleted_task_is_the_only_one_of_its_subject_and_kind_until_its_attempt_ended() {
    Box::pin(assert_keeps_its_place(about("one"), about("other"), 4)).await;
}

#[tokio::test]
async fn a_deleted_task_that_is_isolated_is_alone_until_its_attempt_ended() {
    Box::pin(assert_keeps_its_place(isolated("one"), task("other", 0), 4)).await;
}

#[tokio::test]
async fn an_isolated_task_waits_for_the_attempt_of_a_deleted_one() {
    Box::pin(assert_keeps_its_place(task("one", 0), isolated("other"), 4)).await;
}

#[tokio::test]
async fn a_deleted_task_has_its_slot_until_its_attempt_ended() {
    Box::pin(assert_keeps_its_place(task("one", 0), task("other", 0), 1)).await;
}

#[tokio::test]
async fn a_deleted_task_keeps_its_place_from_a_new_one_of_its_name() {
    let mut queue = Queue::with_slots(4);
    queue.declare_subjects().await;
    queue.submit(about("one")).await;
    queue.step().await;
    let former = queue.get("one").metadata.uid;
    queue.delete("one").await;
    queue.submit(about("one")).await;
    queue.step().await;
    queue.step().await;
    assert_ne!(queue.state("one"), State::Pending);
    queue.end_of(&former, 1);
    queue.step().await;
    assert_eq!(queue.state("one"), State::Pending);
}

#[tokio::test]
async fn an_end_that_is_reported_just_after_the_deletion_frees_the_place() {
    let mut queue = Queue::with_slots(1);
    queue.submit(task("one", 0)).await;
    queue.step().await;
    queue.submit(task("other", 0)).await;
    queue.end("one");
    queue.delete("one").await;
    queue.step().await;
    queue.step().await;
    assert_eq!(queue.state("other"), State::Pending);
}

#[tokio::test]
async fn an_engine_that_fell_behind_ends_the_attempts_of_deleted_tasks_and_counts_them_until_then() {
    let mut queue = Queue::with_slots(2);
    for name in ["one", "two"] {
        queue.submit(task(name, 0)).await;
    }
    queue.step().await;
    queue.delete("one").await;
    queue.step().await;
    assert_eq!(queue.take_stopped(), ["one"]);
    queue.delete("two").await;
    queue.submit(task("other", 0)).await;
    queue.overflow_history().await;
    for _ in 0..3 {
        queue.step().await;
        assert_ne!(queue.state("other"), State::Pending, "both slots are in use");
    }
    assert_eq!(queue.take_stopped(), ["two"], "nobody else would end it");
    queue.end("two");
    queue.step().await;
    assert_eq!(queue.state("other"), State::Pending);
    queue.submit(task("last", 0)).await;
    queue.step().await;
    assert_ne!(queue.state("last"), State::Pending);
    queue.end("one");
    queue.step().await;
    assert_eq!(queue.state("last"), State::Pending);
}

#[tokio::test]
async fn a_full_disk_is_tried_again_after_ever_longer_pauses() {
    let mut queue = Queue::with_slots(1);
    queue.submit(task("one", 0)).await;
    queue.submit(task("other", 0)).await;
    queue.step().await;
    queue.report("one", Observation::Started);
    queue.step().await;
    queue.end("one");
    queue.fill_disk(true);
    let before = queue.tries();
    queue.run_for(8_000, 5_000).await;
    let tries = queue.tries() - before;
    assert!((3..=20).contains(&tries), "{tries} tries in 8 s");
    queue.fill_disk(false);
    queue.run_for(6_000, 5_000).await;
    assert_eq!((queue.state("one"), queue.state("other")), (State::Succeeded, State::Pending));
}

#[tokio::test]
async fn a_deleted_task_whose_pod_still_runs_keeps_its_place_over_a_restart_of_the_server() {
    let mut queue = Queue::with_slots(4);
    queue.declare_subjects().await;
    for name in ["one", "other"] {
        let mut task = about(name);
        task.spec.runtime = Some(Runtime::Pod);
        task.spec.container = Some(Container { image: "busybox".to_owned(), ..Container::default() });
        queue.submit(task).await;
    }
    queue.step().await;
    queue.report("one", Observation::Started);
    queue.step().await;
    queue.ask_to_delete("one").await;
    queue.restart();
    for _ in 0..3 {
        queue.step().await;
        assert_ne!(queue.state("other"), State::Pending, "the pod of the first has not ended");
    }
    queue.end("one");
    queue.step().await;
    queue.step().await;
    assert!(queue.find("one").is_none());
    assert_eq!(queue.state("other"), State::Pending);
}

#[tokio::test]
async fn a_task_whose_server_was_told_to_stop_starts_again_with_the_next_one_and_has_lost_nothing() {
    let mut queue = Queue::with_slots(1);
    queue.submit(task("long", 0)).await;
    queue.step().await;
    for stops in 1..=5 {
        queue.report("long", Observation::Started);
        queue.step().await;
        queue.leave();
        let reason = Some(SERVER_STOPPED.to_owned());
        let ending = Ending { reason, ..Ending::of_leader(143, Cause::Stopped, Millis(0)) };
        queue.report("long", Observation::Ended(ending));
        queue.step().await;
        assert!(queue.has_left(true));
        let long = queue.get("long");
        assert_eq!((long.state(), long.status.attempt, long.status.lost), (State::Ready, stops, 0));
        queue.restart();
        queue.step().await;
        assert_eq!(queue.state("long"), State::Pending, "it is tried again");
    }
    queue.restart();
    queue.step().await;
    assert_eq!(queue.get("long").status.lost, 1, "a server that was killed says nothing");
}

#[tokio::test]
async fn a_task_that_is_deleted_while_it_runs_is_gone_although_the_server_is_killed_at_once() {
    let mut queue = Queue::with_slots(1);
    queue.submit(task("a", 0)).await;
    queue.step().await;
    queue.report("a", Observation::Started);
    queue.step().await;
    let now = queue.now();
    queue
        .change("a", |task| {
            muster_tasks::brief::hold_deleted(task);
            task.metadata.deletion_timestamp = Some(now);
        })
        .await;
    queue.restart();
    for _ in 0..4 {
        queue.step().await;
    }
    assert_eq!(queue.find("a").map(|task| task.metadata.finalizers), None);
}
