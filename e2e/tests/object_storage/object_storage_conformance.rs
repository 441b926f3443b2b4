//! The files port over S3 passes the suite that every place for files passes.

use std::sync::Arc;

use muster_blobs::{S3Blobs, S3Place};
use muster_e2e::object_storage::ObjectStorage;

muster_ports::blobs_conformance!(fresh());

fn fresh() -> (S3Blobs, Arc<ObjectStorage>) {
    let storage = ObjectStorage::shared();
    let variables = storage.variables().into_iter().map(|(name, value)| (name.to_owned(), value));
    let place = S3Place::parse(&storage.fresh_bucket(), variables).expect("it is a bucket");
    (S3Blobs::open(&place).expect("the bucket is there"), storage)
}
