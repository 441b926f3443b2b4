//! What users ask for, and how they change their minds.

use muster_ports::clock::{Clock as _, Millis};
use muster_ports::store::{Batch, Draft, Key, Precondition, ResourceName, Write};
use muster_tasks::brief::hold_deleted;
use muster_types::application::ApplicationSpec;
use muster_types::{Job, Object, State, Task, TaskGroup, TaskKind};
use muster_workflows::departure::COUNTED;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::World;
use crate::dice::Dice;
use crate::fake_cluster::RARE;
use crate::fake_runtime::{ALWAYS_FAILS, MEMORY, NEVER_ENDS};
use crate::judge::history::{Request, What};

/// Where everything is.
const NAMESPACE: &str = "d";
/// Tasks that users ask for in one seed.
const TASKS: u64 = 40;
/// Applications that tasks are about.
const SUBJECTS: u64 = 4;
const GROUPS: u64 = 4;
const JOBS: u64 = 2;

/// How much was asked for.
#[derive(Debug, Default)]
pub struct Users {
    tasks: u64,
    groups: u64,
    jobs: u64,
    /// One task in so many never ends by itself.
    endless: u64,
}

impl Users {
    pub fn new(dice: &mut Dice) -> Self {
        Self { endless: if dice.once_in(3) { 4 } else { 20 }, ..Self::default() }
    }
}

impl World {
    pub(super) async fn declare_kinds(&mut self) -> Result<(), String> {
        let kinds =
            [("discover", json!([])), ("analyze", json!(["discover"])), ("report", json!(["analyze"]))];
        for (name, dependencies) in kinds {
            let kind = self.object("TaskKind", name, 0, &json!({"dependencies": dependencies}));
            self.create::<TaskKind>("taskkinds", kind).await?;
        }
        for number in 0..SUBJECTS {
            let application = self.object("Application", &format!("a{number}"), 0x100 + number, &json!({}));
            self.create::<Object<ApplicationSpec>>("applications", application).await?;
        }
        Ok(())
    }

