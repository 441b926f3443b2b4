//! A server, a browser, and somebody who has signed in.

use muster_e2e::browser::Browser;
use muster_e2e::http::Http;
use muster_e2e::server::Server;
use muster_e2e::wait::{SOON, wait_for};
use serde_json::{Value, json};

pub const API: &str = "/apis/muster.dev/v1alpha1/namespaces/default";

pub struct World {
    pub browser: Browser,
    pub http: Http,
    pub server: Server,
}

impl World {
    /// A server that runs two tasks at a time, looked at by its admin.
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// The same with further flags.
    pub fn with(flags: &[&str]) -> Self {
        let server =
            Server::start(&[&["--roles", "api,engine,bridge,relay,web", "--slots", "2"], flags].concat());
        let world = Self { browser: Browser::open(), http: server.http(), server };
        world.sign_in(&world.server.admin_token());
        world
    }

    pub fn sign_in(&self, token: &str) {
        self.browser.go(&self.place("sign-in"));
        self.browser.type_into("input[name=token]", token);
        self.browser.send("form button");
        self.browser.sees("h1", "Overview");
    }

    /// The address of a page.
    pub fn place(&self, path: &str) -> String {
        format!("http://{}/ui/{path}", self.server.address())
    }

    pub fn go(&self, path: &str) {
        self.browser.go(&self.place(path));
    }

    /// Makes an object.
    #[track_caller]
    pub fn make(&self, plural: &str, kind: &str, name: &str, spec: &Value) {
        let object = json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec,
        });
        let answer = self.http.post(&format!("{API}/{plural}"), &object.to_string());
        assert_eq!(answer.code, 201, "{}", answer.text());
    }

    /// Makes a task that runs a script.
    #[track_caller]
    pub fn task(&self, name: &str, script: &str) {
        self.make("tasks", "Task", name, &json!({"container": {"command": ["sh", "-c", script]}}));
    }

    pub fn stored(&self, path: &str) -> Value {
        self.http.get(&format!("{API}/{path}")).json()
    }

    #[track_caller]
    pub fn wait_for_state(&self, path: &str, state: &str) {
        wait_for(&format!("{path} is {state}"), SOON, || self.stored(path)["status"]["state"] == state);
    }
}
