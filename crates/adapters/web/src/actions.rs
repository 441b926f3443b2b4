//! What buttons do: requests to the API, then back to the page, with a word on what became of it.

use hyper::{Method, StatusCode};
use maud::html;
use muster_ports::pages::Reply;
use muster_types::schedule::ScheduleSpec;
use muster_types::task_template::TaskTemplateSpec;
use muster_types::{Duration, JsonText, Schedule, Timestamp};
use muster_workflows::schedule::{add_backfill, backfill_times, occurrences_of};
use muster_workflows::schedule_run::{render_job, render_task};
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
        ("schedules", "run") => return run(visit, path).await,
        ("schedules", "backfill") => {
            let time =
                |name: &str| form.text(name).parse::<Timestamp>().map_err(|error| format!("{name}: {error}"));
            let most = Some(form.text("maxActive")).filter(|text| !text.is_empty());
            let most =
                most.map(|text| text.parse().map_err(|_| "active at once: give a number")).transpose()?;
            return backfill(visit, path, time("from")?, time("to")?, most).await;
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

/// Asks for the runs of times in the past. How many times there are.
async fn backfill(
    visit: &Visit,
    path: &str,
    from: Timestamp,
    to: Timestamp,
    max_active: Option<u32>,
) -> Result<usize, String> {
    let schedule = find(visit, path)?;
    let now = visit.site.clock.wall().to_timestamp();
    let occurrences = occurrences_of(&schedule)?.ok_or("it has triggers and no times")?;
    let times = backfill_times(&occurrences, from, to, now).take(MOST_RUNS + 1).count();
    match times {
        0 => return Err("no time of the schedule that has passed lies there".to_owned()),
        times if times > MOST_RUNS => {
            return Err(format!("these are more than {MOST_RUNS} runs; choose a shorter time"));
        }
        _ => {}
    }
    let to = to.min(now.saturating_add(Duration::from_secs(1)));
    let backfills = add_backfill(&schedule, from, to, max_active, now);
    let place = place("schedules", path).ok_or("this is not the name of an object")?;
    let version = &schedule.metadata.resource_version;
    let change = json!({"metadata": {"resourceVersion": version}, "spec": {"backfills": backfills}});
    judge(&visit.patch(&place, &change).await).map(|()| times)
}

fn find(visit: &Visit, path: &str) -> Result<Schedule, String> {
    let (namespace, name) = path.split_once('/').unwrap_or_default();
    visit.site.get::<ScheduleSpec>(namespace, name).ok_or_else(|| "it is not there any more".to_owned())
}

/// Makes a run now.
async fn run(visit: &Visit, path: &str) -> Result<usize, String> {
    let schedule = find(visit, path)?;
    let (plural, mut object) = render(visit, &schedule)?;
    object["metadata"]["generateName"] = format!("{}-now-", schedule.metadata.name).into();
    let place = format!("{API}/namespaces/{}/{plural}", schedule.metadata.namespace);
    judge(&visit.ask(Method::POST, &place, JSON, object.to_string()).await).map(|()| 1)
}

fn render(visit: &Visit, schedule: &Schedule) -> Result<(&'static str, Value), String> {
    let spec = &schedule.spec;
    let (plural, object) = if let Some(template) = &spec.job_template {
        ("jobs", render_job(schedule, template, None).to_document())
    } else {
        let template = match (&spec.template, &spec.template_ref) {
            (Some(template), _) => template.clone(),
            (None, Some(reference)) => {
                let found = visit.site.get::<TaskTemplateSpec>(&schedule.metadata.namespace, &reference.name);
                found.ok_or_else(|| format!("there is no template {}", reference.name))?.spec.template
            }
            (None, None) => return Err("the schedule names nothing to make".to_owned()),
        };
        ("tasks", render_task(schedule, &template, None).to_document())
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
