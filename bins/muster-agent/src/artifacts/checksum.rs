//! Whether a file is what it should be.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use ring::digest::{Algorithm, Context, SHA256, SHA512};

use super::failure::FetchFailure;

/// What a file must be.
#[derive(Debug, Clone)]
pub struct Wanted {
    algorithm: &'static Algorithm,
    hex: String,
}

impl Wanted {
    /// Reads `sha256:HEX` or `sha512:HEX`; nothing if nothing is asked for.
    pub fn parse(text: &str) -> Result<Option<Self>, FetchFailure> {
        if text.is_empty() {
            return Ok(None);
        }
        let (name, hex) = text.split_once(':').unwrap_or_default();
        let algorithm = match name {
            "sha256" => Some(&SHA256),
            "sha512" => Some(&SHA512),
            _ => None,
        };
        let hex = hex.to_ascii_lowercase();
        match algorithm {
            Some(algorithm)
                if hex.len() == 2 * algorithm.output_len()
                    && hex.bytes().all(|digit| digit.is_ascii_hexdigit()) =>
            {
                Ok(Some(Self { algorithm, hex }))
            }
            _ => Err(FetchFailure::bad(format!("{text:?} is no checksum; write sha256:HEX or sha512:HEX"))),
        }
    }

    /// Reads the file once more, as it is on the disk.
    pub fn verify(&self, source: &str, path: &Path) -> Result<(), FetchFailure> {
        let failed = |error| FetchFailure::of_file(path, &error);
        let mut file = File::open(path).map_err(failed)?;
        let mut context = Context::new(self.algorithm);
        let mut piece = vec![0; 64 << 10];
        loop {
            match file.read(&mut piece).map_err(failed)? {
                0 => break,
                read => context.update(&piece[..read]),
            }
        }
        let found: String = context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        if found == self.hex {
            return Ok(());
        }
        Err(FetchFailure::wrong(format!("{source} is {found} and should be {}", self.hex)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_file_is_what_its_checksum_says_or_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("abc");
        std::fs::write(&file, "abc").unwrap();
        let wanted = |hex: &str| Wanted::parse(&format!("sha256:{hex}")).unwrap().unwrap();
        wanted(ABC).verify("s", &file).unwrap();
        wanted(&ABC.to_uppercase()).verify("s", &file).unwrap();
        std::fs::write(&file, "abd").unwrap();
        let failure = wanted(ABC).verify("s", &file).unwrap_err();
        assert_eq!((failure.reason, failure.transient), ("ChecksumMismatch", false));
        assert!(failure.message.contains(ABC), "{}", failure.message);
    }

    #[test]
    fn what_is_no_checksum_is_refused() {
        assert!(Wanted::parse("").unwrap().is_none());
        for text in ["abc", "md5:00", "sha256:", "sha256:zz", &format!("sha512:{ABC}")] {
            assert_eq!(Wanted::parse(text).unwrap_err().reason, "BadArtifact", "{text}");
        }
    }
}
