//! A small disk for the data of a server, which can be filled up and freed again.
//!
//! It is mounted in the mount namespace of the soak, which [`enter`] makes, and goes with it.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

/// Set in a process that has mounts of its own.
const INSIDE: &str = "MUSTER_SOAK_INSIDE";
/// How large it is.
const SIZE: &str = "256m";
/// Becomes the server, with its data directory on the disk.
const SERVER: &str = r#"#!/bin/sh
set -e
for word; do
    if [ "$previous" = --data ]; then data=$word; fi
    previous=$word
done
mkdir -p "$data"
mountpoint -q "$data" || mount -t tmpfs -o size=SIZE none "$data"
exec "$MUSTER_BIN" "$@"
"#;

/// Makes sure that this process has mounts of its own: becomes one that has if need be.
pub fn enter() -> anyhow::Result<()> {
    if std::env::var_os(INSIDE).is_some() {
        return Ok(());
    }
    let is_root = rustix::process::getuid().is_root();
    // Only root need not ask for the right to mount.
    let flag = if is_root { "-m" } else { "-rm" };
    let mut command = Command::new("unshare");
    command.arg(flag).arg(std::env::current_exe()?).args(std::env::args_os().skip(1)).env(INSIDE, "1");
    Err(command.exec()).context("cannot have mounts of one's own with `unshare`")
}

/// Writes a program that becomes a server on a small disk.
pub fn server_program(dir: &Path) -> anyhow::Result<PathBuf> {
    let program = dir.join("muster-on-a-small-disk");
    fs::write(&program, SERVER.replace("SIZE", SIZE))?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    Ok(program)
}

/// A file that takes all the room that is left, until it is dropped.
pub struct Ballast {
    path: PathBuf,
    file: File,
}

impl Ballast {
    /// Fills up the disk of a directory.
    pub fn fill(directory: &Path) -> anyhow::Result<Self> {
        let path = directory.join("ballast");
        let file =
            File::options().create(true).append(true).open(&path).context("cannot fill up the disk")?;
        let mut ballast = Self { path, file };
        ballast.top_up();
        Ok(ballast)
    }

    /// Takes what became free since.
    pub fn top_up(&mut self) {
        let zeros = vec![0; 64 * 1024];
        for size in [zeros.len(), 4096] {
            while self.file.write_all(&zeros[..size]).is_ok() {}
        }
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        fs::remove_file(&self.path).expect("a file can be removed from a full disk");
    }
}

/// Takes the disk away, once nobody uses it.
pub fn unmount(directory: &Path) {
    // It goes with the namespace anyway.
    drop(Command::new("umount").arg("-l").arg(directory).output());
}
