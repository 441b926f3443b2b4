//! A server, a terminal, and somebody who looks.

use std::fs;
use std::path::PathBuf;

use muster_e2e::http::Http;
use muster_e2e::server::Server;
use muster_e2e::terminal::Terminal;
use muster_e2e::wait::{SOON, wait_for};
use serde_json::{Value, json};
use tempfile::TempDir;

const API: &str = "/apis/muster.dev/v1alpha1/namespaces/default";

pub struct World {
    pub terminal: Terminal,
    pub server: Server,
    http: Http,
    gates: TempDir,
}

impl World {
    /// A server that runs one task at a time, and a shell of its admin.
    pub fn new() -> Self {
        let server = Server::start(&["--roles", "api,engine", "--slots", "1"]);
        let terminal = terminal_for(&server, &server.admin_token(), &[]);
        let gates = tempfile::tempdir().expect("a temporary directory can be made");
        Self { terminal, http: server.http(), server, gates }
    }

    /// The same with the dashboard on the screen.
    pub fn looking() -> Self {
        let world = Self::new();
        world.look();
        world
    }

    /// Starts the dashboard.
    #[track_caller]
    pub fn look(&self) {
        self.terminal.runs("\"$MUSTER_BIN\" top; echo \"code $?\"");
        self.terminal.sees_line(&["muster top", "namespace default", "live"]);
    }

    /// Somebody else's shell on the same server.
    pub fn terminal_of(&self, role: &str, env: &[(&str, &str)]) -> Terminal {
        terminal_for(&self.server, &self.server.new_token(role, role), env)
    }

    #[track_caller]
    pub fn make(&self, plural: &str, kind: &str, metadata: &Value, spec: &Value) {
        let object =
            json!({"apiVersion": "muster.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec});
        let answer = self.http.post(&format!("{API}/{plural}"), &object.to_string());
        assert_eq!(answer.code, 201, "{}", answer.text());
    }

    /// Makes a task that runs a script.
    #[track_caller]
    pub fn task(&self, name: &str, script: &str) {
        self.make(
            "tasks",
            "Task",
            &json!({"name": name}),
            &json!({"container": {"command": ["sh", "-c", script]}}),
        );
    }

    /// The same of a kind, about one subject.
    #[track_caller]
    pub fn task_of(&self, kind: &str, name: &str, script: &str) {
        let spec = json!({
            "kind": kind, "subject": {"kind": "Application", "name": "shop"},
            "container": {"command": ["sh", "-c", script]},
        });
        self.make("tasks", "Task", &json!({"name": name}), &spec);
    }

    #[track_caller]
    pub fn wait_for_state(&self, name: &str, state: &str) {
        wait_for(&format!("{name} is {state}"), SOON, || self.state(name) == state);
    }

    pub fn state(&self, name: &str) -> String {
        let task = self.http.get(&format!("{API}/tasks/{name}")).json();
        task["status"]["state"].as_str().unwrap_or_default().to_owned()
    }

    /// A piece of script that waits until [`World::open`] is called with the same name.
    pub fn gate(&self, name: &str) -> String {
        format!("until [ -e '{}' ]; do sleep 0.05; done", self.gate_file(name).display())
    }

    pub fn open(&self, name: &str) {
        fs::write(self.gate_file(name), "").expect("a gate can be opened");
    }

    pub fn gate_file(&self, name: &str) -> PathBuf {
        self.gates.path().join(name)
    }
}

fn terminal_for(server: &Server, token: &str, env: &[(&str, &str)]) -> Terminal {
    let kubeconfig = server.kubeconfig_for("default", token);
    let kubeconfig = kubeconfig.to_str().expect("paths of tests are text");
    let env: Vec<(&str, &str)> = env.iter().copied().chain([("MUSTER_KUBECONFIG", kubeconfig)]).collect();
    Terminal::open(110, 30, &env)
}
