//! The executor with real processes: what it starts, how things end, what it keeps.

mod endings;
mod gate;
mod images;
mod logs;
mod side_by_side;
mod sidecars;
mod starting;
mod yard;
