//! One task: where it is and why, what happened to it, what it wrote.

use maud::{Markup, html};
use muster_types::explanation::Explanation;
use muster_types::task_status::{Attempt, TaskStatus};
use muster_types::{MilliTimestamp, State, Task, TaskSpec, Timestamp, human_millis};
use muster_workflows::group_render::GROUP;
use muster_workflows::succession::NEXT;

use crate::asking::API;
use crate::html::frame::Page;
use crate::html::parts::{act, bar, bytes, conditions, span, state, time};
use crate::site::Visit;

/// Members of a pipeline that are looked through.
const MOST_MEMBERS: usize = 500;
/// Most tasks in a row that wait for each other.
const LONGEST_CHAIN: usize = 12;

/// The page, if the task is there.
pub async fn page(visit: &Visit, namespace: &str, name: &str) -> Option<Page> {
    let task: Task = visit.site.get::<TaskSpec>(namespace, name)?;
    let explained = visit.read(&format!("{API}/namespaces/{namespace}/tasks/{name}/explain")).await;
    let explained: Option<Explanation> = serde_json::from_value(explained.document).ok();
    let chain = chain(visit, &task, explained.as_ref()).await;
    let now = visit.site.now();
    let status = &task.status;
    let live = html! {
        (standing(&task, explained.as_ref(), now))
        (waits(&chain))
        @if visit.may_write() { (actions(&task)) }
        section { h2 { "What happened" } (timeline(&task, now)) (attempts(&status.attempts, now)) (errors(status)) (records(status)) }
        (progress(status))
        (files(&task))
        (conditions(&status.conditions))
        section { h2 { "As YAML" } details { summary { "Show" } pre.yaml { (yaml(&task)) } } }
    };
    Some(Page { title: name.to_owned(), fixed: html! {}, live, below: logs(&task) })
}

fn standing(task: &Task, explained: Option<&Explanation>, now: Timestamp) -> Markup {
    let (spec, status) = (&task.spec, &task.status);
    html! {
        p.standing {
            (state(task.state().as_str()))
            " since " (time(status.state_since.or(task.metadata.creation_timestamp)))
            @if !status.message.is_empty() { " – " (status.message) }
        }
        @if let Some(explained) = explained.filter(|_| !task.state().is_terminal()) {
            p.why { b { "Why: " } (explained.message)
                @if !explained.preemption.is_empty() { " " (explained.preemption) "." }
                @if !explained.raised_by.is_empty() { " Raised by " (explained.raised_by) "." }
            }
        }
        dl.facts {
            @for (name, value) in [
                ("Namespace", task.metadata.namespace.clone()), ("Kind", spec.kind.clone()), ("Addon", spec.addon.clone()),
                ("Subject", spec.subject.as_ref().map(|subject| format!("{}/{}", subject.kind, subject.name)).unwrap_or_default()),
                ("Priority", spec.priority.map(|priority| priority.to_string()).unwrap_or_default()),
                ("Made by", status.create_user.clone()), ("Retries", status.retries.to_string()),
            ] {
                @if !value.is_empty() { dt { (name) } dd { (value) } }
            }
            dt { "Ran for" } dd { (span(status.started, status.terminated, now)) }
            @for (key, value) in &task.metadata.labels { dt { (key) } dd { (value) } }
            @for owner in &task.metadata.owner_references {
                dt { (owner.kind) }
                dd { @if owner.kind == "TaskGroup" || owner.kind == "Job" { (owner.name) } @else { (owner.kind) "/" (owner.name) } }
            }
        }
    }
}

/// One task that others wait for, and why it does not run itself.
struct Link {
    /// `namespace/name`.
    path: String,
    /// Where it is in its life; nothing if it is gone.
    state: String,
    /// What it waits for, in words.
    why: String,
}

