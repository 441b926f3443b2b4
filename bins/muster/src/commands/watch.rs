//! `muster watch`: tasks as they change, as a table that is drawn anew or as lines.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::process::ExitCode;

use muster_types::{State, Timestamp};
use serde_json::Value;

use super::session::Session;
use super::task_names::bare;
use super::tracking::{Seen, Tracking, name_of};
use super::watch_work;
use super::which_tasks::check_names;
use super::work::Work;
use crate::cli::{Globals, WatchArgs, state_of};
use crate::output::table::{align, plain};
use crate::output::{age, streams};

/// Longest message in a row.
const MESSAGE: usize = 60;

/// Shows tasks until stopped, or one until it has ended.
pub async fn run(globals: &Globals, args: &WatchArgs) -> anyhow::Result<ExitCode> {
    if let Some(work) = args.task.as_deref().and_then(Work::parse) {
        return watch_work::run(globals, &work).await;
    }
    let session = Session::open(globals).await?;
    let (client, namespace) = (&session.client, session.namespace());
    let one = args.task.as_deref().map(bare);
    let tracking = match one {
        Some(name) => {
            check_names(&session, &[name.to_owned()]).await?;
            Tracking::one(client, namespace, name)
        }
        None => Tracking::selected(client, namespace, args.selector.clone()),
    };
    let mut board = io::stdout().is_terminal().then(Board::default);
    tracking
        .run(|seen| {
            let over = match &seen {
                Seen::Task(task) => one.is_some() && state_of(task).is_terminal(),
                Seen::Gone(_) => one.is_some(),
                Seen::Listed => false,
            };
            match (&mut board, seen) {
                (Some(board), Seen::Listed) => board.begin()?,
                (None, Seen::Listed) => {}
                (Some(board), Seen::Task(task)) => board.put(task)?,
                (Some(board), Seen::Gone(name)) => board.remove(name)?,
                (None, Seen::Task(task)) => streams::print(&format!("{}\n", line(task)))?,
                (None, Seen::Gone(name)) => streams::print(&format!("{name} deleted\n"))?,
            }
            Ok(if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })
        .await?;
    Ok(ExitCode::SUCCESS)
}

/// A task in one line: name, state, progress, message.
fn line(task: &Value) -> String {
    let mut words = vec![name_of(task).to_owned(), state_of(task).to_string()];
    words.extend(steps(task));
    words.push(message(task));
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

fn steps(task: &Value) -> Option<String> {
    let status = &task["status"];
    let completed = status["completed"].as_u64();
    match (completed, status["total"].as_u64()) {
        (completed, Some(total)) => Some(format!("{}/{total}", completed.unwrap_or(0))),
        (Some(completed), None) => Some(completed.to_string()),
        (None, None) => None,
    }
}

/// What it does or waits for; nothing if that is only its state again.
pub fn doing(task: &Value) -> &str {
    let status = &task["status"];
    let activity = status["activity"].as_array().and_then(|lines| lines.last());
    let places = [&status["waitingFor"]["message"], activity.unwrap_or(&Value::Null), &status["message"]];
    let text = places.into_iter().filter_map(Value::as_str).find(|text| !text.is_empty()).unwrap_or("");
    if text == state_of(task).as_str() { "" } else { text }
}

fn message(task: &Value) -> String {
    let short: String = doing(task).chars().take(MESSAGE).collect();
    plain(&short)
}

/// A table that is drawn anew with every change, what runs before what waits before what has ended.
#[derive(Default)]
struct Board {
    rows: BTreeMap<(u8, String), Row>,
    ranks: BTreeMap<String, u8>,
    /// Everything that was there has been seen.
    listed: bool,
    drawn: usize,
}

struct Row {
    created: Option<Timestamp>,
    state: String,
    steps: String,
    message: String,
}

impl Board {
    fn put(&mut self, task: &Value) -> io::Result<()> {
        let (name, state) = (name_of(task), state_of(task));
        self.forget(name);
        let created = task["metadata"]["creationTimestamp"].as_str();
        let row = Row {
            created: created.and_then(|text| text.parse().ok()),
            state: state.to_string(),
            steps: steps(task).unwrap_or_default(),
            message: message(task),
        };
        self.ranks.insert(name.to_owned(), rank(state));
        self.rows.insert((rank(state), name.to_owned()), row);
        self.draw()
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.forget(name);
        self.draw()
    }

    fn forget(&mut self, name: &str) {
        if let Some(rank) = self.ranks.remove(name) {
            self.rows.remove(&(rank, name.to_owned()));
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        self.listed = true;
        self.draw()
    }

    /// Draws over what was drawn before, as much as there is room for.
    fn draw(&mut self) -> io::Result<()> {
        if !self.listed {
            return Ok(());
        }
        let (height, width) = console::Term::stdout().size();
        let lines = self.lines(usize::from(height.max(4)) - 1, age::now());
        let mut text = if self.drawn > 0 { format!("\x1b[{}A", self.drawn) } else { String::new() };
        for line in &lines {
            let line: String = line.chars().take(usize::from(width.max(20)) - 1).collect();
            text += &format!("\x1b[K{line}\n");
        }
        text += "\x1b[J";
        self.drawn = lines.len();
        streams::print(&text)
    }

    /// At most so many lines.
    fn lines(&self, most: usize, now: Timestamp) -> Vec<String> {
        let header = ["NAME", "STATE", "STEPS", "AGE", "MESSAGE"].map(str::to_owned).to_vec();
        let room = if self.rows.len() < most { most - 1 } else { most - 2 };
        let rows = self.rows.iter().take(room).map(|((_, name), row)| {
            let age = row.created.map_or_else(String::new, |created| age::between(created, now));
            vec![name.clone(), row.state.clone(), row.steps.clone(), age, row.message.clone()]
        });
        let table = align(&std::iter::once(header).chain(rows).collect::<Vec<_>>());
        let mut lines: Vec<String> = table.lines().map(str::to_owned).collect();
        if self.rows.len() > room {
            lines.push(format!("and {} more", self.rows.len() - room));
        }
        lines
    }
}

/// What is of most interest comes first.
fn rank(state: State) -> u8 {
    match state {
        State::Running => 0,
        State::Pending => 1,
        State::Ready | State::Postponed | State::QuotaBlocked | State::Created => 2,
        State::Failed => 3,
        State::Canceled => 4,
        State::Succeeded => 5,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_tells_state_steps_and_what_is_done() {
        let task = json!({
            "metadata": {"name": "a"},
            "status": {"state": "Running", "completed": 3, "total": 9, "activity": ["one", "two\u{1b}[2J"], "message": "m"},
        });
        assert_eq!(line(&task), "a Running 3/9 two\\u{1b}[2J");
        assert_eq!(line(&json!({"metadata": {"name": "b"}})), "b Ready");
    }

    #[test]
    fn what_a_task_waits_for_comes_before_anything_else() {
        let status = json!({"waitingFor": {"message": "task b first"}, "activity": ["old"], "message": "m"});
        assert_eq!(message(&json!({"status": status})), "task b first");
    }

    #[test]
    fn a_board_shows_what_runs_first_and_counts_what_it_has_no_room_for() {
        let mut board = Board::default();
        for (name, state) in [("a", "Succeeded"), ("b", "Ready"), ("c", "Ready"), ("c", "Running")] {
            let task = json!({"metadata": {"name": name}, "status": {"state": state}});
            board.put(&task).unwrap();
        }
        let shown = |most| board.lines(most, Timestamp::from_second(0));
        let names: Vec<_> = shown(10).iter().map(|line| line[..1].to_owned()).collect();
        assert_eq!(names, ["N", "c", "b", "a"]);
        assert_eq!(shown(4).len(), 4, "{:?}", shown(4));
        assert_eq!(shown(3)[1..], ["c      Running", "and 2 more"]);
    }
}
