//! `muster top` and `muster watch` in a real terminal, on a real server that runs real tasks.

mod real_terminal_keys;
mod real_terminal_life;
mod real_terminal_watch;
mod world;
