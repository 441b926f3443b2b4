//! Archives, unpacked. What would land outside of the directory is refused with the whole archive.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use zip::ZipArchive;

use super::Interrupt;
use super::failure::FetchFailure;

/// What an archive is packed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Archive {
    /// Nothing.
    Tar,
    /// gzip.
    TarGz,
    /// Each file by itself.
    Zip,
}

impl Archive {
    /// Goes by the name of the file.
    pub fn of(name: &str) -> Result<Self, FetchFailure> {
        let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
        match extension {
            Some("tar") => Ok(Self::Tar),
            Some("tgz") => Ok(Self::TarGz),
            Some("gz") if name.ends_with(".tar.gz") => Ok(Self::TarGz),
            Some("zip") => Ok(Self::Zip),
            _ => Err(FetchFailure::bad(format!(
                "{name:?} cannot be unpacked; only .tar, .tar.gz, .tgz and .zip can"
            ))),
        }
    }

    /// Puts the files of an archive into a directory.
    pub fn unpack(self, archive: &Path, dir: &Path, interrupt: &Interrupt) -> Result<(), FetchFailure> {
        fs::create_dir_all(dir).map_err(|error| FetchFailure::of_disk(dir, &error))?;
        let file = File::open(archive).map_err(|error| FetchFailure::of_disk(archive, &error))?;
        let file = Watched { inner: BufReader::new(file), interrupt };
        let unpacked = match self {
            Self::Tar => unpack_tar(file, dir),
            Self::TarGz => unpack_tar(MultiGzDecoder::new(file), dir),
            Self::Zip => unpack_zip(file, dir),
        };
        unpacked.map_err(|error| match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FetchFailure::of_disk(dir, &error),
            _ => FetchFailure::bad(format!("the archive cannot be unpacked: {error}")),
        })
    }
}

fn unpack_tar(from: impl Read, dir: &Path) -> io::Result<()> {
    let mut archive = tar::Archive::new(from);
    archive.set_preserve_ownerships(false);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let name = entry.path()?.into_owned();
        if !entry.unpack_in(dir)? {
            return Err(io::Error::other(format!("{} leads out of it", name.display())));
        }
    }
    Ok(())
}

fn unpack_zip(from: impl Read + Seek, dir: &Path) -> io::Result<()> {
    let mut archive = ZipArchive::new(from)?;
    for index in 0..archive.len() {
        let entry = archive.by_index(index)?;
        if entry.enclosed_name().is_none() {
            return Err(io::Error::other(format!("{:?} leads out of it", entry.name()?)));
        }
    }
    Ok(archive.extract(dir)?)
}

/// Can be ended in between.
struct Watched<'a, R> {
    inner: R,
    interrupt: &'a Interrupt,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.interrupt.check()?;
        self.inner.read(buffer)
    }
}

impl<R: Seek> Seek for Watched<'_, R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write as _};
    use std::os::unix::fs::PermissionsExt as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn archive(names: &[&str]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for name in names {
            let mut header = tar::Header::new_gnu();
            // The builder itself would refuse such names.
            header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(5);
            header.set_mode(0o755);
            header.set_cksum();
            builder.append(&header, &b"hello"[..]).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn zip_archive(names: &[&str]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for name in names {
            writer.start_file(*name, SimpleFileOptions::default().unix_permissions(0o755)).unwrap();
            writer.write_all(b"hello").unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn unpack(kind: Archive, bytes: &[u8]) -> (tempfile::TempDir, Result<(), FetchFailure>) {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("archive");
        fs::write(&file, bytes).unwrap();
        let outcome = kind.unpack(&file, &temp.path().join("dir"), &Interrupt::default());
        (temp, outcome)
    }

    #[test]
    fn archives_are_unpacked() {
        let plain = archive(&["a", "b/c"]);
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&plain).unwrap();
        let zipped = zip_archive(&["a", "b/c"]);
        for (kind, bytes) in
            [(Archive::Tar, plain), (Archive::TarGz, packed.finish().unwrap()), (Archive::Zip, zipped)]
        {
            let (temp, outcome) = unpack(kind, &bytes);
            outcome.unwrap();
            let file = temp.path().join("dir/b/c");
            assert_eq!(fs::read_to_string(&file).unwrap(), "hello");
            let mode = fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o100, 0o100, "{kind:?}: a program stays one");
        }
    }

    #[test]
    fn an_archive_that_leads_out_of_the_directory_is_refused() {
        let names = ["fine", "../outside"];
        for (kind, bytes) in [(Archive::Tar, archive(&names)), (Archive::Zip, zip_archive(&names))] {
            let (temp, outcome) = unpack(kind, &bytes);
            assert_eq!(outcome.unwrap_err().reason, "BadArtifact", "{kind:?}");
            assert!(!temp.path().join("outside").exists());
        }
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        for kind in [Archive::TarGz, Archive::Zip] {
            let (_temp, outcome) = unpack(kind, b"this is a web page that says sorry");
            assert_eq!(outcome.unwrap_err().reason, "BadArtifact");
        }
        assert!(Archive::of("a.rar").is_err() && Archive::of("gz").is_err());
        assert_eq!(Archive::of("a.zip"), Ok(Archive::Zip));
        assert_eq!(Archive::of("a.tgz"), Ok(Archive::TarGz));
    }

    #[test]
    fn unpacking_can_be_ended() {
        let interrupt = Interrupt::default();
        interrupt.set();
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("a"), archive(&["a"])).unwrap();
        assert!(Archive::Tar.unpack(&temp.path().join("a"), &temp.path().join("dir"), &interrupt).is_err());
    }
}
