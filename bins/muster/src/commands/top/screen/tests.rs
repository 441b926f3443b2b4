//! Screens as they look, on a terminal that is only in memory.

use muster_types::{State, Timestamp};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use serde_json::json;

use super::super::event::{Event, Looked};
use super::super::key::Key;
use super::super::model::Model;
use super::super::paint::Paint;
use super::super::robot::Robot;
use super::super::row::Row;
use super::super::row::tests::row;
use super::*;

fn terminal(model: &mut Model, width: u16, height: u16, paint: Paint) -> Terminal<TestBackend> {
    model.handle(Event::Size(width, height));
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model, paint)).unwrap();
    terminal
}

/// The lines of a screen, without the blanks at their ends.
fn lines(model: &mut Model, width: u16, height: u16) -> Vec<String> {
    let terminal = terminal(model, width, height, Paint::chosen_by(None));
    let buffer = terminal.backend().buffer().clone();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}

fn model() -> Model {
    let mut model =
        Model::new("http://s:1".to_owned(), Some("default".to_owned()), Timestamp::from_second(100));
    model.handle(Event::Listing);
    let build = Row {
        completed: Some(4),
        total: Some(10),
        words: "compiling".into(),
        ..row("build", State::Running, 40)
    };
    let ship = Row {
        priority: 7,
        words: "task build must complete first".into(),
        ..row("ship", State::Postponed, 70)
    };
    let lint = Row { attempt: 2, words: "exit code 3".into(), ..row("lint", State::Failed, 90) };
    model.handle(Event::Tasks(vec![build, ship, lint, row("fetch", State::Succeeded, 95)]));
    model.handle(Event::Listed);
    model
}

