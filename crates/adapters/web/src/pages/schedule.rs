//! One schedule: its past and next runs in a calendar.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use maud::{Markup, html};
use muster_types::schedule::ScheduleSpec;
use muster_types::{Schedule, Timestamp};
use muster_workflows::schedule::{created, occurrences_of};
use muster_workflows::time_spec::zone::Zone;

use crate::html::frame::Page;
use crate::html::parts::{act, conditions, task_link, time};
use crate::site::Visit;

/// Runs that are shown ahead.
const AHEAD: usize = 20;
/// Days in the calendar.
const DAYS: i64 = 35;
/// Occurrences that are counted for it.
const MOST: usize = 5_000;
const DAY: i64 = 86_400;

/// The page, if the schedule is there.
pub fn page(visit: &Visit, namespace: &str, name: &str) -> Option<Page> {
    let schedule: Schedule = visit.site.get::<ScheduleSpec>(namespace, name)?;
    let now = visit.site.clock.wall().to_timestamp();
    let (status, policy) = (&schedule.status, &schedule.spec.schedule_policy);
    let zone = Zone::named(&policy.time_zone).unwrap_or(Zone::UTC);
    let live = html! {
        dl.facts {
            dt { "Times" } dd { code { (policy.time_spec) } " " (policy.time_zone) }
            dt { "Understood as" } dd { code { (status.normal_time_spec) } }
            dt { "Next" } dd { (time(status.next_scheduled_time)) }
            dt { "Last" } dd { (time(status.last_scheduled_time)) }
            dt { "Last success" } dd { (time(status.last_successful_time)) }
            @if let Some(run) = status.recent_runs.first() {
                dt { "Last result" } dd { (run.state) " " (run_link(namespace, &run.kind, &run.name)) }
            }
            dt { "Made" } dd { (status.made) " runs, " (status.dropped) " left out" }
            @if let Some(left) = status.remaining { dt { "Left" } dd { (left) } }
        }
        @if visit.may_write() { (actions(&schedule)) }
        section { h2 { "Calendar" } (calendar(&schedule, now)) }
        @if !status.active.is_empty() {
            section {
                h2 { "Active" }
                ul { @for run in &status.active { li { (run_link(namespace, &run.kind, &run.name)) } } }
            }
        }
        @if !status.backfills.is_empty() { section { h2 { "Backfills" } (backfills(&schedule)) } }
        section { h2 { "Next runs" } (ahead(&schedule, now, &zone)) }
        (conditions(&status.conditions))
    };
    Some(Page { title: name.to_owned(), fixed: html! {}, live, below: html! {} })
}

fn run_link(namespace: &str, kind: &str, name: &str) -> Markup {
    html! { @if kind == "Job" { a href={ "/ui/jobs/" (namespace) "/" (name) } { (name) } } @else { (task_link(namespace, name)) } }
}

fn backfills(schedule: &Schedule) -> Markup {
    html! {
        table {
            thead { tr { th { "Name" } th { "Until" } th { "Next" } th { "Made" } } }
            tbody { @for known in &schedule.status.backfills {
                tr {
                    td { (known.name) } td { (known.until) }
                    td { @if let Some(next) = known.next { (next) } @else { "complete" } } td { (known.made) }
                }
            } }
        }
    }
}

fn actions(schedule: &Schedule) -> Markup {
    let path = format!("{}/{}", schedule.metadata.namespace, schedule.metadata.name);
    let back = format!("/ui/schedules/{path}");
    html! {
        div.actions {
            (act("run", "Run now", "schedules", &path, &back))
            @if schedule.spec.suspend { (act("resume", "Resume", "schedules", &path, &back)) }
            @else { (act("pause", "Pause", "schedules", &path, &back)) }
            form.act method="post" action="/ui/act" {
                input type="hidden" name="kind" value="schedules";
                input type="hidden" name="path" value=(path);
                input type="hidden" name="back" value=(back);
                label { "Make up for runs from " input name="from" placeholder="2026-01-01T00:00:00Z" size="20"; }
                label { " to " input name="to" placeholder="2026-01-02T00:00:00Z" size="20"; }
                label { " active at once " input name="maxActive" placeholder="1" size="3"; }
                button name="verb" value="backfill" { "Backfill" }
            }
        }
    }
}

fn times(schedule: &Schedule, from: Timestamp, most: usize) -> Vec<Timestamp> {
    let Ok(Some(occurrences)) = occurrences_of(schedule) else { return Vec::new() };
    let first = occurrences.next_at_or_after(from.max(created(schedule)));
    std::iter::successors(first, |time| occurrences.next_after(*time)).take(most).collect()
}

fn ahead(schedule: &Schedule, now: Timestamp, zone: &Zone) -> Markup {
    let times = times(schedule, now, AHEAD);
    html! {
        table {
            thead { tr { th { "In its zone" } th { "UTC" } th { "From now" } } }
            tbody { @for at in &times { tr { td { (zone.show(at.as_second())) } td { (at) } td { (time(Some(*at))) } } } }
        }
        @if times.is_empty() { p.none { "No time is left." } }
    }
}

/// Days from a week ago, each with how many runs fall on it.
fn calendar(schedule: &Schedule, now: Timestamp) -> Markup {
    let today = now.as_second().div_euclid(DAY);
    // 1970-01-01 was a Thursday: weeks begin on Monday.
    let first = today - 7 - (today - 7 + 3).rem_euclid(7);
    let from = Timestamp::from_second(first * DAY);
    let mut days: BTreeMap<i64, usize> = BTreeMap::new();
    let last = first + DAYS;
    for at in times(schedule, from, MOST) {
        let day = at.as_second().div_euclid(DAY);
        if day >= last {
            break;
        }
        *days.entry(day).or_default() += 1;
    }
    html! {
        div.scroll {
            table.calendar {
                thead { tr { @for day in ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] { th { (day) } } } }
                tbody {
                    @for week in 0..DAYS / 7 {
                        tr {
                            @for day in (first + week * 7)..(first + week * 7 + 7) {
                                td class=(match day.cmp(&today) { Ordering::Less => "past", Ordering::Equal => "today", Ordering::Greater => "" }) {
                                    span.date { (Timestamp::from_second(day * DAY).to_string().get(5..10).unwrap_or_default()) }
                                    @if let Some(count) = days.get(&day) { b { (count) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
