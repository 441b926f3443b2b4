//! Attempts that are handed to their executor ahead of a free slot are on loan: they can be taken back until their program runs, and
//! leave no trace if they are.

mod queue;

use muster_ports::runtime::{Ending, Observation};
use muster_tasks::brief::hold_deleted;
use muster_types::State;
use queue::{Queue, task};

/// One slot: `first` runs, `second` waits at the executor.
async fn prefetched() -> Queue {
    let mut queue = Queue::with_prefetch(1, 1);
    queue.submit(task("first", 5)).await;
    queue.submit(task("second", 3)).await;
    queue.step_after(1).await;
    queue.report("first", Observation::Started);
    queue.step_after(25).await;
    assert_eq!(queue.take_handed(), ["first", "second"]);
    assert_eq!((queue.state("first"), queue.state("second")), (State::Running, State::Ready));
    assert!(queue.get("second").status.prefetched);
    queue
}

/// Nothing says that there ever was an attempt.
fn assert_untouched(queue: &Queue, name: &str) {
    let task = queue.get(name);
    let status = &task.status;
    let is_of_attempt = |kind: &str| kind.starts_with("Pod") || kind.starts_with("Attempt");
    let recorded = status.events.iter().any(|record| is_of_attempt(record.kind.as_str()));
    assert!(!status.prefetched && status.attempts.is_empty() && !recorded, "{status:?}");
    assert_eq!((status.attempt, status.retries, status.lost, status.started), (0, 0, 0, None));
}

#[tokio::test]
async fn what_waits_at_the_executor_for_too_long_is_taken_back_and_leaves_no_trace() {
    let mut queue = prefetched().await;
    queue.step_after(20).await;
    assert_eq!(queue.take_recalled(), Vec::<String>::new());
    queue.step_after(10).await;
    assert_eq!(queue.take_recalled(), ["second"]);
    queue.report("second", Observation::Returned { prefetch: 1 });
    queue.step_after(1).await;
    let second = queue.get("second");
    assert_eq!((second.state(), second.status.attempt, second.status.attempts.len()), (State::Ready, 0, 0));
    assert_eq!(queue.take_recalled(), Vec::<String>::new());
}

#[tokio::test]
async fn what_waited_for_the_disk_for_too_long_is_not_handed_over() {
    let mut queue = Queue::with_prefetch(1, 1);
    queue.submit(task("first", 5)).await;
    queue.submit(task("second", 3)).await;
    queue.slow_disk_down(50);
    queue.step_after(1).await;
    assert_eq!(queue.take_handed(), ["first"], "it has its slot for sure");
    queue.submit(task("urgent", 9)).await;
    queue.slow_disk_down(0);
    queue.step_after(1).await;
    assert_untouched(&queue, "second");
    assert_eq!(queue.take_handed(), ["urgent"]);
    assert_eq!(queue.take_recalled(), Vec::<String>::new());
}

/// Otherwise `third` would start before `second`, which ranks higher and was handed over earlier.
#[tokio::test]
async fn when_one_has_waited_for_too_long_all_that_wait_are_taken_back_lowest_first() {
    let mut queue = Queue::with_prefetch(1, 2);
    queue.submit(task("first", 5)).await;
    queue.submit(task("second", 3)).await;
    queue.step_after(1).await;
    queue.report("first", Observation::Started);
    queue.step_after(25).await;
    queue.submit(task("third", 1)).await;
    queue.step_after(1).await;
    assert_eq!(queue.take_handed(), ["first", "second", "third"]);
    queue.step_after(30).await;
    assert_eq!(queue.take_recalled(), ["third", "second"]);
}

#[tokio::test]
async fn what_is_given_back_first_waits_for_what_ranks_before_it_and_is_still_away() {
    let mut queue = Queue::with_prefetch(1, 2);
    queue.submit(task("first", 5)).await;
    queue.submit(task("second", 3)).await;
    queue.submit(task("third", 1)).await;
    queue.step_after(1).await;
    queue.report("first", Observation::Started);
    queue.step_after(60).await;
    assert_eq!(queue.take_handed(), ["first", "second", "third"]);
    assert_eq!(queue.take_recalled(), ["third", "second"]);
    queue.end("first");
    queue.report("third", Observation::Returned { prefetch: 1 });
    queue.submit(task("fourth", 4)).await;
    queue.step_after(25).await;
    assert_eq!(queue.take_handed(), ["fourth"], "it ranks before all that are away");
    // A change of it does not bring it back.
    queue.change("second", |task| drop(task.metadata.labels.insert("a".into(), "b".into()))).await;
    queue.end("fourth");
    queue.step_after(25).await;
    assert_eq!(queue.take_handed(), Vec::<String>::new());
    queue.report("second", Observation::Returned { prefetch: 1 });
    queue.step_after(25).await;
    assert_eq!(queue.take_handed(), ["second", "third"]);
}

#[tokio::test]
async fn a_higher_one_gets_its_place_and_it_is_not_asked_for_twice() {
    let mut queue = prefetched().await;
    queue.submit(task("high", 9)).await;
    queue.step_after(1).await;
    assert_eq!((queue.take_recalled(), queue.take_handed()), (vec!["second".into()], vec!["high".into()]));
    queue.step_after(1).await;
    assert_eq!(queue.take_recalled(), Vec::<String>::new());
    queue.report("second", Observation::Returned { prefetch: 1 });
    queue.step_after(1).await;
    assert_untouched(&queue, "second");
}

