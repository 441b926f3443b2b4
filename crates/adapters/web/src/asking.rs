//! The console as a client of the API, in the name of whoever looks.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, StatusCode};
use muster_ports::pages::Reply;
use serde_json::{Value, json};

use crate::reply::whole;
use crate::site::Visit;

/// Where our kinds are.
pub const API: &str = "/apis/muster.dev/v1alpha1";

/// An answer of the API that was read whole.
pub struct Answer {
    /// Its code.
    pub code: StatusCode,
    /// Its document; null if it is none.
    pub document: Value,
}

impl Answer {
    /// What it says to people: the message of a refusal.
    pub fn message(&self) -> &str {
        self.document["message"].as_str().unwrap_or_else(|| self.code.as_str())
    }
}

impl Visit {
    /// Sends a request as it is; the answer is not read yet.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        kind: &'static str,
        body: impl Into<Bytes>,
    ) -> Reply {
        let mut request = Request::new(body.into());
        *request.method_mut() = method;
        let refused = |code: StatusCode| {
            whole(code, "application/json", json!({"message": "this cannot be asked for"}).to_string())
        };
        let Ok(uri) = path.parse() else { return refused(StatusCode::BAD_REQUEST) };
        *request.uri_mut() = uri;
        let Ok(bearer) = HeaderValue::try_from(format!("Bearer {}", self.secret)) else {
            return refused(StatusCode::UNAUTHORIZED);
        };
        request.headers_mut().insert(AUTHORIZATION, bearer);
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        request.headers_mut().insert(hyper::header::USER_AGENT, HeaderValue::from_static("muster-console"));
        self.door.clone().ask(request).await
    }

    /// Sends a request and reads the answer.
    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        kind: &'static str,
        body: impl Into<Bytes>,
    ) -> Answer {
        let reply = self.send(method, path, kind, body).await;
        let code = reply.status();
        let Ok(whole) = reply.into_body().collect().await;
        let document = serde_json::from_slice(&whole.to_bytes()).unwrap_or_default();
        Answer { code, document }
    }

    /// Reads a document.
    pub async fn read(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, "application/json", Bytes::new()).await
    }

    /// Changes some fields of an object.
    pub async fn patch(&self, path: &str, change: &Value) -> Answer {
        self.ask(Method::PATCH, path, "application/merge-patch+json", change.to_string()).await
    }
}
