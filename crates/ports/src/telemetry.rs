//! Numbers that parts of the server keep about themselves, in the text form Prometheus reads.
//!
//! Every number is in the [`catalog`]; its name and labels stay as they are from one release to the next.

pub mod catalog;
mod reference;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

pub use reference::reference;

/// Counters, gauges and histograms, shared by whoever counts and whoever shows.
#[derive(Clone)]
pub struct Telemetry(Arc<Numbers>);

/// What is known about a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name, without the `_total` of a counter.
    pub name: &'static str,
    /// What it tells, as a sentence without its full stop.
    pub help: &'static str,
    /// What sort of number it is.
    pub sort: Sort,
    /// The names of its labels.
    pub labels: &'static [&'static str],
}

/// What sort of number it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Times in seconds from a quarter of a millisecond on, as work inside of a server takes them.
    Quick,
    /// Times in seconds from five milliseconds to a day, as tasks take them.
    Slow,
    /// Sizes, from one on.
    Size,
}

type Labels = Vec<(&'static str, String)>;

struct Numbers {
    registry: Registry,
    families: HashMap<&'static str, Numbered>,
}

/// With labels, a number for each of their values; without, one number.
enum Numbered {
    Counter(Counter),
    Gauge(Gauge),
    Histogram(Histogram),
    Counters(Family<Labels, Counter>),
    Gauges(Family<Labels, Gauge>),
    Histograms(Family<Labels, Histogram, fn() -> Histogram>),
}

impl Numbered {
    fn new(metric: &Metric) -> Self {
        let new: fn() -> Histogram = match metric.sort {
            Sort::Counter if metric.labels.is_empty() => return Self::Counter(Counter::default()),
            Sort::Counter => return Self::Counters(Family::default()),
            Sort::Gauge if metric.labels.is_empty() => return Self::Gauge(Gauge::default()),
            Sort::Gauge => return Self::Gauges(Family::default()),
            Sort::Quick => || Histogram::new(exponential_buckets(0.000_25, 2.0, 16)),
            Sort::Slow => || Histogram::new(exponential_buckets(0.005, 4.0, 13)),
            Sort::Size => || Histogram::new(exponential_buckets(1.0, 2.0, 12)),
        };
        if metric.labels.is_empty() {
            Self::Histogram(new())
        } else {
            Self::Histograms(Family::new_with_constructor(new))
        }
    }

    fn register(&self, metric: &Metric, registry: &mut Registry) {
        let (name, help) = (metric.name, metric.help);
        match self {
            Self::Counter(number) => registry.register(name, help, number.clone()),
            Self::Gauge(number) => registry.register(name, help, number.clone()),
            Self::Histogram(number) => registry.register(name, help, number.clone()),
            Self::Counters(family) => registry.register(name, help, family.clone()),
            Self::Gauges(family) => registry.register(name, help, family.clone()),
            Self::Histograms(family) => registry.register(name, help, family.clone()),
        }
    }
}

impl Default for Telemetry {
    fn default() -> Self {
        let mut numbers = Numbers { registry: Registry::default(), families: HashMap::new() };
        for metric in catalog::ALL {
            let numbered = Numbered::new(metric);
            numbered.register(metric, &mut numbers.registry);
            numbers.families.insert(metric.name, numbered);
        }
        Self(Arc::new(numbers))
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").finish_non_exhaustive()
    }
}

impl Telemetry {
    /// Adds to a counter. `labels` are the values of its labels, in their order.
    pub fn count(&self, metric: Metric, labels: &[&str], more: u64) {
        match self.0.families.get(metric.name) {
            Some(Numbered::Counter(number)) => _ = number.inc_by(more),
            Some(Numbered::Counters(family)) => _ = family.get_or_create(&named(metric, labels)).inc_by(more),
            _ => {}
        }
    }

    /// Sets a gauge.
    pub fn set(&self, metric: Metric, labels: &[&str], value: u64) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        match self.0.families.get(metric.name) {
            Some(Numbered::Gauge(number)) => _ = number.set(value),
            Some(Numbered::Gauges(family)) => _ = family.get_or_create(&named(metric, labels)).set(value),
            _ => {}
        }
    }

    /// Adds to a histogram.
    pub fn observe(&self, metric: Metric, labels: &[&str], value: f64) {
        match self.0.families.get(metric.name) {
            Some(Numbered::Histogram(number)) => number.observe(value),
            Some(Numbered::Histograms(family)) => family.get_or_create(&named(metric, labels)).observe(value),
            _ => {}
        }
    }

    /// Forgets the number of something that is gone.
    pub fn forget(&self, metric: Metric, labels: &[&str]) {
        let labels = named(metric, labels);
        match self.0.families.get(metric.name) {
            Some(Numbered::Counters(family)) => _ = family.remove(&labels),
            Some(Numbered::Gauges(family)) => _ = family.remove(&labels),
            Some(Numbered::Histograms(family)) => _ = family.remove(&labels),
            _ => {}
        }
    }

    /// The text of all numbers.
    pub fn render(&self) -> String {
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &self.0.registry) {
            tracing::warn!(%error, "numbers cannot be rendered");
        }
        text
    }
}

fn named(metric: Metric, values: &[&str]) -> Labels {
    metric.labels.iter().zip(values).map(|(label, value)| (*label, (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::catalog::{QUEUE, STARTS, TASK_HOLDS, WAIT};
    use super::*;

    #[test]
    fn counters_add_up_and_gauges_do_not() {
        let telemetry = Telemetry::default();
        telemetry.count(TASK_HOLDS, &["Unique"], 2);
        telemetry.clone().count(TASK_HOLDS, &["Unique"], 1);
        telemetry.count(TASK_HOLDS, &["a \"b\""], 1);
        telemetry.count(STARTS, &[], 4);
        telemetry.set(QUEUE, &["Ready", ""], 9);
        telemetry.set(QUEUE, &["Ready", ""], 7);
        let text = telemetry.render();
        for line in [
            "# TYPE muster_task_holds counter",
            "muster_task_holds_total{reason=\"Unique\"} 3",
            "muster_task_holds_total{reason=\"a \\\"b\\\"\"} 1",
            "muster_task_starts_total 4",
            "muster_queue_tasks{state=\"Ready\",kind=\"\"} 7",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
        }
        telemetry.forget(QUEUE, &["Ready", ""]);
        assert!(!telemetry.render().contains("muster_queue_tasks{"));
    }

    #[test]
    fn a_histogram_counts_what_was_at_most_so_large() {
        let telemetry = Telemetry::default();
        for seconds in [0.001, 0.01, 3000.0] {
            telemetry.observe(WAIT, &["k"], seconds);
        }
        let text = telemetry.render();
        for line in [
            "muster_task_wait_seconds_bucket{le=\"0.005\",kind=\"k\"} 1",
            "muster_task_wait_seconds_bucket{le=\"0.02\",kind=\"k\"} 2",
            "muster_task_wait_seconds_bucket{le=\"+Inf\",kind=\"k\"} 3",
            "muster_task_wait_seconds_count{kind=\"k\"} 3",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
        }
    }
}
