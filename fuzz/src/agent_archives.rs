//! The part of the agent that unpacks archives, taken in as it is: it is a program and gives no library.
//!
//! What the files need of the module above them stands here once more.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[allow(dead_code, reason = "part of it is used")]
#[path = "../../bins/muster-agent/src/artifacts/failure.rs"]
mod failure;
#[allow(dead_code, reason = "part of it is used")]
#[path = "../../bins/muster-agent/src/artifacts/unpack.rs"]
mod unpack;

pub use self::unpack::Archive;

/// Ends unpacking, at its next piece. Nothing is ever ended here.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Ends it. Only the tests of the files below do.
    #[cfg(test)]
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn check(&self) -> io::Result<()> {
        if self.0.load(Ordering::Relaxed) { Err(io::Error::other("it was stopped")) } else { Ok(()) }
    }
}
