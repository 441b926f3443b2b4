//! Sending a request and reading its answer, with every failure told in words.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use kube::client::Body;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::access::Access;
use crate::error::{ClientError, Peer};
use crate::query::Query;

/// Time for the server to begin its answer.
const ANSWER: Duration = Duration::from_mins(1);
/// Largest answer that is read whole.
const MAX_ANSWER: usize = 256 * 1024 * 1024;

/// A request before it is sent.
pub struct Ask<'a> {
    pub method: Method,
    pub path: &'a str,
    pub query: Query,
    pub accept: &'a str,
    pub content_type: &'a str,
    pub body: Vec<u8>,
    /// How long the head of the answer may take; nothing is for ever.
    pub patience: Option<Duration>,
}

impl<'a> Ask<'a> {
    pub fn get(path: &'a str) -> Self {
        Self {
            method: Method::GET,
            path,
            query: Query::default(),
            accept: "application/json",
            content_type: "",
            body: Vec::new(),
            patience: Some(ANSWER),
        }
    }

    pub fn send(method: Method, path: &'a str, body: &Value) -> Self {
        Self {
            method,
            content_type: "application/json",
            body: body.to_string().into_bytes(),
            ..Self::get(path)
        }
    }
}

/// A whole answer that is a success.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// The way to one server.
#[derive(Clone)]
pub struct Transport {
    http: kube::Client,
    peer: Peer,
}

impl Transport {
    /// A way that is open; nothing is sent yet.
    pub fn new(access: &Access) -> Result<Self, ClientError> {
        Ok(Self { http: access.client()?, peer: access.peer().clone() })
    }

    /// Who answers.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Sends a request and reads its answer as JSON.
    pub async fn read<T: DeserializeOwned>(&self, ask: Ask<'_>) -> Result<T, ClientError> {
        let path = ask.path;
        let answer = self.whole(ask).await?;
        self.parse(path, &answer)
    }

    /// Reads an answer as JSON.
    pub fn parse<T: DeserializeOwned>(&self, path: &str, answer: &Answer) -> Result<T, ClientError> {
        serde_json::from_slice(&answer.body).map_err(|error| self.peer.unintelligible(path, error))
    }

    /// Sends a request and reads all of its answer.
    pub async fn whole(&self, ask: Ask<'_>) -> Result<Answer, ClientError> {
        let (head, body) = self.begin(ask).await?.into_parts();
        let body = self.collect(body).await?;
        Ok(Answer { status: head.status, headers: head.headers, body })
    }

    /// Sends a request and waits for the head of a successful answer.
    pub async fn begin(&self, ask: Ask<'_>) -> Result<Response<Body>, ClientError> {
        let mut request = Request::builder()
            .method(ask.method)
            .uri(format!("{}{}", ask.path, ask.query.as_str()))
            .header(ACCEPT, ask.accept);
        if !ask.content_type.is_empty() {
            request = request.header(CONTENT_TYPE, ask.content_type);
        }
        let request = request
            .body(Body::from(ask.body))
            .map_err(|error| ClientError::Setup { url: self.peer.url.clone(), reason: error.to_string() })?;
        let sent = self.http.send(request);
        let sent = match ask.patience {
            None => sent.await,
            Some(patience) => {
                let late = |_| ClientError::Unreachable {
                    url: self.peer.url.clone(),
                    reason: format!("no answer in {} seconds", patience.as_secs()),
                };
                tokio::time::timeout(patience, sent).await.map_err(late)?
            }
        };
        let response = match sent {
            Ok(response) => response,
            Err(kube::Error::Auth(error)) => {
                return Err(ClientError::Setup { url: self.peer.url.clone(), reason: error.to_string() });
            }
            Err(error) => return Err(self.peer.unanswered(&error)),
        };
        let code = response.status();
        if code.is_success() {
            return Ok(response);
        }
        let body = self.collect(response.into_body()).await?;
        Err(self.peer.refused(code, &body))
    }

    async fn collect(&self, body: Body) -> Result<Bytes, ClientError> {
        let collected = Limited::new(body, MAX_ANSWER).collect().await;
        collected.map(http_body_util::Collected::to_bytes).map_err(|error| self.peer.unanswered(&*error))
    }
}
