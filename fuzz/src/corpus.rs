//! The inputs that are kept: `fuzz/corpus/TARGET/NAME`.
//!
//! An input that found something is added as a regression once the fault is mended. Until then it is in `fuzz/findings/TARGET`, which
//! is not replayed.

use std::fs;
use std::path::PathBuf;

/// An input with its name.
#[derive(Debug, Clone)]
pub struct Input {
    /// Name of its file.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// Where the inputs of a target are.
pub fn directory(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// The inputs of a target, by name.
///
/// # Panics
///
/// If they cannot be read, or there are none: a target without seeds would look as if it was tested.
pub fn load(target: &str) -> Vec<Input> {
    let directory = directory(target);
    let entries = fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut inputs: Vec<_> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            Input { name: path.file_name().unwrap().to_string_lossy().into_owned(), bytes }
        })
        .collect();
    inputs.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(!inputs.is_empty(), "{} holds no input", directory.display());
    inputs
}
