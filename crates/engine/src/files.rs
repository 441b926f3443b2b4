//! What attempts and tasks left behind: kept, and let go, in the order it was asked for.
//!
//! Disks are slow and the cycle must not wait for them, so orders are carried out by a thread. What fails is left as it is
//! and tried again after the next start, when everything that has no task, or whose time is over, is looked for.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use muster_ports::blobs::{BlobKey, Blobs};
use muster_ports::runtime::{FilesError, Handle, Runtime};

/// Something to be done with files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Keep the logs of an ended attempt, and let go of the rest it left.
    Retire(Handle),
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
}

impl Keeper {
    /// Files of attempts of this runtime, kept in these blobs.
    pub fn new(runtime: Arc<dyn Runtime>, blobs: Arc<dyn Blobs>) -> Self {
        Self { runtime, blobs }
    }

    /// Starts a thread that carries out orders.
    pub fn spawn(self) -> std::io::Result<Files> {
        let (orders, received) = channel();
        std::thread::Builder::new().name("files".into()).spawn(move || self.work(&received))?;
        Ok(Files::Thread(orders))
    }

    fn work(&self, orders: &Receiver<Order>) {
        for order in orders {
            self.carry_out(&order);
        }
    }

    fn carry_out(&self, order: &Order) {
        let done = match order {
            Order::Retire(handle) => self.retire(handle),
            Order::Forget { task, attempts } => self.forget(task, *attempts),
        };
        if let Err(error) = done {
            tracing::warn!(?order, %error, "files are left behind until the next start");
        }
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
            Self::Inline(keeper) => keeper.carry_out(&order),
            // The thread ends only after this was dropped.
            Self::Thread(orders) => drop(orders.send(order)),
        }
    }
}
