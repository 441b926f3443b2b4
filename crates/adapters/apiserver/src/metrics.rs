//! What the API server counts, and the text of `/metrics`.

use muster_ports::store::Store;
use muster_ports::telemetry::Telemetry;
use muster_ports::telemetry::catalog::{
    COMPACTED, OBJECTS, REPORTS_IGNORED, REQUEST_SECONDS, REQUESTS, REQUESTS_REFUSED, REVISION, WATCHES,
};

/// The server's numbers.
pub struct Metrics(Telemetry);

impl Metrics {
    /// Counts into these numbers.
    pub fn new(telemetry: Telemetry) -> Self {
        Self(telemetry)
    }

    /// Counts an answered request.
    pub fn answered(&self, verb: &str, resource: &str, code: u16, seconds: f64) {
        if verb != "watch" {
            self.0.observe(REQUEST_SECONDS, &[verb], seconds);
        }
        self.0.count(REQUESTS, &[verb, resource, &code.to_string()], 1);
    }

    /// Counts a request that did not get past the door.
    pub fn turned_away(&self, reason: &'static str) {
        self.0.count(REQUESTS_REFUSED, &[reason], 1);
    }

    /// Counts a report that came too late.
    pub fn report_ignored(&self, why: &'static str) {
        self.0.count(REPORTS_IGNORED, &[why], 1);
    }

    /// The text of `/metrics`.
    pub fn render(&self, store: &Store, watches: usize) -> String {
        self.0.set(WATCHES, &[], u64::try_from(watches).unwrap_or(u64::MAX));
        self.0.set(REVISION, &[], store.revision().0);
        self.0.set(COMPACTED, &[], store.compacted().0);
        for (resource, count) in store.counts() {
            self.0.set(OBJECTS, &[resource.as_str()], u64::try_from(count).unwrap_or(u64::MAX));
        }
        self.0.render()
    }
}
