//! What a bucket does that a directory does not.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::io::Write as _;

use muster_blobs::{PlaceError, S3Blobs, S3Place};
use muster_e2e::object_storage::ObjectStorage;
use muster_e2e::wait::{SOON, wait_for};
use muster_ports::blobs::{BlobKey, Blobs as _};

fn place(storage: &ObjectStorage, bucket: &str) -> S3Place {
    let variables = storage.variables().into_iter().map(|(name, value)| (name.to_owned(), value));
    S3Place::parse(bucket, variables).unwrap()
}

fn key(text: &str) -> BlobKey {
    BlobKey::new(text).unwrap()
}

/// Bytes that are the same nowhere.
fn bytes(count: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn a_large_file_goes_up_in_parts_and_comes_back_the_same() {
    let storage = ObjectStorage::shared();
    let blobs = S3Blobs::open(&place(&storage, &storage.fresh_bucket())).unwrap();
    for size in [(8 << 20) - 1, 8 << 20, (8 << 20) + 1, (20 << 20) + 7] {
        let (large, name) = (bytes(size), key(&format!("tasks/u/{size}")));
        let mut writer = blobs.write(&name).unwrap();
        for chunk in large.chunks(100_000) {
            writer.write_all(chunk).unwrap();
        }
        assert_eq!(writer.finish().unwrap(), size as u64);
        assert_eq!(blobs.size(&name).unwrap(), size as u64);
        let mut back = Vec::new();
        while let Some(more) =
            Some(blobs.read(&name, back.len() as u64, 3 << 20).unwrap()).filter(|more| !more.is_empty())
        {
            back.extend(more);
        }
        assert!(back == large, "{size} bytes came back different");
    }
}

#[test]
fn a_large_file_that_is_given_up_leaves_nothing() {
    let storage = ObjectStorage::shared();
    let bucket = storage.fresh_bucket();
    let blobs = S3Blobs::open(&place(&storage, &bucket)).unwrap();
    let mut writer = blobs.write(&key("tasks/u/large")).unwrap();
    writer.write_all(&bytes(17 << 20)).unwrap();
    drop(writer);
    assert!(blobs.list(&key("tasks")).unwrap().is_empty());
    let name = bucket.trim_start_matches("s3://").split('/').next().unwrap();
    wait_for("its parts to be gone", SOON, || storage.files(name, "").is_empty());
}

#[test]
fn names_with_any_letters_come_back_as_they_were() {
    let storage = ObjectStorage::shared();
    let blobs = S3Blobs::open(&place(&storage, &storage.fresh_bucket())).unwrap();
    for name in ["with space", "späte Blüte", "a+b&c=d", "100%", "what?#", "[x]{y}", "~tilde", "quote\"'"] {
        let file = key("tasks/u").join(name).unwrap();
        let mut writer = blobs.write(&file).unwrap();
        writer.write_all(name.as_bytes()).unwrap();
        writer.finish().unwrap();
        assert_eq!(blobs.read(&file, 0, 100).unwrap(), name.as_bytes(), "{name}");
        let listed = blobs.list(&key("tasks/u")).unwrap();
        assert_eq!(listed.iter().map(|entry| entry.path.as_str()).collect::<Vec<_>>(), [name]);
        blobs.delete(&file).unwrap();
    }
}

#[test]
fn a_service_that_is_gone_is_said_and_used_again_when_it_is_back() {
    let storage = ObjectStorage::start();
    let blobs = S3Blobs::open(&place(&storage, &storage.fresh_bucket())).unwrap();
    let file = key("tasks/u/a");
    let mut writer = blobs.write(&file).unwrap();
    writer.write_all(b"kept").unwrap();
    writer.finish().unwrap();
    storage.kill();
    let error = blobs.size(&file).unwrap_err().to_string();
    assert!(error.contains("tasks/u/a") && error.to_lowercase().contains("connect"), "{error}");
    storage.restart();
    assert_eq!(blobs.read(&file, 0, 10).unwrap(), b"kept");
}

#[test]
fn a_bucket_that_is_not_there_and_a_wrong_secret_are_said_at_the_start() {
    let storage = ObjectStorage::shared();
    let refused = |place: &S3Place| match S3Blobs::open(place) {
        Err(error @ PlaceError::Refused { .. }) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was opened"),
    };
    let why = refused(&place(&storage, "s3://nowhere"));
    assert!(why.contains("s3://nowhere"), "{why}");
    assert!(why.contains("NoSuchBucket") || why.contains("not found"), "{why}");
    let variables = storage.variables().into_iter().map(|(name, value)| (name.to_owned(), value));
    let wrong = variables.map(|(name, value)| {
        let value = if name == "AWS_SECRET_ACCESS_KEY" { "guessed".to_owned() } else { value };
        (name, value)
    });
    let why = refused(&S3Place::parse(&storage.fresh_bucket(), wrong).unwrap());
    assert!(!why.contains("guessed") && why.contains("AWS_SECRET_ACCESS_KEY"), "{why}");
    assert!(why.contains("SignatureDoesNotMatch") || why.contains("privileges"), "{why}");
}
