//! One job: what waits for what, what ran when, and its tasks.

use maud::{Markup, html};
use muster_types::job::JobSpec;
use muster_types::task_group::TaskGroupSpec;
use muster_types::{Job, Task, TaskGroup, TaskSpec, Timestamp, human_duration};

use crate::html::dag::draw;
use crate::html::frame::Page;
use crate::html::parts::{act, conditions, counts, span, state, task_link, time};
use crate::site::Visit;

/// Tasks of a group that are shown.
const MOST: usize = 100;

/// The page, if the job is there.
pub fn page(visit: &Visit, namespace: &str, name: &str) -> Option<Page> {
    let job: Job = visit.site.get::<JobSpec>(namespace, name)?;
    let now = visit.site.now();
    let is_of_job = |owner: &&muster_types::metadata::OwnerReference| owner.uid == job.metadata.uid;
    let groups: Vec<TaskGroup> = visit.site.beginning::<TaskGroupSpec>(namespace, &format!("{name}-"), 2_000);
    let mut groups: Vec<_> = groups
        .into_iter()
        .filter(|group| group.metadata.owner_references.iter().any(|owner| is_of_job(&owner)))
        .collect();
    groups.sort_by_key(|group| {
        let place = |one: &muster_types::job::JobGroup| one.name == short(group, &job);
        job.spec.task_groups.iter().position(place)
    });
    let status = &job.status;
    let live = html! {
        p.standing { (state(status.current_state().as_str())) " " (status.message) " " (counts(&status.counts, status.total)) }
        dl.facts {
            dt { "Made" } dd { (time(job.metadata.creation_timestamp)) }
            dt { "Ran for" } dd { (span(status.started, status.terminated, now)) }
        }
        @if visit.may_write() { (actions(&job)) }
        section { h2 { "What waits for what" } (draw(&job.spec.task_groups, &status.groups, |group| format!("#g-{group}"))) }
        section { h2 { "What ran when" } (gantt(&groups, &job, now)) }
        @for group in &groups { (members(visit, group, &job, now)) }
        (conditions(&status.conditions))
    };
    Some(Page { title: name.to_owned(), fixed: html! {}, live, below: html! {} })
}

fn actions(job: &Job) -> Markup {
    let path = format!("{}/{}", job.metadata.namespace, job.metadata.name);
    let back = format!("/ui/jobs/{path}");
    html! {
        div.actions {
            @if job.status.current_state().is_terminal() {
                (act("delete", "Delete", "jobs", &path, "/ui/jobs"))
            } @else {
                (act("cancel", "Cancel", "jobs", &path, &back))
                @if job.spec.suspend { (act("resume", "Resume", "jobs", &path, &back)) }
                @else { (act("pause", "Pause", "jobs", &path, &back)) }
            }
        }
    }
}

/// The name of a group within its job.
fn short<'a>(group: &'a TaskGroup, job: &Job) -> &'a str {
    let name = group.metadata.name.as_str();
    name.strip_prefix(job.metadata.name.as_str()).map_or(name, |rest| rest.trim_start_matches('-'))
}

/// A bar for each group, from its start to its end.
fn gantt(groups: &[TaskGroup], job: &Job, now: Timestamp) -> Markup {
    let from = job.metadata.creation_timestamp.unwrap_or(now).as_second();
    let to = job.status.terminated.unwrap_or(now).as_second().max(from + 1);
    let x = |at: Timestamp| (at.as_second().clamp(from, to) - from) * 700 / (to - from);
    let height = groups.len() * 24 + 24;
    html! {
        div.scroll {
            svg.gantt width="900" height=(height) viewBox={ "0 0 900 " (height) } role="img" aria-label="Groups over time" {
                @for (row, group) in groups.iter().enumerate() {
                    @let y = row * 24 + 4;
                    text x="0" y=(y + 13) { (short(group, job)) }
                    line.grid x1="180" x2="880" y1=(y + 18) y2=(y + 18) {}
                    @if let Some(started) = group.status.started {
                        @let end = group.status.terminated.unwrap_or(now);
                        rect class=(group.status.current_state()) x=(180 + x(started)) y=(y) width=((x(end) - x(started)).max(3)) height="16" rx="3" {
                            title { (short(group, job)) ": " (human_duration(end.as_second() - started.as_second())) }
                        }
                    }
                }
                text.axis x="180" y=(height - 6) { "0" }
                text.axis x="840" y=(height - 6) { (human_duration(to - from)) }
            }
        }
    }
}

fn members(visit: &Visit, group: &TaskGroup, job: &Job, now: Timestamp) -> Markup {
    let beginning = format!("{}-", group.metadata.name);
    let tasks: Vec<Task> = visit.site.beginning::<TaskSpec>(&group.metadata.namespace, &beginning, MOST);
    let is_member =
        |task: &&Task| task.metadata.owner_references.iter().any(|owner| owner.uid == group.metadata.uid);
    let status = &group.status;
    html! {
        section id={ "g-" (short(group, job)) } {
            h2 { (short(group, job)) " " (state(status.current_state().as_str())) " " (counts(&status.counts, status.total)) }
            details open[status.counts.failed > 0] {
                summary { (status.message) }
                table {
                    tbody {
                        @for task in tasks.iter().filter(is_member) {
                            tr {
                                td { (task_link(&task.metadata.namespace, &task.metadata.name)) }
                                td { (state(task.state().as_str())) }
                                td { (span(task.status.started, task.status.terminated, now)) }
                                td { (task.status.message) }
                            }
                        }
                    }
                }
                @if tasks.len() == MOST { p.none { "The first " (MOST) " tasks." } }
            }
        }
    }
}
