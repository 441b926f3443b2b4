//! Numbers about the server, in the text form Prometheus reads.

use muster_ports::store::Store;
use muster_ports::telemetry::Telemetry;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The server's metrics.
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Family<VerbLabels, Histogram>,
    refused: Family<ReasonLabels, Counter>,
    reports_ignored: Family<WhyLabels, Counter>,
    /// Open watches.
    pub watches: Gauge,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    verb: String,
    resource: String,
    code: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct VerbLabels {
    verb: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct WhyLabels {
    why: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let requests = Family::default();
        let durations: Family<VerbLabels, Histogram> =
            Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.000_25, 2.0, 16)));
        let (refused, watches) = (Family::default(), Gauge::default());
        registry.register("apiserver_request", "Requests by verb, resource and code", requests.clone());
        registry.register(
            "apiserver_request_duration_seconds",
            "Time to answer, watches excepted",
            durations.clone(),
        );
        registry.register("muster_requests_refused", "Requests turned away at the door", refused.clone());
        registry.register("muster_watches", "Open watches", watches.clone());
        let reports_ignored = Family::default();
        registry.register(
            "muster_reports_ignored",
            "Reports that came too late, by an older attempt or after a later report",
            reports_ignored.clone(),
        );
        Self { registry, requests, durations, refused, reports_ignored, watches }
    }
}

impl Metrics {
    /// Counts an answered request.
    pub fn answered(&self, verb: &str, resource: &str, code: u16, seconds: f64) {
        let (verb, resource) = (verb.to_owned(), resource.to_owned());
        if verb != "watch" {
            self.durations.get_or_create(&VerbLabels { verb: verb.clone() }).observe(seconds);
        }
        self.requests.get_or_create(&RequestLabels { verb, resource, code }).inc();
    }

    /// Counts a request that did not get past the door.
    pub fn turned_away(&self, reason: &'static str) {
        self.refused.get_or_create(&ReasonLabels { reason }).inc();
    }

    /// Counts a report that came too late.
    pub fn report_ignored(&self, why: &'static str) {
        self.reports_ignored.get_or_create(&WhyLabels { why }).inc();
    }

    /// The text of `/metrics`.
    pub fn render(&self, store: &Store, others: &Telemetry) -> String {
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &self.registry) {
            tracing::warn!(%error, "metrics cannot be rendered");
        }
        text.truncate(text.rfind("# EOF").unwrap_or(text.len()));
        for (name, value) in [("revision", store.revision()), ("compacted_revision", store.compacted())] {
            text += &format!("# TYPE muster_store_{name} gauge\nmuster_store_{name} {value}\n");
        }
        text += "# TYPE muster_store_objects gauge\n";
        let mut counts = store.counts();
        counts.sort();
        for (resource, count) in counts {
            text += &format!("muster_store_objects{{resource=\"{}\"}} {count}\n", resource.as_str());
        }
        others.render(&mut text);
        text + "# EOF\n"
    }
}
