//! `kubectl` in a namespace of its own on a server that tests share.

use std::ops::Deref;

use crate::client_tool::ClientTool;
use crate::server::Server;

/// A kubectl with its kubeconfig.
pub struct Kubectl {
    tool: ClientTool,
    namespace: String,
    server: &'static Server,
}

impl Kubectl {
    /// The current kubectl, as admin in a new namespace.
    #[track_caller]
    pub fn current() -> Self {
        Self::named_by("MUSTER_KUBECTL")
    }

    /// The old kubectl of Debian, as admin in a new namespace.
    #[track_caller]
    pub fn old() -> Self {
        Self::named_by("MUSTER_KUBECTL_OLD")
    }

    #[track_caller]
    fn named_by(variable: &str) -> Self {
        Self::on(variable, Server::shared())
    }

    /// The kubectl that a variable names, as admin in a new namespace of a server.
    #[track_caller]
    pub fn on(variable: &str, server: &'static Server) -> Self {
        let tool = ClientTool::named_by(variable);
        let namespace = server.new_namespace();
        Self { tool, namespace, server }.with_token(&server.admin_token())
    }

    /// The same kubectl and namespace with another token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        let server = self.server;
        let tool = self
            .tool
            .env("KUBECONFIG", server.kubeconfig_for(&self.namespace, token))
            .env("HOME", server.client_home())
            .env("TMPDIR", server.client_home());
        Self { tool, namespace: self.namespace.clone(), server }
    }

    /// The namespace it works in.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The path of the tasks of its namespace.
    pub fn tasks_path(&self) -> String {
        format!("/apis/muster.dev/v1alpha1/namespaces/{}/tasks", self.namespace)
    }

    /// Has a task there, with a spec in YAML's flow style.
    #[track_caller]
    pub fn create_task(&self, name: &str, spec: &str) {
        self.create(&task(name, spec));
    }

    /// Has a task there, with labels in YAML's flow style.
    #[track_caller]
    pub fn create_labelled(&self, name: &str, labels: &str) {
        self.create(&manifest("Task", &format!("{{name: {name}, labels: {labels}}}"), "{kind: analyzer}"));
    }

    /// Creates a task without kubectl, which is faster where creating is not what is tested.
    #[track_caller]
    fn create(&self, manifest: &str) {
        let request = self.server.http().request("POST", &self.tasks_path());
        let answer = request.header("Content-Type", "application/yaml").body(manifest).send();
        assert_eq!(answer.code, 201, "{}", answer.text());
    }

    /// One field of an object, by JSONPath; empty if it is not there.
    #[track_caller]
    pub fn field(&self, object: &str, path: &str) -> String {
        self.ok(&format!("get {object} -o \"jsonpath={{{path}}}\""))
    }
}

impl Deref for Kubectl {
    type Target = ClientTool;

    fn deref(&self) -> &ClientTool {
        &self.tool
    }
}

/// A Task with a spec in YAML's flow style.
pub fn task(name: &str, spec: &str) -> String {
    manifest("Task", &format!("{{name: {name}}}"), spec)
}

/// An object with metadata and spec in YAML's flow style.
pub fn manifest(kind: &str, metadata: &str, spec: &str) -> String {
    format!("apiVersion: muster.dev/v1alpha1\nkind: {kind}\nmetadata: {metadata}\nspec: {spec}\n")
}
