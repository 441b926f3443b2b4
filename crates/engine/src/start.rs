//! From a task that was chosen to an attempt that can be started.

use muster_ports::clock::Millis;
use muster_tasks::lifecycle::Refused;
use muster_tasks::plan::Lent;
use muster_tasks::progress;
use muster_tasks::render::{Contract, Order, render_attempt};
use muster_types::Task;

use crate::catalogs::Catalogs;
use crate::edits::Action;
use crate::settings::Settings;

/// The label that says which member of an array a task is.
const INDEX: &str = "muster.dev/index";

/// Makes the attempt of a task that was chosen, or ends the task if there is nothing it could run.
pub fn start(
    settings: &Settings,
    catalogs: &Catalogs,
    task: &mut Task,
    lent: Option<&Lent>,
    now: Millis,
) -> Result<Option<Action>, Refused> {
    let selection = match catalogs.select(task) {
        Ok(selection) => selection,
        Err(error) => {
            return progress::reject(task, error.reason(), &error.to_string(), now).map(|()| None);
        }
    };
    let addon = selection.addon.map(|addon| addon.metadata.name.as_str());
    let extensions: Vec<_> = selection.extensions.iter().map(|it| it.metadata.name.clone()).collect();
    let attempt = task.status.attempt + 1;
    let directory = format!("{}/{}-{attempt}/work", settings.work_root, task.metadata.uid);
    let cache = format!("{}/cache", settings.work_root);
    let token = settings.mint.token(task, attempt);
    let order = Order {
        attempt,
        task,
        selection: &selection,
        contract: Contract {
            url: &settings.url,
            token: &token,
            addon_home: &directory,
            shared_path: &directory,
            cache_path: &cache,
        },
        base_env: &settings.base_env,
        index: task.metadata.labels.get(INDEX).and_then(|index| index.parse().ok()),
        kill_timeout: settings.kill_timeout,
    };
    match render_attempt(&order) {
        Ok(launch) => {
            progress::begin_attempt(task, lent, addon, &extensions, now)?;
            Ok(Some(Action::Start(Box::new(launch))))
        }
        Err(error) => progress::reject(task, error.reason(), &error.to_string(), now).map(|()| None),
    }
}