/// What a task waits for, what that waits for, and so on.
async fn chain(visit: &Visit, task: &Task, explained: Option<&Explanation>) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    let mut next = explained.map(|explained| held_by(visit, task, explained)).unwrap_or_default();
    while let Some((namespace, name)) = next.split_once('/').filter(|_| links.len() < LONGEST_CHAIN) {
        if links.iter().any(|link| link.path == next) {
            break;
        }
        let found = visit.site.get::<TaskSpec>(namespace, name);
        let state = found.as_ref().map(|task| task.state().to_string()).unwrap_or_default();
        let explained = visit.read(&format!("{API}/namespaces/{namespace}/tasks/{name}/explain")).await;
        let explained: Explanation = serde_json::from_value(explained.document).unwrap_or_default();
        let why = explained.waiting_for.as_ref().map(|it| it.message.clone()).unwrap_or_default();
        let after = found.map(|task| held_by(visit, &task, &explained)).unwrap_or_default();
        links.push(Link { path: std::mem::replace(&mut next, after), state, why });
    }
    links
}

/// The task that must end before another can go on: the one the engine names, or the one before it in its pipeline.
fn held_by(visit: &Visit, task: &Task, explained: &Explanation) -> String {
    if task.state().is_terminal() {
        return String::new();
    }
    if let Some(waiting_for) = explained.waiting_for.as_ref().filter(|it| !it.task.is_empty()) {
        return waiting_for.task.clone();
    }
    let metadata = &task.metadata;
    let Some(group) = metadata.labels.get(GROUP).filter(|_| task.state() == State::Created) else {
        return String::new();
    };
    let members = visit.site.beginning::<TaskSpec>(&metadata.namespace, &format!("{group}-"), MOST_MEMBERS);
    let leads_here = |member: &&Task| member.metadata.annotations.get(NEXT) == Some(&metadata.name);
    let former = members.iter().find(leads_here);
    former.map(|former| format!("{}/{}", metadata.namespace, former.metadata.name)).unwrap_or_default()
}

/// "Waits for X, which waits for Y."
fn waits(chain: &[Link]) -> Markup {
    html! {
        @if !chain.is_empty() {
            ol.waits aria-label="What it waits for" {
                @for (place, link) in chain.iter().enumerate() {
                    li { @if place == 0 { "waits for " } @else { "which waits for " }
                        a href={ "/ui/tasks/" (link.path) } { (link.path) } " "
                        @if link.state.is_empty() { span.none { "gone" } } @else { (state(&link.state)) }
                        @if !link.why.is_empty() { " – " (link.why) }
                    }
                }
            }
        }
    }
}

fn actions(task: &Task) -> Markup {
    let path = format!("{}/{}", task.metadata.namespace, task.metadata.name);
    let back = format!("/ui/tasks/{path}");
    html! {
        div.actions {
            @if task.state().is_terminal() {
                (act("retry", "Retry", "tasks", &path, &back))
                (act("delete", "Delete", "tasks", &path, "/ui/tasks"))
            } @else {
                (act("cancel", "Cancel", "tasks", &path, &back))
            }
        }
    }
}

/// From being made to its end: each attempt where it lay in time.
fn timeline(task: &Task, now: Timestamp) -> Markup {
    let status = &task.status;
    let from = MilliTimestamp::from(task.metadata.creation_timestamp.unwrap_or(now)).as_millisecond();
    let to = status.terminated.unwrap_or(now.into()).as_millisecond().max(from + 1);
    let x = |at: MilliTimestamp| (at.as_millisecond().clamp(from, to) - from) * 1000 / (to - from);
    html! {
        svg.timeline viewBox="0 0 1000 26" preserveAspectRatio="none" role="img" aria-label={ "From made to ended: " (human_millis(to - from)) } {
            rect.track x="0" y="10" width="1000" height="6" {}
            @for attempt in &status.attempts {
                @if let Some(started) = attempt.started_at {
                    @let end = attempt.finished_at.unwrap_or(now.into());
                    rect class=(outcome(attempt)) x=(x(started)) y="4" width=((x(end) - x(started)).max(4)) height="18" {
                        title { "attempt " (attempt.number) }
                    }
                }
            }
        }
    }
}

fn outcome(attempt: &Attempt) -> &'static str {
    match (attempt.finished_at, attempt.exit_code) {
        (None, _) => "Running",
        (Some(_), Some(0)) => "Succeeded",
        (Some(_), _) => "Failed",
    }
}

