//! etcd, the API server, the controllers and the scheduler.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, iter};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::certificates::{CLUSTER_CA, Certificates, PROXY_CA, PROXY_CLIENT};
use super::layout::Layout;
use super::wait_until::wait_until;
use super::{detached, kubeconfig, kubectl_command, kubernetes_build, network};
use crate::{run, setup};

/// In the order they are started.
pub const NAMES: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];
/// How long a part may take to answer.
const PATIENCE: Duration = Duration::from_mins(2);
/// Clients of the cluster's own must not be what tests wait for.
const QPS: u32 = 1000;

/// Where the programs are.
#[derive(Debug)]
pub struct ControlPlaneParts {
    etcd: PathBuf,
    apiserver: PathBuf,
    controller_manager: PathBuf,
    scheduler: PathBuf,
    pub kubectl: PathBuf,
}

impl ControlPlaneParts {
    pub fn locate() -> Result<Self> {
        let cache = setup::cache()?;
        let _lock = setup::Lock::take(&cache)?;
        Ok(Self {
            etcd: setup::etcd(&cache)?,
            apiserver: kubernetes_build::part("kube-apiserver")?,
            controller_manager: kubernetes_build::part("kube-controller-manager")?,
            scheduler: kubernetes_build::part("kube-scheduler")?,
            kubectl: setup::kubectl(&cache)?,
        })
    }
}

/// Starts all of it and waits until it answers.
pub fn start(layout: &Layout, parts: &ControlPlaneParts, address: &str) -> Result<()> {
    let certificates = Certificates::make(&layout.certificates())?;
    // The address is ours alone, but loopback is everybody's.
    let port = if address == network::LOOPBACK { free_port()? } else { 443 };
    write_users(layout, &certificates, &format!("https://{address}:{port}"))?;
    let etcd = start_etcd(layout, parts)?;
    let apiserver = apiserver(layout, parts, &certificates, address, port, &etcd);
    launch(layout, "kube-apiserver", &apiserver)?;
    let admin = layout.admin_kubeconfig();
    wait_for(layout, "kube-apiserver", || {
        run::quietly(kubectl_command(&parts.kubectl, &admin).args(["get", "--raw", "/readyz"]))
    })?;
    launch(layout, "kube-controller-manager", &controller_manager(layout, parts, &certificates))?;
    launch(layout, "kube-scheduler", &scheduler(layout, parts)?)?;
    wait_for(layout, "kube-controller-manager", || {
        let mut get = kubectl_command(&parts.kubectl, &admin);
        run::quietly(get.args(["get", "serviceaccount", "default", "--namespace", "default"]))
    })
}

fn write_users(layout: &Layout, certificates: &Certificates, server: &str) -> Result<()> {
    let mut lines = String::new();
    for (name, user, groups) in kubeconfig::USERS {
        let token = kubeconfig::new_token()?;
        lines += &format!("{token},{user},{user},\"{groups}\"\n");
        kubeconfig::write(&layout.kubeconfig(name), server, &certificates.certificate(CLUSTER_CA), &token)?;
    }
    fs::write(layout.file("tokens.csv"), lines).context("cannot write the tokens")
}

fn start_etcd(layout: &Layout, parts: &ControlPlaneParts) -> Result<String> {
    let [clients, peers] = [free_port()?, free_port()?].map(|port| format!("http://127.0.0.1:{port}"));
    let mut etcd = Command::new(&parts.etcd);
    etcd.arg("--data-dir").arg(layout.file("etcd"));
    etcd.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
    etcd.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
    etcd.args(["--initial-cluster", &format!("default={peers}"), "--quota-backend-bytes", "4294967296"]);
    launch(layout, "etcd", &etcd)?;
    wait_for(layout, "etcd", || put_first(clients.trim_start_matches("http://")))?;
    Ok(clients)
}

/// Writes something before the API server first looks, so that version 1 is before everything it remembers: a watch from there has
/// expired, whatever the age of the cluster.
fn put_first(address: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let body = r#"{"key":"bXVzdGVy","value":"bXVzdGVy"}"#;
    let size = body.len();
    let head = format!("POST /v3/kv/put HTTP/1.0\r\nHost: {address}\r\nContent-Length: {size}\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.contains("\"revision\"") { Ok(answer) } else { bail!("etcd did not take a value: {answer}") }
}

