//! From a task that was chosen to an attempt that can be started.

use std::borrow::Cow;
use std::sync::Arc;

use muster_ports::clock::Millis;
use muster_ports::runtime::Launch;
use muster_tasks::absent::Absent;
use muster_tasks::brief::hold_for_attempt;
use muster_tasks::lifecycle::Refused;
use muster_tasks::plan::Lent;
use muster_tasks::progress::{self, highest_attempt};
use muster_tasks::render::{Contract, Order, RenderError, render_attempt};
use muster_tasks::select::Selection;
use muster_tasks::view::{awaited_robot, other_attempt, robot_of};
use muster_types::Task;
use muster_types::robot_launch::RobotLaunch;
use muster_types::task::{Driver, Runtime};

use crate::catalogs::Catalogs;
use crate::edits::Action;
use crate::settings::Settings;

/// The label that says which member of an array a task is.
const INDEX: &str = "muster.dev/index";

/// On a robot everything is relative to the directory of the attempt.
const ROBOT_DIRECTORIES: [&str; 3] = [".", ".", "../../cache"];

/// Directories of a pod: its own, what its containers share, and what outlives it (H55).
const POD_DIRECTORIES: [&str; 3] = ["/addon", "/shared", "/cache"];

/// What an attempt is made from besides its task.
pub struct Place<'a> {
    /// How attempts are made.
    pub settings: &'a Settings,
    /// What there is to select from.
    pub catalogs: &'a Catalogs,
    /// Its place in a trace, if there are traces.
    pub traceparent: Option<String>,
}

/// What was decided with the start of a task.
#[derive(Clone, Copy)]
pub struct Chosen<'a> {
    /// It was raised above its own priority.
    pub lent: Option<&'a Lent>,
    /// The robot it goes to.
    pub robot: Option<&'a str>,
    /// Its effective priority.
    pub priority: i32,
    /// It waits for a slot at its executor, and may be taken back.
    pub prefetch: bool,
}

/// What became of a task that was chosen.
#[derive(Debug)]
pub enum Start {
    /// Its attempt is to be started.
    Begun(Action),
    /// It ended: there is nothing it could run.
    Rejected,
    /// It is as it was: what it is to run does not exist yet.
    Absent(Arc<Absent>),
}

/// Makes the attempt of a task that was chosen, or ends the task if there is nothing it could run.
pub fn start(place: &Place<'_>, task: &mut Task, chosen: Chosen<'_>, now: Millis) -> Result<Start, Refused> {
    let settings = place.settings;
    let selection = match place.catalogs.select(task) {
        Ok(selection) => selection,
        Err(error) => {
            if let Some(absent) = Absent::of_selection(&task.metadata.namespace, &error) {
                return Ok(Start::Absent(Arc::new(absent)));
            }
            return progress::reject(task, error.reason(), &error.to_string(), now).map(|()| Start::Rejected);
        }
    };
    let addon = selection.addon.map(|addon| addon.metadata.name.as_str());
    let extensions: Vec<_> = selection.extensions.iter().map(|it| it.metadata.name.clone()).collect();
    match render(place, &selection, task, highest_attempt(&task.status) + 1, chosen.robot) {
        Ok(launch) if chosen.prefetch => {
            let prefetch = progress::prefetch(task)?;
            let launch = Launch { priority: chosen.priority, prefetch, ..launch };
            Ok(Start::Begun(Action::Prefetch(Box::new(launch))))
        }
        Ok(launch) => {
            let launch = Launch { priority: chosen.priority, ..launch };
            let handle = progress::begin_attempt(task, chosen.lent, addon, &extensions, now)?;
            let runtime = runtime_of(settings, task.spec.stated_runtime());
            if let Some(attempt) = task.status.attempts.last_mut() {
                attempt.runtime = Some(runtime);
            }
            hold_for_attempt(task, runtime);
            if let Some(pods) = settings.pods.as_ref().filter(|_| runtime == Runtime::Pod) {
                let namespace = pods.namespace.as_ref().unwrap_or(&task.metadata.namespace);
                task.status.pod = format!("{namespace}/{}", handle.pod_name());
            }
            if let Some(robot) = chosen.robot {
                dispatch(task, robot);
            }
            Ok(Start::Begun(Action::Start(Box::new(launch))))
        }
        Err(error) => {
            progress::reject(task, error.reason(), &error.to_string(), now).map(|()| Start::Rejected)
        }
    }
}

