//! The command line as people use it: the real program against a real server, one transcript after another.
//!
//! Each test has a server and a home directory of its own; nothing of the environment reaches the program.

mod absent;
mod adapter;
mod apply;
mod array;
mod cancel;
mod completion;
mod delete;
mod describe;
mod explain;
mod fake_server;
mod get;
mod jobs;
mod logs;
mod reach;
mod readme;
mod report;
mod retry;
mod run;
mod schedule;
mod sink;
mod submit;
mod token;
mod top;
mod up;
mod wait;
mod watch;
mod watch_tasks;
mod world;
