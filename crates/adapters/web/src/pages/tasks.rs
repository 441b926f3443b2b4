//! All tasks: found, sorted, paged through, and acted on many at a time.

use maud::{Markup, html};
use muster_types::{State, TaskSpec};

use crate::entry::Entry;
use crate::filter::{Filter, Found, PAGE};
use crate::html::frame::Page;
use crate::html::parts::{bar, nothing, span, state, still_reading, task_link, time};
use crate::query::Query;
use crate::site::{Visit, resource_of};

/// Ways to sort, with their words.
const ORDERS: [(&str, &str); 5] = [
    ("", "newest first"),
    ("oldest", "oldest first"),
    ("priority", "priority"),
    ("name", "name"),
    ("longest", "longest run"),
];

/// The page.
pub async fn page(visit: &Visit) -> Page {
    let filter = Filter::of(&visit.query);
    let stored = visit.site.store.snapshot(&resource_of::<TaskSpec>());
    let now = visit.site.now();
    let (title, fixed) = ("Tasks".to_owned(), filters(&visit.query));
    let Some(tasks) = visit.tasks().await else {
        return Page { title, fixed, live: still_reading(stored.len()), below: html! {} };
    };
    let found = filter.find(&tasks, &stored);
    let back = format!("/ui/tasks?{}", visit.query.with("said", ""));
    let live = html! {
        @if let Some(problem) = &filter.problem { p.problem role="alert" { (problem) } }
        form method="post" action="/ui/act" {
            input type="hidden" name="kind" value="tasks";
            input type="hidden" name="back" value=(back);
            @if visit.may_write() { (bulk()) }
            table.tasks {
                thead {
                    tr {
                        @if visit.may_write() { th.pick { input type="checkbox" aria-label="All on this page" data-all; } }
                        th { "Task" } th { "State" } th { "Kind" } th { "Subject" } th.number { "Priority" }
                        th { "Made" } th { "Ran for" } th { "Progress" }
                    }
                }
                tbody { @for entry in &found.shown { (row(entry, visit.may_write(), now)) } }
            }
        }
        @if found.shown.is_empty() {
            (nothing("No task is like this.", "Leave out a filter, or make a task with `muster submit`."))
        }
        (pager(&found, &visit.query))
    };
    Page { title, fixed, live, below: html! {} }
}

fn row(entry: &Entry, may_write: bool, now: muster_types::Timestamp) -> Markup {
    let (namespace, name) = entry.names();
    html! {
        tr id={ "t-" (entry.path) } {
            @if may_write { td.pick { input type="checkbox" name="path" value=(entry.path) aria-label={ "Choose " (name) }; } }
            td { (task_link(namespace, name)) }
            td { (state(entry.state.as_str())) @if !entry.held_by.is_empty() && !entry.state.is_terminal() { " " small { (entry.held_by) } } }
            td { (entry.kind) }
            td { (entry.subject) }
            td.number { @if let Some(priority) = entry.priority { (priority) } }
            td { (time(Some(entry.created))) }
            td { (span(entry.started, entry.ended, now)) }
            td { @if let Some(percent) = entry.progress { (bar(percent)) } }
        }
    }
}

fn bulk() -> Markup {
    html! {
        div.bulk {
            span { "With those chosen:" }
            button name="verb" value="cancel" { "Cancel" }
            button name="verb" value="retry" { "Retry" }
            label { "Priority " input type="number" name="priority" size="5"; }
            button name="verb" value="prioritise" { "Set priority" }
        }
    }
}

fn filters(query: &Query) -> Markup {
    let chosen: Vec<_> = query.all("state").collect();
    html! {
        form.filters method="get" action="/ui/tasks" {
            label { "Text" input type="search" name="text" value=(query.text("text")) placeholder="name, kind or subject"; }
            label { "State"
                select name="state" {
                    option value="" { "any" }
                    @for known in State::ALL {
                        option value=(known) selected[chosen.contains(&known.as_str())] { (known) }
                    }
                }
            }
            @for (name, label) in [("kind", "Kind"), ("subject", "Subject"), ("namespace", "Namespace"), ("labels", "Labels")] {
                label { (label) input name=(name) value=(query.text(name)); }
            }
            label { "Priority from" input type="number" name="priority" value=(query.text("priority")); }
            label { "Sort"
                select name="sort" {
                    @for (word, about) in ORDERS { option value=(word) selected[query.text("sort") == word] { (about) } }
                }
            }
            button { "Show" }
            a href="/ui/tasks" { "Reset" }
        }
    }
}

fn pager(found: &Found<'_>, query: &Query) -> Markup {
    let pages = found.matching.div_ceil(PAGE).max(1);
    let to = |page: usize| format!("/ui/tasks?{}", query.with("page", &page.to_string()));
    html! {
        nav.pager aria-label="Pages" {
            @if found.page > 0 { a rel="prev" href=(to(found.page - 1)) { "‹ Before" } }
            span {
                (found.matching) @if !found.complete { " or more" } " tasks, page " (found.page + 1) " of " (pages)
            }
            @if found.page + 1 < pages { a rel="next" href=(to(found.page + 1)) { "Next ›" } }
        }
    }
}
