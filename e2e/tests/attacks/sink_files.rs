//! EventSinks that aim at files outside of `sinks` in the data directory, above all at the store, and users who may not make any.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use muster_e2e::http::{Answer, Http};
use muster_e2e::server::Server;
use muster_e2e::wait::wait_for;
use muster_ports::clock::SystemClock;
use muster_ports::store::{Batch, Draft, History, Key, Precondition, ResourceName, Store, Write};
use muster_store_sql::SqliteLog;
use serde_json::{Value, json};

const API: &str = "/apis/muster.dev/v1alpha1";
const SINKS: &str = "/apis/muster.dev/v1alpha1/namespaces/default/eventsinks";
const TASKS: &str = "/apis/muster.dev/v1alpha1/namespaces/default/tasks";
/// A sink whose server was killed waits for its lease.
const LONG: Duration = Duration::from_mins(2);
const PRECIOUS: &str = "nobody may change this";

/// A server with a sink that writes to `sinks`, and a file beside the store that must stay as it is.
struct Scene {
    server: Server,
    tasks: usize,
}

impl Scene {
    fn new() -> Self {
        let scene = Self { server: Server::start(&["--roles", "api,relay"]), tasks: 0 };
        fs::write(scene.server.data().join("precious"), PRECIOUS).expect("a file can be written");
        assert_eq!(scene.make("audit", &json!({"path": "audit.jsonl"})).code, 201);
        scene
    }

    fn make(&self, name: &str, file: &Value) -> Answer {
        self.server.http().post(SINKS, &sink(name, file).to_string())
    }

