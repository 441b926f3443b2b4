//! The node: containerd and the kubelet in namespaces of their own.
//!
//! All processes of the node, those of pods too, are in one namespace of processes, and all it mounts is in one namespace of
//! mounts: ending the first of them ends everything and leaves no mount behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::control_plane::{path_with, wait_for};
use super::layout::Layout;
use super::node_parts::{BUSYBOX_RECORD, NodeParts, control_group_roots};
use super::{detached, images, kubectl_command, network};
use crate::run;

pub const NAME: &str = "node";
/// What the cluster calls it.
const HOST: &str = "muster";
/// The groups that a kubelet makes.
const GROUPS: &str = "kubepods";
/// First of its namespace, it is the parent of whatever lost its own. When the kubelet ends, so does it, and the namespace.
const SCRIPT: &str = r#"
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
mkdir -p /var/lib/cni /var/log "$STATE/var-log"
mount -t tmpfs tmpfs /var/lib/cni
mount --bind "$STATE/var-log" /var/log
"$CONTAINERD" --config "$STATE/containerd.toml" > "$LOGS/containerd.log" 2>&1 &
while [ ! -S "$STATE/containerd.sock" ]; do kill -0 $! || exit 1; sleep 0.1; done
"$KUBELET" --config "$STATE/kubelet.json" --kubeconfig "$STATE/kubelet.kubeconfig" --root-dir "$STATE/kubelet" \
    --hostname-override "$HOST" --node-ip "$NODE" &
wait $!
"#;

/// Starts the node and waits until pods can run on it.
pub fn start(layout: &Layout, parts: &NodeParts, kubectl: &Path) -> Result<()> {
    fs::write(layout.file(BUSYBOX_RECORD), parts.busybox.display().to_string())
        .context("cannot write to the cache")?;
    write_settings(layout, parts)?;
    detached::start(&command(layout, parts)?, &layout.log(NAME), &layout.process(NAME))?;
    let socket = socket(layout);
    wait_for(layout, NAME, || {
        run::quietly(Command::new(&parts.ctr).arg("-a").arg(&socket).args(["plugins", "list", "-q"]))
    })?;
    images::import(layout, parts, &socket)?;
    let admin = layout.admin_kubeconfig();
    wait_for(layout, NAME, || {
        let query = r"jsonpath={.status.conditions[?(@.type=='Ready')].status}";
        let said = run::quietly(kubectl_command(kubectl, &admin).args(["get", "node", HOST, "-o", query]))?;
        if said != "True" {
            bail!("the node is not ready");
        }
        Ok(said)
    })
}

fn command(layout: &Layout, parts: &NodeParts) -> Result<Command> {
    let mut command = Command::new("unshare");
    command.args(["--fork", "--pid", "--mount", "--kill-child=KILL", "sh", "-c", SCRIPT]);
    command.env("STATE", layout.state()).env("LOGS", layout.logs());
    command.env("CONTAINERD", &parts.containerd).env("KUBELET", &parts.kubelet);
    command.env("HOST", HOST).env("NODE", network::NODE);
    // An old kubelet asks for the metadata of a cloud unless told not to.
    command.env("AWS_EC2_METADATA_DISABLED", "true");
    let shims = parts.containerd.parent().context("containerd has no directory")?;
    command.env("PATH", path_with(shims)?);
    Ok(command)
}

pub fn socket(layout: &Layout) -> PathBuf {
    layout.file("containerd.sock")
}

fn write_settings(layout: &Layout, parts: &NodeParts) -> Result<()> {
    let plugins = layout.file("cni");
    fs::create_dir_all(&plugins).context("cannot write to the cache")?;
    let write = |file: &Path, text: String| {
        fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
    };
    write(&plugins.join("10-muster.conflist"), network_settings(layout))?;
    write(&layout.file("containerd.toml"), containerd_settings(layout, parts, &plugins))?;
    write(&layout.file("kubelet.json"), kubelet_settings(layout))
}

fn network_settings(layout: &Layout) -> String {
    let addresses = json!({
        "type": "host-local", "dataDir": layout.file("addresses"),
        "ranges": [[{ "subnet": network::PODS, "gateway": network::NODE }]],
        "routes": [{ "dst": "0.0.0.0/0" }],
    });
    json!({
        "cniVersion": "0.4.0", "name": "muster",
        "plugins": [{ "type": "bridge", "bridge": network::BRIDGE, "ipam": addresses }],
    })
    .to_string()
}

fn containerd_settings(layout: &Layout, parts: &NodeParts, plugins: &Path) -> String {
    // What JSON quotes, TOML reads.
    let quoted = |path: &Path| json!(path).to_string();
    format!(
        r#"version = 2
root = {root}
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
]
[grpc]
address = {socket}
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = {pause}
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = {cni}
conf_dir = {plugins}
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
BinaryName = {runc}
"#,
        root = quoted(&layout.file("containerd")),
        socket = quoted(&socket(layout)),
        pause = json!(images::PAUSE),
        cni = quoted(&parts.cni),
        plugins = quoted(plugins),
        runc = quoted(&parts.runc),
    )
}

fn kubelet_settings(layout: &Layout) -> String {
    let certificate = |name: &str| layout.certificates().join(name);
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "address": network::NODE, "readOnlyPort": 0, "healthzPort": 0,
        "authentication": {
            "anonymous": { "enabled": false }, "webhook": { "enabled": false },
            "x509": { "clientCAFile": certificate("ca.crt") },
        },
        "authorization": { "mode": "AlwaysAllow" },
        "tlsCertFile": certificate("kubelet.crt"), "tlsPrivateKeyFile": certificate("kubelet.key"),
        "containerRuntimeEndpoint": format!("unix://{}", socket(layout).display()),
        "cgroupDriver": "cgroupfs", "failCgroupV1": false, "failSwapOn": false, "enforceNodeAllocatable": [],
        "evictionHard": {
            "memory.available": "1Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%",
        },
        "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
        "makeIPTablesUtilChains": false, "syncFrequency": "2s", "maxPods": 200,
        "kubeAPIQPS": 200, "kubeAPIBurst": 400, "eventRecordQPS": 0, "registryPullQPS": 0, "serializeImagePulls": false,
        "clusterDNS": ["198.18.57.10"], "clusterDomain": "cluster.local",
    })
    .to_string()
}

/// Removes the groups that the kubelet left. One with a living process in it stays.
pub fn remove_control_groups() {
    for root in control_group_roots() {
        remove_group(&root.join(GROUPS));
    }
}

fn remove_group(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_group(&entry.path());
        }
    }
    fs::remove_dir(group).ok();
}
