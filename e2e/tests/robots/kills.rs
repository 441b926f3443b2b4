//! Robots, servers and brokers that die in the middle of work.

use serde_json::json;

use crate::world::{Kind, World};

crate::on_both_brokers!(
    what_a_robot_that_died_ran_gets_a_new_attempt_elsewhere,
    a_server_that_was_killed_finds_its_attempts_again,
    an_agent_that_was_restarted_says_what_it_lost,
    a_broker_that_was_restarted_loses_nothing,
    what_is_dispatched_to_a_robot_that_is_away_is_not_lost,
);

fn what_a_robot_that_died_ran_gets_a_new_attempt_elsewhere(kind: Kind) {
    let world = World::new(kind, &["--robot-offline-after", "4s"]);
    let mut first = world.robot("r1", &[]);
    world.waiting_task("moved", &json!({"reschedule": {"attempts": 1, "delay": "1s"}}));
    world.wait_for_begun("moved", 1);
    let _second = world.robot("r2", &[]);
    first.kill();
    world.wait_for_connection("r1", "False");
    world.wait_for_phase("r1", "Offline");
    world.wait_for_begun("moved", 2);
    world.let_go("moved");
    let moved = world.wait_for_state("moved", "Succeeded");
    let attempts = moved["status"]["attempts"].as_array().cloned().unwrap_or_default();
    let robots: Vec<_> = attempts.iter().map(|attempt| attempt["robot"].clone()).collect();
    assert_eq!(robots, ["r1", "r2"]);
    assert_eq!(attempts[0]["reason"], "RobotLost");
    assert_eq!(world.times("moved", "ended"), 1, "what ran on the dead robot died with it");
    // The robot that returns is let in again and gets work.
    first.restart();
    world.wait_for_phase("r1", "Online");
    world.task("again", "true", &json!({"targetRobot": "r1"}));
    world.wait_for_state("again", "Succeeded");
}

fn a_server_that_was_killed_finds_its_attempts_again(kind: Kind) {
    let mut world = World::new(kind, &[]);
    let _robot = world.robot("r1", &["--max-tasks", "2"]);
    for name in ["during", "after"] {
        world.waiting_task(name, &json!({}));
        world.wait_for_begun(name, 1);
        world.wait_for_state(name, "Running");
    }
    world.server.kill();
    // One ends while nobody listens.
    world.let_go("during");
    muster_e2e::wait::wait_for("it has ended", crate::world::SOON, || world.times("during", "ended") == 1);
    world.server.restart();
    let ended = world.wait_for_state("during", "Succeeded");
    assert_eq!(ended["status"]["attempt"], 1, "{ended:#}");
    world.let_go("after");
    let ended = world.wait_for_state("after", "Succeeded");
    assert_eq!(ended["status"]["attempt"], 1, "{ended:#}");
    assert_eq!((world.times("during", "begun"), world.times("after", "begun")), (1, 1));
    assert_eq!(world.log("after"), "begun\nended\n");
}

fn an_agent_that_was_restarted_says_what_it_lost(kind: Kind) {
    let world = World::new(kind, &[]);
    let mut robot = world.robot("r1", &[]);
    world.waiting_task("twice", &json!({}));
    world.wait_for_begun("twice", 1);
    robot.kill();
    robot.restart();
    world.wait_for_begun("twice", 2);
    world.let_go("twice");
    let ended = world.wait_for_state("twice", "Succeeded");
    assert_eq!(ended["status"]["attempt"], 2);
    assert_eq!(ended["status"]["attempts"][0]["reason"], "ExecutorLost");
    assert_eq!(world.times("twice", "ended"), 1);
}

fn a_broker_that_was_restarted_loses_nothing(kind: Kind) {
    let mut world = World::new(kind, &[]);
    let _robot = world.robot("r1", &[]);
    world.waiting_task("kept", &json!({}));
    world.wait_for_begun("kept", 1);
    if let Some(broker) = &mut world.broker {
        broker.kill();
        broker.restart();
    } else {
        // The embedded one is restarted with its server.
        world.server.stop();
        world.server.restart();
    }
    world.let_go("kept");
    let ended = world.wait_for_state("kept", "Succeeded");
    assert_eq!((&ended["status"]["attempt"], world.times("kept", "begun")), (&json!(1), 1));
    world.task("next", "true", &json!({}));
    world.wait_for_state("next", "Succeeded");
}

fn what_is_dispatched_to_a_robot_that_is_away_is_not_lost(kind: Kind) {
    let world = World::new(kind, &[]);
    let mut robot = world.robot("r1", &["--max-tasks", "2"]);
    world.task("warm-up", "true", &json!({}));
    world.wait_for_state("warm-up", "Succeeded");
    robot.kill();
    // Perhaps the server knows by now that the robot is away, perhaps not: either way the task runs when it is back.
    world.waiting_task("late", &json!({}));
    robot.restart();
    world.wait_for_begun("late", 1);
    world.let_go("late");
    world.wait_for_state("late", "Succeeded");
    assert_eq!(world.times("late", "ended"), 1);
}
