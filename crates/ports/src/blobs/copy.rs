//! All files of one place, in another.

use std::io::Write as _;

use super::{BlobEntry, BlobError, BlobKey, Blobs};

/// Bytes that are moved at once.
const PART: usize = 1 << 20;

/// What a copy of all files came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopiedFiles {
    /// Files that are the same in both places.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Those of them that were there before, compared byte by byte.
    pub found: usize,
}

/// Copies what is kept of all tasks and Jobs. What is there already and is the same stays, so a copy that was cut goes on where it
/// was. Tells `step` how many files are done, of how many.
pub fn copy_files(
    from: &dyn Blobs,
    to: &dyn Blobs,
    step: &mut dyn FnMut(usize, usize),
) -> Result<CopiedFiles, BlobError> {
    let owners = from.tasks()?.iter().map(|uid| BlobKey::of_task(uid)).collect::<Result<Vec<_>, _>>()?;
    let mut all = Vec::new();
    for owner in owners.into_iter().chain([BlobKey::of_kube_jobs()]) {
        for BlobEntry { path, size } in from.list(&owner)? {
            all.push((owner.join(&path)?, size));
        }
    }
    let mut copied = CopiedFiles::default();
    for (key, size) in &all {
        if is_same(from, to, key, *size)? {
            copied.found += 1;
        } else {
            copy_file(from, to, key)?;
        }
        copied.files += 1;
        copied.bytes += size;
        step(copied.files, all.len());
    }
    Ok(copied)
}

fn copy_file(from: &dyn Blobs, to: &dyn Blobs, key: &BlobKey) -> Result<(), BlobError> {
    let io = |error| BlobError::Io { key: key.clone(), error };
    let mut writer = to.write(key)?;
    let mut offset = 0;
    loop {
        let part = from.read(key, offset, PART)?;
        if part.is_empty() {
            break;
        }
        offset += part.len() as u64;
        writer.write_all(&part).map_err(io)?;
    }
    let kept = writer.finish()?;
    if kept == offset {
        return Ok(());
    }
    let message = format!("{kept} of {offset} bytes were kept");
    Err(io(std::io::Error::other(message)))
}

fn is_same(from: &dyn Blobs, to: &dyn Blobs, key: &BlobKey, size: u64) -> Result<bool, BlobError> {
    match to.size(key) {
        Ok(there) if there == size => {}
        Ok(_) | Err(BlobError::NotFound(_)) => return Ok(false),
        Err(error) => return Err(error),
    }
    let mut offset = 0;
    while offset < size {
        let part = from.read(key, offset, PART)?;
        if part.is_empty() || part != to.read(key, offset, part.len())? {
            return Ok(false);
        }
        offset += part.len() as u64;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::super::MemoryBlobs;
    use super::*;

    fn put(blobs: &MemoryBlobs, key: &BlobKey, bytes: &[u8]) {
        let mut writer = blobs.write(key).expect("there is room");
        writer.write_all(bytes).expect("memory takes it");
        writer.finish().expect("memory keeps it");
    }

    #[test]
    fn everything_is_copied_and_what_is_the_same_already_is_not() {
        let (from, to) = (MemoryBlobs::default(), MemoryBlobs::default());
        let large: Vec<u8> = (0..PART * 2 + 7).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let keys = [
            (BlobKey::of_task("u1").unwrap().join("logs/addon.log").unwrap(), large),
            (BlobKey::of_task("u1").unwrap().join("empty").unwrap(), Vec::new()),
            (BlobKey::of_task("u2").unwrap().join("same").unwrap(), b"same".to_vec()),
            (BlobKey::of_task("u2").unwrap().join("other").unwrap(), b"text".to_vec()),
            (BlobKey::of_kube_job("j1").unwrap().join("pod.log").unwrap(), b"of a Job".to_vec()),
        ];
        for (key, bytes) in &keys {
            put(&from, key, bytes);
        }
        put(&to, &keys[2].0, b"same");
        // Of the same length, and different: what an older copy left.
        put(&to, &keys[3].0, b"TEXT");
        let mut steps = Vec::new();
        let copied = copy_files(&from, &to, &mut |done, of| steps.push((done, of))).unwrap();
        let bytes = keys.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        assert_eq!(copied, CopiedFiles { files: 5, bytes, found: 1 });
        assert_eq!(steps.last(), Some(&(5, 5)));
        for (key, bytes) in &keys {
            assert!(to.read(key, 0, usize::MAX).unwrap() == *bytes, "{key}");
        }
        assert_eq!(
            copy_files(&from, &to, &mut |_, _| {}).unwrap().found,
            5,
            "a second time there is nothing to do"
        );
    }
}