fn apiserver(
    layout: &Layout,
    parts: &ControlPlaneParts,
    certificates: &Certificates,
    address: &str,
    port: u16,
    etcd: &str,
) -> Command {
    let mut command = Command::new(&parts.apiserver);
    let files = [
        ("cert-dir", layout.certificates()),
        ("tls-cert-file", certificates.certificate("apiserver")),
        ("tls-private-key-file", certificates.key("apiserver")),
        ("client-ca-file", certificates.certificate(CLUSTER_CA)),
        ("token-auth-file", layout.file("tokens.csv")),
        ("service-account-key-file", certificates.certificate("service-accounts")),
        ("service-account-signing-key-file", certificates.key("service-accounts")),
        ("kubelet-certificate-authority", certificates.certificate(CLUSTER_CA)),
        ("kubelet-client-certificate", certificates.certificate("kubelet-client")),
        ("kubelet-client-key", certificates.key("kubelet-client")),
        ("requestheader-client-ca-file", certificates.certificate(PROXY_CA)),
        ("proxy-client-cert-file", certificates.certificate(PROXY_CLIENT)),
        ("proxy-client-key-file", certificates.key(PROXY_CLIENT)),
    ];
    for (flag, file) in files {
        command.arg(format!("--{flag}={}", file.display()));
    }
    command.args([
        &format!("--etcd-servers={etcd}"),
        &format!("--bind-address={address}"),
        &format!("--secure-port={port}"),
        &format!("--advertise-address={}", network::API),
        &format!("--service-cluster-ip-range={}", network::SERVICES),
        &format!("--requestheader-allowed-names={PROXY_CLIENT}"),
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--enable-aggregator-routing=true",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--authorization-mode=Node,RBAC",
        "--kubelet-preferred-address-types=InternalIP",
        "--allow-privileged=true",
        "--max-requests-inflight=4000",
        "--max-mutating-requests-inflight=2000",
        "--profiling=false",
    ]);
    command
}

fn controller_manager(layout: &Layout, parts: &ControlPlaneParts, certificates: &Certificates) -> Command {
    let mut command = Command::new(&parts.controller_manager);
    command.args([
        &format!("--kubeconfig={}", layout.kubeconfig("controller-manager").display()),
        &format!("--service-account-private-key-file={}", certificates.key("service-accounts").display()),
        &format!("--root-ca-file={}", certificates.certificate(CLUSTER_CA).display()),
        &format!("--kube-api-qps={QPS}"),
        &format!("--kube-api-burst={}", QPS * 2),
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        "--secure-port=0",
        "--profiling=false",
    ]);
    command
}

fn scheduler(layout: &Layout, parts: &ControlPlaneParts) -> Result<Command> {
    let settings = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "clientConnection": { "kubeconfig": layout.kubeconfig("scheduler"), "qps": QPS, "burst": QPS * 2 },
        "leaderElection": { "leaderElect": false },
    });
    let file = layout.file("scheduler.json");
    fs::write(&file, settings.to_string()).context("cannot write the settings of the scheduler")?;
    let mut command = Command::new(&parts.scheduler);
    command.arg(format!("--config={}", file.display())).args(["--secure-port=0"]);
    Ok(command)
}

fn launch(layout: &Layout, name: &str, command: &Command) -> Result<()> {
    detached::start(command, &layout.log(name), &layout.process(name))
}

/// Asks until there is an answer, or the part is gone.
pub fn wait_for(layout: &Layout, name: &str, mut ask: impl FnMut() -> Result<String>) -> Result<()> {
    let mut last = None;
    let answered = wait_until(PATIENCE, || match ask() {
        Ok(_) => Some(true),
        Err(error) => {
            last = Some(error);
            (!detached::is_running(&layout.process(name))).then_some(false)
        }
    });
    if answered == Some(true) {
        return Ok(());
    }
    let log = fs::read_to_string(layout.log(name)).unwrap_or_default();
    let why = last.map_or_else(String::new, |error| format!(": {error:#}"));
    bail!("{name} does not answer{why}{}", run::tail(&log))
}

fn free_port() -> Result<u16> {
    let free = TcpListener::bind((network::LOOPBACK, 0)).context("no port is free")?;
    Ok(free.local_addr().context("no port is free")?.port())
}

/// The path with a directory before all others.
pub fn path_with(first: &Path) -> Result<std::ffi::OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = iter::once(first.to_path_buf()).chain(std::env::split_paths(&path));
    std::env::join_paths(dirs).context("a directory cannot be put into PATH")
}
