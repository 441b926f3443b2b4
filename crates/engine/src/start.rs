//! From a task that was chosen to an attempt that can be started.

use std::borrow::Cow;

use muster_ports::clock::Millis;
use muster_ports::runtime::Launch;
use muster_tasks::lifecycle::Refused;
use muster_tasks::plan::Lent;
use muster_tasks::progress;
use muster_tasks::render::{Contract, Order, RenderError, render_attempt};
use muster_tasks::select::Selection;
use muster_types::Task;
use muster_types::task::Runtime;

use crate::catalogs::Catalogs;
use crate::edits::Action;
use crate::settings::Settings;

/// The label that says which member of an array a task is.
const INDEX: &str = "muster.dev/index";

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

/// Makes the attempt of a task that was chosen, or ends the task if there is nothing it could run.
pub fn start(
    place: &Place<'_>,
    task: &mut Task,
    lent: Option<&Lent>,
    now: Millis,
) -> Result<Option<Action>, Refused> {
    let settings = place.settings;
    let selection = match place.catalogs.select(task) {
        Ok(selection) => selection,
        Err(error) => {
            return progress::reject(task, error.reason(), &error.to_string(), now).map(|()| None);
        }
    };
    let addon = selection.addon.map(|addon| addon.metadata.name.as_str());
    let extensions: Vec<_> = selection.extensions.iter().map(|it| it.metadata.name.clone()).collect();
    match render(place, &selection, task, task.status.attempt + 1) {
        Ok(launch) => {
            let handle = progress::begin_attempt(task, lent, addon, &extensions, now)?;
            let runtime = runtime_of(settings, task.spec.runtime);
            if let Some(attempt) = task.status.attempts.last_mut() {
                attempt.runtime = Some(runtime);
            }
            if let Some(pods) = settings.pods.as_ref().filter(|_| runtime == Runtime::Pod) {
                let namespace = pods.namespace.as_ref().unwrap_or(&task.metadata.namespace);
                task.status.pod = format!("{namespace}/{}", handle.pod_name());
            }
            Ok(Some(Action::Start(Box::new(launch))))
        }
        Err(error) => progress::reject(task, error.reason(), &error.to_string(), now).map(|()| None),
    }
}

/// The current attempt of a task once more, as it was committed; `None` if what it was made from is gone.
pub fn render_again(place: &Place<'_>, task: &Task) -> Option<Launch> {
    let selection = place.catalogs.select(task).ok()?;
    render(place, &selection, task, task.status.attempt).ok()
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
) -> Result<Launch, RenderError> {
    let settings = place.settings;
    let runtime = runtime_of(settings, task.spec.runtime);
    let own = format!("{}/{}-{attempt}/work", settings.work_root, task.metadata.uid);
    let cache = format!("{}/cache", settings.work_root);
    let pods = settings.pods.as_ref().filter(|_| runtime == Runtime::Pod);
    let [addon_home, shared_path, cache_path] =
        if pods.is_some() { POD_DIRECTORIES } else { [&*own, &*own, &*cache] };
    let token = settings.mint.token(task, attempt);
    let base_env = pods.map_or(&settings.base_env, |pods| &pods.base_env);
    let base_env = match &place.traceparent {
        None => Cow::Borrowed(base_env.as_slice()),
        Some(it) => Cow::Owned([base_env.as_slice(), &[("TRACEPARENT".to_owned(), it.clone())]].concat()),
    };
    render_attempt(&Order {
        runtime,
        attempt,
        task,
        selection,
        contract: Contract {
            url: pods.map_or(&settings.url, |pods| &pods.url),
            token: &token,
            addon_home,
            shared_path,
            cache_path,
        },
        base_env: &base_env,
        index: task.metadata.labels.get(INDEX).and_then(|index| index.parse().ok()),
        kill_timeout: settings.kill_timeout,
    })
}
