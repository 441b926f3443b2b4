//! Workflows: what groups, jobs and schedules make, when, and how they stand.
//!
//! Is: decisions over values. What is stored and what time it is comes in; what is to be made, submitted, canceled and
//! written down comes out. Is not: a loop, a clock or a store; those are in `muster-engine`.
//!
//! Start here: [`group_plan::plan_group`] decides for a TaskGroup, [`job_plan::plan_job`] for a Job and
//! [`schedule::plan_schedule`] for a Schedule, whose times [`time_spec::TimeSpec`] says.

#![warn(missing_docs)]

mod cron;
pub mod departure;
pub mod derived_uid;
pub mod group_brief;
pub mod group_members;
pub mod group_plan;
pub mod group_render;
pub mod group_status;
pub mod job_graph;
pub mod job_plan;
pub mod job_render;
pub mod job_retry;
pub mod lifetime;
mod mix;
pub mod schedule;
pub mod schedule_history;
pub mod schedule_run;
pub mod succession;
pub mod time_spec;
pub mod trigger;