#[test]
fn the_first_screen_shows_what_runs_waits_failed_and_is_done() {
    let shown = lines(&mut model(), 100, 24).join("\n");
    let expected = "\
muster top  http://s:1  namespace default  live
 Ready           0    Running         1    Succeeded       1   waiting         0
 Postponed       1    Pending         0    Failed          1   running         0
 QuotaBlocked    0    Created         0    Canceled        0   ended/s         0
                                                               failed/s        0
▶ Running 1 ────────────────────────────────────────────────────────────────────────────────────────
build        Running      60s    [####------] 4/10      compiling







  Waiting 1 ────────────────────────────────────────────────────────────────────────────────────────
ship         Postponed    30s    p7       task build must complete first

  Failed 1 ─────────────────────────────────────────────────────────────────────────────────────────
lint         Failed       10s    2 tries  exit code 3

  Done 1 ───────────────────────────────────────────────────────────────────────────────────────────
fetch        Succeeded    5s

j/k move  Tab panel  Enter open  l log  c cancel  r retry  / filter  ? help  q quit";
    assert_eq!(shown, expected, "\n{shown}");
}

#[test]
fn the_history_is_drawn_as_a_plot_that_ends_now() {
    let mut model = model();
    for second in 101..105 {
        model.handle(Event::Tasks(vec![row(&format!("more-{second}"), State::Running, second)]));
        model.handle(Event::Time(Timestamp::from_second(second)));
    }
    let shown = lines(&mut model, 110, 24);
    assert!(shown[2].contains("   running         5   ") && shown[2].ends_with("  ▃▄▆█"), "{}", shown[2]);
    assert_eq!(shown[2].chars().count(), 110, "it ends at the right");
}

#[test]
fn a_small_terminal_keeps_the_list_that_has_the_keys() {
    let mut model = model();
    model.handle(Event::Key(Key::Tab));
    let shown = lines(&mut model, 60, 12);
    let waiting = shown.iter().position(|line| line.starts_with("▶ Waiting 1")).unwrap();
    assert!(shown[waiting + 1].starts_with("ship "), "{shown:#?}");
    assert!(shown.iter().any(|line| line.starts_with("  Failed 1")), "{shown:#?}");
    assert_eq!(lines(&mut model, 39, 12)[0], "too small: 39x12, needs 40x10");
}

#[test]
fn every_size_can_be_drawn() {
    let mut model = model();
    model.handle(Event::ListingRobots);
    for keys in ["", "?", "c", "\n", "l"] {
        for letter in keys.chars() {
            let key = if letter == '\n' { Key::Enter } else { Key::Char(letter) };
            model.handle(Event::Key(key));
        }
        for (width, height) in [(1, 1), (40, 10), (41, 11), (80, 24), (200, 60), (500, 5)] {
            lines(&mut model, width, height);
        }
        model.handle(Event::Key(Key::Escape));
    }
}

#[test]
fn a_filter_counts_what_it_leaves_out() {
    let mut model = model();
    for letter in "/xyz".chars() {
        model.handle(Event::Key(Key::Char(letter)));
    }
    let shown = lines(&mut model, 100, 24);
    assert!(shown.iter().any(|line| line.starts_with("▶ Running 0 of 1 ")), "{shown:#?}");
    assert!(shown[23].starts_with("/xyz█"), "{}", shown[23]);
    assert_eq!(shown[4].split("   ").next(), Some(" only xyz"));
}

#[test]
fn robots_are_listed_where_there_are_any() {
    let mut model = model();
    model.handle(Event::ListingRobots);
    let status = json!({"phase": "Online", "lastHeartbeatTime": "1970-01-01T00:01:35Z", "running": 1});
    model.handle(Event::Robots(vec![Robot::read(&json!({"metadata": {"name": "r1"}, "status": status}))]));
    let shown = lines(&mut model, 100, 30);
    let place = shown.iter().position(|line| line.starts_with("  Robots 1 ")).unwrap();
    assert_eq!(shown[place + 1], "r1           Online       1 running      heard 5s ago");
}

#[test]
fn a_lost_server_is_said_at_the_top_and_why_at_the_bottom() {
    let mut model = model();
    model.handle(Event::Lost("http://s:1 cannot be reached".to_owned()));
    let shown = lines(&mut model, 80, 24);
    assert!(shown[0].ends_with("LOST, trying again"), "{}", shown[0]);
    assert_eq!(shown[23], "http://s:1 cannot be reached");
}

#[test]
fn a_cancellation_is_asked_about_in_the_middle() {
    let mut model = model();
    model.handle(Event::Key(Key::Char('c')));
    let shown = lines(&mut model, 80, 24).join("\n");
    assert!(shown.contains("│ Cancel task build?"), "{shown}");
    assert!(shown.contains("│ y cancels it, any other key leaves it as it is │"), "{shown}");
}

#[test]
fn a_task_and_its_log_have_screens_of_their_own() {
    let mut model = model();
    model.handle(Event::Key(Key::Enter));
    assert_eq!(lines(&mut model, 60, 12)[2], "reading…");
    let task = json!({"metadata": {"name": "build"}, "spec": {"extensions": ["rules"]}, "status": {"state": "Running"}});
    let id = row("build", State::Running, 0).id;
    model.handle(Event::Looked(id, Ok(Box::new(Looked { task, why: None }))));
    let shown = lines(&mut model, 60, 12);
    assert!(shown[1].starts_with(" Task build ───"), "{shown:#?}");
    assert_eq!(shown[2], "State       Running");
    model.handle(Event::Key(Key::Char('l')));
    let shown = lines(&mut model, 70, 12);
    assert!(shown[1].starts_with(" Log of build, container 1 of 2: addon (following) ─"), "{shown:#?}");
    assert_eq!(shown[2], "nothing yet; what it writes comes here");
    model.handle(Event::LogPart(1, b"hello \x1b[2Jworld\n".to_vec()));
    assert_eq!(lines(&mut model, 70, 12)[2], "hello world");
}

#[test]
fn colours_are_used_and_left_out_as_the_user_wants() {
    let has_colour = |no_color: Option<&str>| {
        let paint = Paint::chosen_by(no_color.map(AsRef::as_ref));
        let terminal = terminal(&mut model(), 80, 24, paint);
        let cells = &terminal.backend().buffer().content;
        cells.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
    };
    assert!(has_colour(None));
    assert!(!has_colour(Some("1")));
}
