//! The store: a durable log of changes, folded into memory.
//!
//! A [`Store`] is the one implementation of revisions, preconditions, group commit, snapshots, watches and
//! compaction. What differs between databases is only the [`Log`] below it: load rows, append rows, forget rows.
//!
//! Guarantees:
//! - [`Store::commit`] returns after its rows are durable, and nobody sees them before that.
//! - A batch happens whole or not at all; every write and check in it states what it expects to find.
//! - Every change has its own revision. A batch takes consecutive ones, so a watch that was cut in the middle
//!   of a batch resumes exactly there.
//! - A watch delivers each change after its start once and in order, or says [`WatchError::Gone`].
//! - When [`Store::close`] returns, or the last clone of a store is gone, its log is closed.
//! - If the writer dies, nobody waits for it: commits and watches end with `Closed`, reads go on.

mod batch;
pub mod conformance;
mod fence;
mod key;
mod lease;
mod loader;
mod log;
mod measured_log;
mod memory_log;
mod object;
mod order;
mod pins;
mod snapshot;
mod standing;
mod state;
mod store_handle;
mod watch;
mod writer;

pub use batch::{Batch, Check, CommitError, Committed, Precondition, Write};
pub use fence::Fence;
pub use key::{Key, ResourceName};
pub use lease::{Lease, LeaseError, LeaseView};
pub use log::{Forget, Header, Log, LogError, Row};
pub use measured_log::MeasuredLog;
pub use memory_log::MemoryLog;
pub use object::{Change, Draft, Revision, Stored};
pub use pins::{Pin, Pins};
pub use snapshot::Snapshot;
pub use standing::Standing;
pub use state::{History, Hold};
pub use store_handle::Store;
pub use watch::{Page, Watch, WatchError, WatchScope};
