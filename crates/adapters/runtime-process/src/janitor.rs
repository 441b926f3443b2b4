//! Removes the files of attempts in the background: whoever gives the order need not wait for a disk.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};

use muster_exec::AttemptDirs;
use muster_ports::runtime::Handle;

/// One thread that removes, in the order it was told to. Ends after the last order when this is dropped.
pub(crate) struct Janitor {
    orders: Sender<Handle>,
}

impl Janitor {
    pub(crate) fn start(dirs: AttemptDirs) -> io::Result<Self> {
        let (orders, received) = channel();
        std::thread::Builder::new().name("janitor".into()).spawn(move || work(&dirs, &received))?;
        Ok(Self { orders })
    }

    pub(crate) fn remove(&self, handle: Handle) {
        // The thread ends only after this was dropped.
        self.orders.send(handle).ok();
    }
}

fn work(dirs: &AttemptDirs, orders: &Receiver<Handle>) {
    for handle in orders {
        if let Err(error) = dirs.remove(&handle) {
            tracing::warn!(%handle, %error, "the files of an attempt are left behind");
        }
    }
}
