//! Numbers that parts of the server keep about themselves, in the text form Prometheus reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Counters and gauges, shared by whoever counts and whoever shows.
#[derive(Debug, Clone, Default)]
pub struct Telemetry(Arc<Mutex<BTreeMap<&'static str, Series>>>);

/// What is known about a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name, without the `_total` of a counter.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// The name of its label, if it has one.
    pub label: Option<&'static str>,
}

#[derive(Debug)]
struct Series {
    metric: Metric,
    is_counter: bool,
    values: BTreeMap<String, u64>,
}

impl Telemetry {
    /// Adds to a counter. `label` is the value of its label; of no interest for one without.
    pub fn count(&self, metric: Metric, label: &str, more: u64) {
        self.change(metric, true, label, |value| value.saturating_add(more));
    }

    /// Sets a gauge.
    pub fn set(&self, metric: Metric, label: &str, value: u64) {
        self.change(metric, false, label, |_| value);
    }

    fn change(&self, metric: Metric, is_counter: bool, label: &str, change: impl FnOnce(u64) -> u64) {
        let mut all = self.0.lock();
        let new = || Series { metric, is_counter, values: BTreeMap::new() };
        let series = all.entry(metric.name).or_insert_with(new);
        let label = if metric.label.is_some() { label } else { "" };
        match series.values.get_mut(label) {
            Some(value) => *value = change(*value),
            None => drop(series.values.insert(label.to_owned(), change(0))),
        }
    }

    /// Adds the text of all numbers.
    pub fn render(&self, text: &mut String) {
        for series in self.0.lock().values() {
            let Metric { name, help, label } = series.metric;
            let (kind, end) = if series.is_counter { ("counter", "_total") } else { ("gauge", "") };
            *text += &format!("# HELP {name} {help}.\n# TYPE {name} {kind}\n");
            for (value_of_label, value) in &series.values {
                let labels =
                    label.map_or_else(String::new, |label| format!("{{{label}=\"{value_of_label}\"}}"));
                *text += &format!("{name}{end}{labels} {value}\n");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLDS: Metric = Metric { name: "holds", help: "Tasks held back", label: Some("reason") };
    const DEPTH: Metric = Metric { name: "depth", help: "Tasks in the queue", label: None };

    #[test]
    fn counters_add_up_and_gauges_do_not() {
        let telemetry = Telemetry::default();
        telemetry.count(HOLDS, "Unique", 2);
        telemetry.clone().count(HOLDS, "Unique", 1);
        telemetry.count(HOLDS, "Capacity", 1);
        telemetry.set(DEPTH, "", 9);
        telemetry.set(DEPTH, "", 7);
        let mut text = String::new();
        telemetry.render(&mut text);
        assert_eq!(
            text,
            "# HELP depth Tasks in the queue.\n# TYPE depth gauge\ndepth 7\n\
             # HELP holds Tasks held back.\n# TYPE holds counter\n\
             holds_total{reason=\"Capacity\"} 1\nholds_total{reason=\"Unique\"} 3\n"
        );
    }
}
