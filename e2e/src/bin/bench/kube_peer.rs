//! kube-apiserver with etcd, as found on this machine, serving the same kind as a custom resource.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::clients::Endpoint;
use crate::process::{Process, program};

/// A running pair.
pub struct Kube {
    _etcd: Process,
    apiserver: Process,
    /// TLS, the only way in.
    pub endpoint: Endpoint,
}

const TOKEN: &str = "bench-token";

/// Starts the pair, or says that it is not there.
pub async fn start(dir: &Path) -> anyhow::Result<Option<Kube>> {
    let (Some(apiserver), Some(etcd)) = (program("MUSTER_KUBE_APISERVER"), program("MUSTER_ETCD")) else {
        return Ok(None);
    };
    std::fs::create_dir_all(dir)?;
    let (client, peer, secure) = (free_port()?, free_port()?, free_port()?);
    let client_url = format!("http://127.0.0.1:{client}");
    let mut command = Command::new(etcd);
    command.env("ETCD_UNSUPPORTED_ARCH", "").arg("--data-dir").arg(dir.join("etcd")).args([
        "--listen-client-urls",
        &client_url,
        "--advertise-client-urls",
        &client_url,
        "--listen-peer-urls",
        &format!("http://127.0.0.1:{peer}"),
        "--initial-cluster",
        &format!("default=http://127.0.0.1:{peer}"),
        "--initial-advertise-peer-urls",
        &format!("http://127.0.0.1:{peer}"),
        "--quota-backend-bytes",
        "4294967296",
    ]);
    let etcd = Process::start(&mut command, &dir.join("etcd.log"))?;

    std::fs::write(dir.join("tokens.csv"), format!("{TOKEN},admin,admin,system:masters\n"))?;
    let key = dir.join("sa.key");
    let made = Command::new("openssl").args(["genrsa", "-out"]).arg(&key).arg("2048").output();
    made.context("openssl is needed to make a service account key")?;
    let certs = dir.join("certs");
    let mut command = Command::new(apiserver);
    command
        .arg(format!("--etcd-servers={client_url}"))
        .arg(format!("--secure-port={secure}"))
        .arg("--bind-address=127.0.0.1")
        .arg(format!("--cert-dir={}", certs.display()))
        .arg(format!("--token-auth-file={}", dir.join("tokens.csv").display()))
        .arg(format!("--service-account-key-file={}", key.display()))
        .arg(format!("--service-account-signing-key-file={}", key.display()))
        .args([
            "--service-account-issuer=https://bench.invalid",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--disable-admission-plugins=ServiceAccount",
            "--max-requests-inflight=4000",
            "--max-mutating-requests-inflight=2000",
            "--enable-priority-and-fairness=false",
            "--profiling=false",
        ]);
    let apiserver = Process::start(&mut command, &dir.join("apiserver.log"))?;
    let ca = certs.join("apiserver.crt");
    let mut kube = Kube {
        _etcd: etcd,
        apiserver,
        endpoint: Endpoint {
            address: format!("127.0.0.1:{secure}"),
            authorization: format!("Bearer {TOKEN}"),
            ca: None,
        },
    };
    kube.wait_ready(&ca, &dir.join("apiserver.log")).await?;
    kube.define_task().await?;
    Ok(Some(kube))
}

impl Kube {
    /// Resident memory of the API server.
    pub fn rss(&self) -> anyhow::Result<u64> {
        self.apiserver.rss()
    }

    async fn wait_ready(&mut self, ca: &Path, log: &Path) -> anyhow::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(90);
        while Instant::now() < deadline && self.apiserver.runs() {
            if let Ok(text) = std::fs::read_to_string(ca) {
                self.endpoint.ca = Some(Arc::new(text));
                if let Ok(mut connection) = self.endpoint.connect().await
                    && let Ok(200) = connection.round_trip("GET", "/readyz", "text/plain", b"").await
                {
                    return Ok(());
                }
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let log = std::fs::read_to_string(log).unwrap_or_default();
        let tail: Vec<_> = log.lines().rev().take(15).collect();
        bail!("kube-apiserver did not get ready; its last words:\n{}", tail.join("\n"))
    }

    async fn define_task(&self) -> anyhow::Result<()> {
        let definition = serde_json::json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "tasks.muster.dev" },
            "spec": {
                "group": "muster.dev", "scope": "Namespaced",
                "names": { "plural": "tasks", "singular": "task", "kind": "Task", "listKind": "TaskList" },
                "versions": [{
                    "name": "v1alpha1", "served": true, "storage": true, "subresources": { "status": {} },
                    "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                        "spec": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                        "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                    }}},
                }],
            },
        });
        let mut connection = self.endpoint.connect().await?;
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let status = connection
            .round_trip("POST", path, "application/json", definition.to_string().as_bytes())
            .await?;
        if status != 201 {
            bail!("the custom resource was not accepted ({status}): {}", connection.last_answer());
        }
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            let mut connection = self.endpoint.connect().await?;
            let path = format!("{}?limit=1", crate::muster_peer::TASKS);
            if let Ok(200) = connection.round_trip("GET", &path, "text/plain", b"").await {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        bail!("the custom resource was not served in time")
    }
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
