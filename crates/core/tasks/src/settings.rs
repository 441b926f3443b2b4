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
    /// Seconds a task waits for a kind, an addon or a subject that does not exist before it fails.
    pub absent_wait: i64,
    /// Seconds between the starts of two attempts of a task that failed, at least, whatever its policies say.
    pub min_retry_interval: i64,
    /// Seconds for which a pod that finds no node holds back tasks with the same placement needs.
    pub unschedulable_hold: i64,
    /// What the names of logs end in among the attachments of a task.
    pub log_suffix: String,
    /// Tasks whose waiting is written down in one pass.
    pub holds_per_pass: usize,
    /// Tasks that one pass starts at most.
    pub starts_per_pass: usize,
    /// A rule that is not kept, to see that the simulation notices.
    #[cfg(feature = "sabotage")]
    pub without: Option<Rule>,
}

/// A rule of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Higher effective priority first, then age.
    Order,
    /// One of a subject and kind at a time.
    Unique,
    /// What is depended on ends first.
    Dependency,
    /// What is depended on is raised.
    Escalation,
    /// Isolated tasks run alone.
    Isolated,
    /// No more than there is room for.
    Capacity,
    /// Only lower priorities are preempted.
    Preemption,
    /// A preempted task rests.
    Rest,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 8] = [
        Self::Order,
        Self::Unique,
        Self::Dependency,
        Self::Escalation,
        Self::Isolated,
        Self::Capacity,
        Self::Preemption,
        Self::Rest,
    ];
}

impl Settings {
    /// True if the rule is kept; always, outside of sabotage.
    #[cfg_attr(not(feature = "sabotage"), allow(clippy::unused_self, reason = "every rule is kept"))]
    pub(crate) fn keeps(&self, rule: Rule) -> bool {
        #[cfg(feature = "sabotage")]
        return self.without != Some(rule);
        #[cfg(not(feature = "sabotage"))]
        {
            let _ = rule;
            true
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            default_runtime: Runtime::Process,
            preempt_delay: 60,
            preempt_rate: 10,
            preempt_rest: 60,
            absent_wait: 60,
            min_retry_interval: 1,
            unschedulable_hold: 300,
            log_suffix: ".log".to_owned(),
            holds_per_pass: 16,
            starts_per_pass: 1024,
            #[cfg(feature = "sabotage")]
            without: None,
        }
    }
}
