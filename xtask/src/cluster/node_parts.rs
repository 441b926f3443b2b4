//! The programs of a node, and whether this machine can run one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::kubernetes_build;
use crate::{run, setup};

/// Says with which program the network was made, so that it can be removed.
pub const BUSYBOX_RECORD: &str = "busybox";
const DEBIAN: [&str; 4] = ["containerd", "runc", "containernetworking-plugins", "busybox-static"];

/// Where the programs are.
#[derive(Debug)]
pub struct NodeParts {
    pub kubelet: PathBuf,
    /// With its shim beside it.
    pub containerd: PathBuf,
    pub ctr: PathBuf,
    pub runc: PathBuf,
    /// Plugins that connect pods to a network.
    pub cni: PathBuf,
    pub busybox: PathBuf,
    pub pause: PathBuf,
}

impl NodeParts {
    pub fn locate() -> Result<Self> {
        check_machine()?;
        let cache = setup::cache()?;
        let _lock = setup::Lock::take(&cache)?;
        let dir = cache.join("node");
        setup::install_once(&dir, "containerd, runc, network plugins and busybox", || {
            DEBIAN.iter().try_for_each(|package| setup::unpack(package, &dir))?;
            run::quietly(Command::new(dir.join("usr/sbin/runc")).arg("--version")).map(drop)
        })
        .context("the parts of a node cannot be installed")?;
        Ok(Self {
            kubelet: kubernetes_build::part("kubelet")?,
            containerd: dir.join("usr/bin/containerd"),
            ctr: dir.join("usr/bin/ctr"),
            runc: dir.join("usr/sbin/runc"),
            cni: dir.join("usr/lib/cni"),
            busybox: dir.join("bin/busybox"),
            pause: kubernetes_build::built("pause")?,
        })
    }
}

/// What no installation can bring.
fn check_machine() -> Result<()> {
    if !fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0) {
        bail!("only root can run a kubelet");
    }
    for program in ["unshare", "setsid", "mount"] {
        if run::find_in_path(program).is_none() {
            bail!("`{program}` is not on this machine; it comes with util-linux");
        }
    }
    let mut unshare = Command::new("unshare");
    unshare.args(["--fork", "--pid", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /run"]);
    run::quietly(&mut unshare).context("this machine lets nobody make namespaces")?;
    if control_group_roots().is_empty() {
        bail!("control groups cannot be written here");
    }
    Ok(())
}

/// Where groups are made: the root of the hierarchy, or of each of the controllers in the old style.
pub fn control_group_roots() -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let dirs = if root.join("cgroup.controllers").exists() {
        vec![root.to_path_buf()]
    } else {
        let entries = fs::read_dir(root).into_iter().flatten();
        entries
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.is_dir())
            .collect()
    };
    dirs.into_iter().filter(|dir| is_writable(dir)).collect()
}

fn is_writable(dir: &Path) -> bool {
    let probe = dir.join("muster-probe");
    fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe)).is_ok()
}
