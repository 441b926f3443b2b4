//! One task in full, as lines for reading.

use muster_types::explanation::Explanation;
use muster_types::{MilliTimestamp, Timestamp, human_millis};
use serde_json::Value;

use super::super::explain::sentences;
use crate::cli::state_of;
use crate::output::age;
use crate::output::table::{align, plain};

/// Width of what stands before a value.
const LABEL: usize = 12;
/// Width of a progress bar.
const BAR: usize = 30;
/// Lines of what the task said it does, the latest.
const ACTIVITY: usize = 8;
/// Name of a container that has none.
const UNNAMED: &str = "addon";

/// How a line is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Title,
    Text,
    Bad,
}

/// A line about a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetailLine {
    /// How it is meant.
    pub tone: Tone,
    /// Its text, harmless on a terminal.
    pub text: String,
}

/// Everything about a task, in lines that fit into a width.
pub fn describe(task: &Value, why: Option<&Explanation>, now: Timestamp, width: usize) -> Vec<DetailLine> {
    let mut lines = Lines { all: Vec::new(), width: width.max(20) };
    about(&mut lines, task, now);
    if let Some(why) = why {
        lines.section("Why", Tone::Text, sentences(why).iter().map(|sentence| plain(sentence)));
    }
    let status = &task["status"];
    lines.section("Errors", Tone::Bad, items(&status["errors"]).iter().map(error));
    lines.section("Activity", Tone::Text, activity(&status["activity"]));
    lines.table("Attempts", &attempts(&status["attempts"], now));
    lines.section("Containers", Tone::Text, containers(task).iter().map(|name| plain(name)));
    lines.table("Records", &records(&status["events"], now));
    lines.section("Files", Tone::Text, items(&status["attached"]).iter().map(file));
    lines.all
}

