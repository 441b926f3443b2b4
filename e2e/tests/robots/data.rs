//! What a task hands to its programs, on a robot.

use serde_json::{Value, json};

use crate::world::{Kind, World};

#[test]
fn a_program_on_a_robot_finds_the_data_of_its_task_over_that_of_its_kind() {
    let world = World::new(Kind::Embedded, &[]);
    let _robot = world.robot("r1", &[]);
    world.create("taskkinds", "TaskKind", "scan", &json!({"data": {"mode": {"fast": true, "depth": 1}}}));
    let script = "cd /; cat $MUSTER_TASK_DATA_FILE; echo; echo $MUSTER_TASK_DATA";
    world.task("scan-1", script, &json!({"kind": "scan", "data": {"mode": {"depth": 9}}}));
    world.wait_for_state("scan-1", "Succeeded");
    let merged = json!({"mode": {"fast": true, "depth": 9}});
    let read: Vec<Value> =
        world.log("scan-1").lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    assert_eq!(read, [merged.clone(), merged]);
}
