//! How the dashboard lives with its terminal and its server: sizes, colours, losses, ends.

use muster_e2e::terminal::Terminal;
use muster_e2e::wait::{SOON, wait_for};
use rustix::process::{Pid, Signal, kill_process};

use crate::world::World;

/// Fails unless the shell has its terminal back as it was.
#[track_caller]
fn is_restored(terminal: &Terminal, code: u8) {
    terminal.sees(&format!("code {code}"));
    terminal.sees("said before");
    wait_for("the cursor", SOON, || terminal.has_cursor() && !terminal.is_taken());
    terminal.runs("stty -a | tr ';' '\\n'; echo end of settings");
    terminal.sees_that("a terminal that echoes lines", |screen| {
        let settings: Vec<&str> = screen.split_whitespace().collect();
        settings.contains(&"icanon") && settings.contains(&"echo") && settings.contains(&"isig")
    });
}

#[test]
fn quitting_gives_the_terminal_back_as_it_was() {
    let world = World::new();
    world.terminal.runs("echo said before");
    world.terminal.sees("said before");
    world.look();
    assert!(world.terminal.is_taken() && !world.terminal.has_cursor());
    world.terminal.sees_no("said before");
    world.terminal.types("q");
    is_restored(&world.terminal, 0);
}

#[test]
fn control_c_gives_the_terminal_back() {
    let world = World::new();
    world.terminal.runs("echo said before");
    world.look();
    world.terminal.press("C-c");
    is_restored(&world.terminal, 0);
}

#[test]
fn a_signal_gives_the_terminal_back_and_is_the_exit_code() {
    let world = World::new();
    world.terminal.runs("echo said before");
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let file = world.gate_file(&format!("pid-{code}"));
        let start = format!(
            r#"sh -c 'echo $$ > "$1"; exec "$MUSTER_BIN" top' sh '{}'; echo "code $?""#,
            file.display()
        );
        world.terminal.runs(&start);
        world.terminal.sees_line(&["muster top", "live"]);
        let pid = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
        is_restored(&world.terminal, code);
        world.terminal.runs("clear; echo said before");
    }
}

#[test]
fn the_picture_follows_the_size_of_the_terminal() {
    let world = World::new();
    world.task("build", &world.gate("never"));
    world.look();
    let terminal = &world.terminal;
    terminal.sees_line(&["build", "Running"]);
    terminal.sees("failed/s");
    terminal.resize(60, 14);
    terminal.sees_no("failed/s");
    terminal.sees_line(&["build", "Running"]);
    terminal.resize(30, 8);
    terminal.sees("too small: 30x8, needs 40x10");
    terminal.resize(140, 45);
    terminal.sees("failed/s");
    terminal.sees_that("the keys in the last line", |screen| {
        screen.lines().nth(44).is_some_and(|line| line.ends_with("q quit"))
    });
}

#[test]
fn a_lost_server_is_shown_and_found_again() {
    let mut world = World::new();
    world.task("done-before", "true");
    world.wait_for_state("done-before", "Succeeded");
    world.look();
    world.terminal.sees_line(&["done-before", "Succeeded"]);
    world.server.kill();
    world.terminal.sees("LOST, trying again");
    world.terminal.sees_line(&["done-before", "Succeeded"]);
    world.server.restart();
    world.terminal.sees_line(&["muster top", "live"]);
    world.task("done-after", "true");
    world.terminal.sees_line(&["done-after", "Succeeded"]);
}

#[test]
fn no_color_leaves_colours_out() {
    let world = World::new();
    world.task("bad", "exit 3");
    world.look();
    world.terminal.sees_line(&["bad", "Failed"]);
    let has_colours = |terminal: &Terminal| {
        let screen = terminal.coloured_screen();
        (1..=8).any(|colour| {
            screen.contains(&format!("38;5;{colour}m")) || screen.contains(&format!("[3{colour}m"))
        })
    };
    assert!(has_colours(&world.terminal), "{}", world.terminal.coloured_screen());
    let plain = world.terminal_of("viewer", &[("NO_COLOR", "1")]);
    plain.runs("\"$MUSTER_BIN\" top");
    plain.sees_line(&["bad", "Failed"]);
    assert!(!has_colours(&plain), "{}", plain.coloured_screen());
}

#[test]
fn a_terminal_that_cannot_be_drawn_on_alone_is_refused_in_words() {
    let world = World::new();
    world.terminal.runs("TERM=dumb \"$MUSTER_BIN\" top; echo \"code $?\"");
    world.terminal.sees("top cannot draw on a terminal of type dumb");
    world.terminal.sees("code 1");
    world.terminal.runs("clear; \"$MUSTER_BIN\" top --log debug; echo \"code $?\"");
    world.terminal.sees("a log would be written over what top draws");
    world.terminal.sees("code 1");
}
