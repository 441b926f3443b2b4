//! Small things that many pages show.

use std::fmt;

use maud::{Markup, html};
use muster_types::condition::{Condition, ConditionStatus};
use muster_types::work_state::Counts;
use muster_types::{MilliTimestamp, State, Timestamp, human_duration, human_millis};

/// The word of a state, in its colour.
pub fn state(word: &str) -> Markup {
    html! { span class={ "state " (word) } { (word) } }
}

/// A time. The script shows how long ago that was.
pub fn time<T: fmt::Display>(at: Option<T>) -> Markup {
    html! {
        @match at {
            Some(at) => time datetime=(at) title=(at) { (at) },
            None => span.none { "–" },
        }
    }
}

/// How long something took, or has taken until now.
pub fn span<T: Into<MilliTimestamp>>(from: Option<T>, to: Option<T>, now: Timestamp) -> Markup {
    let (from, to): (Option<MilliTimestamp>, Option<MilliTimestamp>) =
        (from.map(Into::into), to.map(Into::into));
    html! {
        @match (from, to) {
            (Some(from), Some(to)) => (human_millis(to.as_millisecond() - from.as_millisecond())),
            (Some(from), None) => time.since datetime=(from) title=(from) { (human_duration(now.as_second() - from.as_second())) },
            (None, _) => span.none { "–" },
        }
    }
}

/// Bytes, for people.
pub fn bytes(count: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut scaled = count;
    let mut unit = 0;
    while scaled >= 10 * 1024 && unit + 1 < units.len() {
        scaled /= 1024;
        unit += 1;
    }
    format!("{scaled} {}", units[unit])
}

/// Where a task is.
pub fn task_link(namespace: &str, name: &str) -> Markup {
    html! { a href={ "/ui/tasks/" (namespace) "/" (name) } { @if namespace != "default" { span.ns { (namespace) "/" } } (name) } }
}

/// A share of a hundred.
pub fn bar(percent: u8) -> Markup {
    let percent = percent.min(100);
    html! {
        svg.bar viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={ (percent) " %" } {
            rect.track width="100" height="8" {}
            rect.done width=(percent) height="8" {}
        }
        span.percent { (percent) " %" }
    }
}

/// How many tasks are in which state, as one bar.
pub fn counts(counts: &Counts, total: u32) -> Markup {
    let parts = [
        (counts.succeeded, State::Succeeded),
        (counts.failed, State::Failed),
        (counts.canceled, State::Canceled),
        (counts.running, State::Running),
        (counts.pending, State::Pending),
        (counts.ready, State::Ready),
        (counts.created, State::Created),
    ];
    let total = total.max(counts.all()).max(1);
    let mut from = 0;
    let label: Vec<_> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, state)| format!("{count} {state}"))
        .collect();
    html! {
        svg.stack viewBox={ "0 0 " (total) " 8" } preserveAspectRatio="none" role="img" aria-label=(label.join(", ")) {
            title { (label.join(", ")) }
            rect.track width=(total) height="8" {}
            @for (count, state) in parts {
                @if count > 0 {
                    rect class=(state) x=({ let x = from; from += count; x }) width=(count) height="8" {}
                }
            }
        }
        span.percent { (counts.ended()) "/" (total) }
    }
}

/// Conditions in a table.
pub fn conditions(conditions: &[Condition]) -> Markup {
    html! {
        @if !conditions.is_empty() {
            table {
                thead { tr { th { "Condition" } th { "Status" } th { "Since" } th { "Reason" } th { "Message" } } }
                tbody {
                    @for condition in conditions {
                        tr {
                            td { (condition.r#type) }
                            td { (condition_word(condition.status)) }
                            td { (time(Some(condition.last_transition_time))) }
                            td { (condition.reason) }
                            td { (condition.message) }
                        }
                    }
                }
            }
        }
    }
}

/// The word of a condition, in a colour.
pub fn condition_word(status: ConditionStatus) -> Markup {
    html! { span class={ "cond " (status) } { (status) } }
}

/// A button that does something to one object.
pub fn act(verb: &str, label: &str, kind: &str, path: &str, back: &str) -> Markup {
    html! {
        form.act method="post" action="/ui/act" {
            input type="hidden" name="kind" value=(kind);
            input type="hidden" name="path" value=(path);
            input type="hidden" name="back" value=(back);
            button name="verb" value=(verb) { (label) }
        }
    }
}

/// Says that there is nothing, and what to do about it.
pub fn nothing(what: &str, advice: &str) -> Markup {
    html! { div.nothing { p { (what) } p { (advice) } } }
}

/// What a page shows until all tasks are read.
pub fn still_reading(count: usize) -> Markup {
    let what = format!("{count} tasks are being read.");
    nothing(&what, "This page fills by itself in a moment.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_for_people() {
        assert_eq!([0, 10_239, 10_240, 5 << 30].map(bytes), ["0 B", "10239 B", "10 KiB", "5120 MiB"]);
    }

    #[test]
    fn what_users_write_is_text() {
        let told = task_link("default", "<script>alert(1)</script>").into_string();
        assert!(!told.contains("<script>"), "{told}");
    }
}