    fn condition(&self, name: &str) -> Value {
        let sink = self.server.http().get(&format!("{SINKS}/{name}")).json();
        let conditions = sink["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|one| one["type"] == "Connected").unwrap_or_default()
    }

    /// Has something told, and waits until the sink that is in order was told.
    #[track_caller]
    fn tell(&mut self) {
        self.tasks += 1;
        let name = format!("told-{}", self.tasks);
        let task = object("Task", &name, &json!({"container": {"command": ["true"]}}));
        let answer = self.server.http().post(TASKS, &task.to_string());
        assert_eq!(answer.code, 201, "{}", answer.text());
        let audit = self.server.data().join("sinks/audit.jsonl");
        wait_for("the other sink to be told", LONG, || {
            fs::read_to_string(&audit).is_ok_and(|text| text.contains(&name))
        });
    }

    /// The server goes on, nothing it keeps was touched, and all of it is there after the server was killed.
    #[track_caller]
    fn assert_unharmed(mut self) {
        self.tell();
        self.server.kill();
        self.server.restart();
        self.tell();
        let listed = self.server.http().get(TASKS).json();
        assert_eq!(listed["items"].as_array().map(Vec::len), Some(self.tasks), "{listed}");
        let precious = fs::read_to_string(self.server.data().join("precious"));
        assert_eq!(precious.ok().as_deref(), Some(PRECIOUS));
    }
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "muster.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn sink(name: &str, file: &Value) -> Value {
    object("EventSink", name, &json!({"file": file}))
}

/// Gives a stored sink another file, as only a server of a former version could have stored it.
fn store_path(database: &Path, name: &str, file: &Value) {
    let log = SqliteLog::open(database).expect("the database of a server that was stopped can be opened");
    let store = Store::open(log, History::default(), SystemClock).expect("a store");
    let key = Key::new(&ResourceName::new("eventsinks.muster.dev"), "default", name);
    let stored = store.get(&key).expect("the sink is stored");
    let mut sink: Value = serde_json::from_slice(stored.json()).expect("it is JSON");
    sink["metadata"]["resourceVersion"] = json!("");
    sink["spec"]["file"] = file.clone();
    let draft = Draft::of_object(sink.to_string().into_bytes()).expect("a place for the revision");
    let write = Write::Put { key, expect: Precondition::At(stored.revision), draft };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(store.commit(Batch::of(write))).expect("it is committed");
    store.close();
}

#[test]
fn a_path_that_leaves_the_directory_is_refused_also_for_an_admin() {
    let scene = Scene::new();
    let http = scene.server.http();
    let outside = tempfile::tempdir().expect("a directory can be made");
    let absolute = outside.path().join("made").display().to_string();
    let merge = "merge-patch+json";
    for path in ["../muster.db", "../precious", "a/../../precious", "./../precious", "..", &absolute] {
        let file = json!({"path": path, "maxBytes": 65_536, "keep": 0});
        let change = json!({"spec": {"file": file}}).to_string();
        for answer in [scene.make("escapes", &file), http.patch(&format!("{SINKS}/audit"), merge, &change)] {
            assert_eq!(answer.code, 422, "{path}: {}", answer.text());
            let cause = &answer.json()["details"]["causes"][0];
            assert_eq!(cause["field"], "spec.file.path", "{cause}");
            let message = cause["message"].as_str().unwrap_or_default();
            assert!(message.contains("name a file below the directory sinks"), "{message}");
        }
    }
    for (file, field) in [
        (json!({"path": "a", "maxBytes": 5}), "spec.file.maxBytes"),
        (json!({"path": "a", "keep": u32::MAX}), "spec.file.keep"),
    ] {
        let answer = scene.make("escapes", &file);
        assert_eq!(answer.code, 422, "{file}: {}", answer.text());
        assert_eq!(answer.json()["details"]["causes"][0]["field"], field);
    }
    assert_eq!(fs::read_dir(outside.path()).map(Iterator::count).ok(), Some(0), "nothing was written");
    scene.assert_unharmed();
}

#[test]
fn links_below_the_directory_lead_no_sink_out_of_it() {
    let mut scene = Scene::new();
    let sinks = scene.server.data().join("sinks");
    symlink("../precious", sinks.join("link.jsonl")).expect("a link can be made");
    symlink("..", sinks.join("up")).expect("a link can be made");
    symlink("../made", sinks.join("dangling.jsonl")).expect("a link can be made");
    let paths = ["link.jsonl", "up/precious", "up/muster.db", "dangling.jsonl"];
    for (number, path) in paths.iter().enumerate() {
        let answer = scene.make(&format!("link-{number}"), &json!({"path": path, "keep": 0}));
        assert_eq!(answer.code, 201, "{}", answer.text());
    }
    scene.tell();
    for (number, path) in paths.iter().enumerate() {
        let condition = || scene.condition(&format!("link-{number}"));
        wait_for(&format!("{path} to be refused"), LONG, || condition()["reason"] == "PathNotAllowed");
        let message = condition()["message"].to_string();
        assert!(message.contains("remove the link or name another path"), "{message}");
    }
    assert!(!scene.server.data().join("made").exists());
    scene.assert_unharmed();
}

#[test]
fn a_stored_sink_whose_path_leaves_the_directory_says_so_and_writes_nothing() {
    let mut scene = Scene::new();
    let absolute = scene.server.data().join("precious").display().to_string();
    let paths = ["../muster.db", "../precious", absolute.as_str()];
    for number in 0..paths.len() {
        assert_eq!(scene.make(&format!("old-{number}"), &json!({"path": "old.jsonl"})).code, 201);
    }
    scene.server.stop();
    for (number, path) in paths.iter().enumerate() {
        let file = json!({"path": path, "maxBytes": 5, "keep": 0});
        store_path(&scene.server.data().join("muster.db"), &format!("old-{number}"), &file);
    }
    scene.server.restart();
    scene.tell();
    for (number, path) in paths.iter().enumerate() {
        let condition = || scene.condition(&format!("old-{number}"));
        wait_for(&format!("{path} to be refused"), LONG, || condition()["reason"] == "PathNotAllowed");
        assert_eq!(condition()["status"], "False");
        let message = condition()["message"].to_string();
        assert!(message.contains("name a file below the directory sinks"), "{message}");
    }
    scene.assert_unharmed();
}

/// Requests that make, change and delete an object, and all of its kind.
fn writes(http: &Http, all: &str, object: &Value) -> [Answer; 5] {
    let (one, text) = (format!("{all}/theirs"), object.to_string());
    [
        http.post(all, &text),
        http.put(&one, &text),
        http.patch(&one, "apply-patch+yaml", &text),
        http.delete(&one),
        http.delete(all),
    ]
}

#[test]
fn an_editor_makes_tasks_but_neither_sinks_nor_other_infrastructure_nor_tokens() {
    let scene = Scene::new();
    let token = scene.server.new_token("ed", "editor");
    let editor = scene.server.http().with_token(Some(&token));
    let namespaced = |plural: &str| format!("{API}/namespaces/default/{plural}");
    for (all, object) in [
        (namespaced("eventsinks"), sink("theirs", &json!({"path": "theirs.jsonl"}))),
        (namespaced("adapters"), object("Adapter", "theirs", &json!({}))),
        (namespaced("robots"), object("Robot", "theirs", &json!({}))),
        (format!("{API}/resourcetypes"), object("ResourceType", "theirs", &json!({}))),
    ] {
        // Without the status, which says what was told meanwhile.
        let seen = |http: &Http| -> Vec<Value> {
            let items = http.get(&all).json()["items"].as_array().cloned().unwrap_or_default();
            items.iter().map(|item| json!([item["metadata"]["uid"], item["spec"]])).collect()
        };
        let before = seen(&scene.server.http());
        for answer in writes(&editor, &all, &object) {
            let message = answer.json()["message"].to_string();
            assert_eq!(answer.code, 403, "{all}: {message}");
            assert!(message.contains("it takes the role admin"), "{message}");
        }
        assert_eq!(seen(&editor), before, "an editor sees {all} and changed nothing");
    }
    let wanted = json!({"name": "join", "role": "robot"}).to_string();
    assert_eq!(editor.post("/tokens", &wanted).code, 403);
    let task = object("Task", "theirs", &json!({"container": {"command": ["true"]}}));
    assert_eq!(editor.post(TASKS, &task.to_string()).code, 201);
    assert_eq!(editor.delete(&format!("{TASKS}/theirs")).code, 200);
    scene.assert_unharmed();
}
