//! Managed resources: for each kind, which adapter has seen which generation.

use maud::{Markup, html};
use muster_ports::store::ResourceName;
use muster_types::condition::Condition;
use muster_types::managed_resource::ManagedResource;
use muster_types::names::RESOURCES_GROUP;
use muster_types::resource_type::ResourceTypeSpec;
use muster_types::{JsonText, ResourceType, Timestamp};

use crate::html::frame::Page;
use crate::html::parts::{condition_word, nothing, time};
use crate::site::Visit;

/// Resources of a kind on the page.
const MOST: usize = 200;
/// Kinds on the page.
const KINDS: usize = 50;

/// The page.
pub fn page(visit: &Visit) -> Page {
    let (types, _) = visit.site.first::<ResourceTypeSpec>(KINDS);
    let live = html! {
        @for kind in &types { (matrix(visit, kind)) }
        @if types.is_empty() {
            (nothing("No kind of resource is declared.", "A ResourceType declares one; the guide `docs/guides/adapter.md` shows how."))
        }
    };
    Page { title: "Resources".to_owned(), fixed: html! {}, live, below: html! {} }
}

fn matrix(visit: &Visit, kind: &ResourceType) -> Markup {
    let names = &kind.spec.names;
    let resource = ResourceName::new(&format!("{}.{RESOURCES_GROUP}", names.plural));
    let snapshot = visit.site.store.snapshot(&resource);
    let read = |stored: &muster_ports::store::Stored| ManagedResource::from_json(stored.json()).ok();
    let found: Vec<_> = snapshot.range(None, None).filter_map(read).take(MOST).collect();
    html! {
        section {
            h2 { (names.kind) " " small { (snapshot.len()) } }
            @if found.is_empty() { p.none { "There is none." } } @else {
                div.scroll {
                    table.matrix {
                        thead {
                            tr {
                                th { "Name" } th.number { "Generation" } th { "Available" } th { "Ready" }
                                @for adapter in &kind.spec.adapters { th { (adapter) } }
                                th { "Since" }
                            }
                        }
                        tbody { @for one in &found { (row(one, kind)) } }
                    }
                }
                @if snapshot.len() > found.len() { p.none { "The first " (found.len()) " by name." } }
            }
        }
    }
}

fn condition<'a>(resource: &'a ManagedResource, r#type: &str) -> Option<&'a Condition> {
    resource.status.conditions.iter().find(|one| one.r#type == r#type)
}

fn row(resource: &ManagedResource, kind: &ResourceType) -> Markup {
    let generation = resource.metadata.generation;
    let newest: Option<Timestamp> =
        resource.status.conditions.iter().map(|one| one.last_transition_time).max();
    html! {
        tr {
            td { @if resource.metadata.namespace != "default" { span.ns { (resource.metadata.namespace) "/" } } a href={ "/ui/resources/" (kind.spec.names.plural) "/" (resource.metadata.namespace) "/" (resource.metadata.name) } { (resource.metadata.name) }
                @if resource.is_deleting() { " " small { "is being deleted" } } }
            td.number { (generation) }
            @for r#type in ["Available", "Ready"] {
                td { @if let Some(one) = condition(resource, r#type) { span title=(one.message) { (condition_word(one.status)) } } @else { span.none { "–" } } }
            }
            @for adapter in &kind.spec.adapters {
                td {
                    @match resource.status.standing(adapter) {
                        None => span.none { "not yet" },
                        Some(standing) => {
                            span class={ "seen " (if standing.observed_generation == generation { "current" } else { "behind" }) }
                                title={ "has seen generation " (standing.observed_generation) } { (standing.observed_generation) }
                            @if let Some(said) = standing.conditions.first() { " " (condition_word(said.status)) }
                            @if standing.failures > 0 { " " small { (standing.failures) " failures" } }
                        },
                    }
                }
            }
            td { (time(newest)) }
        }
    }
}
