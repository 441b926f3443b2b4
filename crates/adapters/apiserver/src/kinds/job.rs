//! Job: a workflow of groups.

use std::borrow::Cow;

use muster_types::Job;
use muster_types::job::{JobSpec, MOST_GROUPS, When};
use muster_types::name_rules;
use muster_workflows::job_graph::{self, Fault};
use muster_workflows::job_render::group_name;
use serde_json::json;

use super::task_group::validate_group;
use crate::kind::{Column, FieldOf, Strategy};
use crate::refusal::Causes;

impl Strategy for JobSpec {
    fn validate(job: &Job, causes: &mut Causes) {
        let groups = &job.spec.task_groups;
        if groups.is_empty() {
            causes.required("spec.taskGroups", "a job needs at least one group");
        }
        if groups.len() > MOST_GROUPS {
            let why = format!("a job can have {MOST_GROUPS} groups; use several jobs");
            causes.invalid("spec.taskGroups", groups.len(), why);
            return;
        }
        if let Some(priority) = job.spec.priority.filter(|priority| *priority < 0) {
            causes.invalid("spec.priority", priority, "must be at least 0, which is the lowest");
        }
        for (place, group) in groups.iter().enumerate() {
            let at = format!("spec.taskGroups[{place}]");
            let name = group_name(&job.metadata.name, &group.name);
            if let Err(why) = name_rules::dns1123_label(&group.name) {
                causes.invalid(format!("{at}.name"), &group.name, why);
            } else if let Err(why) = name_rules::label_value(&name) {
                causes.invalid(
                    format!("{at}.name"),
                    &name,
                    format!("the TaskGroup would be called so: {why}"),
                );
            }
            if group.depends_on.is_empty() && group.when() == When::Failed {
                causes.invalid(format!("{at}.when"), "failed", "needs groups in dependsOn that can fail");
            }
            validate_group(&at, &name, &group.group_spec(), causes);
        }
        validate_graph(job, causes);
    }

    fn validate_update(old: &Job, new: &Job, causes: &mut Causes) {
        let kept = JobSpec {
            suspend: new.spec.suspend,
            cancel: new.spec.cancel,
            deadline: new.spec.deadline,
            ttl: new.spec.ttl,
            failure_policy: new.spec.failure_policy,
            ..old.spec.clone()
        };
        if kept != new.spec {
            causes.forbidden(
                "spec",
                "only suspend, cancel, deadline, ttl and failurePolicy of a job can change; make a new one",
            );
        }
        if old.spec.cancel && !new.spec.cancel {
            causes.forbidden("spec.cancel", "the job is being canceled; retry it or make a new one");
        }
    }

    fn goes_last(job: &Job) -> bool {
        // Before its groups are made there is nothing to wait for.
        !job.status.groups.is_empty() && !job.status.current_state().is_terminal()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::<Self>::text("State", "Where in its life the job is.", |job| {
                json!(job.status.current_state().to_string())
            }),
            Column::<Self>::text("Groups", "Groups that ended, of all.", |job| {
                let ended = job.status.groups.iter().filter(|group| group.state.is_terminal()).count();
                json!(format!("{ended}/{}", job.spec.task_groups.len()))
            }),
            Column::<Self>::text("Progress", "Tasks that ended, of all.", |job| {
                json!(format!("{}/{}", job.status.counts.ended(), job.status.total))
            }),
            Column::<Self>::number("Failed", "Tasks that failed.", |job| json!(job.status.counts.failed)),
            Column::<Self>::text("Message", "How it stands.", |job| json!(job.status.message)).wide(),
        ]
    }

    fn fields() -> &'static [(&'static str, FieldOf<Self>)] {
        &[("status.state", |job| Cow::Owned(job.status.current_state().to_string()))]
    }
}

fn validate_graph(job: &Job, causes: &mut Causes) {
    let groups = &job.spec.task_groups;
    for fault in job_graph::check(groups) {
        match fault {
            Fault::Duplicate { group } => {
                causes.invalid(
                    format!("spec.taskGroups[{group}].name"),
                    &groups[group].name,
                    "is given twice",
                );
            }
            Fault::Unknown { group, dependency } => causes.invalid(
                format!("spec.taskGroups[{group}].dependsOn[{dependency}]"),
                &groups[group].depends_on[dependency],
                "no group of this job has this name",
            ),
            Fault::Cycle { names } => {
                let why = format!("groups cannot wait for each other in a circle: {}", names.join(" -> "));
                causes.invalid("spec.taskGroups", names.first().map_or("", String::as_str), why);
            }
        }
    }
}
