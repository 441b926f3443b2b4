//! Tasks that name something that does not exist, with an engine that commits, restarts and runs out of patience.

mod queue;

use muster_types::State;
use muster_types::task::Subject;
use queue::{Queue, task};

fn about_x(name: &str, priority: i32) -> muster_types::Task {
    let mut task = task(name, priority);
    "write".clone_into(&mut task.spec.kind);
    task.spec.subject = Some(Subject { kind: "Application".to_owned(), name: "x".to_owned() });
    task
}

fn reason(queue: &Queue, name: &str) -> String {
    queue.get(name).status.waiting_for.map(|waiting| waiting.reason).unwrap_or_default()
}

#[tokio::test]
async fn a_task_waits_for_what_it_names_and_starts_as_soon_as_it_is_there() {
    let mut queue = Queue::with_slots(1);
    queue.submit(about_x("early", 9)).await;
    queue.submit(task("other", 0)).await;
    queue.step().await;
    assert_eq!(
        (queue.state("early"), reason(&queue, "early").as_str()),
        (State::Postponed, "SubjectNotFound")
    );
    assert_eq!(queue.state("other"), State::Pending, "it holds nobody back");
    queue.end("other");
    queue.declare_subjects().await;
    queue.step().await;
    assert_eq!(queue.state("early"), State::Pending);
}

#[tokio::test]
async fn a_task_that_waited_in_vain_fails_with_the_name() {
    let mut queue = Queue::with_slots(1);
    queue.submit(about_x("early", 0)).await;
    queue.step().await;
    queue.run_for(59_000, 500).await;
    assert_eq!(queue.state("early"), State::Postponed);
    queue.run_for(3_000, 500).await;
    assert_eq!(queue.state("early"), State::Failed);
    let error = queue.get("early").status.errors[0].description.clone();
    assert!(
        error.contains("subject Application \"x\" does not exist") && error.contains("waited 60s"),
        "{error}"
    );
    queue.declare_subjects().await;
    queue.step().await;
    assert_eq!(queue.state("early"), State::Failed, "a terminal state is final");
}

#[tokio::test]
async fn a_task_that_waits_can_be_canceled_and_is_awaited_after_a_restart() {
    let mut queue = Queue::with_slots(2);
    queue.submit(about_x("early", 0)).await;
    queue.submit(about_x("unwanted", 0)).await;
    queue.step().await;
    queue.restart();
    queue.step().await;
    assert_eq!(queue.state("early"), State::Postponed);
    queue.change("unwanted", |task| task.spec.cancel = true).await;
    queue.step().await;
    assert_eq!(queue.state("unwanted"), State::Canceled);
    queue.declare_subjects().await;
    queue.step().await;
    assert_eq!((queue.state("early"), queue.state("unwanted")), (State::Pending, State::Canceled));
}

#[tokio::test]
async fn a_wait_that_began_before_a_restart_goes_on() {
    let mut queue = Queue::with_slots(2);
    queue.submit(about_x("by-name", 0)).await;
    let mut by_selection = task("by-selection", 0);
    "write".clone_into(&mut by_selection.spec.kind);
    by_selection.spec.container = None;
    queue.submit(by_selection).await;
    queue.step().await;
    queue.declare_subjects().await;
    queue.undeclare("applications.muster.dev", "x").await;
    queue.step().await;
    queue.step().await;
    assert_eq!(reason(&queue, "by-selection"), "AddonNotSelected");
    for _ in 0..2 {
        queue.run_for(25_000, 500).await;
        queue.restart();
        queue.step().await;
    }
    assert_eq!(queue.state("by-name"), State::Postponed);
    assert_eq!(queue.state("by-selection"), State::Postponed);
    queue.run_for(13_000, 500).await;
    assert_eq!(queue.state("by-name"), State::Failed, "a minute, whoever led meanwhile");
    assert_eq!(queue.state("by-selection"), State::Failed);
}

#[tokio::test]
async fn a_wait_that_ended_while_no_server_ran_is_over_at_the_start_unless_what_was_missing_is_there() {
    let mut queue = Queue::with_slots(2);
    queue.submit(about_x("early", 0)).await;
    queue.step().await;
    queue.wait_seconds(300);
    queue.restart();
    queue.step().await;
    queue.step().await;
    assert_eq!(queue.state("early"), State::Failed);
    queue.submit(about_x("later", 0)).await;
    queue.step().await;
    queue.wait_seconds(300);
    queue.declare_subjects().await;
    queue.restart();
    queue.step().await;
    assert_eq!(queue.state("later"), State::Pending);
}

#[tokio::test]
async fn a_task_that_was_postponed_for_another_reason_has_the_whole_time_also_after_a_restart() {
    let mut queue = Queue::with_slots(2);
    queue.declare_subjects().await;
    queue.submit(about_x("first", 9)).await;
    queue.submit(about_x("second", 0)).await;
    queue.step().await;
    assert_eq!((queue.state("second"), reason(&queue, "second").as_str()), (State::Postponed, "Unique"));
    queue.run_for(300_000, 50).await;
    queue.undeclare("applications.muster.dev", "x").await;
    queue.step().await;
    queue.restart();
    queue.step().await;
    queue.run_for(50_000, 500).await;
    assert_eq!(queue.state("second"), State::Postponed);
}

#[tokio::test]
async fn a_task_whose_kind_has_no_addon_waits_for_one_and_fails_without() {
    let mut queue = Queue::with_slots(1);
    queue.declare_subjects().await;
    let mut task = about_x("early", 0);
    task.spec.container = None;
    queue.submit(task).await;
    queue.step().await;
    assert_eq!(
        (queue.state("early"), reason(&queue, "early").as_str()),
        (State::Postponed, "AddonNotSelected")
    );
    let tries = queue.tries();
    queue.run_for(50_000, 500).await;
    assert!(queue.tries() <= tries + 1, "waiting is not written again and again");
    queue.run_for(12_000, 500).await;
    assert_eq!(queue.state("early"), State::Failed);
}

/// The only slot is taken by `busy`; `waits` is about an application of which all is there.
async fn with_one_that_waits() -> Queue {
    let mut queue = Queue::with_slots(1);
    queue.declare_subjects().await;
    queue.submit(task("busy", 9)).await;
    queue.submit(about_x("waits", 0)).await;
    queue.step().await;
    assert_eq!(queue.state("waits"), State::QuotaBlocked);
    queue
}

#[tokio::test]
async fn what_went_while_a_task_waited_is_missed_before_it_starts() {
    let mut queue = with_one_that_waits().await;
    queue.undeclare("applications.muster.dev", "x").await;
    queue.step().await;
    queue.end("busy");
    queue.step().await;
    queue.step().await;
    assert_eq!(
        (queue.state("waits"), reason(&queue, "waits").as_str()),
        (State::Postponed, "SubjectNotFound")
    );
}

#[tokio::test]
async fn a_task_whose_kind_went_says_so_at_once() {
    let mut queue = with_one_that_waits().await;
    queue.undeclare("taskkinds.muster.dev", "write").await;
    queue.step().await;
    queue.step().await;
    assert_eq!((queue.state("waits"), reason(&queue, "waits").as_str()), (State::Postponed, "KindNotFound"));
}