/// The current attempt of a task once more, as it was committed; `None` if what it was made from is gone.
pub fn render_again(place: &Place<'_>, task: &Task) -> Option<Launch> {
    let selection = place.catalogs.select(task).ok()?;
    render(place, &selection, task, task.status.attempt, robot_of(task).as_deref()).ok()
}

/// The attempt of a task that counted as lost and may come back, or that is leaving, once more.
pub fn render_awaited(place: &Place<'_>, task: &Task) -> Option<Launch> {
    let (attempt, robot) = (other_attempt(task)?, awaited_robot(task)?);
    let selection = place.catalogs.select(task).ok()?;
    render(place, &selection, task, attempt, Some(&robot)).ok()
}

/// Where a task runs.
pub fn runtime_of(settings: &Settings, stated: Option<Runtime>) -> Runtime {
    stated.unwrap_or(settings.queue.default_runtime)
}

fn render(
    place: &Place<'_>,
    selection: &Selection<'_>,
    task: &Task,
    attempt: u32,
    robot: Option<&str>,
) -> Result<Launch, RenderError> {
    let settings = place.settings;
    let runtime = runtime_of(settings, task.spec.stated_runtime());
    let robots = settings.robots.as_ref().filter(|_| robot.is_some());
    let own = format!("{}/{}-{attempt}/work", settings.work_root, task.metadata.uid);
    let cache = format!("{}/cache", settings.work_root);
    let pods = settings.pods.as_ref().filter(|_| runtime == Runtime::Pod);
    let [addon_home, shared_path, cache_path] = match (pods, robots) {
        (Some(_), _) => POD_DIRECTORIES,
        (None, Some(_)) => ROBOT_DIRECTORIES,
        (None, None) => [&*own, &*own, &*cache],
    };
    let grants = selection.addon.map_or(&[][..], |addon| &addon.spec.grants);
    let token = settings.mint.token(task, attempt, grants);
    let runs_image = task.spec.driver.and_then(Driver::image_driver).is_some();
    let base_env: &[_] = match (pods, robots) {
        (Some(pods), _) => &pods.base_env,
        // A robot has its own.
        (None, Some(_)) => &[],
        // So has an image.
        (None, None) if runs_image => &[],
        (None, None) => &settings.base_env,
    };
    let base_env = match &place.traceparent {
        None => Cow::Borrowed(base_env),
        Some(it) => Cow::Owned([base_env, &[("TRACEPARENT".to_owned(), it.clone())]].concat()),
    };
    let mut launch = render_attempt(&Order {
        runtime,
        attempt,
        task,
        kind: place.catalogs.kind(task),
        selection,
        contract: Contract {
            url: pods.map(|pods| &pods.url).or(robots.map(|robots| &robots.url)).unwrap_or(&settings.url),
            token: &token,
            addon_home,
            shared_path,
            cache_path,
        },
        base_env: &base_env,
        index: task.metadata.labels.get(INDEX).and_then(|index| index.parse().ok()),
        kill_timeout: settings.kill_timeout,
    })?;
    launch.robot = robot.map(|robot| {
        Box::new(RobotLaunch {
            robot: robot.to_owned(),
            task: format!("{}/{}", task.metadata.namespace, task.metadata.name),
            user: task.spec.user.clone(),
            artifacts: task.spec.artifacts.clone(),
            stop_after_silence: task
                .spec
                .disconnect
                .and_then(|policy| policy.stop_on_client_after)
                .map(muster_types::Duration::as_std),
        })
    });
    Ok(launch)
}

/// Writes down where an attempt goes.
fn dispatch(task: &mut Task, robot: &str) {
    if let Some(attempt) = task.status.attempts.last_mut() {
        robot.clone_into(&mut attempt.robot);
    }
    task.status.message = format!("Dispatching to {robot}");
}
