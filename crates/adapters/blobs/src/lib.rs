//! Where files of tasks are kept: a directory of this machine, or a bucket that several servers share.
//!
//! Is: [`LocalBlobs`] and [`S3Blobs`], the files port over a directory and over S3. Is not: a place that knows tasks, logs or who
//! may read what.
//!
//! Start here: [`LocalBlobs::open`], [`S3Blobs::open`].

mod folders;
mod local_blobs;
mod local_writer;
mod s3;

pub use local_blobs::LocalBlobs;
pub use s3::{PlaceError, S3Blobs, S3Place};
