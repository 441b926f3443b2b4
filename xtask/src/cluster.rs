//! `cargo xtask cluster`: a whole Kubernetes on this one machine, for the tests.
//!
//! etcd, the control plane and one node with containerd and runc, in a directory of the cache, on addresses that exist on
//! this machine alone. The cluster is shared by all checkouts of a user: `up` on one that runs does nothing. Where no node
//! can run (no root, no control groups), the API server with its controllers still does, and whoever asks is told.

mod certificates;
mod control_plane;
mod detached;
mod images;
mod kubeconfig;
mod kubernetes_build;
mod layout;
mod network;
mod node;
mod node_parts;
mod users;
mod wait_until;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::run;
use crate::setup::{self, Lock};
use control_plane::ControlPlaneParts;
use layout::Layout;
use node_parts::NodeParts;

pub use kubernetes_build::{go_install, kube_apiserver};
pub use users::Use;

/// A cluster that is there already; nothing is started then.
pub const GIVEN_KUBECONFIG: &str = "MUSTER_TEST_KUBECONFIG";
/// A small image with a shell that nodes of the cluster can run.
pub const GIVEN_IMAGE: &str = "MUSTER_TEST_IMAGE";
/// An image of the server under test; made from the program that was built, if nothing is said.
pub const GIVEN_SERVER_IMAGE: &str = "MUSTER_TEST_SERVER_IMAGE";
/// What is run on a cluster that was given, unless it is said.
const PUBLIC_IMAGE: &str = "docker.io/library/busybox:1.36";

/// A cluster that answers.
#[derive(Debug)]
pub struct Running {
    pub kubeconfig: PathBuf,
    /// The image that pods may run, or why there is no node to run it.
    pub image: Result<String>,
}

