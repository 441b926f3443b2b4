//! Files that an attempt needs, fetched before it starts, into a directory that becomes its work directory.
//!
//! An attempt whose files are not all there is not started, and what is wrong is said. A transfer that breaks is taken up where it
//! broke. Everything here waits for disks and networks, so it runs on a thread of its own, one per attempt that fetches.

mod checksum;
mod download;
mod failure;
mod source;
mod unpack;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use muster_types::task::Artifact;

pub use self::failure::FetchFailure;
use self::source::{Source, place_below};

/// Ends a fetch that is under way, at its next piece.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Ends it.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn check(&self) -> io::Result<()> {
        if self.0.load(Ordering::Relaxed) { Err(io::Error::other("it was stopped")) } else { Ok(()) }
    }
}

/// Fetches everything into a directory, which is made anew. What was fetched of a failure is removed. Blocks.
pub fn fetch_all(artifacts: &[Artifact], dir: &Path, interrupt: &Interrupt) -> Result<(), FetchFailure> {
    let fetched = fetch_into(artifacts, dir, interrupt);
    if fetched.is_err() {
        remove(dir);
    }
    fetched
}

/// Removes what was fetched for an attempt that does not start.
pub fn remove(dir: &Path) {
    remove_file(&archive_of(dir));
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, dir = %dir.display(), "what was fetched cannot be removed");
        }
        _ => {}
    }
}

fn fetch_into(artifacts: &[Artifact], dir: &Path, interrupt: &Interrupt) -> Result<(), FetchFailure> {
    remove(dir);
    // Programs of other users may have to reach their files; the attempt's own directory keeps strangers out.
    fs::create_dir_all(dir).map_err(|error| FetchFailure::of_disk(dir, &error))?;
    for artifact in artifacts {
        fetch(artifact, dir, interrupt)?;
    }
    Ok(())
}

fn fetch(artifact: &Artifact, dir: &Path, interrupt: &Interrupt) -> Result<(), FetchFailure> {
    let source = Source::parse(&artifact.source)?;
    let wanted = checksum::Wanted::parse(&artifact.checksum)?;
    let archive = artifact.unpack.then(|| unpack::Archive::of(source.file_name())).transpose()?;
    let (target, home) = if archive.is_some() {
        (archive_of(dir), place_below(dir, &artifact.destination)?)
    } else {
        let asked = Some(artifact.destination.as_str()).filter(|name| !name.is_empty());
        let name = asked.unwrap_or(source.file_name());
        if name.is_empty() {
            return Err(FetchFailure::bad(format!("{source} has no file name; give a destination")));
        }
        let place = place_below(dir, name)?;
        (place.clone(), place)
    };
    let fetched = bring(&source, &target, interrupt)
        .and_then(|()| wanted.map_or(Ok(()), |wanted| wanted.verify(&source.to_string(), &target)))
        .and_then(|()| archive.map_or(Ok(()), |archive| archive.unpack(&target, &home, interrupt)));
    if artifact.unpack {
        remove_file(&target);
    }
    fetched
}

/// An archive is fetched beside the directory, where no file can be called so.
fn archive_of(dir: &Path) -> PathBuf {
    dir.with_extension("archive")
}

fn bring(source: &Source, target: &Path, interrupt: &Interrupt) -> Result<(), FetchFailure> {
    match source {
        Source::Web(url) => download::download(url, target, interrupt),
        Source::File(path) => copy(path, target, interrupt),
    }
}

fn copy(path: &Path, target: &Path, interrupt: &Interrupt) -> Result<(), FetchFailure> {
    let mut from = File::open(path).map_err(|error| FetchFailure::of_file(path, &error))?;
    if from.metadata().is_ok_and(|meta| meta.is_dir()) {
        return Err(FetchFailure::bad(format!(
            "{} is a directory; name a file or an archive",
            path.display()
        )));
    }
    let mut to = File::create(target).map_err(|error| FetchFailure::of_disk(target, &error))?;
    pour(&mut from, &mut to, interrupt).map_err(|error| FetchFailure::of_disk(target, &error))?;
    let mode = from.metadata().map(|meta| meta.permissions());
    mode.and_then(|mode| to.set_permissions(mode)).map_err(|error| FetchFailure::of_disk(target, &error))
}

/// Copies in pieces, so that it can be ended in between.
fn pour(from: &mut dyn io::Read, to: &mut dyn io::Write, interrupt: &Interrupt) -> io::Result<()> {
    let mut piece = vec![0; 64 << 10];
    loop {
        interrupt.check()?;
        match from.read(&mut piece) {
            Ok(0) => return to.flush(),
            Ok(read) => to.write_all(&piece[..read])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn remove_file(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, path = %path.display(), "an archive cannot be removed");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(source: &Path, destination: &str) -> Artifact {
        let source = source.display().to_string();
        Artifact { source, destination: destination.to_owned(), ..Artifact::default() }
    }

    fn fetch_one(artifact: Artifact, dir: &Path) -> Result<(), FetchFailure> {
        fetch_all(&[artifact], dir, &Interrupt::default())
    }

    #[test]
    fn files_are_put_where_they_are_wanted() {
        let temp = tempfile::tempdir().unwrap();
        let (source, dir) = (temp.path().join("source.sh"), temp.path().join("u-1"));
        fs::write(&source, "hello").unwrap();
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("left over"), "").unwrap();
        fetch_all(&[artifact(&source, ""), artifact(&source, "deep/er")], &dir, &Interrupt::default())
            .unwrap();
        assert_eq!(fs::read_to_string(dir.join("source.sh")).unwrap(), "hello");
        assert_eq!(fs::read_to_string(dir.join("deep/er")).unwrap(), "hello");
        assert!(!dir.join("left over").exists(), "what another try left is gone");
    }

    #[test]
    fn one_that_is_missing_leaves_nothing_behind() {
        let temp = tempfile::tempdir().unwrap();
        let (source, dir) = (temp.path().join("source"), temp.path().join("u-1"));
        fs::write(&source, "hello").unwrap();
        let missing = artifact(&temp.path().join("missing"), "");
        let failure = fetch_all(&[artifact(&source, ""), missing], &dir, &Interrupt::default()).unwrap_err();
        assert_eq!((failure.reason, failure.transient), ("ArtifactNotFound", false));
        assert!(!dir.exists());
        let failure = fetch_one(artifact(temp.path(), ""), &dir).unwrap_err();
        assert_eq!(failure.reason, "BadArtifact", "a directory is no file");
    }

    #[test]
    fn a_disk_that_is_full_is_said() {
        let temp = tempfile::tempdir().unwrap();
        let source = temp.path().join("source");
        fs::write(&source, "hello").unwrap();
        let failure = copy(&source, Path::new("/dev/full"), &Interrupt::default()).unwrap_err();
        assert_eq!((failure.reason, failure.transient), ("DiskFull", true));
    }

    #[test]
    fn an_archive_leaves_its_files_and_not_itself() {
        let temp = tempfile::tempdir().unwrap();
        let (source, dir) = (temp.path().join("a.tar"), temp.path().join("u-1"));
        let mut builder = tar::Builder::new(File::create(&source).unwrap());
        let mut header = tar::Header::new_gnu();
        header.set_size(5);
        header.set_mode(0o644);
        builder.append_data(&mut header, "inner/file", &b"hello"[..]).unwrap();
        builder.finish().unwrap();
        fetch_one(Artifact { unpack: true, ..artifact(&source, "there") }, &dir).unwrap();
        assert_eq!(fs::read_to_string(dir.join("there/inner/file")).unwrap(), "hello");
        assert!(!archive_of(&dir).exists());
    }
}
