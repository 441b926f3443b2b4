//! Fuzz targets for everything that reads what comes from outside.
//!
//! Is: a list of [`Target`]s, each of which gives bytes to a decoder of the product and says what must hold whatever they are; a corpus
//! of inputs for each; and two drivers. [`driver`] replays the corpus and changes its inputs at random, as an ordinary test.
//! `cargo xtask fuzz` runs the same targets under libFuzzer, which is guided by the code they reach.
//! Is not: part of the product; no crate depends on it.
//!
//! Start here: [`TARGETS`], then the file of a subject.

// A target fails by a panic, which both drivers take for a finding.
#![allow(clippy::unwrap_used, clippy::panic, reason = "targets are tests, and a test fails by a panic")]

mod agent_archives;
mod api_objects;
mod api_patches;
mod api_requests;
mod api_server;
mod archives;
mod backups;
mod cel;
pub mod corpus;
pub mod driver;
mod frames;
mod json_reference;
mod merging;
pub mod meter;
pub mod mutator;
pub mod random;
mod robots;
mod scalars;
mod schemas;
mod selectors;
mod store_rows;
mod times;

/// A decoder and what must hold of it.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, which is also that of its corpus.
    pub name: &'static str,
    /// What must hold, in a sentence.
    pub property: &'static str,
    /// Gives it an input; panics if the property does not hold.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: &[Target] = &[
    api_objects::JSON,
    api_objects::YAML,
    api_objects::UPDATE,
    api_patches::MERGE,
    api_patches::STRATEGIC,
    api_patches::JSON,
    api_patches::APPLY,
    api_requests::REQUEST,
    api_requests::QUERY,
    api_requests::PAGE,
    api_requests::PROTOBUF,
    merging::MERGING,
    merging::OWNERSHIP,
    selectors::LABELS,
    selectors::FIELDS,
    selectors::TAGS,
    selectors::NAMES,
    cel::EXPRESSION,
    cel::TEMPLATE,
    times::TIME_SPEC,
    scalars::SCALARS,
    schemas::SCHEMA,
    robots::MESSAGES,
    frames::FRAMES,
    archives::TAR,
    archives::TAR_GZ,
    archives::ZIP,
    archives::BUCKET,
    backups::BACKUP,
    store_rows::ROWS,
    store_rows::SQLITE,
];

/// The target of that name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
