//! What of a stored task its group must know, read without the rest. Tasks of no group are told apart without reading them.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use muster_types::{State, Timestamp};
use muster_workflows::departure::COUNTED;
use serde::Deserialize;

/// Every member has it, hardly anything else does.
static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"muster.dev/place\""));

/// A member of a group, in brief.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberBrief {
    /// Uid of its group.
    pub group: String,
    /// Its place in the group.
    pub place: u32,
    /// Where it is in its life.
    pub state: State,
    /// Its end was asked for.
    pub cancel: bool,
    /// Its deletion was asked for and waits for its group.
    pub leaving: bool,
}

impl MemberBrief {
    /// Reads a stored task; `None` if it is not of a group.
    pub fn read(json: &[u8]) -> Option<Self> {
        MARK.find(json)?;
        let task: Stored<'_> = serde_json::from_slice(json).ok()?;
        let metadata = task.metadata;
        let leaving =
            metadata.deletion_timestamp.is_some() && metadata.finalizers.iter().any(|name| name == COUNTED);
        let owner = metadata.owner_references.into_iter().find(|owner| owner.controller == Some(true))?;
        Some(Self {
            group: owner.uid.into_owned(),
            place: metadata.annotations.place?.parse().ok()?,
            state: State::of(task.status.state, task.spec.suspend),
            cancel: task.spec.cancel,
            leaving,
        })
    }
}

#[derive(Deserialize)]
struct Stored<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow, default)]
    owner_references: Vec<Owner<'a>>,
    #[serde(borrow, default)]
    annotations: Annotations<'a>,
    deletion_timestamp: Option<Timestamp>,
    #[serde(borrow, default)]
    finalizers: Vec<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Owner<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
    controller: Option<bool>,
}

#[derive(Deserialize, Default)]
struct Annotations<'a> {
    #[serde(borrow, rename = "muster.dev/place")]
    place: Option<Cow<'a, str>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Spec {
    suspend: bool,
    cancel: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    state: Option<State>,
}

#[cfg(test)]
mod tests {
    use muster_types::{Millis, TaskGroup, TaskSpec};
    use muster_workflows::group_render::render_member;

    use super::*;

    #[test]
    fn a_member_is_read_as_it_was_made() {
        let mut group = TaskGroup::new("n", "g", muster_types::task_group::TaskGroupSpec::default());
        group.metadata.uid = "u".to_owned();
        group.spec.tasks.push(muster_types::task_group::GroupTask::default());
        let mut task = render_member(&group, 0, false, Millis(0));
        let read = |task: &muster_types::Task| MemberBrief::read(&serde_json::to_vec(task).unwrap());
        let (group, leaving) = ("u".to_owned(), false);
        let brief = MemberBrief { group, place: 0, state: State::Created, cancel: false, leaving };
        assert_eq!(read(&task), Some(brief.clone()));
        (task.spec.suspend, task.status.state) = (false, Some(State::Ready));
        task.spec.cancel = true;
        assert_eq!(read(&task), Some(MemberBrief { state: State::Ready, cancel: true, ..brief }));
    }

    #[test]
    fn a_task_of_no_group_is_none() {
        let task = muster_types::Task::new("n", "t", TaskSpec::default());
        assert_eq!(MemberBrief::read(&serde_json::to_vec(&task).unwrap()), None);
        assert_eq!(MemberBrief::read(b"\"muster.dev/place\""), None);
    }
}