/// The containers whose logs there may be, the leading one first.
pub fn containers(task: &Value) -> Vec<String> {
    let (spec, status) = (&task["spec"], &task["status"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let attached = items(&status["attached"]).iter();
    let attached = attached.filter_map(|file| Some(file["name"].as_str()?.strip_suffix(".log")?.to_owned()));
    let mut found: Vec<String> = attached.collect();
    let one = Some(&spec["container"]).filter(|container| container.is_object());
    let mut own: Vec<&Value> = one.into_iter().chain(items(&spec["containers"])).collect();
    own.sort_by_key(|container| container["leading"] != true);
    if own.is_empty() && found.is_empty() {
        found.push(UNNAMED.to_owned());
    }
    let own = own.into_iter().map(|container| match text(&container["name"]) {
        name if name.is_empty() => UNNAMED.to_owned(),
        name => name,
    });
    let asked = items(&spec["extensions"]).iter().map(text);
    let chosen = items(&status["events"]).iter().filter(|record| record["kind"] == "ExtensionSelected");
    let mut names: Vec<String> = Vec::new();
    for name in found.into_iter().chain(own).chain(asked).chain(chosen.map(|record| text(&record["reason"])))
    {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A bar for steps, with their numbers behind it.
pub fn bar(completed: u64, total: u64, width: usize) -> String {
    let full = u128::try_from(width).unwrap_or(0);
    let done = (u128::from(completed.min(total)) * full).checked_div(u128::from(total)).unwrap_or(0);
    let done = usize::try_from(done).unwrap_or(width).min(width);
    format!("[{}{}] {completed}/{total}", "#".repeat(done), "-".repeat(width - done))
}

struct Lines {
    all: Vec<DetailLine>,
    width: usize,
}

impl Lines {
    /// Adds text; what does not fit goes on in the next line, further in.
    fn push(&mut self, tone: Tone, text: &str, indent: usize) {
        let mut rest: Vec<char> = text.chars().collect();
        let mut before = 0;
        loop {
            let room = self.width.saturating_sub(before).max(8);
            let cut = break_at(&rest, room);
            let line: String = " ".repeat(before) + rest[..cut].iter().collect::<String>().trim_end();
            self.all.push(DetailLine { tone, text: line });
            rest.drain(..cut);
            while rest.first() == Some(&' ') {
                rest.remove(0);
            }
            if rest.is_empty() {
                return;
            }
            before = indent;
        }
    }

    fn title(&mut self, title: &str) {
        self.all.push(DetailLine { tone: Tone::Text, text: String::new() });
        self.all.push(DetailLine { tone: Tone::Title, text: title.to_owned() });
    }

    /// A title and lines below it; nothing if there are none.
    fn section(&mut self, title: &str, tone: Tone, lines: impl IntoIterator<Item = String>) {
        for (at, line) in lines.into_iter().enumerate() {
            if at == 0 {
                self.title(title);
            }
            self.push(tone, &format!("  {line}"), 4);
        }
    }

    fn table(&mut self, title: &str, rows: &[Vec<String>]) {
        if rows.len() > 1 {
            let text = align(rows);
            self.section(title, Tone::Text, text.lines().map(str::to_owned));
        }
    }

    fn field(&mut self, label: &str, value: &str) {
        if !value.is_empty() {
            self.push(Tone::Text, &format!("{label:<LABEL$}{value}"), LABEL);
        }
    }
}

/// Where a line that is too long is broken: behind a word if one ends in its second half.
fn break_at(text: &[char], room: usize) -> usize {
    if text.len() <= room {
        return text.len();
    }
    let blank = text[room / 2..room].iter().rposition(|letter| *letter == ' ');
    blank.map_or(room, |at| room / 2 + at + 1)
}

fn about(lines: &mut Lines, task: &Value, now: Timestamp) {
    let (metadata, spec, status) = (&task["metadata"], &task["spec"], &task["status"]);
    let text = |value: &Value| value.as_str().map(plain).unwrap_or_default();
    let state = state_of(task);
    let since = instant(&status["stateSince"], now);
    let stopping = match text(&status["stopping"]) {
        word if word.is_empty() => word,
        word => format!(", told to end ({word})"),
    };
    let since = if since.is_empty() { since } else { format!(" for {since}") };
    lines.field("State", &format!("{state}{since}{stopping}"));
    if let Some(total) = status["total"].as_u64() {
        lines.field("Progress", &bar(status["completed"].as_u64().unwrap_or(0), total, BAR));
    }
    let message = text(&status["message"]);
    lines.field("Message", if message == state.as_str() { "" } else { &message });
    lines.field("Title", &text(&spec["name"]));
    lines.field("Kind", &text(&spec["kind"]));
    lines.field("Addon", &text(&spec["addon"]));
    let subject = [text(&spec["subject"]["kind"]), text(&spec["subject"]["name"])];
    lines.field("Subject", subject.join("/").trim_matches('/'));
    lines.field("Command", &command(&spec["container"]));
    lines.field("Priority", &spec["priority"].as_i64().map(|number| number.to_string()).unwrap_or_default());
    lines.field("Runtime", &text(&spec["runtime"]));
    let owners = items(&metadata["ownerReferences"]).iter();
    let owners: Vec<_> =
        owners.map(|owner| format!("{}/{}", text(&owner["kind"]), text(&owner["name"]))).collect();
    lines.field("Owner", &owners.join(", "));
    let created = instant(&metadata["creationTimestamp"], now);
    let by = text(&status["createUser"]);
    let by = if by.is_empty() { by } else { format!(" by {by}") };
    lines.field("Created", &format!("{created} ago{by}"));
    let labels = metadata["labels"].as_object().into_iter().flatten();
    let labels: Vec<_> = labels.map(|(key, value)| format!("{}={}", plain(key), text(value))).collect();
    lines.field("Labels", &labels.join(" "));
}

fn command(container: &Value) -> String {
    let words = items(&container["command"]).iter().chain(items(&container["args"]));
    let words: Vec<_> = words.filter_map(Value::as_str).map(plain).collect();
    words.join(" ")
}

fn error(error: &Value) -> String {
    let text = |name: &str| error[name].as_str().map(plain).unwrap_or_default();
    format!("{}: {}", text("severity"), text("description")).trim_start_matches(": ").to_owned()
}

fn activity(lines: &Value) -> Vec<String> {
    let lines = items(lines);
    let latest = &lines[lines.len().saturating_sub(ACTIVITY)..];
    latest.iter().filter_map(Value::as_str).map(plain).collect()
}

fn attempts(attempts: &Value, now: Timestamp) -> Vec<Vec<String>> {
    let text = |value: &Value| value.as_str().map(plain).unwrap_or_default();
    let header = ["NO", "RUNTIME", "STARTED", "TOOK", "CODE", "REASON", "ON"].map(str::to_owned).to_vec();
    let rows = items(attempts).iter().map(|attempt| {
        let time = |name: &str| attempt[name].as_str().and_then(|text| text.parse::<MilliTimestamp>().ok());
        let (started, finished) = (time("startedAt"), time("finishedAt"));
        let took = started.map(|started| {
            let finished = finished.unwrap_or(now.into());
            human_millis(finished.as_millisecond() - started.as_millisecond())
        });
        let place =
            [&attempt["robot"], &attempt["handle"]].map(text).into_iter().find(|text| !text.is_empty());
        vec![
            attempt["number"].to_string(),
            text(&attempt["runtime"]),
            started.map(|started| format!("{} ago", age::between(started.into(), now))).unwrap_or_default(),
            took.unwrap_or_default(),
            attempt["exitCode"].as_i64().map(|code| code.to_string()).unwrap_or_default(),
            text(&attempt["reason"]),
            place.unwrap_or_default(),
        ]
    });
    std::iter::once(header).chain(rows).collect()
}

fn records(records: &Value, now: Timestamp) -> Vec<Vec<String>> {
    let text = |value: &Value| value.as_str().map(plain).unwrap_or_default();
    let header = ["LAST", "WHAT", "TIMES", "WHY"].map(str::to_owned).to_vec();
    let rows = items(records).iter().map(|record| {
        let last = instant(&record["last"], now);
        vec![
            format!("{last} ago"),
            text(&record["kind"]),
            record["count"].to_string(),
            text(&record["reason"]),
        ]
    });
    std::iter::once(header).chain(rows).collect()
}

fn file(file: &Value) -> String {
    let name = file["name"].as_str().map(plain).unwrap_or_default();
    format!("{name} ({} bytes)", file["size"].as_u64().unwrap_or(0))
}

/// How long ago a time is; nothing if there is none.
fn instant(value: &Value, now: Timestamp) -> String {
    value.as_str().and_then(|text| text.parse().ok()).map_or_else(String::new, |time| age::between(time, now))
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(task: &Value, width: usize) -> String {
        let why = Explanation { message: "exit code 3".to_owned(), ..Explanation::default() };
        let lines = describe(task, Some(&why), Timestamp::from_second(100), width);
        lines.into_iter().map(|line| line.text + "\n").collect()
    }

    #[test]
    fn a_task_reads_from_how_it_is_to_what_happened() {
        let task = json!({
            "metadata": {"name": "a", "creationTimestamp": "1970-01-01T00:00:10Z", "labels": {"app": "shop"}},
            "spec": {"kind": "analyzer", "subject": {"kind": "Application", "name": "inventory"}, "priority": 7},
            "status": {
                "state": "Failed", "stateSince": "1970-01-01T00:01:00Z", "completed": 3, "total": 6,
                "createUser": "ann",
                "attempts": [{
                    "number": 1, "runtime": "process", "startedAt": "1970-01-01T00:00:30Z",
                    "finishedAt": "1970-01-01T00:01:00Z", "exitCode": 3, "reason": "NonZeroExit", "handle": "p-1",
                }],
                "errors": [{"severity": "Error", "description": "(addon) no such file\u{1b}[2J"}],
                "events": [{"kind": "PodFailed", "count": 2, "reason": "p-1", "last": "1970-01-01T00:01:00Z"}],
                "attached": [{"name": "addon.log", "size": 12}],
                "activity": ["reading"],
            },
        });
        assert_eq!(
            text(&task, 90),
            "State       Failed for 40s\n\
             Progress    [###############---------------] 3/6\n\
             Kind        analyzer\n\
             Subject     Application/inventory\n\
             Priority    7\n\
             Created     90s ago by ann\n\
             Labels      app=shop\n\
             \n\
             Why\n\
             \x20 exit code 3.\n\
             \x20 It is held back until `muster submit --task` or spec.suspend: false lets it go.\n\
             \n\
             Errors\n\
             \x20 Error: (addon) no such file\\u{1b}[2J\n\
             \n\
             Activity\n\
             \x20 reading\n\
             \n\
             Attempts\n\
             \x20 NO   RUNTIME   STARTED   TOOK   CODE   REASON        ON\n\
             \x20 1    process   70s ago   30s    3      NonZeroExit   p-1\n\
             \n\
             Containers\n\
             \x20 addon\n\
             \n\
             Records\n\
             \x20 LAST      WHAT        TIMES   WHY\n\
             \x20 40s ago   PodFailed   2       p-1\n\
             \n\
             Files\n\
             \x20 addon.log (12 bytes)\n"
        );
    }

    #[test]
    fn long_lines_go_on_further_in() {
        let task = json!({"metadata": {}, "spec": {"name": "one two three four five six seven"}});
        let all = text(&task, 24);
        assert!(all.contains("Title       one two \n".trim_end_matches(" \n")), "{all}");
        assert!(all.lines().all(|line| line.chars().count() <= 24), "{all}");
        assert!(all.contains("\n            "), "{all}");
    }

    #[test]
    fn the_leading_container_stands_first_and_each_one_once() {
        let task = json!({
            "spec": {"containers": [{"name": "side"}, {"name": "main", "leading": true}], "extensions": ["rules"]},
            "status": {
                "events": [{"kind": "ExtensionSelected", "reason": "rules"}, {"kind": "PodCreated", "reason": "x"}],
                "attached": [{"name": "report.csv"}],
            },
        });
        assert_eq!(containers(&task), ["main", "side", "rules"]);
        assert_eq!(containers(&json!({"spec": {"addon": "java"}})), ["addon"]);
        let kept = json!({"spec": {"addon": "java"}, "status": {"attached": [{"name": "java.log"}, {"name": "rules.log"}]}});
        assert_eq!(containers(&kept), ["java", "rules"]);
    }

    #[test]
    fn a_bar_never_grows_beyond_its_width() {
        assert_eq!(bar(5, 10, 4), "[##--] 5/10");
        assert_eq!(bar(20, 10, 4), "[####] 20/10");
        assert_eq!(bar(0, 0, 4), "[----] 0/0");
        assert_eq!(bar(u64::MAX, u64::MAX, 4), "[####] 18446744073709551615/18446744073709551615");
    }
}
