//! Asking whoever decides why a task waits.

use std::pin::Pin;

pub use muster_types::explanation::Explanation;

/// An answer that comes later.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Option<Explanation>> + Send + 'a>>;

/// Answers why a task is where it is.
pub trait Explain: Send + Sync + 'static {
    /// Why the task with this uid waits; `None` if it is not known here, which is so for tasks that have ended.
    fn explain(&self, uid: &str) -> Answer<'_>;
}
