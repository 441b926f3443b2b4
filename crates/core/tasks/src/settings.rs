//! Settings of the decisions, with the defaults of the design.

use muster_types::task::Runtime;

/// How the queue behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where tasks run that do not say.
    pub default_runtime: Runtime,
    /// Seconds a task must have been blocked before it preempts others.
    pub preempt_delay: i64,
    /// Percent of the possible victims that one pass preempts.
    pub preempt_rate: u32,
    /// Seconds a preempted task rests.
    pub preempt_rest: i64,
    /// Tasks whose waiting is written down in one pass.
    pub holds_per_pass: usize,
    /// Tasks that one pass starts at most.
    pub starts_per_pass: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            default_runtime: Runtime::Process,
            preempt_delay: 60,
            preempt_rate: 10,
            preempt_rest: 60,
            holds_per_pass: 16,
            starts_per_pass: 1024,
        }
    }
}
