//! Calls of URLs. Redirects are not followed: their answer is the answer.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::CONTENT_TYPE;
use hyper::{Request, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::ConfigExt as _;
use muster_egress::{EgressError, EgressPolicy};
use muster_ports::outbound::HttpCall;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::egress_connector::EgressConnector;

/// Largest answer that is read.
const MAX_ANSWER: usize = 1024 * 1024;
/// How long a connection without calls is kept.
const IDLE: Duration = Duration::from_mins(1);
/// Connections without calls that are kept to one server.
const MOST_IDLE: usize = 8;

type HttpClient = Client<HttpsConnector<EgressConnector>, Full<Bytes>>;

/// A client of all servers that a policy allows.
pub struct Http {
    policy: Arc<EgressPolicy>,
    /// Made for the first call: it reads whom this machine trusts.
    client: Mutex<Option<HttpClient>>,
}

impl Http {
    /// A client that connects where the policy allows it.
    pub fn new(policy: Arc<EgressPolicy>) -> Self {
        Self { policy, client: Mutex::new(None) }
    }

    /// Makes a call. The answer is a document with `status`, `headers` and `body`.
    pub async fn call(&self, call: HttpCall) -> Result<Value, String> {
        let (timeout, url) = (call.timeout, shown(&call.url));
        match tokio::time::timeout(timeout, self.send(call)).await {
            Ok(answer) => answer.map_err(|why| format!("{url}: {why}")),
            Err(_) => Err(format!("{url}: no answer within {timeout:?}")),
        }
    }

    async fn send(&self, call: HttpCall) -> Result<Value, String> {
        let uri: Uri = call.url.parse().map_err(|error| format!("not a URL: {error}"))?;
        if uri.scheme().is_none() || uri.authority().is_none() {
            return Err("the URL names no server".to_owned());
        }
        let client = self.client()?;
        let mut request = Request::builder().method(call.method.as_str()).uri(uri);
        for (name, value) in &call.headers {
            request = request.header(name, value);
        }
        let is_typed = call.headers.keys().any(|name| name.eq_ignore_ascii_case(CONTENT_TYPE.as_str()));
        if call.body.is_some() && !is_typed {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = call.body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| format!("cannot be asked: {error}"))?;
        let answer = client.request(request).await.map_err(|error| explain(&error))?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await;
        let body = body.map_err(|error| format!("the answer cannot be read: {error}"))?.to_bytes();
        let text = String::from_utf8_lossy(&body);
        let headers: Map<String, Value> = head
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), json!(String::from_utf8_lossy(value.as_bytes()))))
            .collect();
        Ok(json!({
            "status": head.status.as_u16(),
            "headers": headers,
            "body": serde_json::from_str::<Value>(&text).unwrap_or_else(|_| json!(text)),
        }))
    }

    fn client(&self) -> Result<HttpClient, String> {
        let mut slot = self.client.lock();
        if let Some(client) = &*slot {
            return Ok(client.clone());
        }
        // Only the trust of this machine is taken from it.
        let trust = Config::new(Uri::from_static("https://localhost/"));
        let connector = EgressConnector(self.policy.clone());
        let connector =
            trust.rustls_https_connector_with_connector(connector).map_err(|error| chain(&error))?;
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(MOST_IDLE)
            .build(connector);
        Ok(slot.insert(client).clone())
    }
}

/// A URL without what may be secret in it: the user and the query.
fn shown(url: &str) -> String {
    let url = url.split_once(['?', '#']).map_or(url, |(before, _)| before);
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (server, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let server = server.rsplit_once('@').map_or(server, |(_, server)| server);
    format!("{scheme}://{server}{path}")
}

/// Why a call was not answered. A denial needs no more words than its own.
fn explain(error: &(dyn Error + 'static)) -> String {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(EgressError::Denied(denial)) = error.downcast_ref::<EgressError>() {
            return denial.to_string();
        }
        cause = error.source();
    }
    chain(error)
}

/// An error with everything that caused it, in one line.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_show_a_url_without_its_user_and_query() {
        for (url, expected) in [
            ("https://me:secret@a.example:1/b?key=secret", "https://a.example:1/b"),
            ("http://a?secret", "http://a"),
            ("http://a/b@c", "http://a/b@c"),
            ("zones", "zones"),
        ] {
            assert_eq!(shown(url), expected);
        }
    }
}
