//! The real Kubernetes that `cargo xtask cluster` starts, and a server that runs its tasks as pods there.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::lines::Lines;
use crate::server::Server;
use crate::wait::wait_for;

/// How long a pod may take on a busy machine.
pub const POD: Duration = Duration::from_mins(2);

/// A namespace of the cluster, gone with the test that made it.
pub struct Cluster {
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    dir: TempDir,
    /// Its name.
    pub namespace: String,
}

impl Cluster {
    /// A namespace of its own in the cluster.
    #[allow(clippy::new_without_default, reason = "it makes something outside")]
    pub fn new() -> Self {
        static USED: AtomicU32 = AtomicU32::new(0);
        let variable = |name: &str| -> PathBuf {
            let value = std::env::var_os(name).filter(|value| !value.is_empty());
            value.unwrap_or_else(|| unset(name)).into()
        };
        let namespace = format!("pods-{}-{}", std::process::id(), USED.fetch_add(1, Ordering::Relaxed));
        let (kubectl, kubeconfig) = (variable("MUSTER_KUBECTL"), variable("MUSTER_TEST_KUBECONFIG"));
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let cluster = Self { kubectl, kubeconfig, dir, namespace };
        cluster.kubectl(&["create", "namespace", &cluster.namespace]);
        cluster
    }

    /// The image with a shell.
    pub fn image() -> String {
        std::env::var("MUSTER_TEST_IMAGE")
            .unwrap_or_else(|_| unset("MUSTER_TEST_IMAGE").to_string_lossy().into())
    }

    /// A server whose tasks are pods of this cluster.
    pub fn server(&self, flags: &[&str]) -> Server {
        self.server_through(self.kubeconfig(), flags)
    }

    /// Where its kubeconfig is.
    pub fn kubeconfig(&self) -> &str {
        self.kubeconfig.to_str().expect("a path that is text")
    }

    /// The same with another kubeconfig.
    pub fn server_through(&self, kubeconfig: &str, flags: &[&str]) -> Server {
        let own = ["--roles", "api,engine", "--runtime", "pod", "--cluster-kubeconfig", kubeconfig];
        Server::start(&[&own, flags].concat())
    }

    /// A kubeconfig like that of the cluster's admin, changed; gone with the cluster.
    pub fn kubeconfig_with(&self, change: impl FnOnce(&mut Value)) -> PathBuf {
        static WRITTEN: AtomicU32 = AtomicU32::new(0);
        let text = self.kubectl(&["config", "view", "--raw", "--minify", "--flatten", "-o", "json"]);
        let mut config: Value = serde_json::from_str(&text).expect("a kubeconfig as JSON");
        change(&mut config);
        let path = self.dir.path().join(format!("kubeconfig-{}", WRITTEN.fetch_add(1, Ordering::Relaxed)));
        std::fs::write(&path, config.to_string()).expect("a file can be written");
        path
    }

    /// A kubeconfig for a new service account, which may do nothing yet.
    pub fn kubeconfig_of_new_user(&self, name: &str) -> PathBuf {
        self.kubectl(&["create", "serviceaccount", name]);
        let token = self.kubectl(&["create", "token", name]);
        self.kubeconfig_with(|config| config["users"][0]["user"] = json!({ "token": token.trim() }))
    }

    /// Runs kubectl in the namespace and returns what it says.
    #[track_caller]
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {}: {errors}", arguments.join(" "));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The same for a question to which no is an answer too.
    pub fn kubectl_says(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs kubectl in the namespace, however it ends.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("kubectl can be started")
    }

    /// Makes objects from a document.
    #[track_caller]
    pub fn create(&self, document: &Value) {
        use std::io::Write as _;
        let mut child = self.command(&["create", "-f", "-"]).stdin(Stdio::piped()).spawn().expect("kubectl");
        let mut input = child.stdin.take().expect("standard input is piped");
        input.write_all(document.to_string().as_bytes()).expect("kubectl reads");
        drop(input);
        assert!(child.wait().expect("kubectl ends").success(), "{document}");
    }

    /// A quota of so many pods, counted.
    #[track_caller]
    pub fn limit_pods(&self, pods: u32) {
        self.kubectl(&["create", "quota", "pods", &format!("--hard=pods={pods}")]);
        let path = "jsonpath={.status.hard.pods}";
        wait_for("the quota to count", POD, || {
            self.kubectl(&["get", "quota", "pods", "-o", path]) == pods.to_string()
        });
    }

