//! What attempts and tasks left behind: kept, and let go, in the order it was asked for.
//!
//! Disks are slow and the cycle must not wait for them, so orders are carried out by a thread. What fails is left as it is and tried
//! again after a pause; what could not be done when the server ends is done after the next start, when everything that has no task,
//! or whose time is over, is looked for.

mod backlog;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use backlog::{Backlog, Entry, Failure};
use muster_ports::blobs::{BlobError, BlobKey, Blobs};
use muster_ports::runtime::{FilesError, Handle, Runtime};
use muster_ports::store::Pin;

/// Something to be done with files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Store the logs of an ended attempt, and let go of the rest it left.
    Retire {
        /// The attempt.
        handle: Handle,
        /// Keeps its task until then.
        pin: Pin,
    },
    /// Let go of everything of a task whose attempts are numbered up to this one, or of a group.
    Forget {
        /// Uid of the task or group.
        task: String,
        /// Its latest attempt.
        attempts: u32,
    },
}

/// Carries out orders.
pub enum Files {
    /// At once, for simulation.
    Inline(Keeper),
    /// By a thread, which ends after the last order when this is dropped.
    Thread(Sender<Order>),
}

/// Knows where files are.
#[derive(Clone)]
pub struct Keeper {
    runtime: Arc<dyn Runtime>,
    blobs: Arc<dyn Blobs>,
    /// Where there is no thread: what has to be tried again.
    failed: Arc<Mutex<Vec<Order>>>,
}

impl Keeper {
    /// Files of attempts of this runtime, kept in these blobs.
    pub fn new(runtime: Arc<dyn Runtime>, blobs: Arc<dyn Blobs>) -> Self {
        Self { runtime, blobs, failed: Arc::default() }
    }

    /// Starts a thread that carries out orders.
    pub fn spawn(self) -> std::io::Result<Files> {
        let (orders, received) = channel();
        std::thread::Builder::new().name("files".into()).spawn(move || self.work(&received))?;
        Ok(Files::Thread(orders))
    }

    fn work(&self, orders: &Receiver<Order>) {
        let mut backlog = Backlog::default();
        loop {
            let received = match backlog.wait(Instant::now()) {
                None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(wait) => orders.recv_timeout(wait),
            };
            match received {
                Ok(order) => backlog.push(order),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.finish(&mut backlog),
            }
            for order in orders.try_iter() {
                backlog.push(order);
            }
            if let Some(entry) = backlog.next(Instant::now()) {
                self.try_order(entry, &mut backlog);
            }
        }
    }

    /// The server ends: what was never tried is tried once, unless nothing can be stored now.
    fn finish(&self, backlog: &mut Backlog) {
        while !backlog.is_away()
            && let Some(entry) = backlog.next_ready()
        {
            self.try_order(entry, backlog);
        }
        if backlog.len() > 0 {
            tracing::warn!(orders = backlog.len(), "files are left behind until the next start");
        }
    }

    fn try_order(&self, entry: Entry, backlog: &mut Backlog) {
        match self.carry_out(&entry.order) {
            Ok(()) => {
                if backlog.succeeded(&entry) {
                    tracing::info!(orders = backlog.len(), "files can be stored again");
                }
            }
            Err(error) => {
                let order = format!("{:?}", entry.order);
                if backlog.failed(entry, failure(&error), Instant::now()) {
                    tracing::warn!(order, %error, "files are not stored yet; it is tried again");
                }
            }
        }
    }

    fn carry_out(&self, order: &Order) -> Result<(), FilesError> {
        match order {
            Order::Retire { handle, .. } => self.retire(handle),
            Order::Forget { task, attempts } => self.forget(task, *attempts),
        }
    }

    /// Carries out what failed before, and an order. What fails waits for the next call.
    fn carry_out_inline(&self, order: Option<Order>) {
        let failed = std::mem::take(&mut *self.failed.lock().unwrap_or_else(PoisonError::into_inner));
        let mut backlog = Backlog::default();
        for order in failed.into_iter().chain(order) {
            backlog.push(order);
        }
        let mut again = Vec::new();
        while let Some(entry) = backlog.next_ready() {
            if self.carry_out(&entry.order).is_err() {
                again.push(entry.order);
            }
        }
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = again;
    }

    fn retire(&self, handle: &Handle) -> Result<(), FilesError> {
        self.runtime.keep_logs(handle, &*self.blobs)?;
        self.runtime.remove(handle)
    }

    fn forget(&self, task: &str, attempts: u32) -> Result<(), FilesError> {
        for attempt in 1..=attempts {
            self.runtime.remove(&Handle { task: task.to_owned(), attempt })?;
        }
        Ok(self.blobs.delete(&BlobKey::of_task(task)?)?)
    }
}

impl Files {
    /// Carries out an order, now or soon.
    pub fn order(&self, order: Order) {
        match self {
            Self::Inline(keeper) => keeper.carry_out_inline(Some(order)),
            // The thread ends only after this was dropped.
            Self::Thread(orders) => drop(orders.send(order)),
        }
    }

    /// Tries again what failed, where no thread does.
    pub fn try_again(&self) {
        if let Self::Inline(keeper) = self {
            keeper.carry_out_inline(None);
        }
    }
}

/// Whose fault it is that an order failed.
fn failure(error: &FilesError) -> Failure {
    match error {
        FilesError::Blob(BlobError::Io { .. }) => Failure::Away,
        FilesError::Blob(BlobError::BadKey { .. } | BlobError::NotFound(_) | BlobError::Clash(_))
        | FilesError::Running
        | FilesError::Io(_) => Failure::OfOrder,
    }
}
