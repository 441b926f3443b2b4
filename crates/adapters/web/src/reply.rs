//! Answers: their bodies and types.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use muster_ports::pages::{Body, Reply};

/// Something whole.
pub fn whole(code: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Reply {
    of(code, kind, Full::new(body.into()).boxed_unsync())
}

/// Something that is made while it is sent.
pub fn stream(kind: &'static str, chunks: impl Stream<Item = Bytes> + Send + 'static) -> Reply {
    let frames = StreamBody::new(chunks.map(|chunk| Ok::<_, Infallible>(Frame::data(chunk))));
    of(StatusCode::OK, kind, frames.boxed_unsync())
}

fn of(code: StatusCode, kind: &'static str, body: Body) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = code;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}
