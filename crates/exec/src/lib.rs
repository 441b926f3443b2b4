//! Runs attempts as processes of this machine and says what became of them.
//!
//! Is: an [`Executor`] that starts programs, follows their output and their ends by events, stops them in time, and keeps
//! their logs; and the [`shepherd_main`] that wraps one in a small process of its own, so that nothing it started outlives
//! whoever asked for it. Is not: a place for decisions about tasks. It does not retry, order or forget; it carries out and
//! reports.
//!
//! What becomes of attempts when whoever asked for them is gone is a setting: they end, or they go on and are taken up by whoever
//! comes next ([`WhenDeserted`]).
//!
//! An attempt has one directory `<work root>/<handle>/`: `work/` is where its programs run, `logs/<container>.log` is what
//! they wrote, and `ended` is how it ended, where that is kept. The directory is also the mark that the attempt was started: whoever finds it there starts nothing.
//!
//! Start here: [`Executor`], then `course.rs` for the life of an attempt and `shepherd.rs` for the process around it.

#![warn(missing_docs)]

mod account;
mod attempt;
mod attempt_dir;
mod cgroup;
mod course;
mod data_file;
mod ended_log;
mod executor;
mod frame;
mod household;
mod image_run;
mod kept_ending;
mod launcher;
mod log_files;
mod log_reader;
mod log_times;
mod log_writer;
mod machine_time;
mod moment;
mod procfs;
mod program_path;
mod queue;
mod removal;
mod remove_tree;
mod settings;
mod shepherd;
mod spares;
mod spawn;
mod spawner;
mod start_failure;
mod timers;
mod token;
mod unmarked;
mod waiting;
mod warden;
mod when_deserted;

pub use attempt_dir::{AttemptDirs, DirError};
pub use ended_log::EndedLog;
pub use executor::Executor;
pub use frame::{Decoder, FrameError, MAX_FRAME, encode};
pub use log_reader::{LogPart, ReadError};
pub use log_times::TimedPlace;
pub use machine_time::machine_time;
pub use procfs::{ProcessStat, boot_id, processes, stat_of};
pub use settings::Settings;
pub use shepherd::{Command, Report, knock, shepherd_main};
pub use warden::{SHEPHERD_VARIABLE, shepherd_value};
pub use when_deserted::WhenDeserted;
