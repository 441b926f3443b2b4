//! `muster schedule`: the times of a schedule, and runs beside them.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use muster_client::Resource;
use muster_client::client::{ApplyOptions, Form};
use muster_ports::clock::{Clock as _, SystemClock};
use muster_types::job::JobSpec;
use muster_types::schedule::ScheduleSpec;
use muster_types::task_template::TaskTemplateSpec;
use muster_types::{Duration, JsonText, Schedule, TaskSpec, TaskTemplate, Timestamp};
use muster_workflows::schedule::{add_backfill, backfill_times, created, occurrences_of};
use muster_workflows::schedule_run::{Cause, render_job, render_task};
use muster_workflows::time_spec::zone::Zone;
use muster_workflows::time_spec::{Occurrences, TimeSpec};
use serde_json::{Value, json};

use super::session::Session;
use crate::cli::{Globals, ScheduleCommand, ScheduleTimes};
use crate::output::streams;
use crate::output::table::align;

/// Runs of one backfill.
const MOST_RUNS: usize = 10_000;
/// Requests after which a schedule that changes meanwhile is given up.
const TRIES: u32 = 5;
/// The end of a range is not part of it.
const SECOND: Duration = Duration::from_secs(1);
/// Who owns what is made here.
const MANAGER: &str = "muster-schedule";

/// Carries out a verb.
pub async fn run(globals: &Globals, command: &ScheduleCommand) -> anyhow::Result<ExitCode> {
    match command {
        ScheduleCommand::Preview(args) => preview(globals, args).await,
        ScheduleCommand::Run { name } => run_now(globals, name).await,
        ScheduleCommand::Backfill { name, from, to, max_active, dry_run } => {
            let past = Past { from: *from, to: *to, max_active: *max_active };
            backfill(globals, name, past, *dry_run).await
        }
    }
}

async fn preview(globals: &Globals, args: &ScheduleTimes) -> anyhow::Result<ExitCode> {
    let now = args.from.unwrap_or_else(|| SystemClock.wall().to_timestamp());
    let (occurrences, zone, first) = if let Some(spec) = &args.spec {
        let zone = args.zone.clone().unwrap_or_default();
        let parsed = TimeSpec::parse(spec, &zone).with_context(|| format!("--spec {spec}"))?;
        (parsed.starting(now), zone, now)
    } else {
        let session = Session::open(globals).await?;
        let schedule = read(&session, args.name.as_deref().unwrap_or_default()).await?;
        let zone = schedule.spec.schedule_policy.time_zone.clone();
        let first = now.max(created(&schedule));
        (times_of(&schedule)?, zone, first)
    };
    streams::note(format!("Understood as {}", occurrences.normal_form()));
    let mut next = occurrences.next_at_or_after(first);
    if next.is_none() {
        streams::note("There is no time left.");
        return Ok(ExitCode::SUCCESS);
    }
    let shown_zone = Zone::named(&zone).unwrap_or(Zone::UTC);
    // One column is enough where both would say the same.
    let zone = Some(zone).filter(|zone| !zone.is_empty() && zone != "UTC");
    let line =
        |local: String, utc: String| zone.iter().map(|_| local.clone()).chain([utc]).collect::<Vec<_>>();
    let name = zone.as_deref().unwrap_or_default().to_uppercase();
    let mut lines = vec![line(name, "UTC".to_owned())];
    while let Some(time) = next.filter(|_| lines.len() <= args.count) {
        lines.push(line(shown_zone.show(time.as_second()), time.to_string()));
        next = occurrences.next_after(time);
    }
    streams::print(&align(&lines))?;
    Ok(ExitCode::SUCCESS)
}

async fn run_now(globals: &Globals, name: &str) -> anyhow::Result<ExitCode> {
    let session = Session::open(globals).await?;
    let schedule = read(&session, name).await?;
    let made = make(&session, &schedule, None).await?;
    streams::report(made["metadata"]["name"].as_str().unwrap_or_default())?;
    Ok(ExitCode::SUCCESS)
}

/// Times in the past, as they were asked for.
struct Past {
    from: Timestamp,
    to: Timestamp,
    max_active: Option<u32>,
}

