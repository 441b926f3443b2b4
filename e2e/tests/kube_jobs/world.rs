//! A namespace of the cluster, a server that sees its jobs, and a file with what it tells of them.

use std::path::{Path, PathBuf};

use muster_e2e::cluster::{Cluster, POD};
use muster_e2e::server::Server;
use muster_e2e::wait::{holds_within, wait_for};
use serde_json::{Value, json};

/// Where objects of the server are.
pub const API: &str = "/apis/muster.dev/v1alpha1/namespaces/default";

/// All of it.
pub struct World {
    pub cluster: Cluster,
    pub server: Server,
}

impl World {
    /// With a sink that is a file, and what else its source says.
    pub fn new(source: &Value) -> Self {
        let cluster = Cluster::new();
        let flags = ["--roles", "api,relay", "--cluster-kubeconfig", cluster.kubeconfig()];
        let world = Self { server: Server::start(&flags), cluster };
        let mut source = source.clone();
        source["namespace"] = json!(world.cluster.namespace);
        let spec = json!({"file": {"path": "jobs.jsonl"}, "profile": "cds", "sources": {"kubeJobs": source}});
        make_sink(&world.server, "jobs", &spec);
        world.wait_for_watching("Watching");
        world
    }

    /// Waits until the sink says how its jobs are seen; what it says.
    #[track_caller]
    pub fn wait_for_watching(&self, reason: &str) -> String {
        let found = || condition(&self.server, "jobs", "Watching");
        wait_for(&format!("Watching for the reason {reason}"), POD, || found()["reason"] == reason);
        found()["message"].as_str().unwrap_or_default().to_owned()
    }

    /// Makes a job of one container that runs a script.
    #[track_caller]
    pub fn job(&self, name: &str, script: &str, spec: &Value) {
        self.cluster.create(&job(name, script, spec));
    }

    /// What was told of a job so far: the last words of the routing keys, and the documents.
    pub fn told(&self, name: &str) -> Vec<(String, Value)> {
        let text = std::fs::read_to_string(self.server.data().join("sinks/jobs.jsonl")).unwrap_or_default();
        let mut told: Vec<(String, String, Value)> = Vec::new();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).expect("a line is JSON");
            let (id, topic) = (line["id"].as_str().expect("an id"), line["topic"].as_str().expect("a topic"));
            let word = topic.strip_prefix("cds.job.").expect("a key of CDS");
            // What was not confirmed when a server was killed comes twice.
            if line["data"]["job-name"] == name && told.iter().all(|(known, _, _)| known != id) {
                told.push((id.to_owned(), word.to_owned(), line["data"].clone()));
            }
        }
        told.into_iter().map(|(_, word, document)| (word, document)).collect()
    }

    /// Waits until something was told of a job, and checks everything that was.
    #[track_caller]
    pub fn expect(&self, name: &str, words: &[&str]) -> Value {
        let last = words.last().expect("something is expected");
        let found = || self.told(name).into_iter().map(|(word, _)| word).collect::<Vec<_>>();
        let come = holds_within(POD, || found().iter().any(|word| word == last));
        assert!(come, "{name}: {:?} instead of {words:?}", found());
        assert_eq!(found(), words, "{name}");
        self.told(name).pop().map(|(_, document)| document).unwrap_or_default()
    }

    /// A field of a job as the cluster has it.
    pub fn field(&self, name: &str, path: &str) -> String {
        self.cluster.kubectl(&["get", "job", name, "-o", &format!("jsonpath={{{path}}}")])
    }
}

/// A job of one container that runs a script.
pub fn job(name: &str, script: &str, spec: &Value) -> Value {
    let container = json!({
        "name": "main", "image": Cluster::image(), "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", script],
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    });
    let mut document = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {"spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
        }}},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        match key.as_str() {
            "restartPolicy" => document["spec"]["template"]["spec"]["restartPolicy"] = value.clone(),
            "image" => document["spec"]["template"]["spec"]["containers"][0]["image"] = value.clone(),
            key => document["spec"][key] = value.clone(),
        }
    }
    document
}

/// A file of `deploy/relay`.
pub fn deploy(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/relay").join(file);
    path.to_str().expect("a path that is text").to_owned()
}

/// Makes the service account of a role with the rights that `deploy/relay` gives it; a kubeconfig for it alone.
pub fn account(cluster: &Cluster, role: &str, dir: &Path) -> PathBuf {
    cluster.kubectl(&["apply", "-f", &deploy(&format!("{role}-role.yaml"))]);
    let token = cluster.kubectl(&["create", "token", &format!("muster-{role}")]);
    let config = cluster.kubectl(&["config", "view", "--raw", "--minify", "-o", "json"]);
    let mut config: Value = serde_json::from_str(&config).expect("JSON");
    config["users"][0]["user"] = json!({"token": token.trim()});
    let path = dir.join(role);
    std::fs::write(&path, config.to_string()).expect("it can be written");
    path
}

/// Makes a sink.
#[track_caller]
pub fn make_sink(server: &Server, name: &str, spec: &Value) {
    let sink = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "EventSink", "metadata": {"name": name}, "spec": spec,
    });
    let answer = server.http().post(&format!("{API}/eventsinks"), &sink.to_string());
    assert_eq!(answer.code, 201, "{}", answer.text());
}

/// A condition of a sink.
pub fn condition(server: &Server, name: &str, of: &str) -> Value {
    let sink = server.http().get(&format!("{API}/eventsinks/{name}")).json();
    let conditions = sink["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|it| it["type"] == of).unwrap_or_default()
}
