//! The executor with real processes: what it starts, how things end, what it keeps.

mod endings;
mod gate;
mod logs;
mod sidecars;
mod starting;
mod yard;
