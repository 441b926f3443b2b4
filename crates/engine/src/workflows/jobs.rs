//! Jobs, carried out: groups are made together with the note that they were.

use futures_util::future::join_all;
use muster_ports::clock::Millis;
use muster_ports::store::{Batch, CommitError, Key, Precondition};
use muster_types::{Job, TaskGroup, WorkState};
use muster_workflows::job_plan::{GroupStand, JobPlan, plan_job};
use muster_workflows::job_render::render_group;

use super::entries::{Written, first_revision};
use super::{Due, MOST_JOBS, Workflows};
use crate::writes::put;

/// What a look at a job asks for.
struct JobWork {
    uid: String,
    /// The job as it will be, if it changes, and the groups that are made with it.
    written: Option<(Job, Batch)>,
    /// Groups that change, by uid.
    edits: Vec<(String, TaskGroup, Batch)>,
}

impl Workflows {
    /// Looks at jobs in their turn.
    pub(super) async fn step_jobs(&mut self, now: Millis) {
        let mut work = Vec::new();
        while work.len() < MOST_JOBS
            && let Some(uid) = self.dirty_jobs.pop()
        {
            work.extend(self.look_at_job(&uid, now));
        }
        let store = &self.store;
        let commits = work.into_iter().map(|work| async move {
            let edits = work.edits.into_iter();
            let edits =
                edits.map(|(uid, group, batch)| async move { (uid, group, store.commit(batch).await) });
            let edits = join_all(edits).await;
            // The note that groups were told to go on is written only when they were.
            let all_told = edits.iter().all(|(_, _, outcome)| outcome.is_ok());
            let written = match work.written.filter(|_| all_told) {
                Some((job, batch)) => Some((job, store.commit(batch).await)),
                None => None,
            };
            (work.uid, written, edits)
        });
        for (uid, written, edits) in join_all(commits).await {
            for (group_uid, group, outcome) in edits {
                match outcome {
                    Ok(committed) => self.group_written(&group_uid, group, &committed, now),
                    Err(error) => self.try_again(&error, Due::LookAtJob(uid.clone()), now),
                }
            }
            match written {
                None => {}
                Some((job, Ok(committed))) => {
                    self.refusals.observe_taken();
                    if let Some(entry) = self.jobs.get_mut(&uid) {
                        entry.revision = first_revision(&committed);
                        entry.written = Written::new(now, &committed);
                        self.settle_job(&uid, job);
                    }
                }
                Some((_, Err(error))) => {
                    self.note_taken_group(&uid, &error);
                    self.try_again(&error, Due::LookAtJob(uid), now);
                }
            }
        }
    }

    fn look_at_job(&mut self, uid: &str, now: Millis) -> Option<JobWork> {
        let entry = self.jobs.get(uid)?;
        let open = entry.open.as_ref()?;
        let plan = plan_job(&open.job, &open.stands, now.to_timestamp());
        let edits = self.group_edits(&open.uids, &plan);
        let before = &open.job.status;
        let noted = |status: &muster_types::job::JobStatus| {
            let states: Vec<WorkState> = status.groups.iter().map(|group| group.state).collect();
            (status.state, status.stopping, status.suspended_since, states)
        };
        let urgent = !plan.make.is_empty() || noted(&plan.status) != noted(before);
        let changed = plan.status != *before;
        let ripe = urgent || entry.written.next() <= now;
        let mut written = None;
        if changed && ripe {
            let mut job = open.job.clone();
            job.status = plan.status;
            let mut writes = vec![put(entry.key.clone(), Precondition::At(entry.revision), &mut job)?];
            for place in &plan.make {
                let mut group = render_group(&open.job, *place, now)?;
                let key = Key::new(&self.names.groups, &group.metadata.namespace, &group.metadata.name);
                writes.extend(put(key, Precondition::Absent, &mut group));
            }
            written = Some((job, Batch { writes, ..Batch::default() }));
        } else if changed {
            self.due.insert((entry.written.next(), Due::LookAtJob(uid.to_owned())));
        }
        if let Some(second) = plan.wake_at {
            self.due.insert((Millis(second.saturating_mul(1000)), Due::LookAtJob(uid.to_owned())));
        }
        (written.is_some() || !edits.is_empty()).then(|| JobWork { uid: uid.to_owned(), written, edits })
    }

    /// The groups that are to end, to rest or to go on.
    fn group_edits(&self, uids: &[Option<String>], plan: &JobPlan) -> Vec<(String, TaskGroup, Batch)> {
        let cancels = plan.cancel.iter().map(|place| (*place, None));
        let rests = plan.suspend.iter().filter(|(place, _)| !plan.cancel.contains(place));
        let changes = cancels.chain(rests.map(|(place, suspend)| (*place, Some(*suspend))));
        let edits = changes.filter_map(|(place, suspend)| {
            let uid = uids.get(place)?.as_ref()?;
            let entry = self.groups.get(uid)?;
            let mut group = entry.open.as_ref()?.group.clone();
            match suspend {
                Some(suspend) => group.spec.suspend = suspend,
                None => group.spec.cancel = true,
            }
            group.metadata.generation += 1;
            let write = put(entry.key.clone(), Precondition::At(entry.revision), &mut group)?;
            Some((uid.clone(), group, Batch::of(write)))
        });
        edits.collect()
    }

    /// A group of that name is there already and is not of this job: the group counts as failed.
    fn note_taken_group(&mut self, uid: &str, error: &CommitError) {
        let CommitError::Conflict { expected: Precondition::Absent, found: Some(found), .. } = error else {
            return;
        };
        let Some(open) = self.jobs.get_mut(uid).and_then(|entry| entry.open.as_mut()) else { return };
        let Some(place) = open.place_of(found.name()).filter(|place| open.stands[*place].is_none()) else {
            return;
        };
        let message = format!("a TaskGroup named {} is there already and is not of this job", found.name());
        open.stands[place] = Some(GroupStand { state: WorkState::Failed, message, ..GroupStand::default() });
    }
}
