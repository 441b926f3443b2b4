//! Flags that say how tasks wait, run and are let go.

use clap::Args;
use muster_tasks::reap::ReapSettings;
use muster_tasks::settings::Settings;
use muster_types::{Duration, Quantity};
use muster_workflows::lifetime::Lifetimes;

/// How tasks wait, run and are let go. A duration of 0 is no limit where one deletes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Tasks")]
pub struct QueueArgs {
    /// Attempts that run at once on this machine; the default is one per core
    #[arg(long, value_name = "COUNT", env = "MUSTER_SLOTS")]
    pub slots: Option<u32>,
    /// Processor time that tasks may ask for in total, for example 4 or 2500m [default: all cores]
    #[arg(long, value_name = "QUANTITY")]
    pub cpu: Option<Quantity>,
    /// Memory that tasks may ask for in total, for example 8Gi [default: all of this machine]
    #[arg(long, value_name = "QUANTITY")]
    pub memory: Option<Quantity>,
    /// How long an attempt that is told to end has before it is killed, unless the task says otherwise
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub kill_timeout: Duration,
    /// The longest that running commands have to end when this server is stopped, whatever their kill timeout; then they are killed
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub stop_timeout: Duration,
    /// How long a task that may preempt others waits before it does
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    pub preempt_delay: Duration,
    /// How many of the possible victims one look preempts, in percent; at least one
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub preempt_rate: u32,
    /// How long a preempted task rests
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    pub preempt_rest: Duration,
    /// How long a task waits for a kind, an addon or a subject that does not exist before it fails
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    pub absent_wait: Duration,
    /// Shortest time between the starts of two attempts of a task that failed, whatever its retry, restart or reschedule says
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub min_retry_interval: Duration,
    /// When tasks that were never submitted are deleted
    #[arg(long, value_name = "DURATION", default_value = "72h")]
    pub reap_created: Duration,
    /// When tasks that succeeded or were canceled are deleted
    #[arg(long, value_name = "DURATION", default_value = "72h")]
    pub reap_succeeded: Duration,
    /// When the files of tasks that failed are let go; the tasks stay
    #[arg(long, value_name = "DURATION", default_value = "720h")]
    pub reap_failed: Duration,
    /// When jobs and task groups that succeeded or were canceled are deleted, with their tasks
    #[arg(long, value_name = "DURATION", default_value = "72h")]
    pub reap_jobs_succeeded: Duration,
    /// When the files of jobs and task groups that failed are let go, with those of their tasks; the objects stay
    #[arg(long, value_name = "DURATION", default_value = "720h")]
    pub reap_jobs_failed: Duration,
    /// How long the work directory of an attempt that succeeded is kept
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub keep_succeeded: Duration,
    /// How long the work directory of any other attempt is kept
    #[arg(long, value_name = "DURATION", default_value = "72h")]
    pub keep_failed: Duration,
    /// How much of the output of each container is kept, the newest part
    #[arg(long, value_name = "QUANTITY", default_value = "16Mi")]
    pub log_max: Quantity,
}

impl QueueArgs {
    /// How the queue behaves.
    pub fn queue_settings(&self, log_suffix: &str) -> Settings {
        Settings {
            preempt_delay: self.preempt_delay.seconds_rounded_up(),
            preempt_rate: self.preempt_rate,
            preempt_rest: self.preempt_rest.seconds_rounded_up(),
            absent_wait: self.absent_wait.seconds_rounded_up(),
            min_retry_interval: self.min_retry_interval.seconds_rounded_up(),
            log_suffix: log_suffix.to_owned(),
            ..Settings::default()
        }
    }

    /// When jobs and task groups are let go.
    pub fn lifetimes(&self) -> Lifetimes {
        Lifetimes {
            succeeded: self.reap_jobs_succeeded.seconds_rounded_up(),
            failed: self.reap_jobs_failed.seconds_rounded_up(),
        }
    }

    /// When things are let go.
    pub fn reap_settings(&self) -> ReapSettings {
        ReapSettings {
            created: self.reap_created.seconds_rounded_up(),
            succeeded: self.reap_succeeded.seconds_rounded_up(),
            failed: self.reap_failed.seconds_rounded_up(),
            keep_succeeded: self.keep_succeeded.seconds_rounded_up(),
            keep_failed: self.keep_failed.seconds_rounded_up(),
        }
    }
}