    /// An object as the API makes it.
    pub(super) fn object(&self, kind: &str, name: &str, uid: u64, spec: &Value) -> Value {
        // Schedules follow the clock on the wall.
        let made = if kind == "Schedule" { self.clock.wall() } else { self.now() };
        json!({
            "apiVersion": "muster.dev/v1alpha1",
            "kind": kind,
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "uid": format!("00000000-0000-7000-8000-{uid:012x}"),
                "generation": 1,
                "creationTimestamp": made.to_timestamp(),
            },
            "spec": spec,
        })
    }

    pub(super) async fn create<T: Serialize + DeserializeOwned>(
        &self,
        plural: &str,
        object: Value,
    ) -> Result<(), String> {
        self.put::<T>(plural, object, Precondition::Absent).await
    }

    /// Stores an object. Whoever was faster is not overwritten, and a store that takes nothing is left alone.
    pub(super) async fn put<T: Serialize + DeserializeOwned>(
        &self,
        plural: &str,
        mut object: Value,
        expect: Precondition,
    ) -> Result<(), String> {
        object["metadata"]["resourceVersion"] = json!("");
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let object: T = serde_json::from_value(object).map_err(|error| format!("{name}: {error}"))?;
        self.put_typed(key(plural, &name), &object, expect).await
    }

    /// The same with an object that has no resource version.
    pub(super) async fn put_typed<T: Serialize>(
        &self,
        key: Key,
        object: &T,
        expect: Precondition,
    ) -> Result<(), String> {
        let json = serde_json::to_vec(object).map_err(|error| error.to_string())?;
        let draft = Draft::of_object(json).ok_or("no place for the revision")?;
        // Whoever asked hears of a refusal, and may ask again.
        drop(self.store.commit(Batch::of(Write::Put { key, expect, draft })).await);
        Ok(())
    }

    /// Changes an object, if it is there. What users ask for makes a new generation.
    pub(super) async fn patch<T: Serialize + DeserializeOwned>(
        &self,
        plural: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<(), String> {
        let Some(stored) = self.store.get(&key(plural, name)) else { return Ok(()) };
        let mut object: Value = serde_json::from_slice(stored.json()).map_err(|error| error.to_string())?;
        let before = object.clone();
        change(&mut object);
        if object == before {
            return Ok(());
        }
        if object["spec"] != before["spec"] {
            object["metadata"]["generation"] =
                json!(object["metadata"]["generation"].as_i64().unwrap_or(1) + 1);
        }
        self.put::<T>(plural, object, Precondition::At(stored.revision)).await
    }

    pub(super) fn names(&self, plural: &str) -> Vec<String> {
        let stored = self.store.snapshot(&resource(plural));
        stored.range(None, None).map(|stored| stored.name().to_owned()).collect()
    }

    /// Names of objects in whose JSON something stands.
    fn names_with(&self, plural: &str, words: &str) -> Vec<String> {
        let stored = self.store.snapshot(&resource(plural));
        let says = |json: &[u8]| std::str::from_utf8(json).is_ok_and(|json| json.contains(words));
        let met = stored.range(None, None).filter(|stored| says(stored.json()));
        met.map(|stored| stored.name().to_owned()).collect()
    }

    pub(super) fn all(&self, plural: &str) -> Vec<Value> {
        let stored = self.store.snapshot(&resource(plural));
        stored.range(None, None).filter_map(|stored| serde_json::from_slice(stored.json()).ok()).collect()
    }

    /// Users ask for something.
    pub(super) async fn ask(&mut self) -> Result<(), String> {
        if self.users.tasks < TASKS && self.dice.once_in(2) {
            for _ in 0..=self.dice.below(2) {
                let mut spec = self.task_spec();
                if self.dice.once_in(self.users.endless) {
                    spec["container"]["command"] = json!([NEVER_ENDS]);
                }
                self.create_task(&spec).await?;
            }
        }
        if self.users.tasks < TASKS && self.dice.once_in(20) {
            self.create_chain().await?;
        }
        if self.dice.once_in(50) {
            let late = self.object("Application", &format!("a{SUBJECTS}"), 0x100 + SUBJECTS, &json!({}));
            self.create::<Object<ApplicationSpec>>("applications", late).await?;
        }
        if self.users.groups < GROUPS && self.dice.once_in(12) {
            self.users.groups += 1;
            let spec = self.group_spec();
            let number = self.users.groups;
            let group = self.object("TaskGroup", &format!("g{number}"), 0x2000 + number, &spec);
            self.create::<TaskGroup>("taskgroups", group).await?;
        }
        if self.users.jobs < JOBS && self.dice.once_in(25) {
            self.users.jobs += 1;
            let spec = self.job_spec();
            let number = self.users.jobs;
            let job = self.object("Job", &format!("j{number}"), 0x3000 + number, &spec);
            self.create::<Job>("jobs", job).await?;
        }
        self.ask_schedules().await?;
        self.ask_managed().await?;
        self.ask_sinks().await?;
        self.change_minds().await
    }

    async fn create_task(&mut self, spec: &Value) -> Result<(), String> {
        self.users.tasks += 1;
        let number = self.users.tasks;
        let state = if spec["suspend"] == true { "Created" } else { "Ready" };
        let mut task = self.object("Task", &format!("t{number:03}"), 0x1000 + number, spec);
        task["status"] = json!({"state": state, "stateSince": task["metadata"]["creationTimestamp"]});
        self.create::<Task>("tasks", task).await
    }

    /// A task that may preempt, and one that it waits for, which may not by itself.
    async fn create_chain(&mut self) -> Result<(), String> {
        let subject = json!({"kind": "Application", "name": format!("a{}", self.dice.below(SUBJECTS))});
        let container = json!({"command": ["true"]});
        let first = json!({"kind": "discover", "subject": subject, "container": container});
        let policy = json!({"preemptEnabled": true});
        let then = json!({"kind": "analyze", "subject": subject, "container": container, "priority": 9, "policy": policy});
        self.create_task(&first).await?;
        self.create_task(&then).await
    }

    fn task_spec(&mut self) -> Value {
        let dice = &mut self.dice;
        let kinds = ["discover", "analyze", "report"];
        let kind = dice.pick(&kinds).copied().unwrap_or("discover");
        let mut spec = json!({
            "kind": kind,
            "container": {"command": ["true"]},
            "priority": dice.below(5),
            "retry": {"limit": 2, "lostLimit": 50},
        });
        if !dice.once_in(3) {
            // One of them appears late.
            let subjects = if dice.once_in(20) { SUBJECTS + 1 } else { SUBJECTS };
            spec["subject"] = json!({"kind": "Application", "name": format!("a{}", dice.below(subjects))});
        }
        if dice.once_in(25) {
            spec["policy"]["isolated"] = json!(true);
        }
        if dice.once_in(3) {
            spec["policy"]["preemptEnabled"] = json!(true);
        }
        if dice.once_in(6) {
            spec["policy"]["preemptExempt"] = json!(true);
        }
        if dice.once_in(15) {
            spec["suspend"] = json!(true);
        }
        for state in ["created", "pending", "running", "succeeded", "failed"] {
            if dice.once_in(12) {
                let unit = if dice.once_in(2) { 30 } else { 3 };
                spec["ttl"][state] = json!(format!("{}s", unit * (dice.below(20) + 1)));
            }
        }
        if dice.once_in(8) {
            spec["restart"] = json!({"attempts": dice.below(3)});
            spec["reschedule"] = json!({"attempts": dice.below(3), "delay": "1s", "maxDelay": "2s"});
        }
        if dice.once_in(12) {
            // It fails as often as it may.
            spec["container"]["command"] = json!([ALWAYS_FAILS]);
            spec["retry"]["on"] = json!(["NonZeroExit"]);
        }
        match dice.below(20) {
            0..=3 => self.make_robotic(&mut spec),
            4..=6 => self.make_pod(&mut spec),
            7..=9 => spec["resources"]["memory"] = json!((dice.below(MEMORY) + 1).to_string()),
            _ => {}
        }
        spec
    }

    fn make_pod(&mut self, spec: &mut Value) {
        spec["runtime"] = json!("pod");
        spec["container"]["image"] = json!("i");
        if self.dice.once_in(4) {
            spec["pod"] = json!({"nodeSelector": {RARE: "yes"}});
        }
    }

    fn make_robotic(&mut self, spec: &mut Value) {
        let dice = &mut self.dice;
        spec["runtime"] = json!("robot");
        if dice.once_in(15) {
            // No robot could ever take it.
            spec["targetRobot"] = json!("nowhere");
            spec["policy"]["isolated"] = json!(true);
            spec["ttl"]["pending"] = json!("2m");
            return;
        }
        if dice.once_in(2) {
            let zone = if dice.once_in(2) { "even" } else { "odd" };
            spec["robotSelector"] = json!({"zone": zone});
        }
        if dice.once_in(2) {
            let reconcile = if dice.once_in(3) { "keepReplacement" } else { "keepOriginal" };
            spec["disconnect"] = json!({"reconcile": reconcile});
            if dice.once_in(2) {
                spec["disconnect"]["lostAfter"] = json!("10s");
            }
        }
    }

    fn group_spec(&mut self) -> Value {
        let count = 2 + self.dice.below(3);
        let tasks: Vec<Value> = (0..count).map(|_| json!({"spec": self.member_spec()})).collect();
        match self.dice.below(3) {
            0 => json!({"mode": "pipeline", "tasks": tasks}),
            1 => json!({"mode": "batch", "tasks": tasks}),
            _ => {
                let count = 1 + self.dice.below(6);
                json!({"count": count, "parallelism": 2, "tasks": [{"spec": self.member_spec()}]})
            }
        }
    }

    /// A member waits for nobody for ever: it is no other's dependency that a user suspends.
    fn member_spec(&mut self) -> Value {
        let mut spec = self.task_spec();
        if let Some(spec) = spec.as_object_mut() {
            spec.remove("suspend");
        }
        if self.dice.once_in(8) {
            // Not for one that waits for its turn.
            spec["ttl"]["created"] = json!("4s");
        }
        spec
    }

    fn job_spec(&mut self) -> Value {
        let mut groups = Vec::new();
        for place in 0..2 + self.dice.below(3) {
            let mut group = self.group_spec();
            group["name"] = json!(format!("g{place}"));
            let needs: Vec<String> =
                (0..place).filter(|_| self.dice.once_in(2)).map(|earlier| format!("g{earlier}")).collect();
            if !needs.is_empty() {
                group["dependsOn"] = json!(needs);
                let whens = ["succeeded", "succeeded", "failed", "completed"];
                group["when"] = json!(self.dice.pick(&whens));
            }
            groups.push(group);
        }
        let mut spec = json!({"taskGroups": groups});
        if self.dice.once_in(3) {
            spec["failurePolicy"] = json!("stop");
        }
        spec
    }

    /// Tasks are canceled, deleted and changed, groups and jobs canceled and suspended, schedules suspended.
    async fn change_minds(&mut self) -> Result<(), String> {
        // One that makes way for another; and one whose server stands still.
        let (stops, stands) = (self.dice.once_in(3), self.leader().is_none() && self.dice.once_in(3));
        let met = match (stops, stands) {
            (true, _) => self.names_with("tasks", "\"stopping\":\"Preempted\""),
            (_, true) => self.names_with("tasks", "\"state\":\"Running\""),
            _ => Vec::new(),
        };
        if let Some(name) = self.dice.pick(&met).cloned() {
            if self.dice.once_in(2) {
                self.delete_task(&name).await?;
            } else {
                self.patch::<Task>("tasks", &name, cancel).await?;
            }
        }
        if self.dice.once_in(5) {
            let names = self.names("tasks");
            let Some(name) = self.dice.pick(&names).cloned() else { return Ok(()) };
            match self.dice.below(6) {
                0 => self.delete_task(&name).await?,
                1 | 2 => self.patch::<Task>("tasks", &name, cancel).await?,
                3 => self.patch::<Task>("tasks", &name, submit).await?,
                _ => {
                    let priority = self.dice.below(6);
                    let change = |task: &mut Value| {
                        if task["status"]["state"].as_str().is_none_or(|state| state == "Ready") {
                            task["spec"]["priority"] = json!(priority);
                        }
                    };
                    self.patch::<Task>("tasks", &name, change).await?;
                }
            }
        }
        if self.dice.once_in(20) {
            let names = self.names("taskgroups");
            let Some(name) = self.dice.pick(&names).cloned() else { return Ok(()) };
            let word = if self.dice.once_in(3) { "cancel" } else { "suspend" };
            let toggle = |group: &mut Value| {
                let on = word == "cancel" || group["spec"]["suspend"] != true;
                group["spec"][word] = json!(on);
            };
            self.patch::<TaskGroup>("taskgroups", &name, toggle).await?;
        }
        if self.dice.once_in(30) {
            let names = self.names("jobs");
            let Some(name) = self.dice.pick(&names).cloned() else { return Ok(()) };
            let word = if self.dice.once_in(4) { "cancel" } else { "suspend" };
            let toggle = |job: &mut Value| {
                let on = word == "cancel" || job["spec"]["suspend"] != true;
                job["spec"][word] = json!(on);
            };
            self.patch::<Job>("jobs", &name, toggle).await?;
        }
        Ok(())
    }

    /// As the API does: what has a finalizer is marked, and so is what runs; anything else goes at once.
    async fn delete_task(&mut self, name: &str) -> Result<(), String> {
        let Some(stored) = self.store.get(&key("tasks", name)) else { return Ok(()) };
        let mut task: Task = serde_json::from_slice(stored.json()).map_err(|error| error.to_string())?;
        let (resource, path) = ("tasks.muster.dev".to_owned(), format!("{NAMESPACE}/{name}"));
        self.recorder.note(What::Asked(Request { verb: "delete".to_owned(), resource, path }));
        hold_deleted(&mut task);
        // A member that has ended is deleted by its group.
        let is_member = task.metadata.owner_references.iter().any(|owner| {
            owner.kind == "TaskGroup" && self.store.get(&key("taskgroups", &owner.name)).is_some()
        });
        let finalizers = &mut task.metadata.finalizers;
        if task.status.state.is_some_and(State::is_terminal)
            && is_member
            && !finalizers.iter().any(|it| it == COUNTED)
        {
            finalizers.push(COUNTED.to_owned());
        }
        if !finalizers.is_empty() {
            let now = self.now().to_timestamp();
            let mark = |stored: &mut Value| {
                stored["metadata"]["deletionTimestamp"] = json!(now);
                stored["metadata"]["finalizers"] = json!(task.metadata.finalizers);
            };
            return self.patch::<Task>("tasks", name, mark).await;
        }
        let gone = Write::Delete { key: key("tasks", name), expect: Precondition::At(stored.revision) };
        drop(self.store.commit(Batch::of(gone)).await);
        Ok(())
    }

    /// From here on nobody asks for anything, and nothing goes wrong.
    pub(super) async fn calm_down(&mut self) -> Result<(), String> {
        self.is_quiet = true;
        self.fate.refuse(0);
        self.fate.set_full(false);
        self.notice_fate()?;
        self.fate.revive();
        self.fleet.reconnect_all();
        self.cluster.calm_down();
        for server in &self.servers {
            server.machine.cut_off_logs(Millis(0));
        }
        self.calm_sinks().await?;
        self.resume_all().await?;
        self.cancel_much().await?;
        self.recorder.note(What::Quiet);
        Ok(())
    }

    /// Half of what is there is not wanted any more, nor is what does not end by itself.
    async fn cancel_much(&mut self) -> Result<(), String> {
        for name in self.names("jobs") {
            if self.dice.once_in(2) {
                self.patch::<Job>("jobs", &name, cancel).await?;
            }
        }
        for name in self.names("taskgroups") {
            if self.dice.once_in(2) {
                self.patch::<TaskGroup>("taskgroups", &name, cancel).await?;
            }
        }
        let endless = self.names_with("tasks", &format!("[\"{NEVER_ENDS}\"]"));
        for name in self.names("tasks") {
            if endless.contains(&name) || self.dice.once_in(2) {
                self.patch::<Task>("tasks", &name, cancel).await?;
            }
        }
        Ok(())
    }

    /// Groups and jobs go on, and schedules make nothing more.
    async fn resume_all(&mut self) -> Result<(), String> {
        for group in self.all("taskgroups").iter().filter(|group| group["spec"]["suspend"] == true) {
            let name = group["metadata"]["name"].as_str().unwrap_or_default();
            self.patch::<TaskGroup>("taskgroups", name, |it| it["spec"]["suspend"] = json!(false)).await?;
        }
        for job in self.all("jobs").iter().filter(|job| job["spec"]["suspend"] == true) {
            let name = job["metadata"]["name"].as_str().unwrap_or_default();
            self.patch::<Job>("jobs", name, |it| it["spec"]["suspend"] = json!(false)).await?;
        }
        self.calm_schedules().await
    }

    /// Every task that was submitted has ended, and every job and group.
    pub(super) fn all_ended(&self) -> bool {
        let is_over = |object: &Head, waits: bool| match object.status.state.as_str() {
            "Succeeded" | "Failed" | "Canceled" | "Skipped" => true,
            // A user's own that was never submitted stays so.
            _ => waits && object.spec.suspend,
        };
        ["jobs", "taskgroups", "tasks"].into_iter().all(|plural| {
            let stored = self.store.snapshot(&resource(plural));
            let mut heads = stored.range(None, None).map(|it| serde_json::from_slice::<Head>(it.json()));
            heads.all(|head| {
                head.is_ok_and(|it| is_over(&it, plural == "tasks" && it.metadata.owner_references.is_none()))
            })
        })
    }
}

/// As much of an object as says whether it has ended.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    metadata: HeadMetadata,
    spec: HeadSpec,
    status: HeadStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct HeadMetadata {
    owner_references: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HeadSpec {
    suspend: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HeadStatus {
    state: String,
}

fn cancel(task: &mut Value) {
    let over = matches!(task["status"]["state"].as_str(), Some("Succeeded" | "Failed" | "Canceled"));
    if !over {
        task["spec"]["cancel"] = json!(true);
    }
}

/// A user's own task is submitted; members belong to their group.
fn submit(task: &mut Value) {
    if task["metadata"]["ownerReferences"].is_null() && task["spec"]["suspend"] == true {
        task["spec"]["suspend"] = json!(false);
    }
}

fn resource(plural: &str) -> ResourceName {
    let group = if plural == "clusters" { "resources.muster.dev" } else { "muster.dev" };
    ResourceName::new(&format!("{plural}.{group}"))
}

pub fn key(plural: &str, name: &str) -> Key {
    let namespace = if plural == "resourcetypes" { "" } else { NAMESPACE };
    Key::new(&resource(plural), namespace, name)
}
