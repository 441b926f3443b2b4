//! A namespace of the cluster for one test.

use muster_e2e::client_tool::ClientTool;
use muster_e2e::cluster::Cluster;
use muster_e2e::installation::Installation;
use serde_json::{Value, json};

/// A namespace, with those who work in it.
pub struct Space {
    cluster: Cluster,
    kubectl: ClientTool,
}

impl Space {
    pub fn new(installation: &Installation) -> Self {
        Self { cluster: Cluster::new(), kubectl: installation.tool().clone() }
    }

    pub fn name(&self) -> &str {
        &self.cluster.namespace
    }

    /// Runs kubectl here.
    #[track_caller]
    pub fn ok(&self, line: &str) -> String {
        self.kubectl.ok(&self.here(line))
    }

    /// Runs kubectl here with something to read.
    #[track_caller]
    pub fn given(&self, input: &Value, line: &str) -> String {
        self.kubectl.given(input.to_string()).ok(&self.here(line))
    }

    /// Runs kubectl here, which must fail.
    #[track_caller]
    pub fn fails(&self, line: &str) -> String {
        self.kubectl.fails(&self.here(line))
    }

    /// Runs kubectl here as somebody else, with a task `mine` to read; `None` if that is refused.
    pub fn ok_as(&self, token: &str, line: &str) -> Option<String> {
        let input = task("mine", "true").to_string();
        let said = self.kubectl.given(input).run(&self.here(&format!("--token {token} {line}")));
        (said.code == Some(0)).then_some(said.stdout)
    }

    /// Starts kubectl here.
    pub fn start(&self, line: &str) -> muster_e2e::client_tool::Running {
        self.kubectl.start(&self.here(line))
    }

    /// The muster command with the kubeconfig of the cluster.
    pub fn muster(&self) -> ClientTool {
        ClientTool::named_by("MUSTER_BIN")
            .env("MUSTER_KUBECONFIG", std::env::var_os("MUSTER_TEST_KUBECONFIG").unwrap_or_default())
            .env("MUSTER_NAMESPACE", self.name())
    }

    /// The token of a new service account.
    #[track_caller]
    pub fn new_user(&self, name: &str) -> String {
        self.ok(&format!("create serviceaccount {name}"));
        self.ok(&format!("create token {name}")).trim().to_owned()
    }

    /// Waits until a task is in a state.
    #[track_caller]
    pub fn wait(&self, task: &str, state: &str) {
        self.ok(&format!(
            "wait task.muster.dev/{task} --for=jsonpath={{.status.state}}={state} --timeout=55s"
        ));
    }

    fn here(&self, line: &str) -> String {
        format!("--namespace {} {line}", self.name())
    }
}

/// A task that runs a script.
pub fn task(name: &str, script: &str) -> Value {
    json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": name},
        "spec": {"container": {"image": Cluster::image(), "command": ["sh", "-c", script]}},
    })
}
