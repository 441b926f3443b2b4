//! All schedules, and when they make their next runs.

use maud::{Markup, html};
use muster_types::Schedule;
use muster_types::schedule::ScheduleSpec;

use crate::html::frame::Page;
use crate::html::parts::{act, condition_word, nothing, time};
use crate::site::Visit;

/// Schedules on the page.
const MOST: usize = 500;

/// The page.
pub fn page(visit: &Visit) -> Page {
    let (mut schedules, count) = visit.site.first::<ScheduleSpec>(MOST);
    schedules.sort_by_key(|one| (one.status.next_scheduled_time.is_none(), one.status.next_scheduled_time));
    let live = html! {
        @if schedules.is_empty() {
            (nothing("There is no schedule.", "A schedule makes tasks or jobs at times; `muster apply -f schedule.yaml` makes one."))
        } @else {
            table {
                thead { tr { th { "Schedule" } th { "Times" } th { "Ready" } th { "Next" } th { "Last" } th.number { "Made" } th.number { "Under way" } th {} } }
                tbody { @for schedule in &schedules { (row(schedule, visit.may_write())) } }
            }
            @if count > schedules.len() { p.none { "The first " (schedules.len()) " of " (count) " by name." } }
        }
    };
    Page { title: "Schedules".to_owned(), fixed: html! {}, live, below: html! {} }
}

fn row(schedule: &Schedule, may_write: bool) -> Markup {
    let status = &schedule.status;
    let path = format!("{}/{}", schedule.metadata.namespace, schedule.metadata.name);
    let ready = status.conditions.iter().find(|condition| condition.r#type == "Ready");
    html! {
        tr {
            td { a href={ "/ui/schedules/" (path) } { (schedule.metadata.name) } }
            td { code { (schedule.spec.schedule_policy.time_spec) } " " (schedule.spec.schedule_policy.time_zone) }
            td { @if let Some(ready) = ready { span title=(ready.message) { (condition_word(ready.status)) } } }
            td { (time(status.next_scheduled_time)) }
            td { (time(status.last_scheduled_time)) }
            td.number { (status.made) }
            td.number { (status.active.len()) }
            td {
                @if may_write {
                    @if schedule.spec.suspend { (act("resume", "Resume", "schedules", &path, "/ui/schedules")) }
                    @else { (act("pause", "Pause", "schedules", &path, "/ui/schedules")) }
                }
            }
        }
    }
}