fn attempts(attempts: &[Attempt], now: Timestamp) -> Markup {
    html! {
        @if !attempts.is_empty() {
            table {
                thead { tr { th.number { "Attempt" } th { "Where" } th { "Started" } th { "Ran for" } th { "Exit code" } th { "Reason" } } }
                tbody {
                    @for attempt in attempts.iter().rev() {
                        tr {
                            td.number { (attempt.number) }
                            td { @if let Some(runtime) = attempt.runtime { (runtime) } " " (attempt.robot) }
                            td { (time(attempt.started_at)) }
                            td { (span(attempt.started_at, attempt.finished_at, now)) }
                            td { @if let Some(code) = attempt.exit_code { (code) } @if let Some(signal) = attempt.signal { " signal " (signal) } }
                            td { (attempt.reason) }
                        }
                    }
                }
            }
        }
    }
}

fn errors(status: &TaskStatus) -> Markup {
    html! {
        @for error in &status.errors {
            p.problem { b { (error.severity) } " " (error.description) }
        }
    }
}

fn records(status: &TaskStatus) -> Markup {
    html! {
        @if !status.events.is_empty() {
            table {
                thead { tr { th { "When" } th { "What" } th { "Why" } th.number { "Times" } } }
                tbody {
                    @for record in status.events.iter().rev() {
                        tr { td { (time(Some(record.last))) } td { (record.kind) } td { (record.reason) } td.number { (record.count) } }
                    }
                }
            }
        }
    }
}

fn progress(status: &TaskStatus) -> Markup {
    html! {
        @if let Some(total) = status.total {
            section {
                h2 { "Progress" }
                @let done = status.completed.unwrap_or(0);
                (bar(u8::try_from(done.min(total).saturating_mul(100) / total.max(1)).unwrap_or(100)))
                " " (done) " of " (total)
                ol.activity { @for line in &status.activity { li { (line) } } }
            }
        }
        @if let Some(result) = &status.result {
            section { h2 { "Result" } pre { (serde_json::to_string_pretty(result).unwrap_or_default()) } }
        }
    }
}

/// The containers whose logs there may be: those that are asked for, and those that left one.
fn containers(task: &Task) -> Vec<String> {
    let logs = task.status.attached.iter().filter_map(|file| file.name.strip_suffix(".log"));
    let spec =
        task.spec.container.iter().chain(&task.spec.containers).map(|container| container.name.as_str());
    let mut names: Vec<String> =
        spec.filter(|name| !name.is_empty()).chain(logs).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

/// Logs stay as they are while the rest of the page is made anew.
fn logs(task: &Task) -> Markup {
    let place = format!("/ui/tasks/{}/{}/log", task.metadata.namespace, task.metadata.name);
    let containers = containers(task);
    html! {
        section.log {
            h2 { "Log" }
            div.logbar {
                @if containers.len() > 1 {
                    label { "Container "
                        select #log-container { option value="" { "main" } @for name in &containers { option { (name) } } }
                    }
                }
                label { input type="checkbox" #log-follow checked; " follow" }
                label { "Find " input type="search" #log-find; }
                a href={ (place) "?download=1" } download { "Download" }
            }
            pre #log data-log=(place) tabindex="0" { noscript { a href=(place) { "Show the log" } } }
        }
    }
}

fn files(task: &Task) -> Markup {
    let place = format!("/ui/tasks/{}/{}/files", task.metadata.namespace, task.metadata.name);
    html! {
        @if !task.status.attached.is_empty() {
            section {
                h2 { "Files" }
                ul.files {
                    @for file in &task.status.attached {
                        li { a href={ (place) "/" (file.name) } download { (file.name) } " " small { (bytes(file.size)) } }
                    }
                }
            }
        }
    }
}

fn yaml(task: &Task) -> String {
    let mut shown = task.clone();
    shown.metadata.managed_fields = None;
    serde_saphyr::to_string(&shown).unwrap_or_else(|error| error.to_string())
}
