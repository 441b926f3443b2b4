//! What an attempt runs, in full: containers, command lines, environments, limits (seed 000, H9, H54–H57).
//!
//! Pure: addresses, paths and the token are inputs, and the same inputs always give the same [`Launch`]. Nothing is chosen
//! here; [`crate::select`] did that.
//!
//! Containers: the leading one first, which is the task's own (`leading: true`, or the first) or the addon; then the
//! task's others in their order, then the extensions. An extension's container has the extension's name, any other the name
//! it states or [`ADDON_CONTAINER`]. Names are made unique with `-2`, `-3`, because logs are found by them.
//!
//! Environment of every container, where later lines win over earlier ones:
//! 1. what the runtime offers (`PATH`, `HOME`);
//! 2. the container's own variables; of two with one name the later;
//! 3. in the first container, every variable of each extension as `_EXT_<EXTENSION>_<VAR>`, in upper case and with `_` for
//!    whatever is no ASCII letter or digit, with the value the extension itself gets; if two come to the same name, the
//!    later extension's;
//! 4. the contract with addons: `MUSTER_URL`, `MUSTER_TOKEN`, `MUSTER_TASK`, `MUSTER_NAMESPACE`, `ADDON_HOME`,
//!    `SHARED_PATH`, `CACHE_PATH`, the hub's `HUB_BASE_URL`, `TOKEN` and `TASK`, `MUSTER_INDEX` for a task of an array, and
//!    `MUSTER_TASK_DATA` for a task with data that is short. No manifest can override these, so a program can rely on them;
//!    the last two pass through where the task is of no array or has no data.
//!
//! The data of a task is the launch's, whole; the runtime makes it a file.
//!
//! Macros `${seq:8000}` are replaced in the command from its second element on, in args and in the values of 2, container
//! by container, in this order; see [`muster_expr::sequence`].

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use muster_expr::Sequences;
use muster_types::attempt::{
    DATA_VARIABLE, Handle, Launch, LaunchContainer, Limits, MAX_DATA, MAX_DATA_VARIABLE, TaskData,
};
use muster_types::container::{Container, Resources};
use muster_types::image_launch::{ImageContainer, ImageDriver, ImageLaunch};
use muster_types::pod_launch::{PodContainer, PodLaunch};
use muster_types::task::{Driver, Runtime};
use muster_types::{Quantity, Task, TaskKind, TaskSpec, name_rules};
use serde_json::Value;
use thiserror::Error;

use crate::progress::refusals_of;
use crate::select::Selection;
use crate::view::need_of;

/// Name of a container that states none.
pub const ADDON_CONTAINER: &str = "addon";

/// Everything an attempt is made from.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// Where it is to run. A pod needs images, and may leave commands to them.
    pub runtime: Runtime,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// The task.
    pub task: &'a Task,
    /// Its kind, if it has one.
    pub kind: Option<&'a TaskKind>,
    /// What was selected for it.
    pub selection: &'a Selection<'a>,
    /// How its programs reach the server and their directories.
    pub contract: Contract<'a>,
    /// Variables the runtime offers, such as PATH and HOME.
    pub base_env: &'a [(String, String)],
    /// Its place in an array of tasks.
    pub index: Option<u64>,
    /// Time between asking to end and ending, if the task does not say.
    pub kill_timeout: Duration,
}

/// How programs of an attempt reach the server and their directories.
#[derive(Debug, Clone, Copy)]
pub struct Contract<'a> {
    /// Where the API is.
    pub url: &'a str,
    /// What the attempt proves itself with.
    pub token: &'a Token,
    /// Directory of this container's or attempt's own files.
    pub addon_home: &'a str,
    /// Directory the containers of the attempt share.
    pub shared_path: &'a str,
    /// Directory that outlives the attempt.
    pub cache_path: &'a str,
}

