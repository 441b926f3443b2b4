//! The command line as people use it: the real program against a real server, one transcript after another.
//!
//! Each test has a server and a home directory of its own; nothing of the environment reaches the program.

mod apply;
mod completion;
mod delete;
mod describe;
mod get;
mod reach;
mod token;
mod up;
mod watch;
mod world;
