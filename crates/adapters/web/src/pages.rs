//! One file per page, and the table that finds it.

mod job;
mod jobs;
mod overview;
mod resource;
mod resources;
mod robots;
mod schedule;
mod schedules;
pub mod sign_in;
mod sinks;
pub mod submit;
mod task;
mod tasks;

use hyper::StatusCode;
use hyper::header::{CONTENT_DISPOSITION, HeaderValue};
use maud::html;
use muster_ports::pages::Reply;

use crate::asking::API;
use crate::console::page as as_page;
use crate::html::frame::{Page, document};
use crate::html::parts::nothing;
use crate::site::Visit;

/// The page that an address means. `None` if there is none, or what it is about is gone.
async fn find(visit: &Visit) -> Option<Page> {
    match *visit.segments() {
        [] => Some(overview::page(visit).await),
        ["tasks"] => Some(tasks::page(visit).await),
        ["tasks", namespace, name] => task::page(visit, namespace, name).await,
        ["jobs"] => Some(jobs::page(visit)),
        ["jobs", namespace, name] => job::page(visit, namespace, name),
        ["schedules"] => Some(schedules::page(visit)),
        ["schedules", namespace, name] => schedule::page(visit, namespace, name),
        ["robots"] => Some(robots::page(visit)),
        ["resources"] => Some(resources::page(visit)),
        ["resources", plural, namespace, name] => resource::page(visit, plural, namespace, name),
        ["sinks"] => Some(sinks::page(visit)),
        ["submit", "form"] if visit.may_write() => Some(submit::form_page(visit).await),
        ["submit"] if visit.may_write() => Some(submit::page(&submit::Draft::of(visit))),
        _ => None,
    }
}

/// The whole page.
pub async fn page(visit: &Visit) -> Reply {
    match find(visit).await {
        Some(page) => as_page(StatusCode::OK, document(visit, &page)),
        None => as_page(StatusCode::NOT_FOUND, document(visit, &missing())),
    }
}

/// The part of a page that is made anew while it is looked at.
pub async fn live(visit: &Visit) -> String {
    find(visit).await.unwrap_or_else(missing).live.into_string()
}

fn missing() -> Page {
    let live = nothing("There is nothing here.", "What was here may have been deleted since.");
    Page { title: "Not found".to_owned(), fixed: html! {}, live, below: html! {} }
}

/// A log or a file of a task, if that is what an address means.
pub async fn file(visit: &Visit) -> Option<Reply> {
    let (path, saved) = match *visit.segments() {
        ["tasks", namespace, name, "log"] => {
            let query = visit.query.with("download", "");
            let saved = !visit.query.text("download").is_empty();
            (format!("{API}/namespaces/{namespace}/tasks/{name}/log?{query}"), saved)
        }
        ["tasks", namespace, name, "files", ref rest @ ..] if !rest.is_empty() => {
            (format!("{API}/namespaces/{namespace}/tasks/{name}/attachments/{}", rest.join("/")), true)
        }
        _ => return None,
    };
    let mut reply = visit.send(hyper::Method::GET, &path, "application/json", "").await;
    if saved {
        reply.headers_mut().insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    }
    Some(reply)
}
