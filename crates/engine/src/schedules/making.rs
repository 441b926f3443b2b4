//! What a schedule has to have written: its runs with its status, ends of runs it replaces, and runs it keeps no longer.

use std::sync::Arc;

use muster_ports::clock::Millis;
use muster_ports::store::{Batch, Key, Precondition, Store, Stored, Write};
use muster_types::schedule::{Concurrency, TriggerKind};
use muster_types::schedule_status::RunRef;
use muster_types::task_template::EmbeddedTask;
use muster_types::{Job, JsonText, Metadata, Schedule, Task, TaskTemplate, Timestamp};
use muster_workflows::schedule::{Situation, note_present, plan_schedule};
use muster_workflows::schedule_history::choose_forgotten;
use muster_workflows::schedule_run::{Cause, REPLACED_BY, complete, render_job, render_task, sign};
use muster_workflows::trigger::is_handled;
use serde::Deserialize;

use super::entry::{Entry, RunKey};
use super::run_brief::RunBrief;
use super::{Names, Now};
use crate::writes::{delete, must_stay, put};

/// Names tried for a run.
const NAME_TRIES: u32 = 8;
/// Runs shown in the status, and ends of runs looked at.
const SHOWN: usize = 100;

/// What was decided for a schedule.
pub struct Made {
    /// Its `namespace/name`.
    pub path: Arc<str>,
    /// What is to be written, one after the other.
    pub batches: Vec<Batch>,
    /// The runs that are made by it, as the status shows them.
    pub runs: Vec<(RunKey, RunRef)>,
    /// When to look again.
    pub wake_at: Option<Timestamp>,
    /// Path of a TaskTemplate that is missing.
    pub waits_for: Option<String>,
}

/// Decides, and puts the decision into writes.
pub fn make(
    store: &Store,
    names: &Names,
    stored: &Stored,
    entry: &mut Entry,
    now: Now,
) -> Result<Made, serde_json::Error> {
    let schedule: Schedule = Schedule::from_json(stored.json())?;
    entry.awaited.retain(|_, work| !is_handled(&schedule, &schedule.status, work, now.wall_lead()));
    let template = Template::of(store, names, &schedule);
    let (active, results) = (entry.active_refs(), entry.results(SHOWN));
    let ended: Vec<_> = entry.awaited.values().cloned().collect();
    let replaceable = find_replaceable(store, names, &schedule, entry);
    let missing = template.missing();
    let situation = Situation {
        schedule: &schedule,
        active: &active,
        replaceable: &replaceable,
        results: &results,
        ended: &ended,
        missing: missing.as_deref(),
        now: now.wall.to_timestamp(),
        steady: now.steady.to_timestamp(),
    };
    let plan = plan_schedule(&situation);

    let mut writes = Vec::new();
    let mut runs = Vec::new();
    let mut replacement = None;
    let mut status = plan.status;
    for cause in &plan.runs {
        let run = template.run(store, names, &schedule, cause, now.steady);
        if let Some((run, _)) = &run {
            replacement.get_or_insert_with(|| run.name());
        }
        match run {
            Some((run, Some(write))) => {
                writes.push(write);
                let shown = run.to_ref(cause.backfill(), cause.time());
                runs.push((run, shown));
            }
            // It is known by its own changes, and may have ended long ago.
            Some((_, None)) => note_present(&mut status, cause),
            None => {}
        }
    }
    if plan.replaces {
        let by = replacement.unwrap_or_else(|| schedule.metadata.name.clone());
        writes.extend(entry.active.iter().filter_map(|(run, shown)| {
            let replaced_by = replaceable.contains(shown).then_some(by.as_str());
            cancel(store, names, run, replaced_by)
        }));
    }
    status.last_successful_time = status.last_successful_time.max(entry.succeeded);
    if !runs.is_empty() {
        let mut all = active;
        all.extend(runs.iter().map(|(_, shown)| shown.clone()));
        all.sort();
        all.truncate(SHOWN);
        status.active = all;
    }
    if status != schedule.status || !writes.is_empty() {
        let mut changed = schedule.clone();
        changed.status = status;
        let key = Key { resource: names.schedules.clone(), path: stored.path.clone() };
        writes.extend(put(key, Precondition::At(stored.revision), &mut changed));
    }
    let mut batches = if writes.is_empty() { Vec::new() } else { vec![Batch { checks: Vec::new(), writes }] };
    let forgotten = choose_forgotten(&schedule.spec, entry.ended.iter());
    let stays = |run: &RunKey| {
        let stored = store.get(&key_of(names, run.kind, &run.path));
        let found = stored.as_ref().and_then(|stored| Some((stored.revision, stored.metadata::<RunUid>()?)));
        found.is_some_and(|(revision, RunUid { uid })| must_stay(store, revision, &uid))
    };
    let (later, at_once): (Vec<_>, Vec<_>) = forgotten.into_iter().partition(|run| stays(&run.key));
    batches
        .extend(at_once.iter().filter_map(|run| forget(store, names, &run.key, now.steady)).map(Batch::of));
    let again = (!later.is_empty()).then(|| Timestamp::from_second(now.wall.to_timestamp().as_second() + 1));
    let waits_for = missing.is_some().then(|| Template::path(&schedule)).flatten();
    let wake_at = plan.wake_at.into_iter().chain(again).min();
    Ok(Made { path: stored.path.clone(), batches, runs, wake_at, waits_for })
}

