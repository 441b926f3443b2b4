//! One managed resource: what each adapter says of it, and when it was Available and Ready, as far back as changes are kept.

use maud::{Markup, html};
use muster_ports::store::{Key, ResourceName, WatchScope};
use muster_types::condition::ConditionStatus;
use muster_types::managed_resource::ManagedResource;
use muster_types::names::RESOURCES_GROUP;
use muster_types::{JsonText, Timestamp, human_duration};

use crate::html::frame::Page;
use crate::html::parts::{condition_word, conditions, time};
use crate::site::Visit;

/// Changes that are read at once.
const SLICE: usize = 4096;
/// Changes that are listed.
const LISTED: usize = 50;
/// The conditions whose history is shown.
const SHOWN: [&str; 2] = ["Available", "Ready"];

/// From when on a condition was like this, and at which generation.
struct Turn {
    at: Timestamp,
    status: ConditionStatus,
    generation: i64,
    reason: String,
}

/// The page, if the resource is there.
pub fn page(visit: &Visit, plural: &str, namespace: &str, name: &str) -> Option<Page> {
    let resource = ResourceName::new(&format!("{plural}.{RESOURCES_GROUP}"));
    let key = Key::new(&resource, namespace, name);
    let stored = visit.site.store.get(&key)?;
    let found: ManagedResource = ManagedResource::from_json(stored.json()).ok()?;
    let (histories, now) = (histories(visit, &resource, &key, &found), visit.site.now());
    let live = html! {
        p.standing { "Generation " (found.metadata.generation)
            @if found.is_deleting() { " – is being deleted" } }
        section { h2 { "History" }
            @for (r#type, turns) in SHOWN.iter().zip(&histories) {
                (band(r#type, turns, now))
            }
            (listed(&histories))
        }
        section { h2 { "Adapters" } (adapters(&found)) }
        (conditions(&found.status.conditions))
    };
    Some(Page { title: name.to_owned(), fixed: html! {}, live, below: html! {} })
}

/// The turns of each condition, oldest first.
fn histories(visit: &Visit, resource: &ResourceName, key: &Key, newest: &ManagedResource) -> [Vec<Turn>; 2] {
    let mut histories = [Vec::new(), Vec::new()];
    let mut take_in = |version: &ManagedResource| {
        for (r#type, turns) in SHOWN.iter().zip(&mut histories) {
            let condition = version.status.conditions.iter().find(|one| one.r#type == *r#type);
            let Some(condition) = condition else { continue };
            let known: Option<&Turn> = turns.last();
            let generation = version.metadata.generation;
            if known.is_none_or(|turn| turn.status != condition.status || turn.generation != generation) {
                turns.push(Turn {
                    at: condition.last_transition_time,
                    status: condition.status,
                    generation,
                    reason: condition.reason.clone(),
                });
            }
        }
    };
    let store = &visit.site.store;
    if let Ok(mut watch) = store.watch(WatchScope::Resource(resource.clone()), store.compacted()) {
        while let Ok(changes) = watch.poll_page(SLICE) {
            if changes.is_empty() {
                break;
            }
            for change in changes.iter().filter(|change| change.object.path == key.path) {
                let versions = change.previous.iter().chain((!change.deleted).then_some(&change.object));
                versions
                    .filter_map(|stored| ManagedResource::from_json(stored.json()).ok())
                    .for_each(|it| take_in(&it));
            }
        }
    }
    take_in(newest);
    histories
}

/// A condition over time.
fn band(r#type: &str, turns: &[Turn], now: Timestamp) -> Markup {
    let from = turns.first().map_or(now, |turn| turn.at).as_second();
    let to = now.as_second().max(from + 1);
    let x = |at: i64| (at.clamp(from, to) - from) * 1000 / (to - from);
    html! {
        figure.history {
            figcaption { (r#type) " over " (human_duration(to - from)) }
            svg.timeline viewBox="0 0 1000 26" preserveAspectRatio="none" role="img" aria-label={ (r#type) " over time" } {
                rect.track x="0" y="10" width="1000" height="6" {}
                @for (place, turn) in turns.iter().enumerate() {
                    @let end = turns.get(place + 1).map_or(to, |next| next.at.as_second());
                    @let (start, end) = (x(turn.at.as_second()), x(end));
                    rect class=(shade(turn.status)) x=(start) y="4" width=((end - start).max(2)) height="18" {
                        title { (turn.status) " at generation " (turn.generation) }
                    }
                }
            }
        }
    }
}

fn shade(status: ConditionStatus) -> &'static str {
    match status {
        ConditionStatus::True => "Succeeded",
        ConditionStatus::False => "Failed",
        ConditionStatus::Unknown => "Postponed",
    }
}

fn listed(histories: &[Vec<Turn>; 2]) -> Markup {
    let mut all: Vec<(&str, &Turn)> = Vec::new();
    for (r#type, turns) in SHOWN.iter().zip(histories) {
        all.extend(turns.iter().map(|turn| (*r#type, turn)));
    }
    all.sort_by_key(|(_, turn)| std::cmp::Reverse(turn.at));
    html! {
        table {
            thead { tr { th { "When" } th { "Condition" } th { "Is" } th.number { "Generation" } th { "Reason" } } }
            tbody {
                @for (r#type, turn) in all.into_iter().take(LISTED) {
                    tr { td { (time(Some(turn.at))) } td { (r#type) } td { (condition_word(turn.status)) }
                        td.number { (turn.generation) } td { (turn.reason) } }
                }
            }
        }
    }
}

fn adapters(found: &ManagedResource) -> Markup {
    html! {
        table {
            thead { tr { th { "Adapter" } th.number { "Has seen" } th { "Says" } th.number { "Failures" } } }
            tbody {
                @for standing in &found.status.adapters {
                    tr { td { (standing.adapter) } td.number { (standing.observed_generation) }
                        td { @for said in &standing.conditions { (said.r#type) " " (condition_word(said.status)) " " } }
                        td.number { (standing.failures) } }
                }
            }
        }
    }
}
