//! What runs where, how it ends, and what is said when it cannot run.

use muster_e2e::wait::wait_for;
use serde_json::json;

use crate::world::{Kind, SOON, World};

crate::on_both_brokers!(
    a_job_of_three_groups_runs_on_robots_and_its_logs_are_kept,
    a_task_goes_to_the_robot_it_asks_for_and_waits_if_there_is_none,
    an_attempt_that_takes_too_long_is_ended_on_the_robot,
    canceling_and_deleting_reach_the_robot,
);

fn a_job_of_three_groups_runs_on_robots_and_its_logs_are_kept(kind: Kind) {
    let world = World::new(kind, &[]);
    let _robots = [world.robot("r1", &["--max-tasks", "2"]), world.robot("r2", &["--max-tasks", "2"])];
    let group = |name: &str, after: &[&str]| {
        json!({
            "name": name, "count": 2, "dependsOn": after,
            "tasks": [{"name": "say", "spec": {
                "runtime": "robot",
                "container": {"command": ["sh", "-c", "echo $0 $MUSTER_INDEX; echo twice >&2", name]},
            }}],
        })
    };
    let groups = [group("fetch", &[]), group("work", &["fetch"]), group("report", &["work"])];
    world.create("jobs", "Job", "inspect", &json!({"taskGroups": groups}));
    wait_for("the job has succeeded", SOON, || world.get("jobs/inspect")["status"]["state"] == "Succeeded");
    let tasks = world.get("tasks?labelSelector=muster.dev/job%3Dinspect");
    let tasks = tasks["items"].as_array().cloned().unwrap_or_default();
    assert_eq!(tasks.len(), 6);
    for task in &tasks {
        let attempts = task["status"]["attempts"].as_array().cloned().unwrap_or_default();
        assert_eq!(attempts.len(), 1, "{task:#}");
        assert_eq!((&attempts[0]["runtime"], &attempts[0]["exitCode"]), (&json!("robot"), &json!(0)));
        assert!(attempts[0]["robot"].as_str().is_some_and(|robot| robot.starts_with('r')), "{task:#}");
    }
    let log = world.log("inspect-work-say-1");
    assert_eq!(log, "work 1\ntwice\n");
}

fn a_task_goes_to_the_robot_it_asks_for_and_waits_if_there_is_none(kind: Kind) {
    let world = World::new(kind, &[]);
    let _one = world.robot("r1", &["--label", "zone=a"]);
    world.task("far", "true", &json!({"robotSelector": {"zone": "b"}}));
    let waits = world.wait_for_state("far", "QuotaBlocked");
    assert_eq!(waits["status"]["waitingFor"]["reason"], "NoRobot");
    let said = world.told(&["explain", "far"]);
    assert!(said.contains("label zone is not b"), "{said}");
    let _two = world.robot("r2", &["--label", "zone=b"]);
    let ran = world.wait_for_state("far", "Succeeded");
    assert_eq!(ran["status"]["attempts"][0]["robot"], "r2");

    world.told(&["robot", "drain", "r2"]);
    world.task("held", "true", &json!({"targetRobot": "r2"}));
    let waits = world.wait_for_state("held", "QuotaBlocked");
    assert_eq!(waits["status"]["waitingFor"]["reason"], "RobotsAway");
    world.told(&["robot", "drain", "--undo", "r2"]);
    world.wait_for_state("held", "Succeeded");

    let constraints = json!([{"attribute": "device.platform", "value": "linux"}, {"attribute": "label.zone", "operator": "regexp", "value": "^a"}]);
    world.task("near", "true", &json!({"constraints": constraints}));
    assert_eq!(world.wait_for_state("near", "Succeeded")["status"]["attempts"][0]["robot"], "r1");
}

fn an_attempt_that_takes_too_long_is_ended_on_the_robot(kind: Kind) {
    let world = World::new(kind, &[]);
    let _robot = world.robot("r1", &[]);
    world.task("slow", "echo begun; sleep 600", &json!({"timeout": "1s", "killTimeout": "1s"}));
    let failed = world.wait_for_state("slow", "Failed");
    assert_eq!(failed["status"]["message"], "Task terminated: Task timeout");
    assert_eq!(failed["status"]["attempts"][0]["exitCode"], 143);
    assert_eq!(world.log("slow"), "begun\n");
}

fn canceling_and_deleting_reach_the_robot(kind: Kind) {
    let world = World::new(kind, &[]);
    let _robot = world.robot("r1", &["--max-tasks", "2"]);
    for name in ["canceled", "deleted"] {
        world.waiting_task(name, &json!({"killTimeout": "1s"}));
        world.wait_for_begun(name, 1);
    }
    wait_for("the robot says that it runs both", SOON, || world.get("robots/r1")["status"]["running"] == 2);
    world.told(&["cancel", "canceled"]);
    let task = world.wait_for_state("canceled", "Canceled");
    assert_eq!(task["status"]["attempts"][0]["exitCode"], 143, "the robot said how it ended");
    world.told(&["delete", "task", "deleted"]);
    wait_for("the task is gone", SOON, || world.get("tasks/deleted")["code"] == 404);
    // Both have left their robot: it says so itself.
    wait_for("the robot runs nothing", SOON, || {
        world.get("robots/r1")["status"].get("running").is_none_or(|running| *running == 0)
    });
    assert_eq!((world.times("canceled", "ended"), world.times("deleted", "ended")), (0, 0));
}
