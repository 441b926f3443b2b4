//! Committed changes, taken in: groups, jobs and tallies are as the store is.

use muster_ports::clock::Millis;
use muster_ports::store::{Change, Key, Stored, Watch, WatchError};
use muster_types::{Job, JsonText, TaskGroup};
use muster_workflows::lifetime::{group_end_of_life, job_end_of_life};

use super::entries::{GroupEntry, JobEntry, OpenGroup, OpenJob, Written, controller, stand_of};
use super::member_brief::MemberBrief;
use super::{Due, Workflows, departures};
use crate::intake::Intake;

impl Intake for Workflows {
    fn watch(&mut self) -> &mut Watch {
        &mut self.watch
    }

    fn observe(&mut self, change: &Change) {
        let resource = change.resource.as_str();
        if !change.deleted {
            return self.observe_stored(resource, &change.object);
        }
        if resource == self.names.tasks.as_str() {
            self.observe_member(&change.object, true);
        } else if resource == self.names.groups.as_str() {
            self.forget_group(&change.object);
        } else if resource == self.names.jobs.as_str()
            && let Some(uid) = self.job_uids.remove(&change.object.path)
        {
            self.jobs.remove(&uid);
        }
    }

    fn start_over(&mut self) -> Result<(), WatchError> {
        *self = Self::with_lifetimes(self.store.clone(), self.clock.clone(), self.lifetimes)?;
        Ok(())
    }
}

impl Workflows {
    /// Takes in what is stored: jobs, then groups, then tasks, each known before what belongs to it.
    pub(super) fn read_all(&mut self) {
        let snapshots = [&self.names.jobs, &self.names.groups, &self.names.tasks]
            .map(|resource| (resource.clone(), self.store.snapshot(resource)));
        for (resource, snapshot) in &snapshots {
            for stored in snapshot.range(None, None) {
                self.observe_stored(resource.as_str(), stored);
            }
        }
        for (uid, entry) in &mut self.groups {
            if let Some(open) = &mut entry.open {
                open.members.settle(open.group.status.gone);
                self.dirty_groups.push(uid);
            }
        }
    }

    fn observe_stored(&mut self, resource: &str, stored: &Stored) {
        if resource == self.names.tasks.as_str() {
            self.observe_member(stored, false);
        } else if resource == self.names.groups.as_str() {
            self.observe_group(stored);
        } else if resource == self.names.jobs.as_str() {
            self.observe_job(stored);
        }
    }

    fn observe_member(&mut self, stored: &Stored, deleted: bool) {
        let brief = MemberBrief::read(stored.json());
        let group = brief.as_ref().and_then(|brief| self.groups.get_mut(&brief.group));
        let open = group.and_then(|entry| entry.open.as_mut());
        let (Some(brief), Some(open)) = (brief, open) else {
            if !deleted && departures::is_leaving(stored) {
                self.due.insert((Millis(0), Due::LetGo(stored.path.clone())));
            }
            return;
        };
        if deleted {
            open.members.observe_gone(brief.place);
        } else {
            open.members.observe(brief.place, brief.state, brief.cancel);
        }
        if brief.leaving && !deleted {
            open.leaving.insert(brief.place);
        } else {
            open.leaving.remove(&brief.place);
        }
        self.dirty_groups.push(&brief.group);
    }

    fn observe_group(&mut self, stored: &Stored) {
        let known = self.group_uids.get(&stored.path).and_then(|uid| self.groups.get(uid));
        if known.is_some_and(|entry| entry.revision >= stored.revision) {
            return;
        }
        match TaskGroup::from_json(stored.json()) {
            Ok(group) => self.take_group(group, stored),
            Err(error) => {
                tracing::error!(path = &*stored.path, %error, "a stored group cannot be read; it is left alone");
            }
        }
    }

    /// A group as it is stored now.
    fn take_group(&mut self, group: TaskGroup, stored: &Stored) {
        let uid = group.metadata.uid.clone();
        self.group_uids.insert(stored.path.clone(), uid.clone());
        let key = Key { resource: self.names.groups.clone(), path: stored.path.clone() };
        let job = controller(&group.metadata, "Job");
        let entry = self.groups.entry(uid.clone()).or_insert_with(|| GroupEntry {
            key,
            revision: stored.revision,
            job,
            open: None,
            written: Written::default(),
        });
        entry.revision = stored.revision;
        self.settle_group(&uid, group);
    }

