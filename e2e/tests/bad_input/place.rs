//! A namespace in which requests are refused, and the check that they were refused as they should be.

use muster_e2e::http::{Answer, Http, Request};
use muster_e2e::server::Server;
use serde_json::{Value, json};

/// A namespace of a server.
pub struct Place<'a> {
    server: &'a Server,
    namespace: String,
}

impl Place<'static> {
    /// A new namespace of the shared server, with one task `a` in it.
    pub fn new() -> Self {
        Self::on(Server::shared())
    }
}

impl<'a> Place<'a> {
    /// A new namespace of some server, with one task `a` in it.
    pub fn on(server: &'a Server) -> Self {
        Self::with(server, &task("a"))
    }

    /// A new namespace of some server, with one task in it.
    pub fn with(server: &'a Server, task: &Value) -> Self {
        let place = Self { server, namespace: server.new_namespace() };
        place.create(task);
        place
    }

    /// HTTP as the admin.
    pub fn http(&self) -> Http {
        self.server.http()
    }

    /// The name of the namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The path of its tasks.
    pub fn tasks(&self) -> String {
        format!("/apis/muster.dev/v1alpha1/namespaces/{}/tasks", self.namespace)
    }

    /// The path of the task `a`, with what follows it.
    pub fn task(&self, rest: &str) -> String {
        format!("{}/a{rest}", self.tasks())
    }

    /// Creates an object that is in order.
    #[track_caller]
    pub fn create(&self, object: &Value) -> Value {
        let answer = self.http().post(&self.tasks(), &object.to_string());
        assert_eq!(answer.code, 201, "{}", answer.text());
        answer.json()
    }

    /// The task `a` as it is.
    #[track_caller]
    pub fn read(&self) -> Value {
        self.http().get(&self.task("")).json()
    }

    /// A request to create an object.
    pub fn post(&self, object: &Value) -> Request {
        self.http().request("POST", &self.tasks()).json(&object.to_string())
    }

    /// A request to create what a text says.
    pub fn post_text(&self, media_type: &str, text: impl Into<Vec<u8>>) -> Request {
        self.http().request("POST", &self.tasks()).header("Content-Type", media_type).body(text)
    }

    /// A request to patch the task `a`.
    pub fn patch(&self, language: &str, text: &str) -> Request {
        let media_type = format!("application/{language}");
        self.http().request("PATCH", &self.task("")).header("Content-Type", &media_type).body(text)
    }

    /// Checks that a request is refused with a code, a reason and a message that holds some words, and that nothing
    /// changed. Gives the `Status`.
    #[track_caller]
    pub fn refuses(&self, request: Request, code: u16, reason: &str, words: &[&str]) -> Value {
        let before = self.everything();
        let answer = request.send();
        let status = check_status(&answer, code, reason, words);
        assert_eq!(self.everything(), before, "something changed although the request was refused");
        status
    }

    /// All objects of the namespace.
    fn everything(&self) -> Vec<Value> {
        let kinds = [
            "tasks",
            "taskgroups",
            "jobs",
            "taskkinds",
            "addons",
            "extensions",
            "applications",
            "tasktemplates",
        ];
        let list = |kind: &&str| {
            let path = format!("/apis/muster.dev/v1alpha1/namespaces/{}/{kind}", self.namespace);
            self.http().get(&path).json()["items"].clone()
        };
        kinds.iter().map(list).collect()
    }
}

/// A task that is in order.
pub fn task(name: &str) -> Value {
    json!({
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "Task",
        "metadata": { "name": name },
        "spec": { "kind": "k", "priority": 1 },
    })
}

/// A task with one value put in by JSON pointer.
pub fn task_with(pointer: &str, value: Value) -> Value {
    let mut object = task("b");
    let mut place = &mut object;
    for step in pointer.trim_start_matches('/').split('/') {
        place = &mut place[step];
    }
    *place = value;
    object
}

/// Checks that an answer is a refusal with a code, a reason and a message that holds some words.
#[track_caller]
pub fn check_status(answer: &Answer, code: u16, reason: &str, words: &[&str]) -> Value {
    assert_eq!(answer.code, code, "{}", answer.text());
    let status = answer.json();
    assert_eq!(answer.header("content-type"), Some("application/json"));
    for (field, expected) in [
        ("kind", json!("Status")),
        ("apiVersion", json!("v1")),
        ("status", json!("Failure")),
        ("code", json!(code)),
    ] {
        assert_eq!(status[field], expected, "{field} in {status}");
    }
    assert_eq!(status["reason"], reason, "{status}");
    let message = status["message"].as_str().unwrap_or_default();
    for word in words {
        assert!(message.contains(word), "{word:?} is missing in {message:?}");
    }
    status
}

/// The fields that a `Status` blames.
pub fn blamed(status: &Value) -> Vec<&str> {
    let causes = status["details"]["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
    causes.iter().filter_map(|cause| cause["field"].as_str()).collect()
}
