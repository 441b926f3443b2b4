//! Flags of `schedule`.

use clap::{Args, Subcommand};
use muster_types::Timestamp;

/// Verbs of `schedule`.
#[derive(Debug, Subcommand)]
pub enum ScheduleCommand {
    /// Show the next times of a schedule
    Preview(ScheduleTimes),
    /// Make a run now, whatever its times are
    Run {
        /// Name of the schedule
        #[arg(value_name = "SCHEDULE")]
        name: String,
    },
    /// Ask for the runs of times in the past
    Backfill {
        /// Name of the schedule
        #[arg(value_name = "SCHEDULE")]
        name: String,
        /// The first time, such as 2026-11-01T00:00:00Z
        #[arg(long, value_name = "TIME")]
        from: Timestamp,
        /// The time before which to end
        #[arg(long, value_name = "TIME")]
        to: Timestamp,
        /// Runs of the backfill that may be active at once; more than 1 needs the concurrency Allow [default: 1]
        #[arg(long, value_name = "COUNT")]
        max_active: Option<u32>,
        /// Show the times and ask for nothing
        #[arg(long)]
        dry_run: bool,
    },
}

/// Which times to show.
#[derive(Debug, Args)]
pub struct ScheduleTimes {
    /// Name of the schedule
    #[arg(value_name = "SCHEDULE", required_unless_present = "spec", conflicts_with = "spec")]
    pub name: Option<String>,
    /// A timeSpec to show the times of, instead of a schedule
    #[arg(long, value_name = "TIMESPEC")]
    pub spec: Option<String>,
    /// The zone to read the timeSpec in [default: UTC]
    #[arg(long, value_name = "ZONE", requires = "spec")]
    pub zone: Option<String>,
    /// How many times
    #[arg(long, short, value_name = "COUNT", default_value_t = 20)]
    pub count: usize,
    /// Show times from then on [default: now]
    #[arg(long, value_name = "TIME")]
    pub from: Option<Timestamp>,
}
