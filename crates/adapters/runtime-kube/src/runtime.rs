//! The runtime as the engine sees it.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use muster_ports::blobs::Blobs;
use muster_ports::runtime::{Fact, FilesError, Handle, Launch, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::cluster::Cluster;
use crate::desk::{Desk, Message};
use crate::live_logs::PodLogs;
use crate::log_store::LogStore;
use crate::settings::PodSettings;
use crate::watch::watch_pods;

/// Runs attempts as pods.
#[derive(Debug, Clone)]
pub struct KubeRuntime {
    desk: UnboundedSender<Message>,
    store: LogStore,
}

impl KubeRuntime {
    /// Begins to watch pods, within the runtime of tokio it is called in. What happens to attempts comes out of the channel.
    pub fn new(
        client: Client,
        settings: PodSettings,
        blobs: Arc<dyn Blobs>,
    ) -> (Self, UnboundedReceiver<Fact>) {
        let store = LogStore::new(settings.root.clone(), settings.log_max_bytes);
        let (facts, seen) = unbounded_channel();
        let (desk, messages) = unbounded_channel();
        let cluster = Cluster { client, settings: Arc::new(settings) };
        tokio::spawn(watch_pods(cluster.clone(), desk.clone()));
        tokio::spawn(Desk::new(cluster, store.clone(), blobs, facts, desk.clone()).run(messages));
        (Self { desk, store }, seen)
    }

    /// The logs of its pods.
    pub fn logs(&self) -> PodLogs {
        PodLogs::new(self.store.clone())
    }

    fn tell(&self, message: Message) {
        // The loop ends with the process.
        drop(self.desk.send(message));
    }
}

impl Runtime for KubeRuntime {
    fn start(&self, launch: Launch) {
        // Known here before it is known there: whatever is found in the cluster can be told from an orphan.
        if let Err(error) = self.store.begin(&launch.handle) {
            tracing::warn!(handle = %launch.handle, %error, "no directory for the logs of a pod");
        }
        self.tell(Message::Start(Box::new(launch)));
    }

    fn adopt(&self, launch: Launch, ran: bool) {
        if let Err(error) = self.store.begin(&launch.handle) {
            tracing::warn!(handle = %launch.handle, %error, "no directory for the logs of a pod");
        }
        self.tell(Message::Adopt(Box::new(launch), ran));
    }

    fn stop(&self, handle: &Handle, grace: Duration) {
        self.tell(Message::Stop(handle.clone(), grace));
    }

    fn keep_logs(&self, handle: &Handle, blobs: &dyn Blobs) -> Result<(), FilesError> {
        self.logs().keep(handle, blobs)
    }

    fn remove(&self, handle: &Handle) -> Result<(), FilesError> {
        if self.store.is_known(handle) {
            self.tell(Message::Remove(handle.clone()));
            self.store.remove(handle)?;
        }
        Ok(())
    }

    fn stored(&self) -> Result<Vec<Handle>, FilesError> {
        Ok(self.store.stored()?)
    }
}
