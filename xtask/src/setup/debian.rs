//! Programs from Debian packages, unpacked privately so that nothing on the machine is replaced.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::run;

/// Before the first retry.
const PAUSE: Duration = Duration::from_secs(2);

/// Downloads a package and unpacks its files under `into`, without installing it.
pub fn unpack(package: &str, into: &Path) -> Result<()> {
    require_apt()?;
    let downloads = into.join("download");
    fs::create_dir_all(&downloads).with_context(|| format!("cannot create {}", downloads.display()))?;
    let mut download = apt_get();
    download.current_dir(&downloads).args(["download", package]);
    // A fresh machine has no package lists, an old one stale ones; only root can fetch them.
    if let Err(error) = run::quietly(&mut download) {
        refresh_lists().with_context(|| format!("{error:#}"))?;
        run::retry(&format!("downloading {package}"), PAUSE, || run::quietly(&mut download))?;
    }
    let archive = the_archive_in(&downloads)?;
    run::quietly(Command::new("dpkg-deb").arg("-x").arg(archive).arg(into))?;
    fs::remove_dir_all(&downloads).with_context(|| format!("cannot remove {}", downloads.display()))
}

/// Installs packages on the machine; for what cannot be used unpacked.
pub fn install_on_machine(packages: &[&str]) -> Result<()> {
    require_apt()?;
    refresh_lists()?;
    println!("==> installing {}", packages.join(" "));
    let _quiet = StartNothing::take()?;
    let mut install = apt_get();
    install.args(["install", "-y", "--no-install-recommends"]).args(packages);
    run::retry("installing packages", PAUSE, || run::quietly(&mut install)).map(drop)
}

/// What asks whether services may start; as long as this is there, it says no.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// Keeps services of packages from starting while they are installed: tests start their own.
struct StartNothing {
    ours: bool,
}

impl StartNothing {
    fn take() -> Result<Self> {
        if Path::new(POLICY).exists() {
            return Ok(Self { ours: false });
        }
        fs::write(POLICY, "#!/bin/sh\nexit 101\n").with_context(|| format!("cannot write {POLICY}"))?;
        fs::set_permissions(POLICY, fs::Permissions::from_mode(0o755))?;
        Ok(Self { ours: true })
    }
}

impl Drop for StartNothing {
    fn drop(&mut self) {
        if self.ours {
            drop(fs::remove_file(POLICY));
        }
    }
}

fn require_apt() -> Result<()> {
    for program in ["apt-get", "dpkg-deb"] {
        if run::find_in_path(program).is_none() {
            bail!("{program} is not on this machine, and only Debian packages are known here");
        }
    }
    Ok(())
}

/// Fetches the package lists, once per run of this program.
fn refresh_lists() -> Result<()> {
    static REFRESHED: OnceLock<()> = OnceLock::new();
    if REFRESHED.get().is_some() {
        return Ok(());
    }
    if !is_root() {
        bail!("the package lists need `apt-get update`, which only root can run");
    }
    println!("==> fetching Debian package lists");
    run::retry("fetching package lists", PAUSE, || run::quietly(apt_get().arg("update")))?;
    REFRESHED.get_or_init(|| ());
    Ok(())
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command.args(["-q", "-o", "Acquire::Retries=3", "-o", "DPkg::Lock::Timeout=120"]);
    command
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

fn the_archive_in(dir: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .with_context(|| format!("apt-get left no package in {}", dir.display()))
}
