//! The dashboard as a story of events and effects.

use muster_types::State;
use serde_json::{Value, json};

use super::super::row::tests::row;
use super::*;

const RUNNING: Panel = Panel::Tasks(Section::Running);

fn model() -> Model {
    let mut model =
        Model::new("http://s".to_owned(), Some("default".to_owned()), Timestamp::from_second(100));
    model.handle(Event::Listing);
    model.handle(Event::Tasks(vec![
        row("build", State::Running, 1),
        row("test", State::Running, 2),
        row("ship", State::Ready, 3),
        row("lint", State::Failed, 4),
    ]));
    model.handle(Event::Listed);
    model
}

fn id(name: &str) -> Id {
    row(name, State::Ready, 0).id
}

fn press(model: &mut Model, keys: &str) -> Vec<Effect> {
    keys.chars().flat_map(|letter| model.handle(Event::Key(Key::Char(letter)))).collect()
}

fn key(model: &mut Model, key: Key) -> Vec<Effect> {
    model.handle(Event::Key(key))
}

fn looked(name: &str, task: Value) -> Event {
    Event::Looked(id(name), Ok(Box::new(Looked { task, why: None })))
}

fn names(model: &Model, section: Section) -> Vec<String> {
    model.tasks(section, 99).items.iter().map(|row| row.id.name.to_string()).collect()
}

#[test]
fn a_task_is_canceled_only_after_a_yes() {
    let mut model = model();
    assert_eq!(press(&mut model, "c"), []);
    assert_eq!(model.asking, Asking::Cancel(id("build")));
    assert_eq!(press(&mut model, "n"), []);
    assert_eq!(model.notice.as_ref().unwrap().words, "build was left as it is");
    assert_eq!(press(&mut model, "jcy"), [Effect::Cancel(id("test"))]);
    assert_eq!(model.asking, Asking::Nothing);
}

#[test]
fn a_task_that_has_ended_is_not_asked_about() {
    let mut model = model();
    key(&mut model, Key::Tab);
    key(&mut model, Key::Tab);
    assert_eq!(press(&mut model, "cy"), []);
    assert_eq!(model.asking, Asking::Nothing);
    assert_eq!(press(&mut model, "r"), [Effect::Retry(id("lint"))]);
}

#[test]
fn what_the_server_refuses_is_shown_for_a_while() {
    let mut model = model();
    model.handle(Event::Done(Err("forbidden\u{1b}[2J".to_owned())));
    let notice = model.notice.clone().unwrap();
    assert_eq!((notice.words.as_str(), notice.is_bad), ("forbidden\\u{1b}[2J", true));
    model.handle(Event::Time(Timestamp::from_second(101)));
    assert!(model.notice.is_some());
    model.handle(Event::Time(Timestamp::from_second(108)));
    assert!(model.notice.is_none());
}

#[test]
fn a_filter_is_seen_while_it_is_typed_and_removed_by_escape() {
    let mut model = model();
    press(&mut model, "/tes");
    assert_eq!(names(&model, Section::Running), ["test"]);
    key(&mut model, Key::Backspace);
    press(&mut model, "qcl");
    assert_eq!(model.filter.text(), "teqcl", "letters that are keys are letters of the filter");
    for _ in 0..3 {
        key(&mut model, Key::Backspace);
    }
    key(&mut model, Key::Enter);
    assert_eq!(model.asking, Asking::Nothing);
    assert_eq!(names(&model, Section::Running), ["test"]);
    assert_eq!(press(&mut model, "cy"), [Effect::Cancel(id("test"))], "keys are about what is shown");
    key(&mut model, Key::Escape);
    assert_eq!(names(&model, Section::Running), ["build", "test"]);
}

#[test]
fn an_opened_task_is_looked_at_again_when_it_changed_and_no_faster_than_the_clock() {
    let mut model = model();
    let tick = |model: &mut Model, second| model.handle(Event::Time(Timestamp::from_second(second)));
    assert_eq!(key(&mut model, Key::Enter), [Effect::Look(id("build"))]);
    model.handle(Event::Tasks(vec![row("build", State::Succeeded, 5)]));
    assert_eq!(tick(&mut model, 101), [], "the first answer is still awaited");
    model.handle(looked("build", json!({"metadata": {"name": "build"}})));
    assert_eq!(tick(&mut model, 102), [Effect::Look(id("build"))]);
    model.handle(looked("build", json!({"metadata": {"name": "build"}})));
    assert_eq!(tick(&mut model, 103), []);
    model.handle(Event::Tasks(vec![row("test", State::Succeeded, 5)]));
    assert_eq!(tick(&mut model, 104), [], "another task is none of its business");
}

#[test]
fn a_task_that_cannot_be_seen_says_why() {
    let mut model = model();
    key(&mut model, Key::Enter);
    model.handle(Event::Looked(id("build"), Err("not found".to_owned())));
    assert_eq!(model.task.as_ref().unwrap().trouble.as_deref(), Some("not found"));
    model.handle(Event::Looked(id("test"), Err("late".to_owned())));
    assert_eq!(model.task.unwrap().trouble.as_deref(), Some("not found"), "of another task");
}

