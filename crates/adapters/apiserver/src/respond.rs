//! Responses: bodies, headers, warnings.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WARNING};
use hyper::{Response, StatusCode};
use muster_ports::store::Stored;
use serde_json::Value;

use crate::refusal::Refusal;

/// Characters of one warning that are sent.
const WARNING_CHARACTERS: usize = 256;
/// Bytes of all warnings together; many clients take no more than 8 KiB of headers.
const WARNINGS_BYTES: usize = 4096;

pub use muster_ports::pages::{Body, Reply};

/// JSON text as a response.
pub fn json(code: StatusCode, text: impl Into<Bytes>) -> Reply {
    with_type(code, "application/json", Full::new(text.into()).boxed_unsync())
}

/// A document as a response.
pub fn document(code: StatusCode, value: &Value) -> Reply {
    json(code, value.to_string())
}

/// Plain text as a response.
pub fn text(code: StatusCode, text: impl Into<Bytes>) -> Reply {
    with_type(code, "text/plain; charset=utf-8", Full::new(text.into()).boxed_unsync())
}

/// A body that is made while it is sent.
pub fn stream(content_type: &'static str, chunks: impl Stream<Item = Bytes> + Send + 'static) -> Reply {
    let frames = StreamBody::new(chunks.map(|chunk| Ok::<_, Infallible>(Frame::data(chunk))));
    with_type(StatusCode::OK, content_type, BodyExt::boxed_unsync(frames))
}

/// A response of a given type.
pub fn with_type(code: StatusCode, content_type: &'static str, body: Body) -> Reply {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A refusal as a response.
pub fn refusal(refusal: &Refusal) -> Reply {
    let mut response = document(refusal.code, &refusal.status());
    if let Some(seconds) = refusal.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    if refusal.code == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static("Bearer realm=\"muster\"");
        response.headers_mut().insert(hyper::header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Adds `Warning` headers, as many as clients take with the head of an answer.
pub fn warn(response: &mut Reply, warnings: &[String]) {
    let mut room = WARNINGS_BYTES;
    for warning in warnings {
        let mut quoted = String::new();
        for c in warning.chars().filter(|c| !c.is_control()).take(WARNING_CHARACTERS) {
            if matches!(c, '"' | '\\') {
                quoted.push('\\');
            }
            quoted.push(c);
        }
        let Some(left) = room.checked_sub(quoted.len()) else { break };
        room = left;
        if let Ok(value) = HeaderValue::try_from(format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(WARNING, value);
        }
    }
}

/// The JSON of a stored object without copying it.
pub fn stored_bytes(stored: &Stored) -> Bytes {
    Bytes::from_owner(stored.clone())
}