/// A secret that is not shown by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Keeps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The secret itself, for the one who must have it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Why an attempt cannot be made. None of these goes away by itself.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RenderError {
    /// There is no program.
    #[error("container {container:?} has no command{}", describe_image(image))]
    NoCommand {
        /// Which container.
        container: String,
        /// The image it has, which a process cannot run.
        image: String,
    },
    /// There is no image for what runs images.
    #[error("container {container:?} has no image, and {who}")]
    NoImage {
        /// Which container.
        container: String,
        /// What runs images, and what to do about it.
        who: String,
    },
    /// There is no container.
    #[error("the task has no containers and no addon was selected; there is nothing to run")]
    NoContainer,
    /// A name that cannot name a log.
    #[error("container {container:?} has a name that cannot be used: {why}")]
    NameNotValid {
        /// Which container.
        container: String,
        /// The rule it breaks.
        why: String,
    },
    /// A command that no system accepts.
    #[error(
        "the command or args of container {container:?} contain a NUL character, which no program can be given"
    )]
    CommandNotValid {
        /// Which container.
        container: String,
    },
    /// More data than an attempt can be given.
    #[error(
        "the data of the task, merged over that of its kind, is {bytes} bytes long; an attempt is given {MAX_DATA} at most, so keep \
         it in a bucket or elsewhere and name the place"
    )]
    DataTooLarge {
        /// How much it is.
        bytes: usize,
    },
    /// A variable that no system accepts.
    #[error("variable {name:?} of container {container:?} cannot be set: {why}")]
    EnvNotValid {
        /// Which container.
        container: String,
        /// Which variable.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl RenderError {
    /// One CamelCase word.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NoCommand { .. } | Self::NoContainer => "NoCommand",
            Self::NoImage { .. } => "NoImage",
            Self::NameNotValid { .. } => "NameNotValid",
            Self::CommandNotValid { .. } => "CommandNotValid",
            Self::EnvNotValid { .. } => "EnvNotValid",
            Self::DataTooLarge { .. } => "DataTooLarge",
        }
    }
}

/// What is to be run for an attempt.
pub fn render_attempt(order: &Order<'_>) -> Result<Launch, RenderError> {
    let spec = &order.task.spec;
    let programs = list_programs(spec, order.selection);
    let limits = sum_limits(spec, &programs).ok_or(RenderError::NoContainer)?;
    let data = render_data(spec, order.kind).map(|data| data.to_string());
    if let Some(bytes) = data.as_ref().map(String::len).filter(|bytes| *bytes > MAX_DATA) {
        return Err(RenderError::DataTooLarge { bytes });
    }
    let mut names = BTreeSet::new();
    let mut sequences = Sequences::new();
    let images = Images::of(order.runtime, spec.driver);
    let rendered = programs
        .iter()
        .map(|program| render_program(program, images, &mut names, &mut sequences))
        .collect::<Result<Vec<_>, _>>()?;
    let image = images.driver().map(|driver| Box::new(render_image(driver, &programs, &rendered)));
    let pod = (order.runtime == Runtime::Pod).then(|| Box::new(render_pod(order, &programs, &rendered)));
    // For the first container alone, which takes them.
    let mut from_extensions = rendered.iter().flat_map(RenderedProgram::as_seen_by_addon).collect();
    let containers = rendered
        .into_iter()
        .map(|program| LaunchContainer {
            name: program.name,
            command: program.command,
            env: join_env(order, data.as_deref(), program.env, std::mem::take(&mut from_extensions)),
        })
        .collect();
    Ok(Launch {
        handle: Handle { task: order.task.metadata.uid.clone(), attempt: order.attempt },
        containers,
        timeout: spec.timeout.map(Duration::from).filter(|timeout| !timeout.is_zero()),
        kill_timeout: spec.kill_timeout.map_or(order.kill_timeout, Duration::from),
        // Its rank, and whether it waits for a slot, is known to whoever chose it.
        priority: 0,
        prefetch: 0,
        limits,
        pod,
        robot: None,
        image,
        data: data.map(TaskData::new),
    })
}

/// Who runs images, if anybody does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Images {
    Nobody,
    Pod,
    Driver(ImageDriver),
}

impl Images {
    fn of(runtime: Runtime, driver: Option<Driver>) -> Self {
        match (runtime, driver.and_then(Driver::image_driver)) {
            (Runtime::Pod, _) => Self::Pod,
            (Runtime::Process | Runtime::Robot, Some(driver)) => Self::Driver(driver),
            (Runtime::Process | Runtime::Robot, None) => Self::Nobody,
        }
    }

    const fn driver(self) -> Option<ImageDriver> {
        match self {
            Self::Driver(driver) => Some(driver),
            Self::Nobody | Self::Pod => None,
        }
    }

    fn without_one(self) -> String {
        match self {
            Self::Driver(driver) => {
                format!("driver {driver} cannot run without one; set one, or driver: exec and a command")
            }
            Self::Nobody | Self::Pod => {
                "a pod cannot run without one; set one, or runtime: process".to_owned()
            }
        }
    }
}

