//! What the bridge hands on, in both directions, and what it never writes.

use muster_fleet_mqtt::messages::{Action, ConnectionNews, Dispatch, LogPiece, StateWord, Status, VERSION};
use muster_ports::clock::{Clock as _, SystemClock};
use muster_ports::logs::Logs as _;
use muster_ports::runtime::{Cause, Ending, Handle, Observation, Runtime as _};
use muster_ports::store::ResourceName;

use crate::yard::{TOKEN, Yard, launch};

#[tokio::test]
async fn a_robot_that_joins_is_written_down_without_a_phase() {
    let yard = Yard::new().await;
    let (mut robot, secret) = yard.join("r1").await;
    let stored = yard.robot("r1").expect("it is written down");
    assert_eq!(stored.status.phase, None, "the phase is the engine's");
    assert_eq!((stored.spec.max_tasks, stored.spec.labels["zone"].as_str()), (Some(3), "a"));
    assert_eq!((stored.spec.approved, stored.spec.unschedulable), (None, false));
    robot.connected().await;
    robot.beat(&secret, 8).await;
    yard.until("the device is written down", |yard| {
        yard.robot("r1").is_some_and(|robot| robot.status.device_info.cpus == 8)
    })
    .await;
    robot.say(&yard.topics.connection("r1"), &ConnectionNews { connected: false }).await;
    yard.until("the cut is written down", |yard| {
        let robot = yard.robot("r1");
        robot.is_some_and(|robot| robot.status.conditions.iter().any(|it| !it.is_true()))
    })
    .await;
    let stored = yard.robot("r1").expect("it is there");
    assert_eq!(stored.status.phase, None, "neither a sign of life nor a cut changes a phase");
}

#[tokio::test]
async fn a_wrong_token_is_refused_in_words() {
    let yard = Yard::new().await;
    let mut robot = yard.connect("r1", TOKEN, false);
    let answer = robot.register("guess").await;
    assert!(
        !answer.success
            && answer.credential.is_none()
            && answer.message.contains("muster robot token create")
    );
    assert!(yard.robot("r1").is_none());
}

#[tokio::test]
async fn an_attempt_goes_to_its_robot_and_its_reports_come_back_once_and_in_order() {
    let mut yard = Yard::new().await;
    let (mut robot, _) = yard.join("r1").await;
    robot.connected().await;
    let handle = launch("r1", 1).handle;
    yard.runtime.start(launch("r1", 1));
    let dispatch: Dispatch = robot.hear().await;
    assert_eq!((dispatch.action, dispatch.handle()), (Action::Create, handle.clone()));
    robot.report(&handle, 1, None).await;
    robot.report(&handle, 2, Some(&Observation::Started)).await;
    robot.report(&handle, 2, Some(&Observation::Started)).await;
    robot
        .report(&handle, 1, Some(&Observation::Lost { reason: "Old".to_owned(), message: String::new() }))
        .await;
    assert_eq!(yard.fact().await, Observation::Started);
    let lost = Observation::Lost { reason: "New".to_owned(), message: String::new() };
    robot.report(&handle, 3, Some(&lost)).await;
    assert_eq!(yard.fact().await, lost, "what came twice or late was left out");
    // The end is kept until the engine lets go of it; then the robot may forget it.
    assert_eq!(yard.runtime.stored().expect("a list"), std::slice::from_ref(&handle));
    yard.runtime.remove(&handle).expect("it can be removed");
    let dispatch: Dispatch = robot.hear().await;
    assert_eq!((dispatch.action, dispatch.handle()), (Action::Delete, handle));
    // Of all this the bridge wrote nothing but the robot itself.
    let resource = ResourceName::new("tasks.muster.dev");
    assert_eq!(yard.store.snapshot(&resource).len(), 0, "the bridge writes no task");
}

#[tokio::test]
async fn a_robot_that_speaks_of_what_nobody_wants_is_told_to_end_it() {
    let yard = Yard::new().await;
    let (mut robot, _) = yard.join("r1").await;
    robot.connected().await;
    let stray = Handle { task: "0190c000-0000-7000-8000-00000000000f".to_owned(), attempt: 4 };
    robot.report(&stray, 1, Some(&Observation::Started)).await;
    let dispatch: Dispatch = robot.hear().await;
    assert_eq!((dispatch.action, dispatch.handle()), (Action::Delete, stray));
}

