//! Spans, sent to a collector: OTLP over HTTP in its JSON form, as
//! <https://opentelemetry.io/docs/specs/otlp/#otlphttp> has it.
//!
//! Spans are gathered for a moment and sent together. A collector that does not answer is tried again a few times; then the
//! spans are let go and counted, because whoever works must not wait for whoever watches.

use std::sync::Arc;
use std::time::Duration;

use muster_egress::EgressPolicy;
use muster_ports::clock::Millis;
use muster_ports::outbound::HttpCall;
use muster_ports::publisher::Boxed;
use muster_ports::telemetry::Telemetry;
use muster_ports::telemetry::catalog::SPANS;
use muster_ports::traces::Span;
use muster_types::adapter_action::HttpMethod;
use muster_types::metadata::StringMap;
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;
use tokio::time::sleep;

use crate::http::Http;

/// Most spans of one request.
const MOST: usize = 512;
/// How long spans are gathered.
const GATHER: Duration = Duration::from_millis(500);
/// How long a collector may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often a request is made.
const TRIES: u32 = 4;
/// Pause before the second try; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// A collector of traces.
pub struct Otlp {
    http: Http,
    url: String,
    headers: StringMap,
    telemetry: Telemetry,
}

impl Otlp {
    /// A collector at the address that `OTEL_EXPORTER_OTLP_ENDPOINT` would have, with headers for every request.
    pub fn new(endpoint: &str, headers: StringMap, telemetry: Telemetry) -> Self {
        let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        // A flag of the server names it.
        let http = Http::new(Arc::new(EgressPolicy::unrestricted()));
        Self { http, url, headers, telemetry }
    }

    /// Sends what arrives until nothing can arrive any more.
    pub fn run(self, spans: Receiver<Span>) -> Boxed<'static, ()> {
        Box::pin(self.send_all(spans))
    }

    async fn send_all(self, mut spans: Receiver<Span>) {
        let mut was_away = false;
        let mut gathered = Vec::new();
        while spans.recv_many(&mut gathered, MOST).await > 0 {
            if gathered.len() < MOST && !spans.is_closed() {
                sleep(GATHER).await;
                while gathered.len() < MOST
                    && let Ok(span) = spans.try_recv()
                {
                    gathered.push(span);
                }
            }
            let count = u64::try_from(gathered.len()).unwrap_or(u64::MAX);
            let body = request(&std::mem::take(&mut gathered));
            let sent = self.send(&body).await;
            self.telemetry.count(SPANS, &[if sent.is_ok() { "sent" } else { "lost" }], count);
            let is_away = sent.is_err();
            match sent {
                Ok(()) if was_away => tracing::info!("the collector of traces is back"),
                Ok(()) => {}
                Err(why) if !was_away => tracing::warn!("traces are lost: {why}"),
                Err(why) => tracing::debug!("traces are lost: {why}"),
            }
            was_away = is_away;
        }
    }

    async fn send(&self, body: &Value) -> Result<(), String> {
        let mut pause = FIRST_PAUSE;
        let mut tries = 0;
        loop {
            tries += 1;
            let call = HttpCall {
                method: HttpMethod::Post,
                url: self.url.clone(),
                headers: self.headers.clone(),
                body: Some(body.clone()),
                timeout: TIMEOUT,
            };
            let (why, is_final) = match self.http.call(call).await {
                Ok(answer) => match answer["status"].as_u64().unwrap_or(0) {
                    200..=299 => return Ok(()),
                    // As the protocol has it, these may be tried again and no others.
                    status @ (429 | 502..=504) => (format!("{} answered {status}", self.url), false),
                    status => (format!("{} answered {status}: {}", self.url, answer["body"]), true),
                },
                Err(why) => (why, false),
            };
            if is_final || tries >= TRIES {
                return Err(why);
            }
            sleep(pause).await;
            pause *= 2;
        }
    }
}

/// One request with all spans.
fn request(spans: &[Span]) -> Value {
    let spans: Vec<Value> = spans.iter().map(shown).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": [attribute("service.name", "muster"), attribute("service.version", env!("CARGO_PKG_VERSION"))]},
        "scopeSpans": [{"scope": {"name": "muster", "version": env!("CARGO_PKG_VERSION")}, "spans": spans}],
    }]})
}

fn shown(span: &Span) -> Value {
    let attributes: Vec<Value> = span.attributes.iter().map(|(name, value)| attribute(name, value)).collect();
    let mut shown = json!({
        "traceId": format!("{:032x}", span.trace),
        "spanId": format!("{:016x}", span.id),
        "name": span.name,
        "kind": 1,
        "startTimeUnixNano": nanos(span.start),
        "endTimeUnixNano": nanos(span.end.max(span.start)),
        "attributes": attributes,
        "status": span.error.as_ref().map_or_else(|| json!({"code": 1}), |why| json!({"code": 2, "message": why})),
    });
    if let Some(parent) = span.parent {
        shown["parentSpanId"] = json!(format!("{parent:016x}"));
    }
    shown
}

fn attribute(name: &str, value: &str) -> Value {
    json!({"key": name, "value": {"stringValue": value}})
}

/// Numbers of 64 bits are texts in this form.
fn nanos(at: Millis) -> String {
    (i128::from(at.0.max(0)) * 1_000_000).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_sent_as_the_protocol_has_it() {
        let span = Span {
            trace: 0x4bf9,
            id: 0xab,
            parent: Some(1),
            name: "attempt".to_owned(),
            start: Millis(1_800_000_000_001),
            end: Millis(1_800_000_000_000),
            attributes: vec![("muster.attempt", "2".to_owned())],
            error: Some("Error".to_owned()),
        };
        let body = request(&[span]);
        assert_eq!(
            body["resourceSpans"][0]["scopeSpans"][0]["spans"][0],
            json!({
                "traceId": "00000000000000000000000000004bf9",
                "spanId": "00000000000000ab",
                "parentSpanId": "0000000000000001",
                "name": "attempt",
                "kind": 1,
                "startTimeUnixNano": "1800000000001000000",
                "endTimeUnixNano": "1800000000001000000",
                "attributes": [{"key": "muster.attempt", "value": {"stringValue": "2"}}],
                "status": {"code": 2, "message": "Error"},
            })
        );
    }
}