/// Asks for the runs of times in the past. The server makes them, behind the regular runs.
async fn backfill(globals: &Globals, name: &str, past: Past, dry_run: bool) -> anyhow::Result<ExitCode> {
    let Past { from, to, max_active } = past;
    if from >= to {
        bail!("--from {from} is not before --to {to}");
    }
    let now = SystemClock.wall().to_timestamp();
    if from > now {
        bail!("--from {from} lies in the future; the schedule makes the runs of times to come itself");
    }
    let session = Session::open(globals).await?;
    let schedule = read(&session, name).await?;
    let (occurrences, is_suspended) = (times_of(&schedule)?, schedule.spec.suspend);
    let times: Vec<_> = backfill_times(&occurrences, from, to, now).take(MOST_RUNS + 1).collect();
    if times.len() > MOST_RUNS {
        bail!("these are more than {MOST_RUNS} runs; choose a shorter time");
    }
    if to > now {
        streams::note(format!("--to {to} lies in the future; the backfill ends at {now}."));
    }
    if times.is_empty() {
        streams::note("No time of the schedule lies there.");
    } else if dry_run {
        for time in &times {
            streams::report(format!("{time} {}", Cause::Time(*time).run_name(&schedule, 0)))?;
        }
    } else {
        let asked = ask_for(&session, schedule, from, to.min(now.saturating_add(SECOND)), max_active).await?;
        streams::report(&asked)?;
        let (count, active) = (times.len(), max_active.unwrap_or(1));
        streams::note(format!(
            "Times: {count}, active at once: {active} at most. Progress: muster describe schedule {name}"
        ));
        if is_suspended {
            streams::note("The schedule is suspended: they are made once its spec.suspend is false.");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds a backfill to a schedule, which may change meanwhile. Its name.
async fn ask_for(
    session: &Session,
    mut schedule: Schedule,
    from: Timestamp,
    to: Timestamp,
    max_active: Option<u32>,
) -> anyhow::Result<String> {
    let (resource, namespace) = (Resource::known::<ScheduleSpec>(), session.namespace());
    let name = schedule.metadata.name.clone();
    for tries in 1.. {
        let now = SystemClock.wall().to_timestamp();
        let backfills = add_backfill(&schedule, from, to, max_active, now);
        let asked = backfills.last().map(|backfill| backfill.name.clone()).unwrap_or_default();
        let version = &schedule.metadata.resource_version;
        let change = json!({"metadata": {"resourceVersion": version}, "spec": {"backfills": backfills}});
        match session.client.patch(&resource, namespace, &name, &change).await {
            Ok(_) => return Ok(asked),
            Err(error) if error.is_conflict() && tries < TRIES => schedule = read(session, &name).await?,
            Err(error) => return Err(error.into()),
        }
    }
    bail!("schedule {name} changes all the time")
}

async fn read(session: &Session, name: &str) -> anyhow::Result<Schedule> {
    let resource = Resource::known::<ScheduleSpec>();
    let found = session.client.get(&resource, session.namespace(), name, Form::Objects).await?;
    Schedule::from_document(&found).with_context(|| format!("schedule {name} cannot be read"))
}

fn times_of(schedule: &Schedule) -> anyhow::Result<Occurrences> {
    let name = &schedule.metadata.name;
    let times = occurrences_of(schedule)
        .map_err(|why| anyhow::anyhow!("the times of {name} cannot be read: {why}"))?;
    times.with_context(|| format!("{name} has triggers and no times"))
}

/// Makes a run, for a time or for now.
async fn make(session: &Session, schedule: &Schedule, cause: Option<&Cause>) -> anyhow::Result<Value> {
    let namespace = session.namespace();
    let spec = &schedule.spec;
    let (resource, mut object) = if let Some(template) = &spec.job_template {
        (Resource::known::<JobSpec>(), render_job(schedule, template, cause).to_document()?)
    } else {
        let template = match (&spec.template, &spec.template_ref) {
            (Some(template), _) => template.clone(),
            (None, Some(reference)) => {
                let resource = Resource::known::<TaskTemplateSpec>();
                let found = session.client.get(&resource, namespace, &reference.name, Form::Objects).await?;
                TaskTemplate::from_document(&found)?.spec.template
            }
            (None, None) => bail!("the schedule names nothing to make"),
        };
        (Resource::known::<TaskSpec>(), render_task(schedule, &template, cause).to_document()?)
    };
    if cause.is_none() {
        object["metadata"]["generateName"] = format!("{}-now-", schedule.metadata.name).into();
    }
    let options = ApplyOptions { manager: MANAGER.to_owned(), force: false, dry_run: false };
    Ok(session.client.create(&resource, namespace, &object, &options).await?.object)
}
