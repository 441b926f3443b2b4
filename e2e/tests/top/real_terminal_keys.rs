//! What the dashboard shows, and what its keys do.

use serde_json::json;

use crate::world::World;

#[test]
fn what_runs_waits_and_failed_is_shown_and_changes_by_itself() {
    let world = World::looking();
    let terminal = &world.terminal;
    terminal.sees("Running 0");
    world.task("lint", "echo no such rule >&2; exit 3");
    terminal.sees_line(&["lint", "Failed", "1 try"]);
    let muster = std::env::var("MUSTER_BIN").unwrap();
    let report = format!("'{muster}' report --total 10 --completed 4 --activity 'reading the sources'");
    world.make("taskkinds", "TaskKind", &json!({"name": "compile"}), &json!({}));
    world.make("taskkinds", "TaskKind", &json!({"name": "deliver"}), &json!({"dependencies": ["compile"]}));
    world.make("applications", "Application", &json!({"name": "shop"}), &json!({}));
    world.task_of("compile", "build", &format!("{report}; {}", world.gate("go")));
    terminal.sees_line(&["build", "Running", "[####------] 4/10", "reading the sources"]);
    world.task_of("deliver", "ship", "true");
    terminal.sees("Waiting 1");
    terminal.sees_line(&["ship", "Postponed", "must complete first"]);
    world.open("go");
    terminal.sees_line(&["build", "Succeeded"]);
    terminal.sees_line(&["ship", "Succeeded"]);
    terminal.sees("Done 2");
}

#[test]
fn keys_move_between_panels_and_lines_and_open_a_task() {
    let world = World::new();
    world.task("build", &world.gate("never"));
    world.wait_for_state("build", "Running");
    for name in ["wait-1", "wait-2", "wait-3"] {
        world.task(name, "true");
    }
    world.look();
    let terminal = &world.terminal;
    terminal.sees("▶ Running 1");
    terminal.press("Tab");
    terminal.sees("▶ Waiting 3");
    terminal.press("Down");
    terminal.types("j");
    terminal.press("Enter");
    terminal.sees("Task wait-3");
    terminal.sees_line(&["State", "Ready"]);
    terminal.sees_line(&["Capacity", "waiting for a free slot"]);
    terminal.press("Escape");
    terminal.sees("▶ Waiting 3");
    terminal.press("BTab");
    terminal.press("Enter");
    terminal.sees_line(&["State", "Running"]);
    terminal.sees_line(&["NO", "RUNTIME", "STARTED", "REASON"]);
    terminal.sees_line(&["PodRunning"]);
    terminal.types("?");
    terminal.sees("Any key closes this.");
    terminal.types("x");
    terminal.sees_no("Any key closes this.");
}

#[test]
fn a_filter_narrows_the_lists_by_name_label_and_state() {
    let world = World::new();
    let spec = json!({"suspend": true, "container": {"command": ["true"]}});
    for (name, app) in [("build-web", "shop"), ("build-db", "bank"), ("test-web", "shop")] {
        world.make("tasks", "Task", &json!({"name": name, "labels": {"app": app}}), &spec);
    }
    world.look();
    let terminal = &world.terminal;
    terminal.sees("Waiting 3");
    terminal.types("/build");
    terminal.sees("Waiting 2 of 3");
    terminal.sees_no("test-web");
    terminal.types(" app=shop");
    terminal.sees("Waiting 1 of 3");
    terminal.press("Enter");
    terminal.sees("only build app=shop");
    terminal.press("Escape");
    terminal.sees("Waiting 3");
    terminal.types("/state=failed");
    terminal.sees("Waiting 0 of 3");
    terminal.press("Escape");
    terminal.sees_line(&["test-web", "Created"]);
}

#[test]
fn a_log_is_followed_scrolled_and_changed_for_another_container() {
    let world = World::new();
    let script = format!("seq 1 100; {}; echo it goes on; {}", world.gate("on"), world.gate("end"));
    let containers = json!([
        {"name": "main", "leading": true, "command": ["sh", "-c", script]},
        {"name": "side", "command": ["sh", "-c", format!("echo beside; {}", world.gate("end"))]},
    ]);
    world.make("tasks", "Task", &json!({"name": "build"}), &json!({"containers": containers}));
    world.look();
    let terminal = &world.terminal;
    terminal.sees_line(&["build", "Running"]);
    terminal.types("l");
    terminal.sees_line(&["Log of build, container 1 of 2: main (following)"]);
    terminal.sees_that("the end", |screen| screen.lines().any(|line| line == "100"));
    world.open("on");
    terminal.sees("it goes on");
    terminal.press("Home");
    terminal.sees_that("the beginning", |screen| screen.lines().any(|line| line == "1"));
    terminal.sees("stopped, f follows");
    terminal.types("f");
    terminal.sees("it goes on");
    terminal.press("Tab");
    terminal.sees("container 2 of 2: side");
    terminal.sees("beside");
    world.open("end");
    terminal.sees("(ended)");
    terminal.press("Escape");
    terminal.sees_line(&["build", "Succeeded"]);
}

#[test]
fn a_task_is_canceled_after_a_question_and_made_anew() {
    let world = World::new();
    world.task("build", &world.gate("never"));
    world.look();
    let terminal = &world.terminal;
    terminal.sees_line(&["build", "Running"]);
    terminal.types("c");
    terminal.sees("Cancel task build?");
    terminal.types("n");
    terminal.sees("build was left as it is");
    assert_eq!(world.state("build"), "Running");
    terminal.types("cy");
    world.wait_for_state("build", "Canceled");
    terminal.sees_line(&["build", "Canceled"]);
    terminal.press("BTab");
    terminal.sees("▶ Robots 0");
    terminal.press("BTab");
    terminal.sees("▶ Done 1");
    terminal.types("r");
    terminal.sees("build was made anew as build-");
    terminal.sees("Running 1");
    terminal.press("Tab");
    terminal.press("Tab");
    terminal.sees("▶ Running 1");
    terminal.sees_line(&["build-", "Running"]);
}

#[test]
fn a_viewer_looks_at_everything_and_is_refused_to_cancel() {
    let world = World::new();
    world.task("build", &format!("echo hello; {}", world.gate("never")));
    let terminal = world.terminal_of("viewer", &[]);
    terminal.runs("\"$MUSTER_BIN\" top");
    terminal.sees_line(&["build", "Running"]);
    terminal.types("l");
    terminal.sees("hello");
    terminal.press("Escape");
    terminal.sees("▶ Running 1");
    terminal.types("cy");
    terminal.sees_line(&["build was not canceled", "cannot"]);
    assert_eq!(world.state("build"), "Running");
}

#[test]
fn what_a_task_says_cannot_play_with_the_terminal() {
    let world = World::new();
    let muster = std::env::var("MUSTER_BIN").unwrap();
    let report = format!(r#"'{muster}' report --activity "$(printf 'wipe \033[2J\033]0;pwned\007 done')""#);
    let log = r"printf 'before \033[2J\033[31mred\033[0m\033[999;1H after\n'";
    world.task("evil", &format!("{report}; {log}; {}", world.gate("never")));
    world.look();
    let terminal = &world.terminal;
    terminal.sees_line(&["evil", "Running", r"wipe \u{1b}[2J"]);
    terminal.sees("muster top");
    terminal.types("l");
    terminal
        .sees_that("the words in one line", |screen| screen.lines().any(|line| line == "before red after"));
    terminal.sees("Log of evil");
    assert!(!terminal.coloured_screen().contains("\x1b[31mred"));
}
