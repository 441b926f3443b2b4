//! Groups, carried out: members are made together with the note that they were, submitted and ended one by one.

use futures_util::future::{join, join_all};
use muster_ports::clock::Millis;
use muster_ports::store::{Batch, CommitError, Committed, Key, Precondition};
use muster_types::condition::{Condition, ConditionStatus, set_condition};
use muster_types::{State, TaskGroup};
use muster_workflows::group_plan::{EndReason, GroupPlan, plan_group};
use muster_workflows::group_render::{member_name, render_member};
use muster_workflows::group_status::fold_group;

use super::departures::Departures;
use super::edits::{cancel, submit};
use super::entries::{Written, first_revision};
use super::member_brief::MemberBrief;
use super::{Due, MOST_WRITES, SLICE, Workflows};
use crate::writes::put;

/// What a look at a group asks for.
struct GroupWork {
    uid: String,
    /// The group as it will be, if it changes, and what is made with it.
    written: Option<(TaskGroup, Batch)>,
    /// Places of members that are deleted with it.
    leaves: Vec<u32>,
    /// Changes of members.
    edits: Vec<Batch>,
}

impl Workflows {
    /// Looks at groups in their turn.
    pub(super) async fn step_groups(&mut self, now: Millis) {
        let (mut work, mut writes) = (Vec::new(), 0);
        while writes < MOST_WRITES
            && let Some(uid) = self.dirty_groups.pop()
        {
            let Some(found) = self.look_at_group(&uid, now) else { continue };
            writes += found.edits.len() + found.written.as_ref().map_or(0, |(_, batch)| batch.writes.len());
            work.push(found);
        }
        let store = &self.store;
        let commits = work.into_iter().map(|work| async move {
            let edits = join_all(work.edits.into_iter().map(|batch| store.commit(batch)));
            let written = async {
                let (group, batch) = work.written?;
                Some((group, store.commit(batch).await))
            };
            let (written, edits) = join(written, edits).await;
            (work.uid, written, work.leaves, edits)
        });
        for (uid, written, leaves, edits) in join_all(commits).await {
            for error in edits.into_iter().filter_map(Result::err) {
                self.try_again(&error, Due::LookAtGroup(uid.clone()), now);
            }
            match written {
                None => {}
                Some((group, Ok(committed))) => {
                    if let Some(open) = self.groups.get_mut(&uid).and_then(|entry| entry.open.as_mut()) {
                        open.count_gone(&leaves);
                    }
                    self.group_written(&uid, group, &committed, now);
                }
                Some((_, Err(error))) => {
                    self.note_taken(&uid, &error);
                    self.try_again(&error, Due::LookAtGroup(uid), now);
                }
            }
        }
    }

    /// A group was committed: the loop knows it without reading it again.
    pub(super) fn group_written(&mut self, uid: &str, group: TaskGroup, committed: &Committed, now: Millis) {
        let Some(entry) = self.groups.get_mut(uid) else { return };
        entry.revision = first_revision(committed);
        entry.written = Written::new(now, committed);
        self.refusals.observe_taken();
        self.settle_group(uid, group);
    }

