//! Users of a soak: they ask for work through the API at a random pace, and change their minds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use muster_e2e::http::{Answer, Http};
use muster_sim::judge::history::{Request, What};
use serde_json::{Value, json};

use crate::census::{Census, Known};
use crate::recorder::Recorder;
use crate::specs::{KINDS, SUBJECTS, Specs};
use crate::watches::API;

/// Tasks that users hold back at once.
const MOST_HELD: usize = 15;
const MOST_GROUPS: usize = 4;
const MOST_JOBS: usize = 2;
const MOST_SCHEDULES: usize = 8;
/// Between two requests, in milliseconds, at most.
const PACE: u64 = 160;

/// Users. They ask until they are told to end.
pub struct Users {
    pub specs: Specs,
    pub doors: Vec<Http>,
    pub recorder: Recorder,
    pub census: Census,
    pub count: Counted,
    /// Tasks that are open at once; users ask for no more while there are as many.
    pub most_open: usize,
}

/// What users asked for.
#[derive(Clone, Default)]
pub struct Counted {
    /// Requests that were carried out.
    pub done: Arc<AtomicU64>,
    /// Requests that were refused, or of which no more was heard.
    pub failed: Arc<AtomicU64>,
}

impl Users {
    /// Makes what everything else needs: kinds and applications.
    pub fn prepare(&mut self) -> anyhow::Result<()> {
        for (name, needs) in KINDS {
            self.demand("taskkinds", "TaskKind", name, &json!({"dependencies": needs}))?;
        }
        for number in 0..SUBJECTS {
            self.demand("applications", "Application", &format!("a{number}"), &json!({}))?;
        }
        Ok(())
    }

    /// Makes an object, which must succeed.
    pub fn demand(&mut self, plural: &str, kind: &str, name: &str, spec: &Value) -> anyhow::Result<()> {
        let answer = self.create(plural, kind, name, spec);
        let code = answer.as_ref().map_or(0, |answer| answer.code);
        anyhow::ensure!(code == 201, "cannot make {plural} {name}: {:?}", answer.map(|it| it.text()));
        Ok(())
    }

    /// Asks until it is told to end; the users, who may be asked to tidy up.
    pub fn start(mut self, ends: Arc<AtomicBool>) -> JoinHandle<Self> {
        std::thread::spawn(move || {
            let mut number = 0;
            while !ends.load(Ordering::SeqCst) {
                number += 1;
                self.ask(number);
                std::thread::sleep(Duration::from_millis(self.specs.dice.below(PACE)));
            }
            self
        })
    }

    fn ask(&mut self, number: u64) {
        if self.census.open("tasks") < self.most_open {
            for copy in 0..=self.specs.dice.below(2) {
                let mut spec = self.specs.task();
                if self.census.names("tasks", |it| it.is_suspended && !it.is_over()).len() >= MOST_HELD {
                    spec["suspend"] = json!(false);
                }
                self.create("tasks", "Task", &format!("t{number}-{copy}"), &spec);
            }
            if self.specs.dice.once_in(30) && self.census.open("taskgroups") < MOST_GROUPS {
                let spec = self.specs.group();
                self.create("taskgroups", "TaskGroup", &format!("g{number}"), &spec);
            }
            if self.specs.dice.once_in(60) && self.census.open("jobs") < MOST_JOBS {
                let spec = self.specs.job();
                self.create("jobs", "Job", &format!("j{number}"), &spec);
            }
        }
        if self.specs.dice.once_in(40) && self.census.names("schedules", |_| true).len() < MOST_SCHEDULES {
            let spec = self.specs.schedule();
            self.create("schedules", "Schedule", &format!("p{number}"), &spec);
        }
        self.change_minds();
    }

