//! What adapters do outside that is not a task: calls of URLs, manifests applied to a cluster.
//!
//! Like a runtime, the outside is told what to do and never answers at once: what came of a call is reported through the
//! channel it was made with, under the ticket of the call. Every call may be repeated after a restart.

use std::sync::Arc;

use muster_types::adapter_action::HttpMethod;
use muster_types::metadata::StringMap;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

/// Whose call it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket {
    /// Uid of the managed resource.
    pub uid: String,
    /// Name of the adapter.
    pub adapter: String,
    /// Which work of that adapter on that resource.
    pub number: u64,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum OutboundCall {
    /// Call a URL.
    Http(HttpCall),
    /// Apply a manifest to the cluster; the answer is the object as the cluster has it.
    Apply(Value),
    /// Delete an object of the cluster; the answer is the object while it is still there, null when it is gone.
    Delete(Value),
}

/// A call of a URL. The answer is a document with `status`, `headers` and `body`.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpCall {
    /// How.
    pub method: HttpMethod,
    /// Where to.
    pub url: String,
    /// Headers to send.
    pub headers: StringMap,
    /// The document to send.
    pub body: Option<Value>,
    /// How long the answer may take.
    pub timeout: std::time::Duration,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboundAnswer {
    /// Whose call it was.
    pub ticket: Ticket,
    /// The answer, or why there is none, in words.
    pub answer: Result<Value, String>,
}

/// The outside.
pub trait Outbound: Send + Sync + 'static {
    /// Makes a call. Exactly one answer is reported for it, in the end.
    fn call(&self, ticket: Ticket, call: OutboundCall);
}

/// An outside that answers as it is told to, and remembers what it was asked.
#[derive(Clone)]
pub struct ScriptedOutbound {
    answers: UnboundedSender<OutboundAnswer>,
    script: Arc<Script>,
    asked: Arc<Mutex<Vec<OutboundCall>>>,
}

type Script = dyn Fn(&OutboundCall) -> Result<Value, String> + Send + Sync;

impl ScriptedOutbound {
    /// Answers what `script` says.
    pub fn new(
        answers: UnboundedSender<OutboundAnswer>,
        script: impl Fn(&OutboundCall) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Self {
        Self { answers, script: Arc::new(script), asked: Arc::default() }
    }

    /// What it was asked so far.
    pub fn asked(&self) -> Vec<OutboundCall> {
        self.asked.lock().clone()
    }
}

impl Outbound for ScriptedOutbound {
    fn call(&self, ticket: Ticket, call: OutboundCall) {
        let answer = (self.script)(&call);
        self.asked.lock().push(call);
        // Whoever asked may be gone.
        drop(self.answers.send(OutboundAnswer { ticket, answer }));
    }
}
