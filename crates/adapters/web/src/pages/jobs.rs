//! All jobs, and groups of tasks that belong to none.

use maud::{Markup, html};
use muster_types::Job;
use muster_types::job::JobSpec;

use crate::html::frame::Page;
use crate::html::parts::{counts, nothing, span, state, time};
use crate::site::Visit;

/// Jobs on the page.
const MOST: usize = 500;

/// The page.
pub fn page(visit: &Visit) -> Page {
    let (mut jobs, count) = visit.site.first::<JobSpec>(MOST);
    jobs.sort_by_key(|job| std::cmp::Reverse(job.metadata.creation_timestamp));
    let now = visit.site.now();
    let live = html! {
        @if jobs.is_empty() {
            (nothing("There is no job.", "A job is groups of tasks that wait for each other; `muster apply -f job.yaml` makes one."))
        } @else {
            table {
                thead { tr { th { "Job" } th { "State" } th { "Tasks" } th { "Made" } th { "Ran for" } th { "How it stands" } } }
                tbody { @for job in &jobs { (row(job, now)) } }
            }
            @if count > jobs.len() { p.none { "The first " (jobs.len()) " of " (count) " by name." } }
        }
    };
    Page { title: "Jobs".to_owned(), fixed: html! {}, live, below: html! {} }
}

fn row(job: &Job, now: muster_types::Timestamp) -> Markup {
    let status = &job.status;
    html! {
        tr {
            td { a href={ "/ui/jobs/" (job.metadata.namespace) "/" (job.metadata.name) } { (job.metadata.name) } }
            td { (state(status.current_state().as_str())) }
            td { (counts(&status.counts, status.total)) }
            td { (time(job.metadata.creation_timestamp)) }
            td { (span(status.started, status.terminated, now)) }
            td { (status.message) }
        }
    }
}
