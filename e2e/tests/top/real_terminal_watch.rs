//! `muster watch` as it looks on a terminal.

use serde_json::json;

use crate::world::World;

#[test]
fn a_job_is_a_tree_that_is_drawn_over_until_it_has_ended() {
    let world = World::new();
    let task = |name: &str, script: &str| json!({"name": name, "spec": {"container": {"command": ["sh", "-c", script]}}});
    let groups = json!([
        {"name": "fetch", "tasks": [task("one", "true")]},
        {"name": "work", "dependsOn": ["fetch"], "tasks": [task("two", &world.gate("go"))]},
    ]);
    world.make("jobs", "Job", &json!({"name": "nightly"}), &json!({"taskGroups": groups}));
    let terminal = &world.terminal;
    terminal.runs("\"$MUSTER_BIN\" watch job/nightly; echo \"code $?\"");
    terminal.sees_line(&["├─ fetch", "[########################]", "1/1", "Succeeded"]);
    terminal.sees_line(&["└─ work", "[------------------------]", "0/1", "Running"]);
    world.open("go");
    terminal.sees_line(&["└─ work", "[########################]", "1/1", "Succeeded"]);
    terminal.sees("code 0");
    let screen = terminal.screen();
    assert_eq!(screen.matches("├─ fetch").count(), 1, "it is drawn over, not again:\n{screen}");
    assert_eq!(screen.matches("└─ work").count(), 1, "{screen}");
}

#[test]
fn tasks_are_a_table_that_is_drawn_over() {
    let world = World::new();
    world.task("build", &world.gate("go"));
    let terminal = &world.terminal;
    terminal.runs("\"$MUSTER_BIN\" watch build; echo \"code $?\"");
    terminal.sees_line(&["build", "Running"]);
    world.open("go");
    terminal.sees_line(&["build", "Succeeded"]);
    terminal.sees("code 0");
    assert_eq!(terminal.screen().matches("NAME").count(), 1, "{}", terminal.screen());
}
