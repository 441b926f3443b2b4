//! Calls of URLs.

use std::collections::BTreeMap;

use http_body_util::{BodyExt as _, Limited};
use hyper::header::CONTENT_TYPE;
use hyper::{Request, Uri};
use kube::client::Body;
use kube::{Client, Config};
use muster_ports::outbound::HttpCall;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

/// Largest answer that is read.
const MAX_ANSWER: usize = 1024 * 1024;
/// Servers whose connections are kept.
const MOST_SERVERS: usize = 64;

/// Clients by the server they talk to.
#[derive(Default)]
pub struct Http {
    clients: Mutex<BTreeMap<String, Client>>,
}

impl Http {
    /// Makes a call. The answer is a document with `status`, `headers` and `body`.
    pub async fn call(&self, call: HttpCall) -> Result<Value, String> {
        let (timeout, url) = (call.timeout, call.url.clone());
        match tokio::time::timeout(timeout, self.send(call)).await {
            Ok(answer) => answer.map_err(|why| format!("{url}: {why}")),
            Err(_) => Err(format!("{url}: no answer within {timeout:?}")),
        }
    }

    async fn send(&self, call: HttpCall) -> Result<Value, String> {
        let uri: Uri = call.url.parse().map_err(|error| format!("not a URL: {error}"))?;
        let client = self.client(&uri)?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::builder().method(call.method.as_str()).uri(path);
        for (name, value) in &call.headers {
            request = request.header(name, value);
        }
        let is_typed = call.headers.keys().any(|name| name.eq_ignore_ascii_case(CONTENT_TYPE.as_str()));
        if call.body.is_some() && !is_typed {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = call.body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = request.body(Body::from(body)).map_err(|error| format!("cannot be asked: {error}"))?;
        let answer = client.send(request).await.map_err(|error| chain(&error))?;
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

    fn client(&self, uri: &Uri) -> Result<Client, String> {
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err("the URL names no server".to_owned());
        };
        let server = format!("{scheme}://{authority}/");
        let mut clients = self.clients.lock();
        if let Some(client) = clients.get(&server) {
            return Ok(client.clone());
        }
        let base: Uri = server.parse().map_err(|error| format!("not a URL: {error}"))?;
        let client = Client::try_from(Config::new(base)).map_err(|error| chain(&error))?;
        if clients.len() >= MOST_SERVERS {
            clients.clear();
        }
        clients.insert(server, client.clone());
        Ok(client)
    }
}

/// An error with everything that caused it, in one line.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
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
