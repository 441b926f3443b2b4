//! `muster watch`: tasks as they change, as a table that is drawn anew or as lines.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::process::ExitCode;

use muster_types::Timestamp;
use serde_json::Value;

use super::session::Session;
use super::task_names::bare;
use super::tracking::{Seen, Tracking, name_of};
use super::which_tasks::check_names;
use crate::cli::{Globals, WatchArgs, state_of};
use crate::output::table::{align, plain};
use crate::output::{age, streams};

/// Longest message in a row.
const MESSAGE: usize = 60;

/// Shows tasks until stopped, or one until it has ended.
pub async fn run(globals: &Globals, args: &WatchArgs) -> anyhow::Result<ExitCode> {
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
                (_, Seen::Listed) => {}
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

/// What it does or waits for.
fn message(task: &Value) -> String {
    let status = &task["status"];
    let activity = status["activity"].as_array().and_then(|lines| lines.last());
    let places = [&status["waitingFor"]["message"], activity.unwrap_or(&Value::Null), &status["message"]];
    let text = places.into_iter().filter_map(Value::as_str).find(|text| !text.is_empty()).unwrap_or("");
    if text == state_of(task).as_str() {
        return String::new();
    }
    let short: String = text.chars().take(MESSAGE).collect();
    plain(&short)
}

/// A table that is drawn anew with every change.
#[derive(Default)]
struct Board {
    rows: BTreeMap<String, Vec<String>>,
    drawn: usize,
}

impl Board {
    fn put(&mut self, task: &Value) -> io::Result<()> {
        let name = name_of(task).to_owned();
        let created = task["metadata"]["creationTimestamp"].as_str();
        let created: Option<Timestamp> = created.and_then(|text| text.parse().ok());
        let age = created.map_or_else(String::new, |created| age::between(created, age::now()));
        let cells = [state_of(task).to_string(), steps(task).unwrap_or_default(), age, message(task)];
        self.rows.insert(name.clone(), [name].into_iter().chain(cells).collect());
        self.draw()
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.rows.remove(name);
        self.draw()
    }

    /// Draws over what was drawn before, as much as there is room for.
    fn draw(&mut self) -> io::Result<()> {
        let (height, width) = console::Term::stdout().size();
        let (height, width) = (usize::from(height.max(3)), usize::from(width.max(20)));
        let header = ["NAME", "STATE", "STEPS", "AGE", "MESSAGE"].map(str::to_owned).to_vec();
        let room = height - 2;
        let rows = self.rows.values().rev().take(room).rev().cloned();
        let table = align(&std::iter::once(header).chain(rows).collect::<Vec<_>>());
        let mut text = if self.drawn > 0 { format!("\x1b[{}A", self.drawn) } else { String::new() };
        let mut lines = 0;
        for line in table.lines() {
            let line: String = line.chars().take(width - 1).collect();
            text += &format!("\x1b[K{line}\n");
            lines += 1;
        }
        text += "\x1b[J";
        self.drawn = lines;
        streams::print(&text)
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
        assert_eq!(line(&json!({"metadata": {"name": "b"}})), "b Created");
    }

    #[test]
    fn what_a_task_waits_for_comes_before_anything_else() {
        let status = json!({"waitingFor": {"message": "task b first"}, "activity": ["old"], "message": "m"});
        assert_eq!(message(&json!({"status": status})), "task b first");
    }
}
