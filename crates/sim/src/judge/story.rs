//! Small histories written by hand, for the tests of statements. Tasks are in namespace `d`, and their uid is their name.

use std::collections::BTreeMap;

use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::history::{Commit, Delivery, Entry, Program, Room, Standing, What};
use super::judge;
use super::present::TASKS;

/// When every story begins, in milliseconds since 1970: a whole minute.
pub const START: i64 = 1_800_000_000_000;

/// A history in the making. It begins with a server that leads for long.
pub struct Story {
    at: i64,
    /// How late what happens is noted.
    late: i64,
    set_back: i64,
    entries: Vec<Entry>,
    tasks: BTreeMap<String, Value>,
}

impl Story {
    pub fn new() -> Self {
        let mut story = Self { at: 0, late: 0, set_back: 0, entries: Vec::new(), tasks: BTreeMap::new() };
        story.happen(What::Server("a".into(), Standing::Leads));
        story.at = 1_000_000;
        story
    }

    fn happen(&mut self, what: What) -> &mut Self {
        let wall = START + (self.at - 1_000_000).max(0) - self.set_back;
        self.entries.push(Entry { at: self.at, wall, late: self.late, what });
        self
    }

    /// From here on, everything is noted so much later than it happened.
    pub fn late(&mut self, millis: i64) -> &mut Self {
        self.late = millis;
        self
    }

    /// The clock on the wall is set back.
    pub fn set_back(&mut self, millis: i64) -> &mut Self {
        self.set_back += millis;
        self.happen(What::ClockJumped(-millis))
    }

    pub fn wait(&mut self, millis: i64) -> &mut Self {
        self.at += millis;
        self
    }

    #[allow(clippy::needless_pass_by_value, reason = "stories write the object in place")]
    pub fn object(&mut self, resource: &str, path: &str, object: Value) -> &mut Self {
        self.commit(resource, path, &object, false)
    }

    fn commit(&mut self, resource: &str, path: &str, object: &Value, deleted: bool) -> &mut Self {
        let object = to_raw_value(object).unwrap();
        let revision = self.entries.len() as u64;
        let (resource, path) = (resource.to_owned(), path.to_owned());
        self.happen(What::Change(Commit { revision, resource, path, deleted, object }))
    }

    /// A task as it is.
    pub fn write(&mut self, task: &Value) -> &mut Self {
        let name = task["metadata"]["name"].as_str().unwrap().to_owned();
        self.tasks.insert(name.clone(), task.clone());
        self.commit(TASKS, &format!("d/{name}"), task, false)
    }

    fn change(&mut self, name: &str, part: &str, value: Value) -> &mut Self {
        let new = || json!({"metadata": {"name": name, "namespace": "d", "uid": name}});
        let mut task = self.tasks.get(name).cloned().unwrap_or_else(new);
        task[part] = value;
        self.write(&task)
    }

    /// A task is asked for, or asked for differently.
    pub fn spec(&mut self, name: &str, spec: Value) -> &mut Self {
        self.change(name, "spec", spec)
    }

    pub fn status(&mut self, name: &str, status: Value) -> &mut Self {
        self.change(name, "status", status)
    }

    pub fn task(&mut self, name: &str, state: &str, attempt: u32) -> &mut Self {
        self.status(name, json!({"state": state, "attempt": attempt}))
    }

    pub fn delete(&mut self, name: &str) -> &mut Self {
        let task = self.tasks.remove(name).unwrap();
        self.commit(TASKS, &format!("d/{name}"), &task, true)
    }

    pub fn kind(&mut self, name: &str, needs: &[&str]) -> &mut Self {
        let kind = json!({"metadata": {"name": name}, "spec": {"dependencies": needs}});
        self.object("taskkinds.muster.dev", &format!("d/{name}"), kind)
    }

    pub fn room(&mut self, slots: u64, memory: Option<u64>) -> &mut Self {
        self.happen(What::Room(Room { slots, memory }))
    }

    pub fn started(&mut self, task: &str, attempt: u32) -> &mut Self {
        self.started_at(task, attempt, "server/a")
    }

    pub fn started_at(&mut self, task: &str, attempt: u32, place: &str) -> &mut Self {
        self.happen(What::Started(program(task, attempt, place)))
    }

    pub fn refused_by_quota(&mut self, task: &str, attempt: u32) -> &mut Self {
        self.happen(What::Refused(program(task, attempt, "cluster/c")))
    }

    pub fn admitted(&mut self, task: &str, attempt: u32) -> &mut Self {
        self.happen(What::Admitted(program(task, attempt, "cluster/c")))
    }

    pub fn ended(&mut self, task: &str, attempt: u32, exit: i32) -> &mut Self {
        self.happen(What::Ended(program(task, attempt, "server/a"), Some(exit)))
    }

    pub fn kept(&mut self, task: &str, attempt: u32) -> &mut Self {
        self.happen(What::Kept(program(task, attempt, "server/a")))
    }

    pub fn removed(&mut self, task: &str, attempt: u32) -> &mut Self {
        self.happen(What::Removed(program(task, attempt, "server/a")))
    }

    pub fn link(&mut self, robot: &str, connected: bool) -> &mut Self {
        self.happen(What::Link(robot.to_owned(), connected))
    }

    pub fn crashed(&mut self) -> &mut Self {
        self.happen(What::Server("a".into(), Standing::Crashed))
    }

    pub fn refused(&mut self) -> &mut Self {
        self.happen(What::StoreRefused)
    }

    pub fn gone(&mut self, resource: &str, path: &str, object: &Value) -> &mut Self {
        self.commit(resource, path, object, true)
    }

    pub fn quiet(&mut self) -> &mut Self {
        self.happen(What::Quiet)
    }

    pub fn delivered(&mut self, sink: &str, about: &str, word: &str) -> &mut Self {
        let (sink, about) = (sink.to_owned(), about.to_owned());
        let (id, topic) = (format!("{about}/{word}"), format!("cds.job.{word}"));
        self.happen(What::Delivered(Delivery { sink, id, about, topic }))
    }

    /// How a statement was broken.
    pub fn broken(&self, statement: &str) -> Vec<String> {
        let findings = judge(&self.entries).into_iter().filter(|finding| finding.statement == statement);
        findings.map(|finding| finding.words).collect()
    }
}

fn program(task: &str, attempt: u32, place: &str) -> Program {
    Program { task: task.to_owned(), attempt, place: place.to_owned() }
}

#[test]
fn facts_are_counted_by_the_statement_that_compared_them() {
    let mut story = Story::new();
    story.task("a", "Running", 1).started("a", 1).ended("a", 1, 0).task("a", "Succeeded", 1);
    let facts = super::judge_and_count(&story.entries).facts;
    assert_eq!(facts["one_running_attempt_per_task"], 2);
    assert_eq!(facts["terminal_is_final"], 1);
    assert_eq!(facts["unique"], 0, "it has no subject");
}

#[test]
fn a_history_survives_as_lines_of_json() {
    let mut story = Story::new();
    story.task("a", "Running", 1).started("a", 1).started("a", 2).quiet();
    let lines = super::history::to_lines(&story.entries).unwrap();
    let read = super::history::of_lines(&lines).unwrap();
    assert_eq!(judge(&read), judge(&story.entries));
    assert!(!judge(&read).is_empty());
}
