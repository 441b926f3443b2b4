//! What is known at a moment of a history: every object as it was last committed, and what happens outside.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::PATIENCE;
use super::history::{Commit, Entry, Program, Room, Standing, What};
use super::task::Task;

/// After the store refused, those who decide may wait this long before they try again.
const REFUSED_PAUSE: i64 = 30_000;
/// After the clock jumped, those who decide have this long to find their way.
const JUMP_PAUSE: i64 = 5_000;

/// Where tasks are kept.
pub const TASKS: &str = "tasks.muster.dev";

/// Where subjects are kept.
const APPLICATIONS: &str = "applications.muster.dev";

/// News of an end comes within this time, in milliseconds.
const NEWS: i64 = 15_000;

/// A program that runs.
#[derive(Debug, Clone)]
pub struct Running {
    /// Since when, by the steady clock.
    pub since: i64,
    /// Its robot could not be reached for a while since then.
    pub was_cut_off: bool,
}

/// Everything that is known.
#[derive(Debug, Default)]
pub struct Present {
    /// The steady clock.
    pub at: i64,
    /// How long before that it happened at most.
    pub late: i64,
    /// The clock on the wall.
    pub wall: i64,
    /// The latest time that the clock on the wall showed.
    pub latest_wall: i64,
    /// Every task ever seen, by uid.
    pub tasks: BTreeMap<String, Task>,
    /// Every other object that is there, by resource and path.
    pub objects: BTreeMap<(String, String), Value>,
    /// When applications appeared, by path.
    applications: BTreeMap<String, i64>,
    /// Which kinds wait for which, transitively, and their priority.
    kinds: BTreeMap<String, (BTreeSet<String>, i64)>,
    /// What runs.
    pub programs: BTreeMap<Program, Running>,
    /// How much runs at once as processes.
    pub room: Option<Room>,
    /// Robots that cannot be reached.
    pub cut_off: BTreeSet<String>,
    /// Servers that lead, or believe so, and since when.
    leaders: BTreeMap<String, i64>,
    /// Somebody leads since then.
    pub led_since: Option<i64>,
    /// Nothing that is due may be late from here on, if somebody leads.
    pub calm_from: i64,
    /// The clock on the wall jumped: a server that is started since has another time.
    pub has_jumped: bool,
    /// Since when all is quiet.
    pub quiet_since: Option<i64>,
    /// When something last changed that concerns a subject.
    subjects: BTreeMap<(String, String), i64>,
    /// When a task with an attempt went, or a program of one that is gone ended, by subject: nothing says when an end was heard of.
    unseen: BTreeMap<(String, String), i64>,
    /// When an isolated task was last at work.
    pub isolated_until: i64,
    /// Uids of tasks that are in the queue or at work.
    open: BTreeSet<String>,
    /// Uid of the task that was committed just now.
    pub changed: Option<String>,
    /// Facts that were compared with a promise since somebody counted.
    facts: Cell<u64>,
}

impl Present {
    /// Takes in what happened. A change of a task returns the task as it was before.
    pub fn take_in(&mut self, entry: &Entry) -> Option<Task> {
        (self.at, self.late) = (entry.at, entry.late);
        self.changed = None;
        self.wall = entry.wall;
        self.latest_wall = self.latest_wall.max(entry.wall);
        match &entry.what {
            What::Change(commit) if commit.resource == TASKS => return self.take_task(commit),
            What::Change(commit) => self.take_object(commit),
            What::Started(program) => {
                let cut = self.is_cut_off(&program.place);
                let running = Running { since: self.at, was_cut_off: cut };
                self.programs.insert(program.clone(), running);
            }
            What::Ended(program, _) => {
                self.programs.remove(program);
                self.touch(&program.task);
                let of = self.tasks.get(&program.task).filter(|task| task.gone);
                if let Some(subject) = of.and_then(|task| task.spec.subject.as_ref()) {
                    self.unseen.insert((subject.kind.clone(), subject.name.clone()), self.at);
                }
            }
            What::Server(name, standing) => {
                match standing {
                    Standing::Leads => drop(self.leaders.insert(name.clone(), self.at)),
                    Standing::Paused | Standing::Crashed | Standing::WithoutShepherd => {
                        self.leaders.remove(name);
                    }
                }
                self.led_since = self.leaders.values().max().copied();
            }
            What::Link(robot, connected) => self.take_link(robot, *connected),
            What::ClockJumped(_) => {
                self.has_jumped = true;
                self.calm_from = self.calm_from.max(self.at + JUMP_PAUSE);
            }
            What::StoreRefused => self.calm_from = self.calm_from.max(self.at + REFUSED_PAUSE),
            What::Room(room) => self.room = Some(*room),
            What::Quiet => self.quiet_since = Some(self.at),
            What::Refused(_)
            | What::Admitted(_)
            | What::Kept(_)
            | What::Removed(_)
            | What::Delivered(_)
            | What::Asked(_)
            | What::Faults(_) => {}
        }
        None
    }