/// What docker or podman need to know.
fn render_image(
    driver: ImageDriver,
    programs: &[Program<'_>],
    rendered: &[RenderedProgram<'_>],
) -> ImageLaunch {
    let containers = programs.iter().zip(rendered);
    let containers = containers.map(|(program, rendered)| ImageContainer {
        image: program.container.image.clone(),
        args: rendered.args.clone(),
    });
    ImageLaunch { driver, containers: containers.collect() }
}

/// What only a pod needs to know. What the task is given in total is the leading container's, unless that says otherwise.
fn render_pod(order: &Order<'_>, programs: &[Program<'_>], rendered: &[RenderedProgram<'_>]) -> PodLaunch {
    let spec = &order.task.spec;
    let whole = limits_of(&spec.resources);
    let containers = programs.iter().zip(rendered).enumerate().map(|(index, (program, rendered))| {
        let (own, whole) =
            (limits_of(&program.container.resources), if index == 0 { whole } else { Limits::default() });
        PodContainer {
            image: program.container.image.clone(),
            args: rendered.args.clone(),
            limits: Limits {
                cpu_millis: own.cpu_millis.or(whole.cpu_millis),
                memory: own.memory.or(whole.memory),
            },
        }
    });
    let addon = order.selection.addon.and_then(|addon| addon.spec.pod.clone());
    PodLaunch {
        namespace: order.task.metadata.namespace.clone(),
        task: order.task.metadata.name.clone(),
        containers: containers.collect(),
        overrides: addon.into_iter().chain(spec.pod.clone()).collect(),
        refusals: refusals_of(&order.task.status, order.attempt),
        knows_refusals: 0,
    }
}

fn limits_of(resources: &Resources) -> Limits {
    let need = need_of(resources);
    let stated = |amount: u64| (amount > 0).then_some(amount);
    Limits { cpu_millis: stated(need.cpu_millis), memory: stated(need.memory) }
}

/// The document a task hands to its addon: the kind's data, under the task's own.
///
/// Maps are merged at every depth, anything else of the task's replaces what the kind has. Data of the task that is no map
/// is kept as it is (the seed threw it away).
pub fn render_data(task: &TaskSpec, kind: Option<&TaskKind>) -> Option<Value> {
    match (&task.data, kind.and_then(|kind| kind.spec.data.as_ref())) {
        (Some(own), Some(default)) => Some(merge_over(default, own)),
        (Some(only), None) | (None, Some(only)) => Some(only.clone()),
        (None, None) => None,
    }
}

fn merge_over(default: &Value, own: &Value) -> Value {
    let (Value::Object(default), Value::Object(own)) = (default, own) else { return own.clone() };
    let mut merged = default.clone();
    for (key, value) in own {
        let value = default.get(key).map_or_else(|| value.clone(), |default| merge_over(default, value));
        merged.insert(key.clone(), value);
    }
    Value::Object(merged)
}

/// A container before it is rendered.
struct Program<'a> {
    container: &'a Container,
    /// The extension it belongs to.
    extension: Option<&'a str>,
}

/// A container with its macros replaced.
struct RenderedProgram<'a> {
    name: String,
    command: Vec<String>,
    /// What follows the command, where that is not one with it.
    args: Vec<String>,
    /// Its own variables.
    env: Vec<(String, String)>,
    extension: Option<&'a str>,
}

/// The leading one first.
fn list_programs<'a>(spec: &'a TaskSpec, selection: &Selection<'a>) -> Vec<Program<'a>> {
    let mut containers: Vec<&Container> = spec.container.iter().chain(&spec.containers).collect();
    if let Some(leading) = containers.iter().position(|container| container.leading) {
        containers[..=leading].rotate_right(1);
    }
    containers.extend(selection.addon.filter(|_| containers.is_empty()).map(|addon| &addon.spec.container));
    let mut programs: Vec<_> =
        containers.into_iter().map(|container| Program { container, extension: None }).collect();
    // Without a leading container there is nothing to extend.
    let extensions = selection.extensions.iter().filter(|_| !programs.is_empty());
    let extensions: Vec<_> = extensions
        .map(|it| Program { container: &it.spec.container, extension: Some(&it.metadata.name) })
        .collect();
    programs.extend(extensions);
    programs
}

fn render_program<'a>(
    program: &Program<'a>,
    images: Images,
    names: &mut BTreeSet<String>,
    sequences: &mut Sequences,
) -> Result<RenderedProgram<'a>, RenderError> {
    let name = choose_name(program, names)?;
    let container = program.container;
    let is_image = images != Images::Nobody;
    let first = container.command.first().filter(|first| !first.is_empty());
    if is_image && container.image.is_empty() {
        return Err(RenderError::NoImage { container: name, who: images.without_one() });
    }
    if !is_image && first.is_none() {
        return Err(RenderError::NoCommand { container: name, image: container.image.clone() });
    }
    let mut expand = |texts: &[String]| -> Vec<String> {
        texts.iter().map(|text| sequences.expand(text).into_owned()).collect()
    };
    let mut command: Vec<String> = first.into_iter().cloned().collect();
    command.extend(expand(container.command.get(1..).unwrap_or_default()));
    let mut args = expand(&container.args);
    if !is_image {
        command.append(&mut args);
    }
    if command.iter().chain(&args).any(|text| text.contains('\0')) {
        return Err(RenderError::CommandNotValid { container: name });
    }
    let mut env = vec![];
    for variable in &program.container.env {
        if let Some(why) = describe_bad_variable(&variable.name, &variable.value) {
            return Err(RenderError::EnvNotValid { container: name, name: variable.name.clone(), why });
        }
        env.push((variable.name.clone(), sequences.expand(&variable.value).into_owned()));
    }
    Ok(RenderedProgram { name, command, args, env, extension: program.extension })
}

