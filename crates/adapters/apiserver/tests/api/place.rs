//! Where the objects of a test are: in memory. The same tests run over databases too, with another file in place of this one.

use muster_ports::clock::ManualClock;
use muster_ports::store::{History, MemoryLog, Store};

use crate::fallible_log::Faults;

/// A store of its own, whose commits happen on the caller's thread: nothing happens by itself.
pub fn open(faults: &Faults, history: History, clock: ManualClock) -> Store {
    Store::open_inline(faults.around(MemoryLog::default(), ()), history, clock).expect("a store")
}