    fn take_link(&mut self, robot: &str, connected: bool) {
        if connected {
            self.cut_off.remove(robot);
            return;
        }
        self.cut_off.insert(robot.to_owned());
        let place = format!("robot/{robot}");
        for (_, running) in self.programs.iter_mut().filter(|(program, _)| program.place == place) {
            running.was_cut_off = true;
        }
    }

    fn take_task(&mut self, commit: &Commit) -> Option<Task> {
        let mut task: Task = serde_json::from_str(commit.object.get()).unwrap_or_default();
        let before = self.tasks.remove(&task.metadata.uid);
        task.gone = commit.deleted;
        (task.submitted_at, task.queued_at) = (self.at, self.at);
        (task.attempt_at, task.ranked_at) = (self.at, self.at);
        task.attempt_late = self.late;
        task.attempt_ahead = task.status.prefetched;
        if let Some(before) = &before {
            if before.is_submitted() {
                task.submitted_at = before.submitted_at;
            }
            if before.is_queued() {
                task.queued_at = before.queued_at;
            }
            let same = before.status.attempt == task.status.attempt
                && before.status.prefetched == task.status.prefetched;
            // One that waited at its executor was chosen when it was handed over.
            if same || before.status.prefetched && task.status.attempt == 1 {
                (task.attempt_at, task.attempt_rank) = (before.attempt_at, before.attempt_rank);
                task.attempt_late = before.attempt_late;
                task.attempt_ahead = before.attempt_ahead;
            }
            if before.spec.priority == task.spec.priority {
                task.ranked_at = before.ranked_at;
            }
            task.unwanted_at = before.unwanted_at;
        }
        task.rest_over_at = match (&before, task.rest()) {
            (Some(before), rest) if before.rest() == rest => before.rest_over_at,
            (_, rest) => self.at + rest,
        };
        if task.is_unwanted() {
            task.unwanted_at.get_or_insert(self.at);
        }
        if task.spec.policy.isolated && (task.is_active() || before.as_ref().is_some_and(Task::is_active)) {
            self.isolated_until = self.at;
        }
        let was_active = before.as_ref().is_some_and(Task::is_active);
        if let Some(subject) = task.spec.subject.as_ref().filter(|_| task.gone && was_active) {
            self.unseen.insert((subject.kind.clone(), subject.name.clone()), self.at);
        }
        let uid = task.metadata.uid.clone();
        self.changed = Some(uid.clone());
        if task.is_submitted() {
            self.open.insert(uid.clone());
        } else {
            self.open.remove(&uid);
        }
        // A priority counts for whatever the task waits for.
        let changed = before.as_ref().is_none_or(|before| {
            before.state() != task.state() || before.spec.priority != task.spec.priority || task.gone
        });
        let is_new_attempt = before.as_ref().is_none_or(|it| {
            it.status.attempt != task.status.attempt || it.status.prefetched != task.status.prefetched
        });
        self.tasks.insert(uid.clone(), task);
        if changed {
            self.touch(&uid);
        }
        if is_new_attempt {
            let rank = self.effective_priority(&self.tasks[&uid]);
            if let Some(task) = self.tasks.get_mut(&uid) {
                task.attempt_rank = rank;
            }
        }
        before
    }

    fn take_object(&mut self, commit: &Commit) {
        let key = (commit.resource.clone(), commit.path.clone());
        if commit.deleted {
            self.objects.remove(&key);
        } else {
            self.objects.insert(key, serde_json::from_str(commit.object.get()).unwrap_or_default());
        }
        if commit.resource == APPLICATIONS {
            self.applications.entry(commit.path.clone()).or_insert(self.at);
        }
        if commit.resource == "taskkinds.muster.dev" {
            self.take_kinds();
        }
    }

