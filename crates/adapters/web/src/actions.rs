//! What buttons do: requests to the API, then back to the page, with a word on what became of it.

use hyper::{Method, StatusCode};
use maud::html;
use muster_ports::pages::Reply;
use muster_types::schedule::ScheduleSpec;
use muster_types::task_template::TaskTemplateSpec;
use muster_types::{JsonText, Schedule, Timestamp};
use muster_workflows::schedule::occurrences_of;
use muster_workflows::schedule_run::{Cause, render_job, render_task};
use serde_json::{Value, json};

use crate::asking::{API, Answer};
use crate::console::{go_to, page as as_page};
use crate::html::frame::{Page, document};
use crate::pages;
use crate::query::Query;
use crate::site::Visit;

/// Kinds that have buttons.
const KINDS: [&str; 5] = ["tasks", "jobs", "schedules", "eventsinks", "robots"];
/// Objects of one request.
const MOST: usize = 1_000;
/// Runs of one backfill.
const MOST_RUNS: usize = 1_000;
const JSON: &str = "application/json";

/// Carries out what a form asks for.
pub async fn carry_out(visit: &Visit, form: &Query) -> Reply {
    if !visit.may_write() {
        return refused(visit, StatusCode::FORBIDDEN, "Your token may look, and change nothing.");
    }
    match *visit.segments() {
        ["submit"] => pages::submit::carry_out(visit, form).await,
        ["act"] => act(visit, form).await,
        _ => refused(visit, StatusCode::NOT_FOUND, "There is nothing to do here."),
    }
}

async fn act(visit: &Visit, form: &Query) -> Reply {
    let (kind, verb) = (form.text("kind"), form.text("verb"));
    let paths: Vec<_> = form.all("path").take(MOST).collect();
    let Some(kind) = KINDS.iter().find(|known| **known == kind) else {
        return refused(visit, StatusCode::BAD_REQUEST, "This kind has no buttons.");
    };
    let mut done = 0;
    let mut problems = Vec::new();
    for path in &paths {
        match one(visit, form, kind, verb, path).await {
            Ok(count) => done += count,
            Err(problem) => problems.push(format!("{path}: {problem}")),
        }
    }
    let mut said = match (paths.len(), done) {
        (0, _) => "Nothing was chosen.".to_owned(),
        (_, 0) => String::new(),
        (_, done) => format!("{verb}: {done} done."),
    };
    if let Some(first) = problems.first() {
        let others =
            if problems.len() > 1 { format!(" ({} more)", problems.len() - 1) } else { String::new() };
        said = format!("{said} {} not done: {first}{others}", problems.len());
    }
    back(form.text("back"), said.trim())
}

/// Back to a page of the console, whatever a form says.
fn back(place: &str, said: &str) -> Reply {
    let place = if place.starts_with("/ui/") && !place.contains("//") { place } else { "/ui/" };
    let (path, query) = place.split_once('?').unwrap_or((place, ""));
    let query = Query::parse(query.as_bytes()).with("said", said);
    go_to(&format!("{path}?{query}"))
}

/// Does it to one object. How many things were done.
async fn one(visit: &Visit, form: &Query, kind: &str, verb: &str, path: &str) -> Result<usize, String> {
    let place = place(kind, path).ok_or("this is not the name of an object")?;
    let answer = match (kind, verb) {
        ("tasks" | "jobs", "cancel") => visit.patch(&place, &json!({"spec": {"cancel": true}})).await,
        ("tasks", "retry") => visit.ask(Method::POST, &format!("{place}/retry"), JSON, "").await,
        ("tasks", "prioritise") => {
            let priority: i32 = form.text("priority").parse().map_err(|_| "give a priority, a number")?;
            visit.patch(&place, &json!({"spec": {"priority": priority}})).await
        }
        ("tasks" | "jobs", "delete") => visit.ask(Method::DELETE, &place, JSON, "").await,
        ("schedules" | "jobs" | "eventsinks", "pause") => {
            visit.patch(&place, &json!({"spec": {"suspend": true}})).await
        }
        ("schedules" | "jobs" | "eventsinks", "resume") => {
            visit.patch(&place, &json!({"spec": {"suspend": false}})).await
        }
        ("robots", "approve") => visit.patch(&place, &json!({"spec": {"approved": true}})).await,
        ("robots", "drain") => visit.patch(&place, &json!({"spec": {"unschedulable": true}})).await,
        ("robots", "undrain") => visit.patch(&place, &json!({"spec": {"unschedulable": false}})).await,
        ("schedules", "run") => return run(visit, path, &[]).await,
        ("schedules", "backfill") => {
            let time =
                |name: &str| form.text(name).parse::<Timestamp>().map_err(|error| format!("{name}: {error}"));
            return backfill(visit, path, time("from")?, time("to")?).await;
        }
        _ => return Err(format!("{kind} cannot do {verb}")),
    };
    judge(&answer).map(|()| 1)
}