    fn look_at_group(&mut self, uid: &str, now: Millis) -> Option<GroupWork> {
        let entry = self.groups.get_mut(uid)?;
        let open = entry.open.as_mut()?;
        for (place, ours) in &open.taken {
            if !ours && open.members.state(*place).is_none() {
                open.members.observe_taken(*place);
            }
        }
        let plan = plan_group(&open.group.spec, &mut open.members, SLICE);
        let mut status = fold_group(&open.group.spec, &open.members, &open.group.status, now.to_timestamp());
        status.made = status.made.max(plan.make.last().map_or(0, |(place, _)| place + 1));
        note_taken_names(&open.group, &open.taken, &mut status.conditions, now);
        let before = &open.group.status;
        let urgent = status.state != before.state || status.made != before.made;
        let next =
            if open.leaving.is_empty() { entry.written.next() } else { entry.written.next_for_leaving() };
        let ripe = urgent || next <= now;
        let leaves =
            if ripe { Departures::of(open, &self.store, &self.names) } else { Departures::default() };
        status.gone = leaves.added_to(status.gone);
        let changed = status != *before;
        let edits = edits_of(&self.store, &self.names.tasks, &open.group, &plan, now);
        let mut written = None;
        if changed && ripe {
            let mut group = open.group.clone();
            group.status = status;
            let expect = Precondition::At(entry.revision);
            let mut writes = vec![put(entry.key.clone(), expect, &mut group)?];
            for (place, submitted) in plan.make.iter().filter(|(place, _)| !open.taken.contains_key(place)) {
                let mut task = render_member(&open.group, *place, *submitted, now);
                let key = Key::new(&self.names.tasks, &task.metadata.namespace, &task.metadata.name);
                writes.extend(put(key, Precondition::Absent, &mut task));
            }
            writes.extend(leaves.writes);
            written = Some((group, Batch { writes, ..Batch::default() }));
        } else if !ripe && (changed || !open.leaving.is_empty()) {
            self.due.insert((next, Due::LookAtGroup(uid.to_owned())));
        }
        let leaves = leaves.places;
        (written.is_some() || !edits.is_empty()).then(|| GroupWork {
            uid: uid.to_owned(),
            written,
            leaves,
            edits,
        })
    }

    /// Something else has the name of a member: that member cannot be made. It counts as failed, unless it is ours.
    fn note_taken(&mut self, uid: &str, error: &CommitError) {
        let CommitError::Conflict { key, expected: Precondition::Absent, found: Some(found) } = error else {
            return;
        };
        let Some(open) = self.groups.get_mut(uid).and_then(|entry| entry.open.as_mut()) else { return };
        let (name, spec) = (&open.group.metadata.name, &open.group.spec);
        let made = open.members.made();
        let end = open.members.total().min(made.saturating_add(SLICE));
        let is_it = |place: &u32| found.name() == member_name(name, spec, *place) && key.path == found.path;
        let Some(place) = (made..end).find(is_it) else { return };
        let ours =
            MemberBrief::read(found.json()).is_some_and(|brief| brief.group == uid && brief.place == place);
        open.taken.insert(place, ours);
    }
}

fn edits_of(
    store: &muster_ports::store::Store,
    tasks: &muster_ports::store::ResourceName,
    group: &TaskGroup,
    plan: &GroupPlan,
    now: Millis,
) -> Vec<Batch> {
    let (namespace, name) = (&group.metadata.namespace, &group.metadata.name);
    let key = |place: u32| Key::new(tasks, namespace, &member_name(name, &group.spec, place));
    let submits = plan.submit.iter().filter_map(|place| submit(store, &key(*place), now));
    let cancels = plan.cancel.iter().filter_map(|place| {
        let reason = plan.reason?;
        let broken = match reason {
            EndReason::Pipeline { broken, .. } => member_name(name, &group.spec, broken),
            EndReason::GroupCanceled => String::new(),
        };
        let words = reason.describe(&member_name(name, &group.spec, *place), &broken);
        cancel(store, &key(*place), &words, now)
    });
    submits.chain(cancels).collect()
}

fn note_taken_names(
    group: &TaskGroup,
    taken: &std::collections::BTreeMap<u32, bool>,
    conditions: &mut Vec<Condition>,
    now: Millis,
) {
    let Some((place, _)) = taken.iter().find(|(_, ours)| !**ours) else { return };
    let name = member_name(&group.metadata.name, &group.spec, *place);
    let message = format!(
        "a task named {name} is there already and is not of this group; it counts as {}",
        State::Failed
    );
    let (r#type, status) = ("NameTaken", ConditionStatus::True);
    set_condition(conditions, Condition::new(r#type, status, "NameTaken", message, now.to_timestamp()));
}