#[tokio::test]
async fn a_dispatch_is_repeated_until_it_is_acknowledged() {
    let mut yard = Yard::new().await;
    let (mut robot, secret) = yard.join("r1").await;
    robot.connected().await;
    robot.beat(&secret, 1).await;
    yard.runtime.start(launch("r1", 1));
    let first: Dispatch = robot.hear().await;
    let second: Dispatch = robot.hear().await;
    assert_eq!(first, second);
    // The words of the seed are enough.
    let handle = first.handle();
    let status = Status {
        observation: None,
        state: StateWord::Running,
        ..Status::of(&handle, "r1", 1, None, SystemClock.now())
    };
    robot.say(&yard.topics.status("r1", &handle.task), &status).await;
    assert_eq!(yard.fact().await, Observation::Started);
}

#[tokio::test]
async fn the_last_of_a_log_is_kept_if_the_log_itself_did_not_come() {
    let mut yard = Yard::new().await;
    let (mut robot, _) = yard.join("r1").await;
    robot.connected().await;
    for (attempt, sends_log) in [(1, false), (2, true)] {
        yard.runtime.start(launch("r1", attempt));
        let handle = robot.hear::<Dispatch>().await.handle();
        if sends_log {
            let data = "d2hvbGU=".to_owned();
            let piece =
                LogPiece { version: VERSION, attempt, container: "addon".to_owned(), offset: 0, data };
            robot.say(&yard.topics.log("r1", &handle.task), &piece).await;
        }
        let ended = Observation::Ended(Ending::of_leader(1, Cause::Itself, SystemClock.now()));
        let mut status = Status::of(&handle, "r1", 1, Some(&ended), SystemClock.now());
        let tails = [("addon", "tail"), ("../../evil", "tail")];
        status.log_tails = tails.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        robot.say(&yard.topics.status("r1", &handle.task), &status).await;
        assert!(matches!(yard.fact().await, Observation::Ended(_)));
        let log = yard.runtime.logs().read(&handle, "addon", 0, 100).expect("there is a log");
        assert_eq!(String::from_utf8_lossy(&log.bytes), if sends_log { "whole" } else { "tail" });
    }
}

/// The server took the attempt over from one that had the first part of its log.
#[tokio::test]
async fn an_attempt_that_ends_before_its_robot_answered_is_not_over_before_its_whole_log_came() {
    let mut yard = Yard::new().await;
    let (mut robot, _) = yard.join("r1").await;
    robot.connected().await;
    yard.runtime.start(launch("r1", 1));
    let handle = robot.hear::<Dispatch>().await.handle();
    let log = yard.topics.log("r1", &handle.task);
    let piece = |offset, data: &str| LogPiece {
        version: VERSION,
        attempt: 1,
        container: "addon".to_owned(),
        offset,
        data: data.to_owned(),
    };
    let (begun, then) = (piece(0, "YmVndW4K"), piece(6, "ZW5kZWQK"));
    let ended = Observation::Ended(Ending::of_leader(0, Cause::Itself, SystemClock.now()));
    robot.say(&log, &then).await;
    robot.report(&handle, 2, Some(&ended)).await;

    let again: Dispatch = robot.hear().await;
    assert_eq!(
        (again.action, again.handle(), again.log_offsets["addon"]),
        (Action::Create, handle.clone(), 0)
    );
    robot.say(&log, &begun).await;
    robot.say(&log, &then).await;
    robot.report(&handle, 1, Some(&Observation::Started)).await;
    robot.report(&handle, 2, Some(&ended)).await;
    assert_eq!(yard.fact().await, Observation::Started);
    assert!(matches!(yard.fact().await, Observation::Ended(_)));
    let log = yard.runtime.logs().read(&handle, "addon", 0, 100).expect("there is a log");
    assert_eq!(String::from_utf8_lossy(&log.bytes), "begun\nended\n");
}