#[tokio::test]
async fn what_started_before_it_could_be_taken_back_runs_on_as_its_first_attempt() {
    let mut queue = prefetched().await;
    queue.step_after(60).await;
    assert_eq!(queue.take_recalled(), ["second"]);
    queue.end("first");
    queue.report("second", Observation::Started);
    queue.step_after(25).await;
    let second = queue.get("second");
    assert_eq!((second.state(), second.status.attempt, second.status.prefetched), (State::Running, 1, false));
    queue.end("second");
    queue.step_after(1).await;
    assert_eq!(queue.state("second"), State::Succeeded);
}

#[tokio::test]
async fn a_late_word_that_it_was_given_back_says_nothing_about_the_next_time() {
    let mut queue = prefetched().await;
    queue.step_after(60).await;
    queue.report("second", Observation::Returned { prefetch: 1 });
    queue.step_after(1).await;
    queue.step_after(1).await;
    assert_eq!(queue.get("second").status.prefetches, 2, "it was handed over again");
    queue.report("second", Observation::Returned { prefetch: 1 });
    queue.step_after(1).await;
    assert!(queue.get("second").status.prefetched);
}

#[tokio::test]
async fn canceled_while_it_waits_at_the_executor_it_ends_without_an_attempt() {
    let mut queue = prefetched().await;
    queue.change("second", |task| task.spec.cancel = true).await;
    queue.step_after(1).await;
    assert_eq!(queue.take_stopped(), ["second"]);
    assert!(!queue.state("second").is_terminal(), "it may run already");
    let before_start = Ending::before_start(muster_types::Millis(0));
    queue.report("second", Observation::Ended(before_start));
    queue.step_after(1).await;
    let second = queue.get("second");
    assert_eq!((second.state(), second.status.attempts.len()), (State::Canceled, 0));
}

#[tokio::test]
async fn deleted_while_it_waits_at_the_executor_it_keeps_its_place_until_it_is_given_back() {
    let mut queue = prefetched().await;
    queue.delete("second").await;
    queue.submit(task("third", 1)).await;
    queue.step_after(1).await;
    assert_eq!(queue.take_stopped(), ["second"]);
    assert_eq!(queue.take_handed(), Vec::<String>::new());
    queue.report("second", Observation::Ended(Ending::before_start(muster_types::Millis(0))));
    queue.step_after(1).await;
    assert_eq!(queue.take_handed(), ["third"]);
}

/// It may run already: a schedule whose runs may not overlap waits for it, and so does its name.
#[tokio::test]
async fn deleted_while_it_waits_at_the_executor_it_is_there_until_that_says_how_it_ended() {
    for (began, crashes) in [(false, false), (true, false), (false, true)] {
        let mut queue = prefetched().await;
        let now = queue.now();
        queue
            .change("second", |task| {
                hold_deleted(task);
                task.metadata.deletion_timestamp = Some(now);
            })
            .await;
        queue.step_after(1).await;
        assert_eq!(queue.take_stopped(), ["second"]);
        queue.step_after(1).await;
        assert!(queue.find("second").is_some(), "it may run already");
        if crashes {
            queue.restart();
        } else if began {
            queue.report("second", Observation::Started);
            queue.step_after(1).await;
            queue.end("second");
        } else {
            queue.report("second", Observation::Ended(Ending::before_start(muster_types::Millis(0))));
        }
        for _ in 0..3 {
            queue.step_after(1).await;
        }
        assert!(queue.find("second").is_none(), "began {began}, crashes {crashes}");
    }
}

#[tokio::test]
async fn changed_while_it_waits_at_the_executor_it_is_taken_back() {
    let mut queue = prefetched().await;
    queue.change("second", |task| task.spec.priority = Some(1)).await;
    queue.step_after(1).await;
    assert_eq!(queue.take_recalled(), ["second"]);
}

#[tokio::test]
async fn after_a_restart_it_counts_as_lost_because_it_may_have_run() {
    let mut queue = prefetched().await;
    queue.restart();
    queue.step_after(1).await;
    let second = queue.get("second");
    assert_eq!((second.status.lost, second.status.attempts.len()), (1, 1), "{:?}", second.status);
    assert!(!second.status.prefetched && !second.state().is_terminal());
}

/// A clean stop is no crash: it costs no attempt, and what has ended does not run again.
#[tokio::test]
async fn a_server_that_stops_takes_back_what_waits_and_takes_in_what_has_ended() {
    let mut queue = prefetched().await;
    queue.submit(task("third", 1)).await;
    queue.leave();
    assert_eq!(queue.take_recalled(), ["second"]);
    queue.step_after(1).await;
    assert!(!queue.has_left(false), "one is not back yet");
    queue.report("second", Observation::Returned { prefetch: 1 });
    queue.step_after(1).await;
    assert!(queue.has_left(false) && !queue.has_left(true), "one runs");
    queue.end("first");
    queue.step_after(1).await;
    assert!(queue.has_left(true));
    assert_eq!(queue.take_handed(), Vec::<String>::new(), "nothing is started any more");
    queue.restart();
    queue.step_after(1).await;
    assert_eq!(queue.state("first"), State::Succeeded);
    let second = queue.get("second");
    assert_eq!((second.status.lost, second.status.attempts.len(), second.status.attempt), (0, 1, 1));
}