pub fn command(arguments: &[String]) -> Result<ExitCode> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["up"] => {
            let running = up()?;
            keep()?;
            println!("kubeconfig {}", running.kubeconfig.display());
            match running.image {
                Ok(image) => println!("image      {image}"),
                Err(why) => eprintln!("NO NODE: the API server runs, pods do not: {why:#}"),
            }
        }
        ["down"] => down()?,
        ["status"] => return status(),
        ["kubeconfig"] => println!("{}", kubeconfig_of_running()?.display()),
        ["image"] => println!("{}", image_name()),
        ["image", program] => println!("{}", server_image(Path::new(program))?),
        _ => bail!("cluster takes one of: up, down, status, kubeconfig, image [PROGRAM]"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Installs what a cluster needs, without starting one.
pub fn install() -> Result<()> {
    if given().is_none() {
        ControlPlaneParts::locate()?;
        NodeParts::locate().context("the API server of a test cluster can run here, its node cannot")?;
    }
    Ok(())
}

/// Makes sure that a cluster runs. Quick if one does.
pub fn up() -> Result<Running> {
    if let Some(kubeconfig) = given() {
        if !kubeconfig.is_file() {
            bail!("{GIVEN_KUBECONFIG} names {}, which is not a file", kubeconfig.display());
        }
        let kubeconfig = std::path::absolute(&kubeconfig).context("the kubeconfig has no usable path")?;
        return Ok(Running { kubeconfig, image: Ok(image_name()) });
    }
    let layout = Layout::at(&setup::cache()?);
    let _lock = Lock::take(&layout.root)?;
    if let Some(running) = find_running(&layout) {
        return Ok(running);
    }
    start(&layout).inspect_err(|_| {
        eprintln!("    what was started is ended; its logs stay in {}", layout.logs().display());
        end_processes(&layout);
    })
}

fn start(layout: &Layout) -> Result<Running> {
    let control_plane = ControlPlaneParts::locate()?;
    let node = NodeParts::locate();
    clear(layout)?;
    layout.make()?;
    let network = node.as_ref().map_err(|error| format!("{error:#}")).and_then(|parts| {
        network::create(&parts.busybox).map_err(|error| format!("no network can be made: {error:#}"))
    });
    let address = match &network {
        Ok(()) => network::API,
        Err(_) => network::LOOPBACK,
    };
    println!("==> starting the control plane of the test cluster");
    control_plane::start(layout, &control_plane, address)?;
    let image = match (network, &node) {
        (Ok(()), Ok(parts)) => {
            println!("==> starting its node");
            node::start(layout, parts, &control_plane.kubectl).map(|()| image_name())
        }
        (Err(why), _) => Err(anyhow::anyhow!(why)),
        (Ok(()), Err(why)) => Err(anyhow::anyhow!("{why:#}")),
    };
    let said = image.as_ref().map_or_else(|why| format!("{why:#}"), |_| String::new());
    // Written last: whoever finds it, finds a whole cluster.
    fs::write(layout.ready(), said).context("cannot write to the cache")?;
    println!("==> the test cluster runs; its logs are in {}", layout.logs().display());
    Ok(Running { kubeconfig: layout.admin_kubeconfig(), image })
}

/// The cluster, if all of it runs.
fn find_running(layout: &Layout) -> Option<Running> {
    let why_no_node = fs::read_to_string(layout.ready()).ok()?;
    let has_node = why_no_node.is_empty();
    let expected = control_plane::NAMES.iter().chain(has_node.then_some(&node::NAME));
    let all_run = expected.into_iter().all(|name| detached::is_running(&layout.process(name)));
    let image = if has_node { Ok(image_name()) } else { Err(anyhow::anyhow!(why_no_node)) };
    all_run.then(|| Running { kubeconfig: layout.admin_kubeconfig(), image })
}

fn down() -> Result<()> {
    if given().is_some() {
        bail!("the cluster of {GIVEN_KUBECONFIG} was not started here, and is not ended here");
    }
    let layout = Layout::at(&setup::cache()?);
    let _lock = Lock::take(&layout.root)?;
    clear(&layout)?;
    println!("the test cluster is gone");
    Ok(())
}

/// Ends the cluster if it was started for tests, and nobody else uses it.
pub fn end_unless_wanted(used: Use) -> Result<()> {
    if given().is_some() {
        return Ok(());
    }
    let layout = Layout::at(&setup::cache()?);
    let _lock = Lock::take(&layout.root)?;
    if used.was_the_last()? && !layout.kept().exists() && layout.ready().exists() {
        clear(&layout)?;
    }
    Ok(())
}

/// Somebody asked for the cluster by name: it runs until somebody ends it.
fn keep() -> Result<()> {
    if given().is_some() {
        return Ok(());
    }
    fs::write(Layout::at(&setup::cache()?).kept(), "").context("cannot write to the cache")
}

fn clear(layout: &Layout) -> Result<()> {
    end_processes(layout);
    network::remove(layout);
    node::remove_control_groups();
    layout.remove()
}

fn end_processes(layout: &Layout) {
    for name in [node::NAME].iter().chain(control_plane::NAMES.iter().rev()) {
        detached::end(&layout.process(name));
    }
}

fn status() -> Result<ExitCode> {
    if let Some(kubeconfig) = given() {
        println!("given by {GIVEN_KUBECONFIG}: {}", kubeconfig.display());
        return Ok(ExitCode::SUCCESS);
    }
    let layout = Layout::at(&setup::cache()?);
    for name in control_plane::NAMES.iter().chain([&node::NAME]) {
        let pid = detached::running_pid(&layout.process(name));
        let said = pid.map_or_else(|| "not running".to_owned(), |pid| format!("running, process {pid}"));
        println!("{name:<24} {said}");
    }
    let Some(running) = find_running(&layout) else {
        println!("the cluster is not up; `cargo xtask cluster up` starts it");
        return Ok(ExitCode::FAILURE);
    };
    if let Err(why) = &running.image {
        println!("there is no node: {why:#}");
    }
    let kubectl = setup::kubectl(&setup::cache()?)?;
    let nodes = run::quietly(kubectl_command(&kubectl, &running.kubeconfig).args(["get", "nodes"]))?;
    print!("{nodes}");
    Ok(ExitCode::SUCCESS)
}

/// The name of an image with this server in it, which nodes of the running cluster can run.
pub fn server_image(program: &Path) -> Result<String> {
    if let Some(name) = env::var(GIVEN_SERVER_IMAGE).ok().filter(|name| !name.is_empty()) {
        return Ok(name);
    }
    if given().is_some() {
        bail!(
            "the nodes of {GIVEN_KUBECONFIG} are given no images; name one they have with {GIVEN_SERVER_IMAGE}"
        );
    }
    let layout = Layout::at(&setup::cache()?);
    let running =
        find_running(&layout).context("the cluster is not up; `cargo xtask cluster up` starts it")?;
    running.image?;
    let _lock = Lock::take(&layout.root)?;
    images::import_program(&layout, &NodeParts::locate()?, &node::socket(&layout), program)
}

fn kubeconfig_of_running() -> Result<PathBuf> {
    if let Some(kubeconfig) = given() {
        return Ok(kubeconfig);
    }
    let running = find_running(&Layout::at(&setup::cache()?));
    Ok(running.context("the cluster is not up; `cargo xtask cluster up` starts it")?.kubeconfig)
}

fn given() -> Option<PathBuf> {
    env::var_os(GIVEN_KUBECONFIG).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn image_name() -> String {
    let said = env::var(GIVEN_IMAGE).ok().filter(|name| !name.is_empty());
    said.unwrap_or_else(|| if given().is_some() { PUBLIC_IMAGE } else { images::SHELL }.to_owned())
}

fn kubectl_command(kubectl: &Path, kubeconfig: &Path) -> Command {
    let mut command = Command::new(kubectl);
    command.arg("--kubeconfig").arg(kubeconfig);
    command
}
