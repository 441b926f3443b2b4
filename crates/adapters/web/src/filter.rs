//! Which tasks a page shows, in which order, and which part of them.

use std::cmp::Reverse;

use muster_ports::store::{Snapshot, Stored};
use muster_types::State;
use muster_types::label_selector::LabelSelector;
use muster_types::metadata::StringMap;
use serde::Deserialize;

use crate::entry::Entry;
use crate::index::Tasks;
use crate::query::Query;

/// Tasks on a page.
pub const PAGE: usize = 50;
/// Tasks whose labels are looked at for one page: they have to be read for it.
const MOST_READ: usize = 20_000;

/// What the address of the page of tasks says.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    states: Vec<State>,
    namespace: String,
    kind: String,
    subject: String,
    text: String,
    held_by: String,
    priority: Option<i32>,
    labels: Option<LabelSelector>,
    order: Order,
    page: usize,
    /// What of it could not be understood.
    pub problem: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Newest,
    Oldest,
    Priority,
    Name,
    Longest,
}

/// A page of tasks.
pub struct Found<'a> {
    /// Those on the page.
    pub shown: Vec<&'a Entry>,
    /// How many match; at least so many if not all were looked at.
    pub matching: usize,
    /// Which page this is, from 0.
    pub page: usize,
    /// False if there were too many to look at them all.
    pub complete: bool,
}

#[derive(Deserialize)]
struct Labels {
    #[serde(default)]
    labels: StringMap,
}

impl Filter {
    /// Reads it from an address.
    pub fn of(query: &Query) -> Self {
        let mut problem = None;
        let labels = match query.text("labels") {
            "" => None,
            text => match text.parse::<LabelSelector>() {
                Ok(selector) => Some(selector),
                Err(error) => {
                    problem = Some(format!("These labels cannot be selected by: {error}"));
                    None
                }
            },
        };
        let states: Vec<State> = query.all("state").filter_map(|word| word.parse().ok()).collect();
        Self {
            states: if states.is_empty() { State::ALL.to_vec() } else { states },
            namespace: query.text("namespace").to_owned(),
            kind: query.text("kind").to_owned(),
            subject: query.text("subject").to_owned(),
            text: query.text("text").to_lowercase(),
            held_by: query.text("held").to_owned(),
            priority: query.text("priority").parse().ok(),
            labels,
            order: match query.text("sort") {
                "oldest" => Order::Oldest,
                "priority" => Order::Priority,
                "name" => Order::Name,
                "longest" => Order::Longest,
                _ => Order::Newest,
            },
            page: usize::try_from(query.number("page").unwrap_or(0)).unwrap_or(0),
            problem,
        }
    }

    /// True if no task is left out but by its state.
    fn takes_all(&self) -> bool {
        let words = [&self.namespace, &self.kind, &self.subject, &self.text, &self.held_by];
        words.iter().all(|word| word.is_empty()) && self.priority.is_none() && self.labels.is_none()
    }

    fn matches(&self, entry: &Entry) -> bool {
        let (namespace, _) = entry.names();
        (self.namespace.is_empty() || self.namespace == namespace)
            && (self.kind.is_empty() || *self.kind == *entry.kind)
            && (self.subject.is_empty() || entry.subject.contains(&self.subject))
            && (self.held_by.is_empty() || *self.held_by == *entry.held_by)
            && self.priority.is_none_or(|least| entry.priority.unwrap_or(0) >= least)
            && (self.text.is_empty()
                || [&entry.path, &entry.kind, &entry.subject].iter().any(|text| contains(text, &self.text)))
    }

    /// The page that was asked for.
    pub fn find<'a>(&self, tasks: &'a Tasks, stored: &Snapshot) -> Found<'a> {
        let newest = tasks.newest(&self.states);
        let skipped = self.page.saturating_mul(PAGE);
        if self.takes_all() && self.order == Order::Newest {
            let tally = tasks.tally();
            let matching = self.states.iter().map(|state| tally[crate::samples::place_of(*state)]).sum();
            let shown = newest.skip(skipped).take(PAGE).collect();
            return Found { shown, matching, page: self.page, complete: true };
        }
        let mut read = 0;
        let mut complete = true;
        let passing = newest.filter(|entry| self.matches(entry)).take_while(|_| {
            read += usize::from(self.labels.is_some());
            complete = read <= MOST_READ;
            complete
        });
        let mut matching: Vec<_> = passing.filter(|entry| self.labels_match(entry, stored)).collect();
        match self.order {
            Order::Newest => {}
            Order::Oldest => matching.reverse(),
            Order::Name => matching.sort_by(|one, other| one.path.cmp(&other.path)),
            Order::Priority => matching.sort_by_key(|entry| Reverse(entry.priority.unwrap_or(0))),
            Order::Longest => matching.sort_by_key(|entry| Reverse(taken(entry))),
        }
        let shown = matching.iter().copied().skip(skipped).take(PAGE).collect();
        Found { shown, matching: matching.len(), page: self.page, complete }
    }

    fn labels_match(&self, entry: &Entry, stored: &Snapshot) -> bool {
        let Some(labels) = &self.labels else { return true };
        let found = stored.get(&entry.path).and_then(Stored::metadata::<Labels>);
        found.is_some_and(|found| labels.matches_with(|key| found.labels.get(key).map(String::as_str)))
    }
}

/// True if a text contains another that is in small letters, whatever its own are.
fn contains(text: &str, small: &str) -> bool {
    if !text.is_ascii() {
        return text.to_lowercase().contains(small);
    }
    text.as_bytes().windows(small.len().max(1)).any(|part| part.eq_ignore_ascii_case(small.as_bytes()))
}

/// Milliseconds that a task ran.
fn taken(entry: &Entry) -> i64 {
    match (entry.started, entry.ended) {
        (Some(started), Some(ended)) => ended.as_millisecond() - started.as_millisecond(),
        (Some(started), None) => i64::MAX - started.as_millisecond(),
        (None, _) => -1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_whatever_its_letters_are() {
        assert!(contains("default/Build-42", "build-4") && contains("ÜBUNG", "übung"));
        assert!(!contains("default/build", "built") && !contains("a", "ab"));
    }
}
