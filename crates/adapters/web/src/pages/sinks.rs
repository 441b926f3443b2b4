//! Who is told about changes, and how far behind they are.

use maud::{Markup, html};
use muster_types::EventSink;
use muster_types::event_sink::EventSinkSpec;

use crate::html::frame::Page;
use crate::html::parts::{act, condition_word, nothing, time};
use crate::site::Visit;

/// Sinks on the page.
const MOST: usize = 200;

/// The page.
pub fn page(visit: &Visit) -> Page {
    let (sinks, _) = visit.site.first::<EventSinkSpec>(MOST);
    let live = html! {
        @if sinks.is_empty() {
            (nothing("Nobody is told about changes.", "An EventSink names a broker, a web hook or a file; `muster apply -f sink.yaml` makes one."))
        } @else {
            table {
                thead { tr { th { "Sink" } th { "Sort" } th { "How it stands" } th.number { "To tell" } th { "Lag" } th { "Last confirmed" } th.number { "Confirmed" } th.number { "Dead letters" } th { "Last error" } th {} } }
                tbody { @for sink in &sinks { (row(sink, visit.may_administer())) } }
            }
        }
    };
    Page { title: "Sinks".to_owned(), fixed: html! {}, live, below: html! {} }
}

fn row(sink: &EventSink, may_administer: bool) -> Markup {
    let status = &sink.status;
    let path = format!("{}/{}", sink.metadata.namespace, sink.metadata.name);
    let path = path.trim_start_matches('/').to_owned();
    let trouble = status.conditions.iter().find(|one| one.r#type == "Ready" && !one.is_true());
    html! {
        tr {
            td { (sink.metadata.name) }
            td { (sink.spec.sort()) }
            td { @for condition in &status.conditions { span title=(condition.message) { (condition.r#type) " " (condition_word(condition.status)) } " " } }
            td.number { (status.backlog) }
            td { @if let Some(lag) = &status.lag { (lag) } }
            td { (time(status.last_confirmed_time)) }
            td.number { (status.confirmed) }
            td.number { (status.dead_lettered) }
            td { @if let Some(trouble) = trouble { (trouble.message) } }
            td {
                @if may_administer {
                    @if sink.spec.suspend { (act("resume", "Resume", "eventsinks", &path, "/ui/sinks")) }
                    @else { (act("pause", "Pause", "eventsinks", &path, "/ui/sinks")) }
                }
            }
        }
    }
}
