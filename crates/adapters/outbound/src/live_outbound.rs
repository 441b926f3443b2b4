//! The outside as it is.

use std::path::PathBuf;
use std::sync::Arc;

use muster_egress::EgressPolicy;
use muster_ports::outbound::{Outbound, OutboundAnswer, OutboundCall, Ticket};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::cluster::Cluster;
use crate::http::Http;

/// Calls that are open at a time.
const MOST_CALLS: usize = 64;

/// Makes calls, each in a worker of its own.
#[derive(Clone)]
pub struct LiveOutbound {
    inner: Arc<Inner>,
}

struct Inner {
    answers: UnboundedSender<OutboundAnswer>,
    room: Semaphore,
    http: Http,
    cluster: Cluster,
}

impl LiveOutbound {
    /// Calls are made from the runtime this is called in. Manifests go to the cluster of a kubeconfig, or, without one, to
    /// the cluster this server runs in. URLs are called where the policy allows it.
    pub fn new(
        kubeconfig: Option<PathBuf>,
        policy: Arc<EgressPolicy>,
    ) -> (Self, UnboundedReceiver<OutboundAnswer>) {
        let (answers, received) = unbounded_channel();
        let inner = Inner {
            answers,
            room: Semaphore::new(MOST_CALLS),
            http: Http::new(policy),
            cluster: Cluster::new(kubeconfig),
        };
        (Self { inner: Arc::new(inner) }, received)
    }
}

impl Outbound for LiveOutbound {
    fn call(&self, ticket: Ticket, call: OutboundCall) {
        let inner = self.inner.clone();
        tokio::spawn(async move {
            // It is never closed.
            let _room = inner.room.acquire().await;
            let answer = match call {
                OutboundCall::Http(call) => inner.http.call(call).await,
                OutboundCall::Apply(manifest) => inner.cluster.apply(manifest).await,
                OutboundCall::Delete(manifest) => inner.cluster.delete(manifest).await,
            };
            // Whoever asked may be gone.
            drop(inner.answers.send(OutboundAnswer { ticket, answer }));
        });
    }
}
