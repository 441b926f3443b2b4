//! What happens now, and what is wrong.

use maud::{Markup, html};
use muster_types::condition::ConditionStatus;
use muster_types::event_sink::EventSinkSpec;
use muster_types::schedule::ScheduleSpec;
use muster_types::{Schedule, State, TaskSpec, human_duration};

use crate::html::frame::Page;
use crate::html::parts::{nothing, state, still_reading, task_link, time};
use crate::html::plot::{Layer, bars, stacked};
use crate::index::Tasks;
use crate::samples::{SAMPLE_SECONDS, place_of};
use crate::site::{Site, Visit, resource_of};

/// Samples in a plot.
const MOMENTS: usize = 360;
/// Samples that a plot has room for at least.
const FEWEST: usize = 24;
/// Failures that are shown.
const FAILURES: usize = 8;
/// Schedules and sinks that are looked at.
const MOST: usize = 1_000;
/// States that are drawn, from the bottom.
const DRAWN: [State; 6] =
    [State::Running, State::Pending, State::Ready, State::Postponed, State::QuotaBlocked, State::Created];

/// The page.
pub async fn page(visit: &Visit) -> Page {
    let health = html! { (schedules(&visit.site)) (sinks(&visit.site)) };
    let (title, fixed, below) = ("Overview".to_owned(), html! {}, html! {});
    let Some(tasks) = visit.tasks().await else {
        let stored = visit.site.store.snapshot(&resource_of::<TaskSpec>()).len();
        let live = html! { (still_reading(stored)) div.cards { (health) } };
        return Page { title, fixed, live, below };
    };
    let live = html! {
        (numbers(&tasks))
        @if tasks.len() == 0 {
            (nothing("No task was made yet.", "Make one with `muster run -- echo hello`, or on the page Submit."))
        }
        div.cards {
            section { h2 { "Queue" } (queue(&tasks)) }
            section { h2 { "Throughput" } (throughput(&tasks)) }
            section { h2 { "Held back" } (held(&tasks)) }
            section { h2 { "Latest failures" } (failures(&tasks)) }
            (health)
        }
    };
    Page { title, fixed, live, below }
}

fn numbers(tasks: &Tasks) -> Markup {
    let tally = tasks.tally();
    html! {
        ul.numbers {
            @for known in State::ALL {
                li { a href={ "/ui/tasks?state=" (known) } { b { (tally[place_of(*known)]) } (state(known.as_str())) } }
            }
        }
    }
}

fn queue(tasks: &Tasks) -> Markup {
    let layers: Vec<_> = DRAWN
        .iter()
        .map(|state| Layer {
            name: state.as_str(),
            values: tasks.samples.all().map(|sample| sample.tally[place_of(*state)]).collect(),
        })
        .collect();
    let moments = tasks.samples.all().len().clamp(FEWEST, MOMENTS);
    stacked(&layers, moments, "Tasks that have not ended, by state, over the last half hour")
}

fn throughput(tasks: &Tasks) -> Markup {
    let ended: Vec<_> = tasks.samples.all().map(|sample| sample.ended).collect();
    let wait = |percent| {
        tasks.samples.wait(percent).map_or("–".to_owned(), |wait| human_duration(i64::from(wait)))
    };
    html! {
        (bars(&ended, ended.len().clamp(FEWEST, MOMENTS), &format!("Tasks ended, every {SAMPLE_SECONDS} s")))
        p.facts {
            b { (format!("{:.1}", tasks.samples.throughput())) } " ended per second · waited "
            b { (wait(50)) } " in the middle, " b { (wait(90)) } " of 9 in 10, " b { (wait(99)) } " of 99 in 100"
        }
    }
}

fn held(tasks: &Tasks) -> Markup {
    html! {
        table {
            tbody {
                @for (rule, count) in tasks.held() {
                    tr { td { a href={ "/ui/tasks?held=" (rule) } { (rule) } } td.number { (count) } td { (about(rule)) } }
                }
            }
        }
        @if tasks.held().next().is_none() { p.none { "No rule holds a task back." } }
    }
}

/// What a rule means, for somebody who has not heard of it.
fn about(rule: &str) -> &'static str {
    match rule {
        "Dependency" => "waits for another task",
        "Unique" => "the same work is under way",
        "Isolated" => "must run alone, or somebody else does",
        "Capacity" => "no room on the executors",
        "Quota" | "QuotaBlocked" => "a quota of the cluster is used up",
        "Rest" | "Backoff" => "is tried again later",
        "Suspended" => "was made suspended",
        _ => "",
    }
}

fn failures(tasks: &Tasks) -> Markup {
    let failed = tasks.failures(FAILURES);
    html! {
        table {
            tbody {
                @for entry in &failed {
                    @let (namespace, name) = entry.names();
                    tr { td { (task_link(namespace, name)) } td { (entry.kind) } td { (time(entry.ended)) } }
                }
            }
        }
        @if failed.is_empty() { p.none { "No task failed." } }
    }
}

fn schedules(site: &Site) -> Markup {
    let (all, count): (Vec<Schedule>, _) = site.first::<ScheduleSpec>(MOST);
    let mut next: Vec<_> =
        all.iter().filter_map(|one| one.status.next_scheduled_time.map(|at| (at, one))).collect();
    next.sort_by_key(|(at, _)| *at);
    let broken: Vec<_> = all.iter().filter(|one| is_broken(one)).collect();
    html! {
        @if count > 0 {
            section {
                h2 { "Schedules" }
                p.facts { b { (count) } " schedules, " b { (broken.len()) } " not ready" }
                table {
                    tbody {
                        @for (at, schedule) in next.iter().take(5) {
                            tr {
                                td { a href={ "/ui/schedules/" (schedule.metadata.namespace) "/" (schedule.metadata.name) } { (schedule.metadata.name) } }
                                td { (time(Some(*at))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn is_broken(schedule: &Schedule) -> bool {
    let ready = schedule.status.conditions.iter().find(|condition| condition.r#type == "Ready");
    ready.is_some_and(|ready| ready.status == ConditionStatus::False) && !schedule.spec.suspend
}

fn sinks(site: &Site) -> Markup {
    let (all, count) = site.first::<EventSinkSpec>(MOST);
    html! {
        @if count > 0 {
            section {
                h2 { "Sinks" }
                table {
                    tbody {
                        @for sink in all.iter().take(8) {
                            tr {
                                td { a href="/ui/sinks" { (sink.metadata.name) } }
                                td.number { (sink.status.backlog) " to tell" }
                                td { (time(sink.status.last_confirmed_time)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
