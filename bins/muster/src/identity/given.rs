//! Files of the user's, which are read again when their content changes. What is in them is compared, not their times: files that
//! are mounted into a container change behind links.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use muster_apiserver::certs;

use super::Identity;

/// A certificate and its key.
pub struct Given {
    cert: PathBuf,
    key: PathBuf,
    seen: Option<Contents>,
}

/// What was found in the two files, or why nothing was.
#[derive(PartialEq)]
struct Contents {
    cert: Result<Vec<u8>, String>,
    key: Result<Vec<u8>, String>,
}

impl Given {
    /// Those that flags name.
    pub fn new(cert: &Path, key: &Path) -> Self {
        Self { cert: cert.to_owned(), key: key.to_owned(), seen: None }
    }

    /// What is in them at the start.
    pub fn open(&mut self) -> anyhow::Result<Identity> {
        self.seen = Some(self.read());
        self.load()
    }

    /// What is in them, if it has changed and can be served. What cannot be is told once; the next change is tried again.
    pub fn changed(&mut self) -> Option<Identity> {
        // What is loaded may be newer than this. The next time finds it changed then, and loads it once more.
        let found = Some(self.read());
        if found == self.seen {
            return None;
        }
        self.seen = found;
        let (cert, key) = (self.cert.display(), self.key.display());
        match self.load() {
            Ok(identity) => {
                tracing::info!(%cert, %key, "the certificate and key have changed; new connections see them");
                Some(identity)
            }
            Err(error) => {
                tracing::warn!(
                    "the changed files {cert} and {key} are not served, and the server goes on with the certificate it has: \
                     {error:#}; write a certificate and its key there as PEM"
                );
                None
            }
        }
    }

    fn load(&self) -> anyhow::Result<Identity> {
        let certified = certs::load(&self.cert, &self.key)?;
        let trust =
            fs::read_to_string(&self.cert).with_context(|| format!("cannot read {}", self.cert.display()))?;
        Ok(Identity { certified, trust })
    }

    fn read(&self) -> Contents {
        let content = |path: &Path| fs::read(path).map_err(|error| error.to_string());
        Contents { cert: content(&self.cert), key: content(&self.key) }
    }
}

#[cfg(test)]
mod tests {
    use muster_apiserver::certs::Pair;
    use muster_types::Millis;

    use super::*;

    fn pair() -> Pair {
        certs::new_authority(Millis(1_800_000_000_000)).unwrap()
    }

    fn given(dir: &Path, pair: &Pair) -> Given {
        write(dir, pair);
        let mut given = Given::new(&dir.join("cert"), &dir.join("key"));
        given.open().unwrap();
        given
    }

    fn write(dir: &Path, pair: &Pair) {
        fs::write(dir.join("cert"), &pair.cert).unwrap();
        fs::write(dir.join("key"), &pair.key).unwrap();
    }

    #[test]
    fn files_that_stay_are_not_loaded_again() {
        let dir = tempfile::tempdir().unwrap();
        let one = pair();
        let mut given = given(dir.path(), &one);
        write(dir.path(), &one);
        assert!(given.changed().is_none());
    }

    #[test]
    fn a_replaced_pair_is_loaded_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut given = given(dir.path(), &pair());
        let other = pair();
        write(dir.path(), &other);
        assert_eq!(given.changed().map(|identity| identity.trust), Some(other.cert));
        assert!(given.changed().is_none());
    }

    #[test]
    fn half_a_pair_is_not_served_and_the_whole_one_is() {
        let dir = tempfile::tempdir().unwrap();
        let mut given = given(dir.path(), &pair());
        let other = pair();
        fs::write(dir.path().join("cert"), &other.cert).unwrap();
        assert!(given.changed().is_none());
        fs::write(dir.path().join("key"), &other.key).unwrap();
        assert!(given.changed().is_some());
    }

    #[test]
    fn files_that_are_away_for_a_while_are_loaded_when_they_are_back() {
        let dir = tempfile::tempdir().unwrap();
        let one = pair();
        let mut given = given(dir.path(), &one);
        fs::remove_file(dir.path().join("key")).unwrap();
        assert!(given.changed().is_none());
        write(dir.path(), &one);
        assert!(given.changed().is_some());
    }
}
