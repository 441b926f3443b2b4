//! From a job that ended to its logs on the server: a real RabbitMQ between relay and responders, real pods.

use std::path::Path;
use std::process::Command;

use muster_e2e::brokers::{Rabbit, Redis};
use muster_e2e::client_tool::ClientTool;
use muster_e2e::cluster::{Cluster, POD};
use muster_e2e::server::Server;
use muster_e2e::wait::wait_for;
use muster_egress::EgressPolicy;
use muster_ports::publisher::Publisher as _;
use muster_relay_sinks::address::Address;
use muster_relay_sinks::amqp::{AmqpPublisher, Consumer};
use muster_types::Message;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::responder::Responder;
use crate::world::{account, condition, job};

/// A relay that its environment describes, and what it tells of.
struct Scene {
    rabbit: Rabbit,
    redis: Redis,
    cluster: Cluster,
    server: Server,
    dir: TempDir,
}

impl Scene {
    fn new() -> Self {
        let (rabbit, redis, cluster) = (Rabbit::start(), Redis::start(), Cluster::new());
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let env = Self::env(&rabbit, &redis, &cluster, &account(&cluster, "relay", dir.path()));
        let server = Server::start_with(&["--roles", "relay"], &env);
        let scene = Self { rabbit, redis, cluster, server, dir };
        for (of, reason) in [("Watching", "Watching"), ("Connected", "Connected")] {
            let found = || condition(&scene.server, "environment", of)["reason"].clone();
            wait_for(&format!("{of}: {}", found()), POD, || found() == reason);
        }
        scene
    }

    fn env(
        rabbit: &Rabbit,
        redis: &Redis,
        cluster: &Cluster,
        kubeconfig: &Path,
    ) -> Vec<(&'static str, String)> {
        vec![
            ("RABBITMQ_HOST", "127.0.0.1".to_owned()),
            ("RABBITMQ_PORT", rabbit.port().to_string()),
            ("RABBITMQ_USER", "guest".to_owned()),
            ("RABBITMQ_PASSWD", "guest".to_owned()),
            ("REDIS_HOST", "127.0.0.1".to_owned()),
            ("REDIS_PORT", redis.port().to_string()),
            ("KUBE_CONFIG", kubeconfig.display().to_string()),
            ("NAMESPACE", cluster.namespace.clone()),
        ]
    }