    /// Tasks are canceled, deleted and changed, groups and jobs canceled and suspended, schedules suspended.
    fn change_minds(&mut self) {
        if self.specs.dice.once_in(4) {
            let wanted = |it: &Known| !it.is_over();
            let any = self.specs.dice.once_in(6);
            let Some(name) = self.census.pick(&mut self.specs.dice, "tasks", |it| any || wanted(it)) else {
                return;
            };
            match self.specs.dice.below(6) {
                0 => self.delete("tasks", &name),
                1 => self.patch("tasks", &name, &json!({"cancel": true})),
                2 | 3 => self.submit(),
                _ => {
                    let priority = self.specs.dice.below(6);
                    self.patch("tasks", &name, &json!({"priority": priority}));
                }
            }
        }
        if self.specs.dice.once_in(60) {
            let Some(name) = self.census.pick(&mut self.specs.dice, "taskgroups", |it| !it.is_over()) else {
                return;
            };
            if self.specs.dice.once_in(3) {
                self.patch("taskgroups", &name, &json!({"cancel": true}));
            } else {
                let held = self.census.names("taskgroups", |it| it.is_suspended).contains(&name);
                self.patch("taskgroups", &name, &json!({"suspend": !held}));
            }
        }
        if self.specs.dice.once_in(600) {
            let Some(name) = self.census.pick(&mut self.specs.dice, "schedules", |_| true) else { return };
            let held = self.census.names("schedules", |it| it.is_suspended).contains(&name);
            self.patch("schedules", &name, &json!({"suspend": !held}));
        }
    }

    /// A user's own task that was held back is submitted; members belong to their group.
    fn submit(&mut self) {
        let held = |it: &Known| it.is_suspended && !it.is_owned && !it.is_over();
        if let Some(name) = self.census.pick(&mut self.specs.dice, "tasks", held) {
            self.patch("tasks", &name, &json!({"suspend": false}));
        }
    }

    /// Groups go on, and schedules make nothing more. True if every request was carried out.
    pub fn calm_down(&mut self) -> bool {
        let failed = self.count.failed.load(Ordering::SeqCst);
        for name in self.census.names("taskgroups", |it| it.is_suspended && !it.is_over()) {
            self.patch("taskgroups", &name, &json!({"suspend": false}));
        }
        for name in self.census.names("schedules", |it| !it.is_suspended) {
            self.patch("schedules", &name, &json!({"suspend": true}));
        }
        self.count.failed.load(Ordering::SeqCst) == failed
    }

    fn create(&mut self, plural: &str, kind: &str, name: &str, spec: &Value) -> Option<Answer> {
        let object = json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec,
        });
        self.send("POST", &format!("{API}/{plural}"), "application/json", &object.to_string())
    }

    fn patch(&mut self, plural: &str, name: &str, spec: &Value) {
        let body = json!({ "spec": spec }).to_string();
        self.send("PATCH", &format!("{API}/{plural}/{name}"), "application/merge-patch+json", &body);
    }

    fn delete(&mut self, plural: &str, name: &str) {
        let Some(door) = self.specs.dice.pick(&self.doors).cloned() else { return };
        let answer = delete(&door, &self.recorder, plural, name);
        self.observe(answer.as_ref());
    }

    /// Asks any of the servers. A request that nobody answers is not repeated: users of a server that is gone wait.
    fn send(&mut self, method: &str, path: &str, media: &str, body: &str) -> Option<Answer> {
        let door = self.specs.dice.pick(&self.doors)?.clone();
        let request = door.request(method, path).header("Content-Type", media).body(body);
        let answer = request.try_send().ok();
        self.observe(answer.as_ref());
        answer
    }

    fn observe(&self, answer: Option<&Answer>) {
        let is_done = answer.is_some_and(|answer| (200..300).contains(&answer.code));
        let count = if is_done { &self.count.done } else { &self.count.failed };
        count.fetch_add(1, Ordering::SeqCst);
    }
}

/// Deletes an object, which is written down before.
pub fn delete(door: &Http, recorder: &Recorder, plural: &str, name: &str) -> Option<Answer> {
    let (resource, path) = (format!("{plural}.muster.dev"), format!("default/{name}"));
    recorder.note(What::Asked(Request { verb: "delete".to_owned(), resource, path }));
    door.request("DELETE", &format!("{API}/{plural}/{name}")).try_send().ok()
}