/// The name of a container, which no other has.
fn choose_name(program: &Program<'_>, taken: &mut BTreeSet<String>) -> Result<String, RenderError> {
    let stated = program.extension.unwrap_or(&program.container.name);
    let wanted = if stated.is_empty() { ADDON_CONTAINER } else { stated };
    name_rules::dns1123_subdomain(wanted)
        .map_err(|why| RenderError::NameNotValid { container: wanted.to_owned(), why })?;
    let mut name = wanted.to_owned();
    let mut number = 2_usize;
    while !taken.insert(name.clone()) {
        name = format!("{wanted}-{number}");
        number += 1;
    }
    Ok(name)
}

impl RenderedProgram<'_> {
    /// The variables of an extension under the names the addon knows them by.
    fn as_seen_by_addon(&self) -> impl Iterator<Item = (String, String)> {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        let renamed = move |extension: &str, variable: &str| {
            format!("_EXT_{extension}_{variable}").chars().map(plain).collect::<String>()
        };
        let env =
            self.extension.into_iter().flat_map(|extension| self.env.iter().map(move |it| (extension, it)));
        env.map(move |(extension, (name, value))| (renamed(extension, name), value.clone()))
    }
}

/// A whole environment, by name.
fn join_env(
    order: &Order<'_>,
    data: Option<&str>,
    own: Vec<(String, String)>,
    from_extensions: Vec<(String, String)>,
) -> Vec<(String, String)> {
    let contract = &order.contract;
    let metadata = &order.task.metadata;
    let injected = [
        ("MUSTER_URL", contract.url),
        ("MUSTER_TOKEN", contract.token.reveal()),
        ("MUSTER_TASK", &metadata.name),
        ("MUSTER_NAMESPACE", &metadata.namespace),
        ("ADDON_HOME", contract.addon_home),
        ("SHARED_PATH", contract.shared_path),
        ("CACHE_PATH", contract.cache_path),
        ("HUB_BASE_URL", contract.url),
        ("TOKEN", contract.token.reveal()),
        ("TASK", &metadata.name),
    ];
    let injected = injected.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    let index = order.index.map(|index| ("MUSTER_INDEX".to_owned(), index.to_string()));
    let data = data.filter(|data| data.len() <= MAX_DATA_VARIABLE);
    let data = data.map(|data| (DATA_VARIABLE.to_owned(), data.to_owned()));
    let all = order.base_env.iter().cloned().chain(own).chain(from_extensions).chain(injected);
    let mut all: Vec<_> = all.chain(index).chain(data).collect();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    // Of those with one name, the last one counts.
    all.dedup_by(|later, kept| {
        let is_same = later.0 == kept.0;
        if is_same {
            std::mem::swap(later, kept);
        }
        is_same
    });
    all
}

/// What the attempt is given in total: what the task says, or else the sum of its containers if every one of them says
/// something. Zero is no limit. `None` if there are no containers.
fn sum_limits(spec: &TaskSpec, programs: &[Program<'_>]) -> Option<Limits> {
    let total = |amount: fn(&Resources) -> Option<u64>| {
        let of = |resources: &Resources| amount(resources).filter(|amount| *amount > 0);
        let each = programs.iter().map(|program| of(&program.container.resources));
        of(&spec.resources).or_else(|| each.reduce(|sum, one| Some(sum?.saturating_add(one?))).flatten())
    };
    let cpu = |it: &Resources| it.cpu.as_ref().map(|cpu| u64::try_from(cpu.milli()).unwrap_or(u64::MAX));
    let memory = |it: &Resources| it.memory.as_ref().map(Quantity::value);
    (!programs.is_empty()).then(|| Limits { cpu_millis: total(cpu), memory: total(memory) })
}

fn describe_bad_variable(name: &str, value: &str) -> Option<&'static str> {
    match name {
        "" => Some("its name is empty"),
        _ if name.contains(['=', '\0']) => Some("its name contains '=' or a NUL character"),
        _ if value.contains('\0') => Some("its value contains a NUL character"),
        _ => None,
    }
}

fn describe_image(image: &str) -> String {
    if image.is_empty() {
        "; set one".to_owned()
    } else {
        format!("; a process does not run its image {image:?}, so set a command, or driver: podman")
    }
}
