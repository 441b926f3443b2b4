//! The fleet as the engine sees it: a runtime like any other.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use muster_ports::blobs::Blobs;
use muster_ports::clock::Clock;
use muster_ports::publisher::Boxed;
use muster_ports::runtime::{Fact, FilesError, Handle, Launch, Runtime};
use muster_ports::store::Store;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::bridge::{Desk, Order};
use crate::link::Link;
use crate::live_logs::RobotLogs;
use crate::log_store::LogStore;

/// What is kept of attempts on robots until it is kept for good.
#[derive(Debug, Clone)]
pub struct RobotSettings {
    /// Directory of logs.
    pub root: PathBuf,
    /// Bytes kept of a log.
    pub log_max_bytes: u64,
}

/// Runs attempts on robots.
#[derive(Debug, Clone)]
pub struct RobotRuntime {
    desk: UnboundedSender<Order>,
    logs: LogStore,
}

impl RobotRuntime {
    /// The runtime, what it observes, and what speaks to robots, which is to be started once everything that was there before has
    /// been taken over: until then it would take what robots still run for something nobody wants.
    pub fn new(
        link: Link,
        settings: RobotSettings,
        store: Store,
        clock: Arc<dyn Clock>,
    ) -> (Self, UnboundedReceiver<Fact>, Boxed<'static, ()>) {
        let logs = LogStore::new(settings.root, settings.log_max_bytes);
        let (facts, seen) = unbounded_channel();
        let (desk, orders) = unbounded_channel();
        let forwards = Desk::new(link, store, clock, logs.clone(), facts).run(orders);
        (Self { desk, logs }, seen, Box::pin(forwards))
    }

    /// The logs of its attempts.
    pub fn logs(&self) -> RobotLogs {
        RobotLogs::new(self.logs.clone())
    }

    fn begin(&self, launch: Launch, ran: bool) {
        let Some(robot) = launch.robot.as_ref().map(|robot| robot.robot.clone()) else { return };
        // Known here before it is known there: whatever a robot speaks of can be told from a stranger.
        if let Err(error) = self.logs.begin(&launch.handle, &robot) {
            tracing::warn!(handle = %launch.handle, %error, "no directory for the logs of a robot");
        }
        self.tell(Order::Start { launch: Box::new(launch), robot, ran });
    }

    fn tell(&self, order: Order) {
        // The desk ends with the engine.
        drop(self.desk.send(order));
    }
}

impl Runtime for RobotRuntime {
    fn start(&self, launch: Launch) {
        self.begin(launch, false);
    }

    fn adopt(&self, launch: Launch, ran: bool) {
        self.begin(launch, ran);
    }

    fn stop(&self, handle: &Handle, grace: Duration) {
        if self.logs.is_known(handle) {
            self.tell(Order::Stop { handle: handle.clone(), grace });
        }
    }

    fn keep_logs(&self, handle: &Handle, blobs: &dyn Blobs) -> Result<(), FilesError> {
        self.logs().keep(handle, blobs)
    }

    fn remove(&self, handle: &Handle) -> Result<(), FilesError> {
        if let Some(robot) = self.logs.robot(handle) {
            self.logs.remove(handle)?;
            self.tell(Order::Remove { handle: handle.clone(), robot });
        }
        Ok(())
    }

    fn stored(&self) -> Result<Vec<Handle>, FilesError> {
        Ok(self.logs.stored()?)
    }
}
