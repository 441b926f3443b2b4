//! What is asked of tasks alone: making many of them, changing what is wanted, logs, reasons, another try.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::Method;
use kube::client::Body;
use serde_json::Value;

use crate::client::Client;
use crate::error::{ClientError, Peer};
use crate::query::Query;
use crate::resource::{Resource, Scope};
use crate::transport::Ask;

/// Which part of a log.
#[derive(Debug, Clone, Default)]
pub struct LogOptions {
    /// The container; absent is the leading one.
    pub container: Option<String>,
    /// The attempt; absent is the latest.
    pub attempt: Option<u32>,
    /// Go on until the task has ended.
    pub follow: bool,
    /// Only so many lines from the end.
    pub tail: Option<u64>,
    /// Only what was written in the last seconds.
    pub since_seconds: Option<u64>,
}

/// A log as it comes.
pub struct LogStream {
    body: Body,
    peer: Peer,
}

impl LogStream {
    /// What a server sends.
    pub(crate) fn new(body: Body, peer: Peer) -> Self {
        Self { body, peer }
    }

    /// The next part; nothing at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(self.peer.unanswered(&error)),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }
}

impl Client {
    /// Makes a task from text that was encoded before. The answer is the task as the server has it.
    pub async fn create_encoded(&self, namespace: &str, body: Vec<u8>) -> Result<Bytes, ClientError> {
        let path = Resource::tasks().collection(Scope::Namespace(namespace));
        self.create_encoded_at(&path, body).await
    }

    /// The same for many, whose path is made once.
    pub async fn create_encoded_at(&self, path: &str, body: Vec<u8>) -> Result<Bytes, ClientError> {
        let query = Query::default().with("fieldManager", "muster").with("fieldValidation", "Strict");
        let ask =
            Ask { method: Method::POST, query, content_type: "application/json", body, ..Ask::get(path) };
        Ok(self.transport().whole(ask).await?.body)
    }

    /// Changes a task by a merge patch.
    pub async fn patch_task(
        &self,
        namespace: &str,
        name: &str,
        change: &Value,
    ) -> Result<Value, ClientError> {
        self.patch(&Resource::tasks(), namespace, name, change).await
    }

    /// Changes an object by a merge patch.
    pub async fn patch(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        change: &Value,
    ) -> Result<Value, ClientError> {
        let path = resource.object(namespace, name);
        let query = Query::default().with("fieldManager", "muster");
        let ask = Ask {
            query,
            content_type: "application/merge-patch+json",
            ..Ask::send(Method::PATCH, &path, change)
        };
        self.transport().read(ask).await
    }

    /// Opens a log. The head of the answer may take as long as the task waits for its turn.
    pub async fn log(
        &self,
        namespace: &str,
        name: &str,
        options: &LogOptions,
    ) -> Result<LogStream, ClientError> {
        let path = format!("{}/log", Resource::tasks().object(namespace, name));
        let number = |value: Option<u64>| value.map(|value| value.to_string());
        let query = Query::default()
            .with_some("container", options.container.as_deref())
            .with_some("attempt", number(options.attempt.map(u64::from)).as_deref())
            .with_if(options.follow, "follow", "true")
            .with_some("tailLines", number(options.tail).as_deref())
            .with_some("sinceSeconds", number(options.since_seconds).as_deref());
        let mut ask = Ask { query, accept: "text/plain, */*", ..Ask::get(&path) };
        if options.follow {
            ask.patience = None;
        }
        let body = self.transport().begin(ask).await?.into_body();
        Ok(LogStream::new(body, self.transport().peer().clone()))
    }

    /// Why a task is where it is.
    pub async fn explain_task(&self, namespace: &str, name: &str) -> Result<Value, ClientError> {
        let path = format!("{}/explain", Resource::tasks().object(namespace, name));
        self.transport().read(Ask::get(&path)).await
    }

    /// Makes a new task like one that has ended.
    pub async fn retry_task(&self, namespace: &str, name: &str) -> Result<Value, ClientError> {
        let path = format!("{}/retry", Resource::tasks().object(namespace, name));
        self.transport().read(Ask { method: Method::POST, ..Ask::get(&path) }).await
    }
}
