//! What is kept of a task: little, since there may be very many.

use std::sync::Arc;

use muster_types::{State, Timestamp};
use serde_json::Value;

use super::super::outcome::why;
use super::super::watch::doing;
use crate::cli::state_of;
use crate::output::table::plain;

/// Longest words of a task that are kept.
const WORDS: usize = 200;
/// Longest labels of a task that are kept, all together.
const LABELS: usize = 400;

/// Which task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl Id {
    /// The id of an object.
    pub fn of(object: &Value) -> Self {
        let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().into();
        Self { namespace: text("namespace"), name: text("name") }
    }
}

/// A task in brief. All text is harmless on a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Which one.
    pub id: Id,
    /// Where it is in its life.
    pub state: State,
    /// Since when.
    pub since: Timestamp,
    /// How important it is.
    pub priority: i64,
    /// Number of the latest attempt.
    pub attempt: u64,
    /// Steps done.
    pub completed: Option<u64>,
    /// Steps expected.
    pub total: Option<u64>,
    /// It was told to end and has not yet.
    pub stopping: bool,
    /// What it does, waits for or failed of.
    pub words: Box<str>,
    /// `key=value` with a blank between.
    pub labels: Box<str>,
}

impl Row {
    /// Reads a task.
    pub fn read(task: &Value) -> Self {
        let (metadata, status, state) = (&task["metadata"], &task["status"], state_of(task));
        let time = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
        let since = time(&status["stateSince"]).or_else(|| time(&metadata["creationTimestamp"]));
        let words = match state {
            State::Failed => short(&why(task), WORDS),
            // Most of all tasks, and there is nothing to say about them.
            State::Succeeded => Box::default(),
            _ => short(doing(task), WORDS),
        };
        Self {
            id: Id::of(task),
            state,
            since: since.unwrap_or(Timestamp::MIN),
            priority: task["spec"]["priority"].as_i64().unwrap_or(0),
            attempt: status["attempt"].as_u64().unwrap_or(0),
            completed: status["completed"].as_u64(),
            total: status["total"].as_u64(),
            stopping: !status["stopping"].is_null(),
            words,
            labels: labels(&metadata["labels"]),
        }
    }
}

/// Harmless text of at most so many characters.
pub fn short(text: &str, most: usize) -> Box<str> {
    plain(&text.chars().take(most).collect::<String>()).into()
}

fn labels(labels: &Value) -> Box<str> {
    let pairs = labels.as_object().into_iter().flatten();
    let pairs: Vec<_> =
        pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or("?"))).collect();
    short(&pairs.join(" "), LABELS)
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// A row as tests need it.
    pub fn row(name: &str, state: State, since: i64) -> Row {
        let id = Id { namespace: "default".into(), name: name.into() };
        Row {
            id,
            state,
            since: Timestamp::from_second(since),
            priority: 0,
            attempt: 0,
            completed: None,
            total: None,
            stopping: false,
            words: Box::default(),
            labels: Box::default(),
        }
    }

    #[test]
    fn a_task_is_kept_in_brief() {
        let task = json!({
            "metadata": {"namespace": "n", "name": "a", "labels": {"app": "shop", "tier": "web"}},
            "spec": {"priority": 7},
            "status": {
                "state": "Running", "stateSince": "1970-01-01T00:00:09Z", "attempt": 2, "completed": 3, "total": 9,
                "activity": ["one", "two\u{1b}[2J"],
            },
        });
        let read = Row::read(&task);
        assert_eq!((&*read.id.namespace, &*read.id.name), ("n", "a"));
        assert_eq!(
            (read.state, read.since.as_second(), read.priority, read.attempt),
            (State::Running, 9, 7, 2)
        );
        assert_eq!((read.completed, read.total), (Some(3), Some(9)));
        assert_eq!((&*read.words, &*read.labels), ("two\\u{1b}[2J", "app=shop tier=web"));
    }

    #[test]
    fn a_failure_is_told_in_its_own_words_and_cut_short() {
        let task = json!({
            "metadata": {"name": "a", "creationTimestamp": "1970-01-01T00:00:05Z"},
            "status": {"state": "Failed", "errors": [{"description": "x".repeat(1000)}]},
        });
        let read = Row::read(&task);
        assert_eq!(read.words.len(), WORDS);
        assert_eq!(read.since.as_second(), 5);
    }

    #[test]
    fn what_is_no_task_at_all_harms_nobody() {
        let read = Row::read(&json!({"metadata": 7, "status": {"state": "Dreaming", "completed": "x"}}));
        assert_eq!((read.state, &*read.id.name, read.completed), (State::Ready, "", None));
    }
}
