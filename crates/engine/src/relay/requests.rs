//! What a user may ask of a sink, by annotations: one test message, or to tell again what was told before.

use std::sync::Arc;
use std::time::Duration;

use muster_ports::clock::{Clock, Millis};
use muster_ports::publisher::{PublishError, Publisher, Verdict};
use muster_ports::store::{Revision, Store, WatchScope};
use muster_types::event_sink::{Profile, REPLAY_REQUEST, TEST_REQUEST};
use muster_types::event_sink_status::SinkRequest;
use muster_types::{EventSink, Message, Timestamp};

/// Time for a test message to be confirmed.
const PATIENCE: Duration = Duration::from_secs(10);
/// Changes looked at in one go.
const PAGE: usize = 4096;

/// A request that was not dealt with yet.
pub fn open_request<'a>(sink: &'a EventSink, annotation: &str, dealt_with: Option<&str>) -> Option<&'a str> {
    let request = sink.metadata.annotations.get(annotation)?;
    (dealt_with != Some(request.as_str())).then_some(request)
}

/// The request for a test message.
pub fn test_request<'a>(sink: &'a EventSink, dealt_with: Option<&str>) -> Option<&'a str> {
    open_request(sink, TEST_REQUEST, dealt_with)
}

/// The request to tell again.
pub fn replay_request<'a>(sink: &'a EventSink, dealt_with: Option<&str>) -> Option<&'a str> {
    open_request(sink, REPLAY_REQUEST, dealt_with)
}

/// Sends a test message over a way of its own, and waits for what becomes of it.
pub async fn test(
    publisher: &dyn Publisher,
    sink: &EventSink,
    request: &str,
    clock: &dyn Clock,
) -> SinkRequest {
    let at = Some(clock.now().to_timestamp());
    let outcome = tokio::select! {
        biased;
        outcome = send_test(publisher, sink, request) => outcome,
        () = clock.pause(PATIENCE) => Err(PublishError::new("Timeout", "nothing was confirmed in ten seconds")),
    };
    let (done, message) = match outcome {
        Ok(()) => (true, "a test message was confirmed".to_owned()),
        Err(error) => (false, format!("{}: {}", error.reason, error.message)),
    };
    SinkRequest { request: request.to_owned(), at, done, message }
}

async fn send_test(publisher: &dyn Publisher, sink: &EventSink, request: &str) -> Result<(), PublishError> {
    let mut session = publisher.open().await?;
    session.send(&[(0, Arc::new(test_message(sink, request)))]).await?;
    match session.verdicts().await?.pop() {
        Some((_, Verdict::Refused { error, .. })) => Err(error),
        _ => Ok(()),
    }
}

fn test_message(sink: &EventSink, request: &str) -> Message {
    let metadata = &sink.metadata;
    let (topic, body) = match sink.spec.profile() {
        Profile::Cds => (
            "cds.job.test",
            serde_json::json!({
                "job-id": metadata.uid, "job-name": metadata.name, "job-namespace": metadata.namespace,
                "retry-count": 0,
            }),
        ),
        Profile::CloudEvents => (
            "dev.muster.eventsink.test",
            serde_json::json!({
                "specversion": "1.0", "id": format!("test/{request}"), "type": "dev.muster.eventsink.test",
                "source": format!("/apis/muster.dev/v1alpha1/namespaces/{}/eventsinks/{}", metadata.namespace, metadata.name),
            }),
        ),
    };
    Message {
        id: format!("test/{request}"),
        key: metadata.uid.as_str().into(),
        topic: topic.to_owned(),
        content_type: "application/json",
        attributes: Vec::new(),
        body: body.to_string().into_bytes(),
    }
}

/// Where to begin to tell again: behind a revision, or at a time.
pub fn replay_from(store: &Store, request: &str) -> Result<u64, String> {
    let from = request.split('#').next().unwrap_or_default();
    let newest = store.revision().0;
    if let Ok(revision) = from.parse::<u64>() {
        return if revision <= newest {
            Ok(revision)
        } else {
            Err(format!("revision {revision} is not there yet; the newest is {newest}"))
        };
    }
    let time: Timestamp = from
        .parse()
        .map_err(|_| format!("{from} is neither a revision nor a time such as 2026-11-15T12:00:00Z"))?;
    let at = Millis(time.as_second().saturating_mul(1000));
    Ok(before(store, at).0)
}

/// The last revision before a time, as far back as is remembered.
fn before(store: &Store, at: Millis) -> Revision {
    let oldest = store.compacted();
    let Ok(mut watch) = store.watch(WatchScope::All, oldest) else { return oldest };
    let mut last = oldest;
    while let Ok(changes) = watch.poll_page(PAGE) {
        if changes.is_empty() {
            break;
        }
        for change in changes {
            if change.at >= at {
                return last;
            }
            last = change.revision();
        }
    }
    last
}
