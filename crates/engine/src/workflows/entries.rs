//! Groups and jobs as the loop keeps them: in full while they go on, in brief when they have ended.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use muster_ports::clock::Millis;
use muster_ports::store::{Committed, Key, ResourceName, Revision};
use muster_types::{Job, Metadata, TaskGroup};
use muster_workflows::group_members::Members;
use muster_workflows::group_render::member_name;
use muster_workflows::job_plan::GroupStand;
use muster_workflows::job_render::group_name;

/// Time between two writes of a status whose numbers alone changed, at least,
const STATUS_PAUSE: i64 = 250;
/// and bytes that such writes of one object cost in a millisecond: a long chain carries its whole text with each.
const STATUS_BYTES: i64 = 32;

/// Time after which a member that is to be deleted waits no longer for its group, however large that is.
const LEAVING_PAUSE: i64 = 2_000;

/// When something was last written, and how much that was.
#[derive(Debug, Clone, Copy, Default)]
pub struct Written {
    at: Millis,
    bytes: usize,
}

impl Written {
    /// It was written now.
    pub fn new(at: Millis, committed: &Committed) -> Self {
        Self { at, bytes: committed.objects.first().map_or(0, |stored| stored.json().len()) }
    }

    /// When numbers alone may be written again.
    pub fn next(self) -> Millis {
        let bytes = i64::try_from(self.bytes).unwrap_or(i64::MAX);
        Millis(self.at.0 + STATUS_PAUSE.max(bytes / STATUS_BYTES))
    }

    /// When it may be written again because members leave.
    pub fn next_for_leaving(self) -> Millis {
        self.next().min(Millis(self.at.0 + LEAVING_PAUSE))
    }
}

/// A group.
#[derive(Debug)]
pub struct GroupEntry {
    /// Where it is stored.
    pub key: Key,
    /// Its last change that is known.
    pub revision: Revision,
    /// Uid of its job.
    pub job: Option<String>,
    /// The group, while it goes on.
    pub open: Option<OpenGroup>,
    /// How it was last written.
    pub written: Written,
}

/// A group that goes on.
#[derive(Debug)]
pub struct OpenGroup {
    /// As it is stored.
    pub group: TaskGroup,
    /// Its members.
    pub members: Members,
    /// Places of members whose deletion waits until they are counted.
    pub leaving: BTreeSet<u32>,
    /// Places that are not made because something of that name is there: true if it is ours.
    pub taken: BTreeMap<u32, bool>,
}

impl OpenGroup {
    /// A group none of whose members was seen.
    pub fn new(group: TaskGroup) -> Self {
        let members = Members::new(group.spec.total(), group.status.made);
        Self { group, members, leaving: BTreeSet::new(), taken: BTreeMap::new() }
    }

    /// Members were counted and deleted.
    pub fn count_gone(&mut self, places: &[u32]) {
        for place in places {
            self.members.observe_gone(*place);
            self.leaving.remove(place);
        }
    }

    /// Where the members are stored whose deletion waits until they are counted.
    pub fn leaving_keys(&self, tasks: &ResourceName) -> Vec<Key> {
        self.leaving.iter().map(|place| self.member_key(tasks, *place)).collect()
    }

    /// Where the member at a place is stored.
    pub fn member_key(&self, tasks: &ResourceName, place: u32) -> Key {
        let metadata = &self.group.metadata;
        Key::new(tasks, &metadata.namespace, &member_name(&metadata.name, &self.group.spec, place))
    }
}

/// A job.
#[derive(Debug)]
pub struct JobEntry {
    /// Where it is stored.
    pub key: Key,
    /// Its last change that is known.
    pub revision: Revision,
    /// The job, while it goes on.
    pub open: Option<OpenJob>,
    /// How it was last written.
    pub written: Written,
}

/// A job that goes on.
#[derive(Debug)]
pub struct OpenJob {
    /// As it is stored.
    pub job: Job,
    /// Its groups that are there, by place.
    pub stands: Vec<Option<GroupStand>>,
    /// Uids of those groups.
    pub uids: Vec<Option<String>>,
    /// Places by the name of the TaskGroup.
    places: HashMap<String, usize>,
}

impl OpenJob {
    /// A job none of whose groups was seen.
    pub fn new(job: Job) -> Self {
        let groups = &job.spec.task_groups;
        let named = groups.iter().enumerate().rev();
        let places =
            named.map(|(place, group)| (group_name(&job.metadata.name, &group.name), place)).collect();
        let (stands, uids) = (vec![None; groups.len()], vec![None; groups.len()]);
        Self { job, stands, uids, places }
    }

    /// The place of a TaskGroup.
    pub fn place_of(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }
}

/// How a group stands, for its job.
pub fn stand_of(group: &TaskGroup) -> GroupStand {
    let status = &group.status;
    GroupStand {
        state: status.current_state(),
        counts: status.counts,
        total: if status.total > 0 { status.total } else { group.spec.total() },
        message: status.message.clone(),
        cancel: group.spec.cancel,
        suspend: group.spec.suspend,
    }
}

/// The revision of the first object of a commit.
pub fn first_revision(committed: &Committed) -> Revision {
    committed.objects.first().map_or(committed.revision, |stored| stored.revision)
}

/// Uid of the owner of a kind that controls an object.
pub fn controller(metadata: &Metadata, kind: &str) -> Option<String> {
    let owner = metadata.owner_references.iter().find(|owner| owner.controller == Some(true))?;
    (owner.kind == kind).then(|| owner.uid.clone())
}
