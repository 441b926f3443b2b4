//! A server, a broker, and robots that are real agents as processes.

use std::fs::{self, File};
use std::process::{Command, Output};
use std::time::Duration;

use muster_e2e::agent::Agent;
use muster_e2e::brokers::{Mosquitto, free_port};
use muster_e2e::http::Http;
use muster_e2e::server::Server;
use muster_e2e::wait::wait_for;
use serde_json::{Value, json};
use tempfile::TempDir;

pub const API: &str = "/apis/muster.dev/v1alpha1/namespaces/default";
pub const SOON: Duration = Duration::from_mins(2);

/// What a server with robots does.
const ROLES: [&str; 4] = ["--roles", "api,engine,bridge", "--slots", "4"];

/// Which broker robots are reached through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The one that is part of the server.
    Embedded,
    /// A real Mosquitto.
    Mosquitto,
}

/// Everything.
pub struct World {
    // Robots go before what they talk to.
    pub server: Server,
    pub http: Http,
    pub broker: Option<Mosquitto>,
    pub port: u16,
    token: String,
    /// The broker knows users: the password of each is its name, with `pw-` before it.
    users: bool,
    pub dir: TempDir,
}

impl World {
    pub fn new(kind: Kind, flags: &[&str]) -> Self {
        Self::around((kind == Kind::Mosquitto).then(Mosquitto::start), None, flags)
    }

    /// Around a broker that is there; without one, with the embedded one. A broker that knows users has a port for servers.
    pub fn around(broker: Option<Mosquitto>, for_servers: Option<u16>, flags: &[&str]) -> Self {
        let port = broker.as_ref().map_or_else(free_port, Mosquitto::port);
        let address = format!("127.0.0.1:{port}");
        let users = for_servers.is_some();
        let url = broker_url("muster", for_servers.unwrap_or(port), users);
        let place = match broker {
            None => ["--mqtt-listen", &address],
            Some(_) => ["--mqtt-url", &url],
        };
        let server = Server::start(&[&ROLES, &place[..], flags].concat());
        let http = server.http();
        let token = server.new_join_token("join");
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        Self { server, http, broker, port, token, users, dir }
    }

    /// Two servers of one database around a broker; the second one is apart.
    pub fn pair(store: &str, flags: &[&str]) -> (Self, Server) {
        let broker = Mosquitto::start();
        let url = broker_url("muster", broker.port(), false);
        let all = [&["--store", store, "--lease", "4s"], flags].concat();
        let other = Server::start(&[&ROLES, &["--mqtt-url", &url][..], &all].concat());
        (Self::around(Some(broker), None, &all), other)
    }

    /// Goes on with another server; returns the former.
    pub fn turn_to(&mut self, server: Server) -> Server {
        self.http = server.http();
        std::mem::replace(&mut self.server, server)
    }

    /// A token that robots join with.
    pub fn join_token(&self) -> &str {
        &self.token
    }

    /// Starts an agent and waits until it is Online.
    pub fn robot(&self, id: &str, flags: &[&str]) -> Agent {
        let agent = self.start_robot(id, self.port, flags);
        self.wait_for_phase(id, "Online");
        agent
    }

    /// Starts an agent that talks to some port.
    pub fn start_robot(&self, id: &str, port: u16, flags: &[&str]) -> Agent {
        let work_dir = self.dir.path().join(format!("robot-{id}"));
        Agent::start(id, &broker_url(id, port, self.users), &self.token, &work_dir, flags)
    }

    pub fn muster(&self, arguments: &[&str]) -> Output {
        let program = std::env::var_os("MUSTER_BIN").expect("MUSTER_BIN names the program");
        let mut command = Command::new(program);
        command.arg("--kubeconfig").arg(self.server.kubeconfig()).args(arguments);
        command.output().expect("the program can be started")
    }