    fn take_kinds(&mut self) {
        let kinds = self.objects.iter().filter(|((resource, _), _)| resource == "taskkinds.muster.dev");
        let direct: BTreeMap<String, (BTreeSet<String>, i64)> = kinds
            .map(|(_, kind)| {
                let needs = kind["spec"]["dependencies"].as_array().into_iter().flatten();
                let needs = needs.filter_map(Value::as_str).map(str::to_owned).collect();
                let name = kind["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                (name, (needs, kind["spec"]["priority"].as_i64().unwrap_or(0)))
            })
            .collect();
        self.kinds = direct.clone();
        for (all, _) in self.kinds.values_mut() {
            let mut open: Vec<String> = all.iter().cloned().collect();
            while let Some(kind) = open.pop() {
                for more in direct.get(&kind).into_iter().flat_map(|(needs, _)| needs) {
                    if all.insert(more.clone()) {
                        open.push(more.clone());
                    }
                }
            }
        }
    }

    /// Something changed that concerns the subject of a task.
    fn touch(&mut self, uid: &str) {
        let Some(task) = self.tasks.get(uid) else { return };
        if let Some(subject) = &task.spec.subject {
            self.subjects.insert((subject.kind.clone(), subject.name.clone()), self.at);
        }
    }

    /// Nothing happened to the subject of a task for so long.
    pub fn subject_rests_since(&self, task: &Task) -> i64 {
        let Some(subject) = &task.spec.subject else { return 0 };
        let subject = (subject.kind.clone(), subject.name.clone());
        let unseen = self.unseen.get(&subject).map_or(0, |at| (*at).max(self.led_since.unwrap_or(0)) + NEWS);
        self.subjects.get(&subject).copied().unwrap_or(0).max(unseen)
    }

    /// A statement compares a fact with its promise.
    pub fn compared(&self) {
        self.facts.set(self.facts.get() + 1);
    }

    /// How many facts were compared since this was last asked.
    pub fn take_facts(&self) -> u64 {
        self.facts.take()
    }

    /// Since when everything is there that a task names; `None` if it is not. A history without subjects says nothing of them.
    pub fn names_exist_since(&self, task: &Task) -> Option<i64> {
        let subject = task.spec.subject.as_ref().filter(|subject| subject.kind == "Application");
        let Some(subject) = subject.filter(|_| !self.applications.is_empty()) else { return Some(0) };
        self.applications.get(&format!("{}/{}", task.metadata.namespace, subject.name)).copied()
    }

    /// Tasks that are in the queue or at work.
    pub fn open(&self) -> impl Iterator<Item = &Task> {
        self.open.iter().filter_map(|uid| self.tasks.get(uid))
    }

    /// Somebody led for so long, and nothing disturbed it.
    pub fn calm_for(&self, millis: i64) -> bool {
        self.led_since.is_some_and(|since| self.at.saturating_sub(since.max(self.calm_from)) > millis)
    }

    /// True if a robot cannot be reached.
    pub fn is_cut_off(&self, place: &str) -> bool {
        place.strip_prefix("robot/").is_some_and(|robot| self.cut_off.contains(robot))
    }

    /// True if a kind waits for another.
    pub fn needs(&self, kind: &str, other: &str) -> bool {
        self.kinds.get(kind).is_some_and(|(needs, _)| needs.contains(other))
    }

    /// True if a task waits for another, should that not have ended.
    pub fn depends(&self, task: &Task, other: &Task) -> bool {
        task.spec.subject.is_some()
            && task.spec.subject == other.spec.subject
            && task.metadata.namespace == other.metadata.namespace
            && task.metadata.uid != other.metadata.uid
            && self.needs(&task.spec.kind, &other.spec.kind)
    }

    /// The priority that was asked for.
    pub fn priority(&self, task: &Task) -> i64 {
        let of_kind = || self.kinds.get(&task.spec.kind).map_or(0, |(_, priority)| *priority);
        task.spec.priority.unwrap_or_else(of_kind)
    }

    /// The priority, raised by whatever waits for the task.
    pub fn effective_priority(&self, task: &Task) -> i64 {
        self.priority_lent(task, self.at)
    }

    /// The same as whoever decides knows it at least: what began to wait for the task a moment ago may not have been seen.
    pub fn known_priority(&self, task: &Task) -> i64 {
        self.priority_lent(task, self.at - PATIENCE)
    }

    fn priority_lent(&self, task: &Task, until: i64) -> i64 {
        let own = self.priority(task);
        if task.spec.subject.is_none() {
            return own;
        }
        let lends = |other: &&Task| {
            other.is_queued() && other.queued_at.max(other.ranked_at) <= until && self.depends(other, task)
        };
        self.open().filter(lends).map(|other| self.priority(other)).fold(own, i64::max)
    }

    /// Programs that run where they can be reached, with their tasks.
    pub fn reachable_programs(&self) -> impl Iterator<Item = (&Program, &Running, &Task)> {
        let known = self.programs.iter().filter(|(_, running)| !running.was_cut_off);
        known.filter_map(|(program, running)| Some((program, running, self.tasks.get(&program.task)?)))
    }

    /// Other objects of a resource.
    pub fn all<'a>(&'a self, resource: &'a str) -> impl Iterator<Item = &'a Value> {
        let from = (resource.to_owned(), String::new());
        self.objects.range(from..).take_while(move |((it, _), _)| it == resource).map(|(_, object)| object)
    }

    /// One other object.
    pub fn object(&self, resource: &str, path: &str) -> Option<&Value> {
        self.objects.get(&(resource.to_owned(), path.to_owned()))
    }
}
