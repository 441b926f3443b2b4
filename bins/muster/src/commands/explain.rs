//! `muster explain`: why a task is where it is.

use std::process::ExitCode;

use muster_types::explanation::Explanation;
use muster_types::{State, Timestamp};
use serde_json::Value;

use super::session::Session;
use super::task_names::{bare, explain_missing};
use crate::cli::{ExplainArgs, ExplainOutput, Globals};
use crate::output::documents::{Language, render};
use crate::output::{age, streams};

/// Explains a task.
pub async fn run(globals: &Globals, args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let session = Session::open(globals).await?;
    let name = bare(&args.task);
    let document = match session.client.explain_task(session.namespace(), name).await {
        Ok(document) => document,
        Err(error) => {
            return Err(explain_missing(&session.client, session.namespace(), name, error).await);
        }
    };
    let text = match args.output {
        ExplainOutput::Json => render(Language::Json, &document),
        ExplainOutput::Yaml => render(Language::Yaml, &document),
        ExplainOutput::Text => explain(name, &read(document)?, age::now()),
    };
    streams::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The explanation in a document of the server.
pub fn read(document: Value) -> anyhow::Result<Explanation> {
    Ok(serde_json::from_value(document)?)
}

/// An explanation as people read it.
fn explain(name: &str, why: &Explanation, now: Timestamp) -> String {
    let mut text = format!("{name} is {}", why.state);
    if let Some(since) = why.since {
        text += &format!(" for {} (since {since})", age::between(since, now));
    }
    text += ".\n";
    for sentence in sentences(why) {
        text += &format!("  {sentence}\n");
    }
    if why.recorded {
        text += "  This is what was last recorded: no engine answered.\n";
    }
    text
}

/// What is worth knowing, one sentence each.
pub fn sentences(why: &Explanation) -> Vec<String> {
    let mut all = Vec::new();
    let waiting = why.waiting_for.as_ref();
    if let Some(waiting) = waiting {
        all.push(format!("{}: {}.", waiting.reason, waiting.message.trim_end_matches('.')));
    }
    let told =
        waiting.is_some_and(|waiting| waiting.message == why.message) || why.message == why.state.as_str();
    if !why.message.is_empty() && !told {
        all.push(format!("{}.", why.message.trim_end_matches('.')));
    }
    match (why.effective_priority, why.priority) {
        (Some(effective), Some(own)) if effective != own => {
            let by = if why.raised_by.is_empty() { "another task" } else { &why.raised_by };
            all.push(format!("Its priority is {own}, raised to {effective} because {by} depends on it."));
        }
        (Some(priority), _) | (None, Some(priority)) => all.push(format!("Its priority is {priority}.")),
        (None, None) => {}
    }
    if !why.preemption.is_empty() {
        all.push(format!("{}.", capitalized(&why.preemption)));
    }
    all.extend(next(why).map(str::to_owned));
    all
}

/// What would bring it on.
fn next(why: &Explanation) -> Option<&'static str> {
    match why.state {
        State::Created if why.waiting_for.is_none() => {
            Some("It is held back until `muster submit --task` or spec.suspend: false lets it go.")
        }
        State::Ready if why.waiting_for.is_none() => Some("It starts when there is room for it."),
        State::Failed | State::Canceled => Some("`muster retry` makes a new task like it."),
        // What it waits for says what has to happen.
        State::Created
        | State::Ready
        | State::Postponed
        | State::QuotaBlocked
        | State::Pending
        | State::Running
        | State::Succeeded => None,
    }
}

/// The same sentence with a large first letter.
fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words(document: Value) -> String {
        explain("a", &read(document).unwrap(), Timestamp::from_second(1_000_000_330))
    }

    #[test]
    fn a_task_that_waits_says_for_what_and_what_is_before_it() {
        let text = words(json!({
            "kind": "TaskExplanation", "state": "Postponed", "since": "2001-09-09T01:46:40Z",
            "message": "task b must complete first",
            "waitingFor": {"reason": "Dependency", "message": "task b must complete first"},
            "priority": 10, "effectivePriority": 50, "raisedBy": "default/c",
        }));
        assert_eq!(
            text,
            "a is Postponed for 5m30s (since 2001-09-09T01:46:40Z).\n\
             \x20 Dependency: task b must complete first.\n\
             \x20 Its priority is 10, raised to 50 because default/c depends on it.\n"
        );
    }

    #[test]
    fn a_task_without_room_says_its_position_and_whose_place_it_takes() {
        let waiting = "waiting for a free slot (2 of 2 in use, position 14)";
        let text = words(json!({
            "state": "QuotaBlocked", "message": waiting, "waitingFor": {"reason": "Capacity", "message": waiting},
            "priority": 10, "position": 14, "preemption": "it preempts default/low next",
        }));
        assert_eq!(
            text,
            "a is QuotaBlocked.\n\
             \x20 Capacity: waiting for a free slot (2 of 2 in use, position 14).\n\
             \x20 Its priority is 10.\n\
             \x20 It preempts default/low next.\n"
        );
    }

    #[test]
    fn a_task_that_ended_says_how_and_what_can_be_done() {
        let text = words(json!({"state": "Failed", "message": "exit code 3", "recorded": true}));
        assert_eq!(
            text,
            "a is Failed.\n  exit code 3.\n  `muster retry` makes a new task like it.\n  \
             This is what was last recorded: no engine answered.\n"
        );
        assert_eq!(words(json!({"state": "Succeeded", "message": "Succeeded"})), "a is Succeeded.\n");
    }
}