/// The active runs of backfills whose end nobody has asked for, where runs are replaced.
fn find_replaceable(store: &Store, names: &Names, schedule: &Schedule, entry: &Entry) -> Vec<RunRef> {
    if schedule.spec.schedule_policy.concurrency() != Concurrency::Replace {
        return Vec::new();
    }
    let is_open = |run: &RunKey| {
        let stored = store.get(&key_of(names, run.kind, &run.path));
        let brief = stored.and_then(|stored| RunBrief::read(run.kind, stored.json()));
        brief.is_some_and(|brief| brief.ended.is_none() && !brief.is_leaving)
    };
    let own = entry.active.iter().filter(|(run, shown)| !shown.backfill.is_empty() && is_open(run));
    own.map(|(_, shown)| shown.clone()).collect()
}

/// The uid of a run.
#[derive(Deserialize)]
struct RunUid {
    uid: String,
}

/// What runs are made of.
enum Template {
    Task(Box<EmbeddedTask>),
    Job,
    Missing(String),
}

impl Template {
    fn of(store: &Store, names: &Names, schedule: &Schedule) -> Self {
        let spec = &schedule.spec;
        if let Some(template) = &spec.template {
            return Self::Task(Box::new(template.clone()));
        }
        if spec.job_template.is_some() {
            return Self::Job;
        }
        let Some(reference) = &spec.template_ref else {
            return Self::Missing("nothing to make is named".to_owned());
        };
        let key = Key::new(&names.templates, &schedule.metadata.namespace, &reference.name);
        let found = store.get(&key).and_then(|stored| TaskTemplate::from_json(stored.json()).ok());
        match found {
            Some(found) => Self::Task(Box::new(found.spec.template)),
            None => Self::Missing(format!(
                "there is no TaskTemplate {}; runs are made when it is there",
                reference.name
            )),
        }
    }

    fn missing(&self) -> Option<String> {
        if let Self::Missing(why) = self { Some(why.clone()) } else { None }
    }

    fn path(schedule: &Schedule) -> Option<String> {
        let reference = schedule.spec.template_ref.as_ref()?;
        Some(format!("{}/{}", schedule.metadata.namespace, reference.name))
    }

    /// The run for a cause, and its write unless it was made before.
    fn run(
        &self,
        store: &Store,
        names: &Names,
        schedule: &Schedule,
        cause: &Cause,
        now: Millis,
    ) -> Option<(RunKey, Option<Write>)> {
        let kind = if matches!(self, Self::Job) { TriggerKind::Job } else { TriggerKind::Task };
        let mut foreign = 0;
        for taken in 0.. {
            let name = cause.run_name(schedule, taken);
            let key = key_of(names, kind, &format!("{}/{name}", schedule.metadata.namespace).into());
            let run = RunKey { kind, path: key.path.clone() };
            if let Some(found) = store.get(&key) {
                let brief = RunBrief::read(kind, found.json());
                let own = brief.filter(|brief| brief.owner.as_ref() == Some(&schedule.metadata.uid));
                match own {
                    // There may be many: they bound themselves.
                    Some(brief) if brief.is_replaced => {}
                    Some(_) => return Some((run, None)),
                    None => foreign += 1,
                }
                if foreign == NAME_TRIES {
                    break;
                }
                continue;
            }
            let finish = |metadata: &mut Metadata| {
                metadata.name.clone_from(&name);
                complete(metadata, schedule, now);
            };
            let write = match self {
                Self::Task(template) => {
                    let mut task = render_task(schedule, template, Some(cause));
                    finish(&mut task.metadata);
                    sign(&mut task);
                    put(key, Precondition::Absent, &mut task)
                }
                Self::Job => {
                    let mut job = render_job(schedule, schedule.spec.job_template.as_ref()?, Some(cause));
                    finish(&mut job.metadata);
                    put(key, Precondition::Absent, &mut job)
                }
                Self::Missing(_) => None,
            };
            return write.map(|write| (run, Some(write)));
        }
        tracing::error!(
            schedule = schedule.metadata.name,
            "every name for a run is taken; the run is left out"
        );
        None
    }
}

fn key_of(names: &Names, kind: TriggerKind, path: &Arc<str>) -> Key {
    let resource = if kind == TriggerKind::Task { &names.tasks } else { &names.jobs };
    Key { resource: resource.clone(), path: path.clone() }
}

/// Asks for the end of a run. `replaced_by` is the run that takes its place, if it is made again later.
fn cancel(store: &Store, names: &Names, run: &RunKey, replaced_by: Option<&str>) -> Option<Write> {
    let key = key_of(names, run.kind, &run.path);
    let stored = store.get(&key)?;
    if RunBrief::read(run.kind, stored.json()).is_none_or(|brief| brief.ended.is_some()) {
        return None;
    }
    let note = |metadata: &mut Metadata| {
        metadata.generation += 1;
        if let Some(by) = replaced_by {
            metadata.annotations.insert(REPLACED_BY.to_owned(), by.to_owned());
        }
    };
    let expect = Precondition::At(stored.revision);
    match run.kind {
        TriggerKind::Task => {
            let mut task: Task = Task::from_json(stored.json()).ok()?;
            let asked = std::mem::replace(&mut task.spec.cancel, true);
            note(&mut task.metadata);
            if asked { None } else { put(key, expect, &mut task) }
        }
        TriggerKind::Job => {
            let mut job: Job = Job::from_json(stored.json()).ok()?;
            let asked = std::mem::replace(&mut job.spec.cancel, true);
            note(&mut job.metadata);
            if asked { None } else { put(key, expect, &mut job) }
        }
    }
}

/// Deletes a run that is kept no longer, or asks those who must agree.
fn forget(store: &Store, names: &Names, run: &RunKey, now: Millis) -> Option<Write> {
    let key = key_of(names, run.kind, &run.path);
    let stored = store.get(&key)?;
    match run.kind {
        TriggerKind::Task => delete(key, &stored, Task::from_json(stored.json()).ok()?, now),
        TriggerKind::Job => delete(key, &stored, Job::from_json(stored.json()).ok()?, now),
    }
}