    /// The pods of the namespace.
    pub fn pods(&self) -> Vec<Value> {
        let list: Value = serde_json::from_str(&self.kubectl(&["get", "pods", "-o", "json"])).expect("JSON");
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// Names of pods in the order they are made, from now on.
    pub fn watch_created(&self) -> Created {
        let template = r#"jsonpath={.type}{" "}{.object.metadata.name}{"\n"}"#;
        let arguments = ["get", "pods", "--watch-only", "--output-watch-events", "-v=6", "-o", template];
        let mut command = self.command(&arguments);
        command.stderr(Stdio::piped());
        let mut process = command.stdout(Stdio::piped()).spawn().expect("kubectl can be started");
        let lines = Lines::of(process.stdout.take().expect("standard output is piped"));
        let mut said = Lines::of(process.stderr.take().expect("standard error is piped"));
        let begun = said.find_within(POD, |line| line.contains("watch=true"));
        assert!(begun.is_some(), "the watch did not begin: {:?}", said.seen());
        Created { process, lines }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(["--namespace", &self.namespace]);
        command.args(arguments).stdin(Stdio::null());
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let mut delete = self.command(&["delete", "namespace", &self.namespace, "--wait=false"]);
        drop(delete.stdout(Stdio::null()).stderr(Stdio::null()).status());
    }
}

#[track_caller]
fn unset(name: &str) -> std::ffi::OsString {
    assert!(name.is_empty(), "{name} is not set; `cargo xtask test` starts a cluster and sets it");
    std::ffi::OsString::new()
}

/// Pods as they are made.
pub struct Created {
    process: Child,
    lines: Lines,
}

impl Created {
    /// The name of the next pod that is made.
    pub fn next_name(&mut self) -> Option<String> {
        let line = self.lines.find_within(POD, |line| line.starts_with("ADDED "))?;
        line.split(' ').nth(1).map(str::to_owned)
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The tasks of a server in one namespace.
pub struct Tasks<'a> {
    server: &'a Server,
    path: String,
}

impl<'a> Tasks<'a> {
    /// Those in the namespace of the cluster.
    pub fn of(server: &'a Server, cluster: &Cluster) -> Self {
        let path = format!("/apis/muster.dev/v1alpha1/namespaces/{}", cluster.namespace);
        Self { server, path }
    }

    /// Makes an object of any kind.
    #[track_caller]
    pub fn make(&self, kind: &str, plural: &str, name: &str, spec: &Value) -> Value {
        let document = json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": kind, "metadata": { "name": name }, "spec": spec,
        });
        let answer = self.server.http().post(&format!("{}/{plural}", self.path), &document.to_string());
        assert_eq!(answer.code, 201, "{}", answer.text());
        answer.json()
    }

    /// Makes a task that runs a script in the shell image.
    #[track_caller]
    pub fn shell(&self, name: &str, script: &str, more: &Value) -> Value {
        let mut spec = json!({ "container": { "image": Cluster::image(), "command": ["sh", "-c", script] } });
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        self.make("Task", "tasks", name, &spec)
    }

    /// A task as it is now; null if it is gone.
    pub fn get(&self, name: &str) -> Value {
        let answer = self.server.http().get(&format!("{}/tasks/{name}", self.path));
        if answer.code == 404 { Value::Null } else { answer.json() }
    }

    /// All tasks.
    pub fn all(&self) -> Vec<Value> {
        let answer = self.server.http().get(&format!("{}/tasks", self.path));
        answer.json()["items"].as_array().cloned().unwrap_or_default()
    }

    /// Changes a task.
    #[track_caller]
    pub fn patch(&self, name: &str, change: &Value) {
        let answer = self.server.http().patch(&self.path(name), "merge-patch+json", &change.to_string());
        assert_eq!(answer.code, 200, "{}", answer.text());
    }

    /// Deletes a task.
    #[track_caller]
    pub fn delete(&self, name: &str) {
        let answer = self.server.http().delete(&format!("{}/tasks/{name}", self.path));
        assert_eq!(answer.code, 200, "{}", answer.text());
    }

    /// Waits until a task is in a state, and returns it.
    #[track_caller]
    pub fn wait(&self, name: &str, state: &str) -> Value {
        let mut last = Value::Null;
        let reached = crate::wait::holds_within(POD, || {
            last = self.get(name);
            last["status"]["state"] == state
        });
        assert!(reached, "{name} should be {state}: {:#}", last["status"]);
        last
    }

    /// The log of a container of a task.
    #[track_caller]
    pub fn log(&self, name: &str, container: &str) -> String {
        let answer = self.server.http().get(&format!("{}/tasks/{name}/log?container={container}", self.path));
        assert_eq!(answer.code, 200, "{}", answer.text());
        answer.text()
    }

    /// Where a part of a task is.
    pub fn path(&self, name: &str) -> String {
        format!("{}/tasks/{name}", self.path)
    }
}

/// The kinds of records a task has, in order.
pub fn records(task: &Value) -> Vec<String> {
    let events = task["status"]["events"].as_array();
    events.into_iter().flatten().filter_map(|record| record["kind"].as_str().map(str::to_owned)).collect()
}
