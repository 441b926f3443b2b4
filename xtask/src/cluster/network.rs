//! Addresses of the cluster that exist on this machine alone.
//!
//! They live on a bridge of ours, which pods are connected to, and are from the range that is reserved for benchmarks, so no
//! real network has them. The API server listens on the address that pods know it by, so they reach it without a proxy.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::layout::Layout;
use super::node_parts::BUSYBOX_RECORD;
use crate::run;

/// The bridge.
pub const BRIDGE: &str = "muster0";
/// Its hardware address. One that is not said changes with the pods that come and go, and the others no longer find it.
const HARDWARE: &str = "02:6d:75:73:74:72";
/// Where the API server listens: the first of the addresses of services.
pub const API: &str = "198.18.57.1";
/// Addresses of services.
pub const SERVICES: &str = "198.18.57.0/24";
/// Where the kubelet listens, which is also the gateway of pods.
pub const NODE: &str = "198.18.58.1";
/// Addresses of pods.
pub const PODS: &str = "198.18.58.0/24";
/// Where the API server listens if nothing else can be had.
pub const LOOPBACK: &str = "127.0.0.1";

/// Makes the bridge with its addresses; does nothing if it is there.
pub fn create(busybox: &Path) -> Result<()> {
    if Path::new("/sys/class/net").join(BRIDGE).exists() {
        return Ok(());
    }
    ip(busybox, &["link", "add", "name", BRIDGE, "type", "bridge"])?;
    ip(busybox, &["link", "set", BRIDGE, "address", HARDWARE])?;
    ip(busybox, &["addr", "add", &format!("{API}/32"), "dev", BRIDGE])?;
    ip(busybox, &["addr", "add", &format!("{NODE}/24"), "dev", BRIDGE])?;
    ip(busybox, &["link", "set", BRIDGE, "up"])
}

/// Removes the bridge, if there is one.
pub fn remove(layout: &Layout) {
    let busybox = std::fs::read_to_string(layout.file(BUSYBOX_RECORD)).ok();
    if let Some(busybox) = busybox.filter(|_| Path::new("/sys/class/net").join(BRIDGE).exists())
        && let Err(error) = ip(Path::new(busybox.trim()), &["link", "del", BRIDGE])
    {
        eprintln!("    the bridge {BRIDGE} stays: {error:#}");
    }
}

fn ip(busybox: &Path, arguments: &[&str]) -> Result<()> {
    run::quietly(Command::new(busybox).arg("ip").args(arguments))
        .map(drop)
        .context("cannot set up the network")
}
