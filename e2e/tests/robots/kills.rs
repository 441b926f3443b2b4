//! Robots, agents, servers and brokers that die in the middle of work.

use muster_e2e::wait::wait_for;
use serde_json::json;

use crate::world::{Kind, SOON, World};

crate::on_both_brokers!(
    what_a_robot_that_died_ran_gets_a_new_attempt_elsewhere,
    a_server_that_was_killed_finds_its_attempts_again,
    what_ran_when_its_agent_was_killed_goes_on_under_the_next,
    what_ended_without_an_agent_is_reported_by_the_next,
    a_robot_that_was_rebooted_says_what_it_lost,
    an_agent_that_is_told_to_end_ends_what_it_runs,
    a_broker_that_was_restarted_loses_nothing,
    what_is_dispatched_to_a_robot_that_is_away_is_not_lost,
);

fn what_a_robot_that_died_ran_gets_a_new_attempt_elsewhere(kind: Kind) {
    let world = World::new(kind, &["--robot-offline-after", "4s"]);
    let mut first = world.robot("r1", &[]);
    world.waiting_task("moved", &json!({"reschedule": {"attempts": 1, "delay": "1s"}}));
    world.wait_for_begun("moved", 1);
    let _second = world.robot("r2", &[]);
    first.cut_power();
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
    wait_for("it has ended", SOON, || world.times("during", "ended") == 1);
    world.server.restart();
    let ended = world.wait_for_state("during", "Succeeded");
    assert_eq!(ended["status"]["attempt"], 1, "{ended:#}");
    world.let_go("after");
    let ended = world.wait_for_state("after", "Succeeded");
    assert_eq!(ended["status"]["attempt"], 1, "{ended:#}");
    assert_eq!((world.times("during", "begun"), world.times("after", "begun")), (1, 1));
    assert_eq!(world.log("after"), "begun\nended\n");
}

fn what_ran_when_its_agent_was_killed_goes_on_under_the_next(kind: Kind) {
    let world = World::new(kind, &[]);
    let mut robot = world.robot("r1", &["--max-tasks", "2"]);
    for name in ["finished", "stopped"] {
        world.waiting_task(name, &json!({"killTimeout": "5s"}));
        world.wait_for_begun(name, 1);
        world.wait_for_state(name, "Running");
    }
    let processes = [world.process("finished"), world.process("stopped")];
    robot.kill();
    world.wait_for_connection("r1", "False");
    robot.restart();
    world.wait_for_connection("r1", "True");
    assert_eq!(
        [world.process("finished"), world.process("stopped")],
        processes,
        "they are the same processes"
    );
    world.let_go("finished");
    let ended = world.wait_for_state("finished", "Succeeded");
    assert_eq!(ended["status"]["attempt"], 1, "{ended:#}");
    assert_eq!(world.log("finished"), "begun\nended\n");
    // The new agent's orders reach it.
    world.told(&["cancel", "stopped"]);
    world.wait_for_state("stopped", "Canceled");
    wait_for("it was stopped", SOON, || !is_running(processes[1]));
    assert_eq!((world.times("finished", "begun"), world.times("finished", "ended")), (1, 1));
    assert_eq!((world.times("stopped", "begun"), world.times("stopped", "ended")), (1, 0));
    world.task("next", "true", &json!({}));
    world.wait_for_state("next", "Succeeded");
}

fn what_ended_without_an_agent_is_reported_by_the_next(kind: Kind) {
    let world = World::new(kind, &[]);
    let mut robot = world.robot("r1", &["--max-tasks", "2"]);
    let once = json!({"retry": {"limit": 0}});
    world.waiting_task("well", &once);
    let place = world.dir.path().join("badly");
    let place = place.display();
    world.task(
        "badly",
        &format!("echo x >> {place}.begun; while [ ! -e {place}.go ]; do sleep 0.05; done; echo why; exit 7"),
        &once,
    );
    for name in ["well", "badly"] {
        world.wait_for_begun(name, 1);
        world.wait_for_state(name, "Running");
    }
    robot.kill();
    let family = robot.warden().expect("something runs there");
    world.let_go("well");
    world.let_go("badly");
    // With the last attempt ends what ran it.
    wait_for("all has ended without an agent", SOON, || !is_running(family));
    robot.restart();
    let well = world.wait_for_state("well", "Succeeded");
    assert_eq!((&well["status"]["attempt"], world.log("well").as_str()), (&json!(1), "begun\nended\n"));
    let badly = world.wait_for_state("badly", "Failed");
    assert_eq!(badly["status"]["attempts"][0]["exitCode"], 7);
    assert_eq!((&badly["status"]["attempt"], world.log("badly").as_str()), (&json!(1), "why\n"));
    assert_eq!((world.times("well", "begun"), world.times("badly", "begun")), (1, 1));
}

fn a_robot_that_was_rebooted_says_what_it_lost(kind: Kind) {
    let world = World::new(kind, &[]);
    let mut robot = world.robot("r1", &[]);
    world.waiting_task("twice", &json!({}));
    world.wait_for_begun("twice", 1);
    world.wait_for_state("twice", "Running");
    robot.cut_power();
    robot.restart();
    world.wait_for_begun("twice", 2);
    world.let_go("twice");
    let ended = world.wait_for_state("twice", "Succeeded");
    assert_eq!(ended["status"]["attempt"], 2);
    assert_eq!(ended["status"]["attempts"][0]["reason"], "ExecutorLost");
    assert_eq!(world.times("twice", "ended"), 1);
}

fn an_agent_that_is_told_to_end_ends_what_it_runs(kind: Kind) {
    let world = World::new(kind, &[]);
    let mut robot = world.robot("r1", &[]);
    world.waiting_task("polite", &json!({}));
    world.wait_for_begun("polite", 1);
    world.wait_for_state("polite", "Running");
    let process = world.process("polite");
    robot.end();
    assert!(!is_running(process) && robot.warden().is_none_or(|warden| !is_running(warden)));
    robot.restart();
    world.wait_for_begun("polite", 2);
    world.let_go("polite");
    let ended = world.wait_for_state("polite", "Succeeded");
    assert_eq!((&ended["status"]["attempt"], world.times("polite", "ended")), (&json!(2), 1));
}

fn is_running(process: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // After the name, which is in parentheses: Z is one that ended and was not waited for.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
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