    /// Keeps a group as it is now, and tells its job.
    pub(super) fn settle_group(&mut self, uid: &str, group: TaskGroup) {
        let Some(entry) = self.groups.get_mut(uid) else { return };
        let (stand, name) = (stand_of(&group), group.metadata.name.clone());
        let goes_on = !stand.state.is_terminal() && group.metadata.deletion_timestamp.is_none();
        let end_of_life = group_end_of_life(&group, &self.lifetimes);
        match (&mut entry.open, goes_on) {
            (Some(open), true) => {
                open.members.set_made(group.status.made);
                open.group = group;
            }
            (None, true) => {
                entry.open = Some(OpenGroup::new(group));
            }
            (open, false) => {
                let left = open.take().into_iter().flat_map(|open| open.leaving_keys(&self.names.tasks));
                self.due.extend(left.map(|key| (Millis(0), Due::LetGo(key.path))));
            }
        }
        if goes_on {
            self.dirty_groups.push(uid);
        }
        if let Some((second, what)) = end_of_life {
            self.due.insert((Millis(second.saturating_mul(1000)), Due::GroupEndOfLife(uid.to_owned(), what)));
        }
        let job = entry.job.clone();
        self.tell_job(job.as_deref(), &name, uid, Some(stand));
    }

    fn tell_job(
        &mut self,
        job: Option<&str>,
        name: &str,
        group: &str,
        stand: Option<muster_workflows::job_plan::GroupStand>,
    ) {
        let Some(job) = job else { return };
        let Some(open) = self.jobs.get_mut(job).and_then(|entry| entry.open.as_mut()) else { return };
        let Some(place) = open.place_of(name) else { return };
        open.uids[place] = stand.is_some().then(|| group.to_owned());
        open.stands[place] = stand;
        self.dirty_jobs.push(job);
    }

    fn forget_group(&mut self, stored: &Stored) {
        let Some(uid) = self.group_uids.remove(&stored.path) else { return };
        let Some(entry) = self.groups.remove(&uid) else { return };
        let left = entry.open.into_iter().flat_map(|open| open.leaving_keys(&self.names.tasks));
        self.due.extend(left.map(|key| (Millis(0), Due::LetGo(key.path))));
        self.tell_job(entry.job.as_deref(), stored.name(), &uid, None);
    }

    fn observe_job(&mut self, stored: &Stored) {
        let known = self.job_uids.get(&stored.path).and_then(|uid| self.jobs.get(uid));
        if known.is_some_and(|entry| entry.revision >= stored.revision) {
            return;
        }
        let job = match Job::from_json(stored.json()) {
            Ok(job) => job,
            Err(error) => {
                tracing::error!(path = &*stored.path, %error, "a stored job cannot be read; it is left alone");
                return;
            }
        };
        let uid = job.metadata.uid.clone();
        self.job_uids.insert(stored.path.clone(), uid.clone());
        let key = Key { resource: self.names.jobs.clone(), path: stored.path.clone() };
        let entry = self.jobs.entry(uid.clone()).or_insert_with(|| JobEntry {
            key,
            revision: stored.revision,
            open: None,
            written: Written::default(),
        });
        entry.revision = stored.revision;
        self.settle_job(&uid, job);
    }

    /// Keeps a job as it is now.
    pub(super) fn settle_job(&mut self, uid: &str, job: Job) {
        let Some(entry) = self.jobs.get_mut(uid) else { return };
        let goes_on = !job.status.current_state().is_terminal() && job.metadata.deletion_timestamp.is_none();
        let end_of_life = job_end_of_life(&job, &self.lifetimes);
        match (&mut entry.open, goes_on) {
            (Some(open), true) => open.job = job,
            (None, true) => entry.open = Some(OpenJob::new(job)),
            (open, false) => *open = None,
        }
        if goes_on {
            self.dirty_jobs.push(uid);
        }
        if let Some((second, what)) = end_of_life {
            self.due.insert((Millis(second.saturating_mul(1000)), Due::JobEndOfLife(uid.to_owned(), what)));
        }
    }
}
