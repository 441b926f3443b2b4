//! Schedule: what may be asked for, and how it is shown.

use muster_types::metadata::StringMap;
use muster_types::name_rules;
use muster_types::schedule::{Backfill, Concurrency, ScheduleSpec, TriggerOn};
use muster_types::{Job, Schedule, Timestamp};
use muster_workflows::schedule::occurrences_of;
use muster_workflows::time_spec::{TimeSpec, TimeSpecError};
use serde_json::{Value, json};

use super::task::{or_none, validate_spec};
use crate::kind::{Column, Strategy, Writing};
use crate::refusal::Causes;

/// Backfills of one schedule.
const MOST_BACKFILLS: usize = 32;
/// Runs of one backfill.
const MOST_RUNS: u64 = 10_000;
/// Triggers of one schedule.
const MOST_TRIGGERS: usize = 64;

impl Strategy for ScheduleSpec {
    const FOLLOWS_WALL_CLOCK: bool = true;

    fn prepare(schedule: &mut Schedule, _user: &str) {
        if schedule.spec.selector.is_empty()
            && let Some(labels) = template_labels(&schedule.spec)
        {
            schedule.spec.selector = labels.clone();
        }
    }

    /// A selector that was filled in follows the labels it was filled in from.
    fn prepare_change(old: &Schedule, new: &mut Schedule, _by: Writing<'_>) {
        let filled_in = template_labels(&old.spec) == Some(&old.spec.selector);
        if filled_in
            && new.spec.selector == old.spec.selector
            && let Some(labels) = template_labels(&new.spec)
        {
            new.spec.selector = labels.clone();
        }
    }

    fn validate(schedule: &Schedule, causes: &mut Causes) {
        validate_times(&schedule.spec, causes);
        validate_template(schedule, causes);
        validate_triggers(&schedule.spec, causes);
        validate_backfills(schedule, causes);
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::<Self>::text("Times", "When it runs.", |it| or_none(&it.spec.schedule_policy.time_spec)),
            Column::<Self>::text("Zone", "The zone its times are read in.", |it| {
                let zone = &it.spec.schedule_policy.time_zone;
                json!(if zone.is_empty() { "UTC" } else { zone })
            }),
            Column::<Self>::text("Suspended", "Whether it was told to make nothing.", |it| {
                json!(it.spec.suspend.to_string())
            }),
            Column::<Self>::number("Active", "Runs that have not ended.", |it| json!(it.status.active.len())),
            Column::<Self>::text("Last", "The time it last made a run for.", |it| {
                time(it.status.last_scheduled_time)
            }),
            Column::<Self>::text("Result", "How the run that ended last ended.", |it| {
                let last = it.status.recent_runs.first();
                last.map_or_else(|| json!("<none>"), |run| json!(run.state))
            }),
            Column::<Self>::text("Next", "The time of the next run.", |it| {
                time(it.status.next_scheduled_time)
            }),
            Column::<Self>::number("Made", "Runs that were made.", |it| json!(it.status.made)).wide(),
            Column::<Self>::number("Dropped", "Times that were left out.", |it| json!(it.status.dropped))
                .wide(),
            Column::<Self>::text("Understood", "How its times were read.", |it| {
                or_none(&it.status.normal_time_spec)
            })
            .wide(),
        ]
    }
}

fn time(time: Option<Timestamp>) -> Value {
    time.map_or_else(|| json!("<none>"), |time| json!(time.to_string()))
}

fn validate_times(spec: &ScheduleSpec, causes: &mut Causes) {
    let policy = &spec.schedule_policy;
    let field = |name: &str| format!("spec.schedulePolicy.{name}");
    if policy.time_spec.is_empty() && spec.triggers.is_empty() {
        causes.required(field("timeSpec"), "a schedule needs times or triggers");
    }
    // A zone is checked even where there are no times to read in it.
    let times = if policy.time_spec.is_empty() { "@daily" } else { &policy.time_spec };
    match TimeSpec::parse(times, &policy.time_zone) {
        Ok(_) => {}
        Err(error @ TimeSpecError::UnknownZone(_)) => {
            causes.invalid(field("timeZone"), &policy.time_zone, error);
        }
        Err(error) => causes.invalid(field("timeSpec"), &policy.time_spec, error),
    }
    if policy.concurrency.is_some() && policy.allow_concurrent.is_some() {
        causes.forbidden(
            field("concurrency"),
            "cannot be set together with allowConcurrent; true is Allow and false is Forbid",
        );
    }
    if policy.concurrency == Some(Concurrency::Queue) && policy.skip_outdated == Some(true) {
        causes.forbidden(field("skipOutdated"), "a Queue skips nothing; leave it out or choose Forbid");
    }
}

fn template_labels(spec: &ScheduleSpec) -> Option<&StringMap> {
    let of_task = spec.template.as_ref().map(|template| &template.metadata.labels);
    of_task.or_else(|| spec.job_template.as_ref().map(|template| &template.metadata.labels))
}

