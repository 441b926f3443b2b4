//! Where files of tasks are kept: a directory of this machine.
//!
//! Is: [`LocalBlobs`], the files port over a directory. Is not: a place that knows tasks, logs or who may read what.
//!
//! Start here: [`LocalBlobs::open`].

mod folders;
mod local_blobs;
mod local_writer;

pub use local_blobs::LocalBlobs;
