//! A job or a group as a tree of progress bars, and as a line.

use serde_json::Value;

use super::tracking::name_of;
use crate::output::table::plain;

/// Width of a bar.
const BAR: usize = 24;
/// Longest reason behind a bar.
const MESSAGE: usize = 50;

/// One line of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    name: String,
    state: String,
    ended: u64,
    failed: u64,
    total: u64,
    message: String,
}

impl Branch {
    fn read(name: &str, status: &Value) -> Self {
        let count = |state: &str| status["counts"][state].as_u64().unwrap_or(0);
        let message = status["message"].as_str().unwrap_or_default();
        Self {
            name: plain(name),
            state: plain(status["state"].as_str().unwrap_or("Created")),
            ended: count("succeeded") + count("failed") + count("canceled"),
            failed: count("failed"),
            total: status["total"].as_u64().unwrap_or(0),
            message: plain(&message.chars().take(MESSAGE).collect::<String>()),
        }
    }

    /// As one line for those who read no tree.
    pub fn line(&self) -> String {
        let failed = if self.failed > 0 { format!(" ({} failed)", self.failed) } else { String::new() };
        let why = if self.state == "Skipped" { format!(": {}", self.message) } else { String::new() };
        let progress = if self.total > 0 { format!(" {}/{}", self.ended, self.total) } else { String::new() };
        format!("{} {}{progress}{failed}{why}", self.name, self.state)
    }

    fn bar(&self) -> String {
        if self.total == 0 {
            return format!("[{}]", " ".repeat(BAR));
        }
        let part = |number: u64| {
            let cells = number.saturating_mul(BAR as u64) / self.total;
            usize::try_from(cells).unwrap_or(BAR).min(BAR)
        };
        let done = part(self.ended);
        // A failure is never too small to be seen.
        let failed = if self.failed > 0 { part(self.failed).max(1).min(done.max(1)) } else { 0 };
        let fine = done.saturating_sub(failed);
        format!("[{}{}{}]", "#".repeat(fine), "!".repeat(failed), "-".repeat(BAR - fine - failed))
    }
}

/// A job with its groups, or a group alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The job or group itself.
    pub root: Branch,
    /// The groups of a job.
    pub branches: Vec<Branch>,
}

impl Tree {
    /// Reads an object.
    pub fn read(object: &Value) -> Self {
        let status = &object["status"];
        let groups = status["groups"].as_array().map(Vec::as_slice).unwrap_or_default();
        let branches = groups.iter().map(|group| Branch::read(group["name"].as_str().unwrap_or("?"), group));
        Self { root: Branch::read(name_of(object), status), branches: branches.collect() }
    }

    /// The lines of the tree, at most so many.
    pub fn lines(&self, most: usize) -> Vec<String> {
        let width = self.branches.iter().map(|branch| branch.name.chars().count() + 3);
        let width = width.chain([self.root.name.chars().count()]).max().unwrap_or(0);
        let line = |start: String, branch: &Branch| {
            let pad = " ".repeat(width.saturating_sub(start.chars().count()));
            let count = format!("{}/{}", branch.ended, branch.total);
            let text = format!(
                "{start}{pad}  {} {count:>11}  {:<9}  {}",
                branch.bar(),
                branch.state,
                branch.message
            );
            text.trim_end().to_owned()
        };
        let mut lines = vec![line(self.root.name.clone(), &self.root)];
        let room = most.saturating_sub(2);
        let hidden = self.branches.len().saturating_sub(room);
        let shown = self.chosen(if hidden == 0 { self.branches.len() } else { room });
        for (at, branch) in shown.iter().enumerate() {
            let twig = if at + 1 == shown.len() && hidden == 0 { "└─ " } else { "├─ " };
            lines.push(line(format!("{twig}{}", branch.name), branch));
        }
        if hidden > 0 {
            lines.push(format!("└─ and {hidden} more"));
        }
        lines
    }

    /// The branches there is room for: those that run come before those that wait or have ended.
    fn chosen(&self, room: usize) -> Vec<&Branch> {
        let rank = |branch: &Branch| match branch.state.as_str() {
            "Running" | "Ready" => 0,
            "Failed" => 1,
            "Created" | "Waiting" => 2,
            _ => 3,
        };
        let mut chosen: Vec<(usize, &Branch)> = self.branches.iter().enumerate().collect();
        chosen.sort_by_key(|(place, branch)| (rank(branch), *place));
        chosen.truncate(room);
        chosen.sort_by_key(|(place, _)| *place);
        chosen.into_iter().map(|(_, branch)| branch).collect()
    }

    /// Lines for what is otherwise than before.
    pub fn news(&self, before: Option<&Self>) -> Vec<String> {
        let mut lines = Vec::new();
        for (place, branch) in self.branches.iter().enumerate() {
            let old = before.and_then(|before| before.branches.get(place));
            let waits = branch.state == "Waiting";
            if old.is_none_or(|old| old.line() != branch.line()) && !(old.is_none() && waits) {
                lines.push(format!("{}/{}", self.root.name, branch.line()));
            }
        }
        if before.is_none_or(|before| before.root.line() != self.root.line()) {
            lines.push(self.root.line());
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tree() -> Tree {
        Tree::read(&json!({
            "metadata": {"name": "nightly"},
            "status": {"state": "Running", "counts": {"succeeded": 25, "failed": 1, "running": 2}, "total": 53, "groups": [
                {"name": "fetch", "state": "Succeeded", "counts": {"succeeded": 3}, "total": 3},
                {"name": "work", "state": "Running", "counts": {"succeeded": 22, "failed": 1}, "total": 50},
                {"name": "alarm", "state": "Skipped", "message": "none failed\u{1b}[2J"},
                {"name": "ship", "state": "Waiting", "total": 1},
            ]},
        }))
    }

    #[test]
    fn a_job_is_a_tree_of_bars() {
        assert_eq!(
            tree().lines(20).join("\n"),
            "nightly   [##########!-------------]       26/53  Running\n\
             ├─ fetch  [########################]         3/3  Succeeded\n\
             ├─ work   [##########!-------------]       23/50  Running\n\
             ├─ alarm  [                        ]         0/0  Skipped    none failed\\u{1b}[2J\n\
             └─ ship   [------------------------]         0/1  Waiting"
        );
    }

    #[test]
    fn what_runs_is_shown_when_there_is_no_room_for_all() {
        let lines = tree().lines(4);
        let names: Vec<_> = lines.iter().map(|line| line.chars().take(9).collect::<String>()).collect();
        assert_eq!(names, ["nightly  ", "├─ work  ", "├─ ship  ", "└─ and 2 "]);
    }

    #[test]
    fn only_what_changed_is_told_again() {
        let before = tree();
        let mut after = tree();
        after.branches[1].ended += 1;
        after.branches[1].failed += 1;
        assert_eq!(after.news(Some(&before)), ["nightly/work Running 24/50 (2 failed)"]);
        assert_eq!(
            before.news(None),
            [
                "nightly/fetch Succeeded 3/3",
                "nightly/work Running 23/50 (1 failed)",
                "nightly/alarm Skipped: none failed\\u{1b}[2J",
                "nightly Running 26/53 (1 failed)",
            ]
        );
        assert!(before.news(Some(&before)).is_empty());
    }
}