/// The address of an object; `None` if a form names none.
fn place(kind: &str, path: &str) -> Option<String> {
    let is_name = |name: &str| muster_types::name_rules::dns1123_subdomain(name).is_ok();
    match path.split_once('/') {
        Some((namespace, name)) if is_name(namespace) && is_name(name) => {
            Some(format!("{API}/namespaces/{namespace}/{kind}/{name}"))
        }
        None if is_name(path) => Some(format!("{API}/{kind}/{path}")),
        _ => None,
    }
}

fn judge(answer: &Answer) -> Result<(), String> {
    if answer.code.is_success() { Ok(()) } else { Err(answer.message().to_owned()) }
}

async fn backfill(visit: &Visit, path: &str, from: Timestamp, to: Timestamp) -> Result<usize, String> {
    let schedule = find(visit, path)?;
    let occurrences = occurrences_of(&schedule)?.ok_or("it has triggers and no times")?;
    let before = |time: &Timestamp| *time < to;
    let first = occurrences.next_at_or_after(from).filter(before);
    let times = std::iter::successors(first, |time| occurrences.next_after(*time).filter(before));
    let causes: Vec<_> = times.take(MOST_RUNS + 1).map(Cause::Time).collect();
    match causes.len() {
        0 => Err("no time of the schedule lies there".to_owned()),
        count if count > MOST_RUNS => {
            Err(format!("these are more than {MOST_RUNS} runs; choose a shorter time"))
        }
        _ => run(visit, path, &causes).await,
    }
}

fn find(visit: &Visit, path: &str) -> Result<Schedule, String> {
    let (namespace, name) = path.split_once('/').unwrap_or_default();
    visit.site.get::<ScheduleSpec>(namespace, name).ok_or_else(|| "it is not there any more".to_owned())
}

/// Makes a run for each cause, or one for now. Those that are there already are as good.
async fn run(visit: &Visit, path: &str, causes: &[Cause]) -> Result<usize, String> {
    let schedule = find(visit, path)?;
    let namespace = &schedule.metadata.namespace;
    let mut wanted: Vec<_> = causes.iter().map(Some).collect();
    if wanted.is_empty() {
        wanted.push(None);
    }
    let mut made = 0;
    for cause in wanted {
        let (plural, mut object) = render(visit, &schedule, cause)?;
        if cause.is_none() {
            object["metadata"]["generateName"] = format!("{}-now-", schedule.metadata.name).into();
        }
        let place = format!("{API}/namespaces/{namespace}/{plural}");
        let answer = visit.ask(Method::POST, &place, JSON, object.to_string()).await;
        if answer.code != StatusCode::CONFLICT {
            judge(&answer)?;
            made += 1;
        }
    }
    Ok(made)
}

fn render(
    visit: &Visit,
    schedule: &Schedule,
    cause: Option<&Cause>,
) -> Result<(&'static str, Value), String> {
    let spec = &schedule.spec;
    let (plural, object) = if let Some(template) = &spec.job_template {
        ("jobs", render_job(schedule, template, cause).to_document())
    } else {
        let template = match (&spec.template, &spec.template_ref) {
            (Some(template), _) => template.clone(),
            (None, Some(reference)) => {
                let found = visit.site.get::<TaskTemplateSpec>(&schedule.metadata.namespace, &reference.name);
                found.ok_or_else(|| format!("there is no template {}", reference.name))?.spec.template
            }
            (None, None) => return Err("the schedule names nothing to make".to_owned()),
        };
        ("tasks", render_task(schedule, &template, cause).to_document())
    };
    Ok((plural, object.map_err(|error| error.to_string())?))
}

fn refused(visit: &Visit, code: StatusCode, why: &str) -> Reply {
    let fixed = html! { p.problem role="alert" { (why) } };
    as_page(
        code,
        document(visit, &Page { title: "Not done".to_owned(), fixed, live: html! {}, below: html! {} }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_become_addresses() {
        assert_eq!(
            place("tasks", "default/a").as_deref(),
            Some("/apis/muster.dev/v1alpha1/namespaces/default/tasks/a")
        );
        assert_eq!(place("eventsinks", "x").as_deref(), Some("/apis/muster.dev/v1alpha1/eventsinks/x"));
        for bad in ["", "/", "a/", "a/b/c", "../x", "a/b?dryRun=All", "a/b c", "default/<script>"] {
            assert_eq!(place("tasks", bad), None, "{bad}");
        }
    }

    #[test]
    fn a_form_leads_nowhere_else() {
        let to = |place: &str| {
            let reply = back(place, "x");
            reply.headers()[hyper::header::LOCATION].to_str().unwrap().to_owned()
        };
        assert_eq!(to("/ui/tasks?state=Failed&said=old"), "/ui/tasks?state=Failed&said=x");
        for bad in ["https://example.com/ui/", "//example.com", "/ui//example.com", "", "/other"] {
            assert_eq!(to(bad), "/ui/?said=x", "{bad}");
        }
    }
}