fn validate_template(schedule: &Schedule, causes: &mut Causes) {
    let spec = &schedule.spec;
    let given = [
        ("template", spec.template.is_some()),
        ("templateRef", spec.template_ref.is_some()),
        ("jobTemplate", spec.job_template.is_some()),
    ];
    let given: Vec<_> = given.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name).collect();
    match given[..] {
        [] => causes.required("spec.template", "one of template, templateRef and jobTemplate is needed"),
        [_] => {}
        [_, ref rest @ ..] => {
            let why = "only one of template, templateRef and jobTemplate can be set";
            for name in rest {
                causes.forbidden(format!("spec.{name}"), why);
            }
        }
    }
    if let Some(template) = &spec.template {
        validate_spec("spec.template.spec", &template.spec, causes);
    }
    if let Some(reference) = &spec.template_ref
        && let Err(why) = name_rules::dns1123_subdomain(&reference.name)
    {
        causes.invalid("spec.templateRef.name", &reference.name, why);
    }
    if let Some(template) = &spec.job_template {
        let mut found = Causes::default();
        // The longest name a run can get: rules on names of groups look at it.
        let name = format!("{}-20260101t000000", schedule.metadata.name);
        Strategy::validate(&Job::new("", &name, template.spec.clone()), &mut found);
        causes.extend_below("spec.jobTemplate", found);
    }
    if let Some(labels) = template_labels(spec) {
        for (key, value) in spec.selector.iter().filter(|(key, value)| labels.get(*key) != Some(value)) {
            causes.invalid(
                format!("spec.selector.{key}"),
                value,
                "is not a label of the template; a schedule selects what it makes",
            );
        }
    }
}

fn validate_triggers(spec: &ScheduleSpec, causes: &mut Causes) {
    if spec.triggers.len() > MOST_TRIGGERS {
        let why = format!("a schedule can have {MOST_TRIGGERS} triggers");
        causes.invalid("spec.triggers", spec.triggers.len(), why);
    }
    for (index, trigger) in spec.triggers.iter().enumerate() {
        validate_trigger(&format!("spec.triggers[{index}].on"), &trigger.on, causes);
    }
}

fn validate_trigger(at: &str, on: &TriggerOn, causes: &mut Causes) {
    if on.kind.is_none() {
        causes.required(format!("{at}.kind"), "Task or Job");
    }
    match (on.name.is_empty(), on.selector.is_empty()) {
        (true, true) => causes.required(format!("{at}.name"), "one of name and selector is needed"),
        (false, false) => causes.forbidden(format!("{at}.selector"), "cannot be set together with name"),
        (false, true) => {
            if let Err(why) = name_rules::dns1123_subdomain(&on.name) {
                causes.invalid(format!("{at}.name"), &on.name, why);
            }
        }
        (true, false) => {}
    }
}

fn validate_backfills(schedule: &Schedule, causes: &mut Causes) {
    let backfills = &schedule.spec.backfills;
    if backfills.len() > MOST_BACKFILLS {
        let why = format!("a schedule can have {MOST_BACKFILLS} backfills; remove those that have ended");
        causes.invalid("spec.backfills", backfills.len(), why);
    }
    // Times that cannot be read are refused where they stand.
    let Ok(times) = occurrences_of(schedule) else { return };
    for (index, backfill) in backfills.iter().enumerate() {
        let at = |field: &str| format!("spec.backfills[{index}].{field}");
        let Backfill { name, from, to, max_active } = backfill;
        if let Err(why) = name_rules::dns1123_subdomain(name) {
            causes.invalid(at("name"), name, why);
        }
        if backfills.iter().take(index).any(|other| other.name == *name) {
            causes.invalid(at("name"), name, "another backfill has this name");
        }
        if from >= to {
            causes.invalid(at("to"), to, format!("is not after from, which is {from}"));
        }
        let overlaps = schedule.spec.schedule_policy.concurrency() == Concurrency::Allow;
        match max_active {
            Some(0) => causes.invalid(at("maxActive"), 0, "is at least 1"),
            Some(most) if *most > 1 && !overlaps => {
                causes.invalid(
                    at("maxActive"),
                    most,
                    "more than 1 needs spec.schedulePolicy.concurrency Allow",
                );
            }
            _ => {}
        }
        let Some(times) = &times else {
            causes.forbidden(
                format!("spec.backfills[{index}]"),
                "a schedule without times has none to backfill",
            );
            continue;
        };
        let before = |time: &Timestamp| Timestamp::from_second(time.as_second() - 1);
        let runs = times.count_between(before(from), before(to));
        if runs > MOST_RUNS {
            let why = format!("these are {runs} runs; a backfill has at most {MOST_RUNS}");
            causes.invalid(at("to"), to, why);
        }
    }
}
