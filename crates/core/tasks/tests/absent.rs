//! Tasks that name something that does not exist.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in what tests share")]

use std::sync::Arc;

use muster_tasks::absent::{Absent, Reference};
use muster_tasks::board::Board;
use muster_tasks::capacity::Capacity;
use muster_tasks::plan::{Decision, Hold, Plan};
use muster_tasks::select::SelectError;
use muster_tasks::settings::Settings;
use muster_tasks::view::TaskView;
use muster_types::{Millis, State, Task};
use serde_json::json;

const WAIT: i64 = 60;

fn board(slots: u32) -> Board {
    Board::new(Settings::default(), |_| Capacity { slots, cpu_millis: None, memory: None })
}

fn view(number: u128, kind: &str, state: State) -> TaskView {
    let spec = json!({"kind": kind, "container": {"command": ["true"]}});
    let mut task = Task::new("default", &format!("t{number}"), serde_json::from_value(spec).unwrap());
    task.metadata.uid = format!("{number:032x}");
    task.status.state = Some(state);
    TaskView::of(&task, format!("default/t{number}").into()).unwrap()
}

fn at(second: i64) -> Millis {
    Millis(second * 1000)
}

fn kind(name: &str) -> Absent {
    Absent { namespace: "default".to_owned(), what: Reference::Kind(name.to_owned()) }
}

fn no_addon() -> Arc<Absent> {
    let error = SelectError::AddonNotSelected { kind: "scan".to_owned(), declined: vec![] };
    Arc::new(Absent::of_selection("default", &error).unwrap())
}

fn started(plan: &Plan) -> Vec<u128> {
    let starts = plan.decisions.iter().filter_map(|decision| match decision {
        Decision::Start { task, .. } => Some(task.uid),
        _ => None,
    });
    starts.collect()
}

#[test]
fn a_task_without_its_kind_waits_with_a_reason_and_holds_nobody_back() {
    let mut board = board(1);
    board.observe(&view(1, "gone", State::Ready));
    board.observe_absent(1, Some(kind("gone")), at(0));
    board.observe(&view(2, "", State::Ready));
    let plan = board.plan(0);
    assert_eq!(started(&plan), [2]);
    let hold = plan.decisions.iter().find_map(|decision| match decision {
        Decision::Hold { task, hold } if task.uid == 1 => Some(hold.clone()),
        _ => None,
    });
    let hold = hold.unwrap();
    assert_eq!((hold.state(), hold.reason()), (State::Postponed, "KindNotFound"));
    assert_eq!(
        hold.message(),
        "task kind \"gone\" does not exist; create it, or submit the task again with another spec.kind; the task fails after 60s without it"
    );
    assert_eq!(board.why(1, 0), Some(hold));
    assert_eq!(board.violations(), Vec::<String>::new());
}

#[test]
fn a_task_goes_on_at_once_when_its_kind_appears() {
    let mut board = board(1);
    board.observe(&view(1, "scan", State::Ready));
    board.observe_absent(1, Some(kind("scan")), at(0));
    assert_eq!(started(&board.plan(0)), [0_u128; 0]);
    assert_eq!(board.appeared(&kind("other")), [] as [Arc<str>; 0]);
    assert_eq!(board.appeared(&kind("scan")), ["default/t1".into()]);
    assert_eq!(started(&board.plan(0)), [1]);
}

#[test]
fn the_time_to_wait_goes_on_while_the_task_is_written() {
    let mut board = board(1);
    board.observe(&view(1, "gone", State::Ready));
    board.observe_absent(1, Some(kind("gone")), at(100));
    assert_eq!(board.impatient_at(), Some(100 + WAIT));
    board.observe(&view(1, "gone", State::Postponed));
    board.observe_absent(1, Some(kind("gone")), at(130));
    assert_eq!(board.impatient_at(), Some(100 + WAIT));
    assert_eq!(board.take_impatient(100 + WAIT - 1, 9).len(), 0);
    let taken = board.take_impatient(100 + WAIT, 9);
    assert_eq!((taken.len(), taken[0].0.uid, &*taken[0].1), (1, 1, &kind("gone")));
    assert!(taken[0].1.error(WAIT).contains("\"gone\" does not exist"));
    board.observe(&view(1, "gone", State::Failed));
    assert_eq!((board.len(), board.impatient_at()), (0, None));
}

#[test]
fn what_selection_lacks_is_awaited_until_addons_change_and_no_longer_than_allowed() {
    let mut board = board(1);
    board.observe(&view(1, "scan", State::Ready));
    assert_eq!(started(&board.plan(0)), [1]);
    assert!(board.wait_for(1, &no_addon(), at(0), at(0)));
    board.observe(&view(1, "scan", State::Postponed));
    // Its kind is there, which is not what it waits for.
    board.observe_absent(1, None, at(0));
    assert_eq!(started(&board.plan(1)), [0_u128; 0]);
    assert_eq!(board.selection_changed("elsewhere").len(), 0);
    assert_eq!(board.selection_changed("default").len(), 1);
    assert_eq!(started(&board.plan(30)), [1]);
    assert!(board.wait_for(1, &no_addon(), at(30), at(30)), "30 seconds are left");
    board.selection_changed("default");
    assert_eq!(started(&board.plan(WAIT)), [1]);
    assert!(!board.wait_for(1, &no_addon(), at(WAIT), at(WAIT)));
}

#[test]
fn a_wait_that_begins_within_a_second_is_not_cut_short() {
    let mut board = board(1);
    board.observe(&view(1, "scan", State::Ready));
    assert_eq!(started(&board.plan(0)), [1]);
    assert!(board.wait_for(1, &no_addon(), Millis(900), Millis(900)));
    board.selection_changed("default");
    assert_eq!(started(&board.plan(WAIT)), [1]);
    assert!(
        board.wait_for(1, &no_addon(), Millis(WAIT * 1000 + 100), Millis(WAIT * 1000 + 100)),
        "0.8 seconds are left"
    );
    board.selection_changed("default");
    assert_eq!(started(&board.plan(WAIT + 1)), [1]);
    assert!(!board.wait_for(1, &no_addon(), at(WAIT + 1), at(WAIT + 1)));
}

#[test]
fn a_task_with_nothing_that_could_appear_is_not_kept_waiting() {
    let error = SelectError::AddonNotSelected { kind: String::new(), declined: vec![] };
    assert_eq!(Absent::of_selection("default", &error), None);
}

#[test]
fn a_deleted_task_waits_for_nothing() {
    let mut board = board(1);
    board.observe(&view(1, "gone", State::Ready));
    board.observe_absent(1, Some(kind("gone")), at(0));
    board.forget(1);
    assert_eq!((board.appeared(&kind("gone")).len(), board.impatient_at()), (0, None));
}

#[test]
fn many_tasks_without_their_kind_are_not_looked_at_in_a_pass() {
    let mut board = board(4);
    for number in 1..=2000 {
        board.observe(&view(number, "gone", State::Postponed));
        board.observe_absent(number, Some(kind("gone")), at(0));
    }
    board.observe(&view(9999, "", State::Ready));
    let plan = board.plan(1);
    assert_eq!((started(&plan), plan.decisions.len()), (vec![9999], 1));
    assert_eq!(board.take_impatient(WAIT, 256).len(), 256, "they do not all fail in one pass");
    assert_eq!(board.impatient_at(), Some(WAIT));
    assert!(matches!(board.why(700, 1), Some(Hold::Absent { .. })));
}
