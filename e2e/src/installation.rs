//! The server as `deploy/server` puts it into a real cluster, gone with the test binary that installed it.
//!
//! There is one in a cluster at a time: its APIServices have the names they have. A lock keeps other test binaries of this
//! machine waiting, and whoever holds it removes everything when the binary has ended, however it ended.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use crate::client_tool::ClientTool;
use crate::cluster::POD;
use crate::guide::repository;
use crate::lines::Lines;
use crate::wait::wait_for;

/// How long other test binaries may have the cluster.
const TURN: Duration = Duration::from_mins(10);
/// Holds the lock, removes what is below a directory of kustomizations when its standard input ends, then the directory.
const GUARD: &str = r#"echo mine; read -r _; "$1" --kubeconfig "$2" delete -k "$3/clean" --ignore-not-found --timeout=60s; rm -rf "$3""#;

/// A server in the cluster.
pub struct Installation {
    dir: PathBuf,
    kubectl: ClientTool,
    _guard: Child,
}

impl Installation {
    /// The server that all tests of this binary share, while none of them has it alone.
    pub fn shared() -> RwLockReadGuard<'static, Self> {
        installed().read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same server for one test alone.
    pub fn alone() -> RwLockWriteGuard<'static, Self> {
        installed().write().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place to install from, and everything that the cluster needs besides what is installed. Nothing is installed yet.
    pub fn prepare() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made").keep();
        let (program, kubeconfig) = (variable("MUSTER_KUBECTL"), variable("MUSTER_TEST_KUBECONFIG"));
        let home = dir.join("home");
        fs::create_dir(&home).expect("a directory can be made");
        copy(&repository().join("deploy/server"), &dir.join("deploy/server"));
        make_volume(&dir);
        let mut guard = Command::new("flock")
            .arg(std::env::temp_dir().join("muster-test-installation.lock"))
            .args(["sh", "-c", GUARD, "guard", &program, &kubeconfig])
            .arg(&dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("flock can be started; it comes with util-linux");
        let mut said = Lines::of(guard.stdout.take().expect("standard output is piped"));
        assert!(said.find_within(TURN, |line| line == "mine").is_some(), "another test has the cluster");
        let kubectl =
            ClientTool::named_by("MUSTER_KUBECTL").env("KUBECONFIG", &kubeconfig).env("HOME", &home);
        let installation = Self { dir, kubectl, _guard: guard };
        // What a machine that lost its power left.
        installation.kubectl(&format!("delete -k {}/clean --ignore-not-found", installation.dir.display()));
        installation.kubectl(&format!("apply -k {}/volume", installation.dir.display()));
        installation
    }

    fn install() -> Self {
        let installation = Self::prepare();
        let place = installation.dir.join("test");
        write(&place.join("kustomization.yaml"), &for_tests());
        installation.kubectl(&format!("apply -k {}", place.display()));
        installation.wait_available();
        installation
    }

    /// Waits until the API server of the cluster passes requests on.
    pub fn wait_available(&self) {
        for line in [
            "-n muster rollout status deployment/muster --timeout=50s",
            "wait --for=condition=Available --timeout=50s apiservice/v1alpha1.muster.dev",
            "wait --for=condition=Available --timeout=50s apiservice/v1alpha1.resources.muster.dev",
        ] {
            wait_for(line, POD, || self.kubectl.run(line).code == Some(0));
        }
    }

    /// The kubectl of whoever installed it.
    pub fn tool(&self) -> &ClientTool {
        &self.kubectl
    }

    /// Runs that kubectl.
    #[track_caller]
    pub fn kubectl(&self, line: &str) -> String {
        self.kubectl.ok(line)
    }

    /// A directory with a copy of `deploy/`.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The image of the server under test.
    pub fn image() -> String {
        variable("MUSTER_TEST_SERVER_IMAGE")
    }
}

fn installed() -> &'static RwLock<Installation> {
    static SHARED: OnceLock<RwLock<Installation>> = OnceLock::new();
    SHARED.get_or_init(|| RwLock::new(Installation::install()))
}

#[track_caller]
fn variable(name: &str) -> String {
    let value = std::env::var(name).ok().filter(|value| !value.is_empty());
    value.unwrap_or_else(|| {
        assert!(name.is_empty(), "{name} is not set; `cargo xtask test` starts a cluster and sets it");
        String::new()
    })
}

/// What a cluster would make by itself, if it had a provisioner; and a kustomization to remove everything by.
fn make_volume(dir: &Path) {
    let data = dir.join("data");
    fs::create_dir(&data).expect("a directory can be made");
    fs::set_permissions(&data, Permissions::from_mode(0o777)).expect("a directory can be given away");
    let volume = format!(
        "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: muster-test}}\nspec:\n  capacity: {{storage: 10Gi}}\n  \
         accessModes: [ReadWriteOnce]\n  hostPath: {{path: {}}}\n  claimRef: {{namespace: muster, name: muster}}\n",
        data.display()
    );
    write(&dir.join("volume/volume.yaml"), &volume);
    write(&dir.join("volume/kustomization.yaml"), "resources: [volume.yaml]\n");
    write(&dir.join("clean/kustomization.yaml"), "resources: [../deploy/server, ../volume]\n");
}

/// As it is delivered, but for the image, and for an address that works without the names of services.
fn for_tests() -> String {
    let image = Installation::image();
    let (name, tag) = image.rsplit_once(':').expect("the image has a tag");
    format!(
        r#"resources: [../deploy/server]
images: [{{name: muster.dev/muster, newName: {name}, newTag: "{tag}"}}]
patches:
  - target: {{kind: Deployment, name: muster}}
    patch: |
      - op: add
        path: /spec/template/spec/containers/0/env
        value: [{{name: POD_IP, valueFrom: {{fieldRef: {{fieldPath: status.podIP}}}}}}]
      - {{op: add, path: /spec/template/spec/containers/0/args/-, value: --tls-name=$(POD_IP)}}
      - {{op: test, path: /spec/template/spec/containers/0/args/7, value: --pod-url=https://muster.muster.svc}}
      - {{op: replace, path: /spec/template/spec/containers/0/args/7, value: "--pod-url=https://$(POD_IP):7400"}}
"#
    )
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a file has a directory")).expect("a directory can be made");
    fs::write(path, text).expect("a file can be written");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory can be made");
    for entry in fs::read_dir(from).expect("the directory is there") {
        let entry = entry.expect("the directory can be read");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("a file can be copied");
    }
}