    /// The same, which must succeed; what it printed.
    #[track_caller]
    pub fn told(&self, arguments: &[&str]) -> String {
        let output = self.muster(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {error}");
        String::from_utf8(output.stdout).expect("text")
    }

    #[track_caller]
    pub fn create(&self, plural: &str, kind: &str, name: &str, spec: &Value) {
        let object = json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec,
        });
        let answer = self.http.post(&format!("{API}/{plural}"), &object.to_string());
        assert_eq!(answer.code, 201, "{}", answer.text());
    }

    /// Makes a task for robots from a shell script, with further fields.
    #[track_caller]
    pub fn task(&self, name: &str, script: &str, more: &Value) {
        let mut spec = json!({"runtime": "robot", "container": {"command": ["sh", "-c", script]}});
        let (Some(spec_map), Some(more)) = (spec.as_object_mut(), more.as_object()) else { return };
        spec_map.extend(more.clone());
        self.create("tasks", "Task", name, &spec);
    }

    /// Makes a task that says when it has begun, waits until it is let go, and says that it has ended.
    #[track_caller]
    pub fn waiting_task(&self, name: &str, more: &Value) {
        let place = self.dir.path().join(name);
        let place = place.display();
        let script = format!(
            "echo begun; echo $$ > {place}.process; echo x >> {place}.begun; while [ ! -e {place}.go ]; do sleep 0.05; done; echo x >> {place}.ended; \
             echo ended"
        );
        self.task(name, &script, more);
    }

    /// How often a task has begun, or ended.
    pub fn times(&self, name: &str, what: &str) -> usize {
        let text = fs::read_to_string(self.dir.path().join(format!("{name}.{what}")));
        text.map_or(0, |text| text.lines().count())
    }

    /// The process of a task that has begun.
    #[track_caller]
    pub fn process(&self, name: &str) -> i32 {
        let text = fs::read_to_string(self.dir.path().join(format!("{name}.process")));
        text.expect("it has begun").trim().parse().expect("a number")
    }

    #[track_caller]
    pub fn wait_for_begun(&self, name: &str, times: usize) {
        wait_for(&format!("{name} has begun {times} times"), SOON, || self.times(name, "begun") >= times);
    }

    pub fn let_go(&self, name: &str) {
        File::create(self.dir.path().join(format!("{name}.go"))).expect("a file can be made");
    }

    pub fn get(&self, path: &str) -> Value {
        self.http.get(&format!("{API}/{path}")).json()
    }

    #[track_caller]
    pub fn wait_for_state(&self, task: &str, state: &str) -> Value {
        let path = format!("tasks/{task}");
        let mut last = Value::Null;
        let held = muster_e2e::wait::holds_within(SOON, || {
            last = self.get(&path);
            last["status"]["state"] == state
        });
        assert!(held, "{task} did not become {state}: {:#}", last["status"]);
        last
    }

    #[track_caller]
    pub fn wait_for_phase(&self, robot: &str, phase: &str) {
        let path = format!("robots/{robot}");
        let mut last = Value::Null;
        let held = muster_e2e::wait::holds_within(SOON, || {
            last = self.get(&path);
            last["status"]["phase"] == phase
        });
        assert!(held, "robot {robot} did not become {phase}: {last:#}");
    }

    #[track_caller]
    pub fn wait_for_connection(&self, robot: &str, status: &str) {
        wait_for(&format!("Connected of {robot} is {status}"), SOON, || {
            let robot = self.get(&format!("robots/{robot}"));
            let conditions = robot["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|it| it["type"] == "Connected" && it["status"] == status)
        });
    }

    pub fn log(&self, task: &str) -> String {
        self.http.get(&format!("{API}/tasks/{task}/log")).text()
    }
}

fn broker_url(user: &str, port: u16, users: bool) -> String {
    let login = if users { format!("{user}:pw-{user}@") } else { String::new() };
    format!("mqtt://{login}127.0.0.1:{port}")
}