#[test]
fn a_task_scrolls_to_its_end_and_no_further() {
    let mut model = model();
    model.handle(Event::Size(40, 10));
    key(&mut model, Key::Enter);
    let words: Vec<_> = (0..8).map(|number| format!("step {number}")).collect();
    model.handle(looked("build", json!({"metadata": {"name": "build"}, "status": {"activity": words}})));
    let last = model.task_lines().len() - model.page();
    key(&mut model, Key::End);
    press(&mut model, "jjj");
    assert_eq!(model.task.as_ref().unwrap().top, last);
    press(&mut model, "k");
    assert_eq!(model.task.as_ref().unwrap().top, last - 1);
}

#[test]
fn a_log_is_followed_and_left_again() {
    let mut model = model();
    let effects = press(&mut model, "l");
    let follow = |container: Option<&str>, ticket| Effect::Follow {
        id: id("build"),
        container: container.map(str::to_owned),
        ticket,
    };
    assert_eq!(effects, [Effect::Look(id("build")), follow(None, 1)], "its containers are not known yet");
    model.handle(Event::LogPart(1, b"hello\n".to_vec()));
    model.handle(Event::LogPart(7, b"of another log\n".to_vec()));
    assert_eq!(model.log.as_ref().unwrap().visible(9).len(), 1);
    assert_eq!(key(&mut model, Key::Tab), [], "there is no other container");
    model.handle(looked("build", json!({"spec": {"container": {"name": "main"}, "extensions": ["rules"]}})));
    assert_eq!(key(&mut model, Key::Tab), [follow(Some("rules"), 2)]);
    model.handle(Event::LogPart(1, b"late\n".to_vec()));
    assert!(model.log.as_ref().unwrap().is_empty(), "what comes of the old one is not shown");
    model.handle(Event::LogEnd(2));
    assert!(model.log.as_ref().unwrap().ended);
    assert_eq!(key(&mut model, Key::Escape), [Effect::Unfollow]);
    assert!(model.log.is_none());
}

#[test]
fn keys_in_a_log_are_about_its_task() {
    let mut model = model();
    press(&mut model, "jl");
    assert_eq!(press(&mut model, "cy"), [Effect::Cancel(id("test"))]);
    assert_eq!(press(&mut model, "r"), [Effect::Retry(id("test"))]);
}

#[test]
fn going_back_leads_to_the_lists_and_q_quits_only_from_there() {
    let mut model = model();
    key(&mut model, Key::Enter);
    press(&mut model, "l");
    assert_eq!(press(&mut model, "q"), [Effect::Unfollow]);
    assert_eq!(press(&mut model, "q"), []);
    assert!(model.task.is_none());
    assert_eq!(key(&mut model, Key::Escape), []);
    assert_eq!(model.notice.as_ref().unwrap().words, "q quits");
    assert_eq!(press(&mut model, "q"), [Effect::Quit]);
}

#[test]
fn control_c_leaves_from_anywhere() {
    let mut model = model();
    press(&mut model, "/abc");
    assert_eq!(key(&mut model, Key::Interrupt), [Effect::Quit]);
    assert_eq!(model.handle(Event::NoInput), [Effect::Quit]);
}

#[test]
fn help_takes_one_key_and_does_nothing_else() {
    let mut model = model();
    assert_eq!(press(&mut model, "?q"), []);
    assert_eq!(model.asking, Asking::Nothing);
}

#[test]
fn a_lost_server_keeps_what_was_seen_and_a_new_listing_mends_it() {
    let mut model = model();
    model.handle(Event::Lost("connection refused".to_owned()));
    assert_eq!(model.link, Link::Lost("connection refused".to_owned()));
    assert_eq!(names(&model, Section::Running), ["build", "test"]);
    model.handle(Event::Listing);
    model.handle(Event::Tasks(vec![row("test", State::Running, 2)]));
    assert_eq!(names(&model, Section::Running), ["build", "test"], "nothing goes before all was read");
    model.handle(Event::Listed);
    assert_eq!(names(&model, Section::Running), ["test"]);
    assert_eq!(model.link, Link::Live);
}

#[test]
fn there_is_no_history_of_what_was_not_seen() {
    let mut model = model();
    model.handle(Event::Time(Timestamp::from_second(101)));
    model.handle(Event::Lost("gone".to_owned()));
    model.handle(Event::Time(Timestamp::from_second(102)));
    assert_eq!(model.history.latest(9, |moment| moment.running), [2]);
}

#[test]
fn robots_are_a_panel_where_the_server_knows_them() {
    let mut model = model();
    assert_eq!(model.panels.focus, RUNNING);
    key(&mut model, Key::BackTab);
    assert_eq!(model.panels.focus, Panel::Tasks(Section::Done));
    model.handle(Event::ListingRobots);
    let robot = Robot::read(&json!({"metadata": {"name": "r1"}, "status": {"phase": "Online"}}));
    model.handle(Event::Robots(vec![robot.clone()]));
    key(&mut model, Key::Tab);
    assert_eq!(model.panels.focus, Panel::Robots);
    assert_eq!(model.robots(9).items, [&robot]);
    assert_eq!(press(&mut model, "cyrl"), [], "a robot is not a task");
    model.handle(Event::RobotGone(robot.id));
    assert!(model.robots(9).items.is_empty());
}