    /// A responder, which keeps things on the server.
    fn responder(&self, more: &[(&'static str, &str)]) -> Responder {
        let kubeconfig = account(&self.cluster, "responder", self.dir.path());
        let mut env = Self::env(&self.rabbit, &self.redis, &self.cluster, &kubeconfig);
        env.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let kubeconfig = self.dir.path().join("server");
        if !kubeconfig.exists() {
            let made = self.muster("token create responder --role editor --as-kubeconfig");
            std::fs::write(&kubeconfig, made).expect("it can be written");
        }
        Responder::start(&kubeconfig, &env)
    }

    fn has_job(&self, name: &str) -> bool {
        !self.cluster.kubectl(&["get", "job", name, "--ignore-not-found", "-o", "name"]).is_empty()
    }

    fn wait_gone(&self, name: &str) {
        wait_for(&format!("{name} to be kept and deleted"), POD, || !self.has_job(name));
    }

    /// What is kept of jobs.
    fn kept(&self) -> Vec<Value> {
        let path = format!("/apis/muster.dev/v1alpha1/namespaces/{}/kubejobs", self.cluster.namespace);
        self.server.http().get(&path).json()["items"].as_array().cloned().unwrap_or_default()
    }

    fn muster(&self, line: &str) -> String {
        let kubeconfig = self.server.kubeconfig();
        let tool = ClientTool::named_by("MUSTER_BIN").env("MUSTER_KUBECONFIG", kubeconfig);
        tool.env("MUSTER_NAMESPACE", &self.cluster.namespace).ok(line)
    }
}

#[test]
fn jobs_that_ended_are_kept_with_all_their_logs_and_deleted_by_one_of_many_responders() {
    let scene = Scene::new();
    let _responders = [scene.responder(&[]), scene.responder(&[])];
    scene.cluster.create(&job("good", "echo first; echo second", &json!({"completions": 2})));
    scene.cluster.create(&job("bad", "echo trouble; exit 3", &json!({"backoffLimit": 1})));
    scene.wait_gone("good");
    scene.wait_gone("bad");
    let mut kept = scene.kept();
    kept.sort_by_key(|job| job["spec"]["jobName"].to_string());
    let summary: Vec<_> = kept
        .iter()
        .map(|job| {
            (&job["spec"]["jobName"], &job["spec"]["outcome"], job["status"]["logs"].as_array().map(Vec::len))
        })
        .collect();
    assert_eq!(
        summary,
        [(&json!("bad"), &json!("failed"), Some(2)), (&json!("good"), &json!("success"), Some(2)),]
    );
    assert!(kept.iter().all(|job| job["status"]["saved"].is_string()), "{kept:?}");
    assert_eq!(kept[1]["spec"]["document"]["spec"]["completions"], 2, "the job as it was");
    assert!(kept[0]["spec"]["failureReason"].as_str().unwrap().starts_with("BackoffLimitExceeded"));
    assert_eq!(scene.muster("logs kubejob/good"), "first\nsecond\nfirst\nsecond\n");
    assert_eq!(scene.muster("logs kubejob/bad -c main"), "trouble\ntrouble\n");
    let name = kept[0]["metadata"]["name"].as_str().unwrap();
    let path = format!("/apis/muster.dev/v1alpha1/namespaces/{}/kubejobs/{name}", scene.cluster.namespace);
    let logs = scene.server.http().get(&format!("{path}/logs")).json();
    assert_eq!((logs["items"].as_array().map(Vec::len), &logs["items"][0]["size"]), (Some(2), &json!(8)));
    let version = Command::new("redis-cli")
        .args(["-p", &scene.redis.port().to_string(), "get", "cdsreaper:most-recent-event"])
        .output()
        .unwrap();
    let version = String::from_utf8_lossy(&version.stdout).trim().parse::<u64>();
    assert!(version.is_ok_and(|version| version > 0), "the journal holds a version of the cluster");
}

/// The commands of the guide that are said to be tested.
fn tested(guide: &str) -> Vec<String> {
    let blocks = guide.split("```sh tested\n").skip(1).filter_map(|block| block.split("```").next());
    blocks.flat_map(str::lines).map(str::to_owned).collect()
}

#[test]
fn the_commands_of_the_guide_show_what_was_kept_and_let_it_go() {
    let scene = Scene::new();
    let _responder = scene.responder(&[]);
    scene.cluster.create(&job("cds-a", "echo hello", &json!({})));
    scene.wait_gone("cds-a");
    let lines = tested(include_str!("../../../docs/guides/jobs.md"));
    let said: Vec<String> =
        lines.iter().map(|line| scene.muster(line.strip_prefix("muster ").expect("a verb"))).collect();
    assert!(said[0].contains("cds-a") && said[0].contains("success"), "{said:?}");
    assert_eq!(said[1], "hello\n");
    assert_eq!(scene.kept(), [Value::Null; 0]);
}

#[test]
fn while_logs_cannot_be_kept_nothing_is_deleted_and_a_responder_that_is_killed_is_replaced() {
    let mut scene = Scene::new();
    let first = scene.responder(&[]);
    scene.cluster.create(&job("a", "echo kept", &json!({})));
    scene.wait_gone("a");
    // The server that keeps logs goes; messages that it sent before wait in the queue.
    scene.cluster.create(&job("b", "sleep 2; echo kept too", &json!({"suspend": true})));
    drop(first);
    let patch = json!({"spec": {"suspend": false}}).to_string();
    scene.cluster.kubectl(&["patch", "job", "b", "--type", "merge", "-p", &patch]);
    wait_for("its end to be confirmed", POD, || {
        let sink =
            scene.server.http().get("/apis/muster.dev/v1alpha1/namespaces/default/eventsinks/environment");
        sink.json()["status"]["confirmed"].as_u64() >= Some(6)
    });
    scene.server.kill();
    let second = scene.responder(&[]);
    second.wait_for_line("a job waits");
    assert!(scene.has_job("b"));
    drop(second);
    scene.server.restart();
    let _third = scene.responder(&[]);
    scene.wait_gone("b");
    assert_eq!(scene.muster("logs kubejob/b"), "kept too\n");
}

#[test]
fn who_wants_to_keep_jobs_keeps_them_and_what_nobody_understands_is_on_a_queue_of_its_own() {
    let scene = Scene::new();
    let responder = scene.responder(&[("KEEP_JOBS", "yes")]);
    responder.wait_for_line("responding to messages");
    scene.cluster.create(&job("stays", "echo here", &json!({})));
    wait_for("it to be kept", POD, || scene.kept().iter().any(|job| job["status"]["saved"].is_string()));
    assert!(scene.has_job("stays"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let address = Address::parse(&scene.rabbit.url()).unwrap();
        let mut session =
            AmqpPublisher::new(address.clone(), "cdsresponder", EgressPolicy::unrestricted().into())
                .open()
                .await
                .unwrap();
        let strange = Message {
            id: "strange".to_owned(),
            key: "k".into(),
            topic: "cds.job.failed".to_owned(),
            content_type: "application/json",
            attributes: Vec::new(),
            body: b"{\"job-id\": 5}".to_vec(),
        };
        session.send(&[(1, std::sync::Arc::new(strange))]).await.unwrap();
        session.verdicts().await.unwrap();
        let mut letters = Consumer::open_queue(&address, "cdsresponder-dlq", 10).await.unwrap();
        let letter = tokio::time::timeout(POD, letters.next()).await.expect("it is kept").unwrap();
        assert_eq!((letter.id.as_str(), letter.body.as_slice()), ("strange", &b"{\"job-id\": 5}"[..]));
    });
}
