//! A small stand-in for a kubelet: a node of its own whose pods end well as soon as they are seen.
//!
//! For benchmarks of control planes only: nothing runs. It answers for logs, as a kubelet must, with one line.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures_util::{StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt as _};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Pods that are ended at the same time.
const WIDTH: usize = 32;
const LOG: &str = "2026-11-15T00:00:00Z done\n";

/// A node that is not there.
pub struct StandIn {
    client: Client,
    /// Its name, for `nodeName`.
    pub node: String,
    workers: JoinSet<()>,
}

impl StandIn {
    /// Begins to end the pods of a namespace. `certificates` has those of the real kubelet.
    pub async fn start(client: Client, namespace: &str, certificates: &Path) -> anyhow::Result<Self> {
        let nodes: Api<Node> = Api::all(client.clone());
        let real = nodes.list(&ListParams::default()).await?;
        let addresses = real.items.first().and_then(|node| node.status.as_ref()?.addresses.clone());
        let address = addresses.and_then(|all| all.into_iter().find(|it| it.type_ == "InternalIP"));
        let address = address.context("the cluster has no node with an address")?.address;
        let listener = TcpListener::bind((address.as_str(), 0)).await?;
        let port = listener.local_addr()?.port();
        let node = format!("stand-in-{}", std::process::id());
        let object = serde_json::from_value(json!({
            "metadata": { "name": node }, "spec": { "taints": [{ "key": "stand-in", "effect": "NoSchedule" }] },
        }))?;
        nodes.create(&PostParams::default(), &object).await?;
        let status = json!({ "status": {
            "addresses": [{ "type": "InternalIP", "address": address }],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": port } },
            "conditions": [{ "type": "Ready", "status": "True" }],
        } });
        nodes.patch_status(&node, &PatchParams::default(), &Patch::Merge(&status)).await?;
        let mut workers = JoinSet::new();
        workers.spawn(serve_logs(listener, acceptor(certificates)?));
        workers.spawn(end_pods(Api::namespaced(client.clone(), namespace), node.clone()));
        Ok(Self { client, node, workers })
    }

    /// Ends it.
    pub async fn end(mut self) -> anyhow::Result<()> {
        self.workers.abort_all();
        let nodes: Api<Node> = Api::all(self.client.clone());
        nodes.delete(&self.node, &DeleteParams::default()).await?;
        Ok(())
    }
}

fn acceptor(certificates: &Path) -> anyhow::Result<TlsAcceptor> {
    let chain = CertificateDer::pem_file_iter(certificates.join("kubelet.crt"))?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(certificates.join("kubelet.key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn end_pods(pods: Api<Pod>, node: String) {
    let room = Arc::new(Semaphore::new(WIDTH));
    let asked = WatchParams::default().fields(&format!("spec.nodeName={node}"));
    let mut place = String::new();
    loop {
        if let Err(error) = follow(&pods, &asked, &mut place, &room).await {
            eprintln!("the stand-in lost sight of its pods: {error}");
            place.clear();
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

/// Ends every pod that comes, until the stream ends.
async fn follow(
    pods: &Api<Pod>,
    asked: &WatchParams,
    place: &mut String,
    room: &Arc<Semaphore>,
) -> kube::Result<()> {
    if place.is_empty() {
        let now = pods.list(&ListParams::default().limit(1)).await?;
        *place = now.metadata.resource_version.unwrap_or_default();
    }
    let events = pods.watch(asked, place).await?;
    pin_mut!(events);
    while let Some(event) = events.next().await {
        let pod = match event? {
            WatchEvent::Added(pod) => pod,
            WatchEvent::Error(error) => return Err(kube::Error::Api(error)),
            WatchEvent::Modified(_) | WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => continue,
        };
        if let Some(version) = pod.resource_version() {
            *place = version;
        }
        let Ok(permit) = room.clone().acquire_owned().await else { return Ok(()) };
        let pods = pods.clone();
        tokio::spawn(async move {
            let done = pods.patch_status(&pod.name_any(), &PatchParams::default(), &success(&pod)).await;
            if let Err(error) = done {
                eprintln!("a pod could not be ended: {error}");
            }
            drop(permit);
        });
    }
    Ok(())
}

fn success(pod: &Pod) -> Patch<serde_json::Value> {
    let at = jiff::Timestamp::now().strftime("%FT%TZ").to_string();
    let end =
        json!({ "terminated": { "exitCode": 0, "reason": "Completed", "startedAt": at, "finishedAt": at } });
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let statuses: Vec<_> = containers
        .map(|container| {
            json!({
                "name": container.name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": end,
            })
        })
        .collect();
    Patch::Merge(json!({ "status": { "phase": "Succeeded", "containerStatuses": statuses } }))
}

async fn serve_logs(listener: TcpListener, acceptor: TlsAcceptor) {
    while let Ok((stream, _)) = listener.accept().await {
        let acceptor = acceptor.clone();
        tokio::spawn(async move { drop(answer(stream, acceptor).await) });
    }
}

/// Answers every request on a connection with the same log.
async fn answer(stream: TcpStream, acceptor: TlsAcceptor) -> anyhow::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let mut seen = Vec::new();
    let said =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{LOG}", LOG.len());
    loop {
        if stream.read_buf(&mut seen).await? == 0 {
            return Ok(());
        }
        while let Some(end) = seen.windows(4).position(|window| window == b"\r\n\r\n") {
            seen.drain(..end + 4);
            stream.write_all(said.as_bytes()).await?;
            stream.flush().await?;
        }
    }
}
