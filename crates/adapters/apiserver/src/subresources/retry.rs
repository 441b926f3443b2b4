//! `retry`: a task that has ended, once more, as a new task that says where it comes from.

use muster_types::Task;

use super::{PartCall, Subresource};
use crate::call::Call;
use crate::kind::Part;
use crate::negotiate::choose_form;
use crate::refusal::Refusal;
use crate::respond::Reply;
use crate::verbs::create::store_new;

/// Its line in the table.
pub const SUBRESOURCE: Subresource =
    Subresource { name: "retry", kind: "Task", verbs: &["create"], has_files: false };

/// Names the task that a task was made from.
const RETRY_OF: &str = "muster.dev/retry-of";
/// What `kubectl apply` remembers, which is of the old task.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Makes the new task.
pub async fn answer(call: PartCall) -> Result<Reply, Refusal> {
    let (_, old) = call.read()?;
    let state = old.state();
    if !state.is_terminal() {
        let why = format!("the task is {state}; only one that has ended can be made again");
        return Err(call.conflict(why));
    }
    let new = copy(&old);
    let form = choose_form(&call.headers)?;
    let PartCall { api, kind, namespace, options, user, headers, .. } = call;
    let (namespace, part, warnings) = (Some(namespace), Part::Main, Vec::new());
    let call = Call { api, kind, namespace, name: None, part, options, form, user, headers, warnings };
    store_new(&call, Box::new(new)).await
}

fn copy(old: &Task) -> Task {
    let mut new = Task::default();
    new.metadata.generate_name = format!("{}-", old.metadata.name);
    new.metadata.labels.clone_from(&old.metadata.labels);
    new.metadata.annotations.clone_from(&old.metadata.annotations);
    new.metadata.annotations.remove(LAST_APPLIED);
    new.metadata.annotations.insert(RETRY_OF.to_owned(), old.metadata.name.clone());
    new.spec.clone_from(&old.spec);
    new.spec.suspend = false;
    new.spec.cancel = false;
    new
}
