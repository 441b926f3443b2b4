//! Up to where logs were sent, on disk, so that an agent that was restarted goes on there. What is lost of it is sent twice, which harms
//! nobody: the server skips what it has.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use muster_types::attempt::Handle;

use crate::private;

/// By container.
pub type Places = BTreeMap<String, u64>;

/// Up to where the logs of attempts were sent.
#[derive(Debug, Clone)]
pub struct SentPlaces {
    dir: PathBuf,
}

impl SentPlaces {
    /// Below a directory, which is made if it is not there.
    pub fn open(dir: &Path) -> io::Result<Self> {
        private::make_dir(dir)?;
        Ok(Self { dir: dir.to_owned() })
    }

    /// Up to where they were sent; from the beginning if that is not known.
    pub fn get(&self, handle: &Handle, containers: &[String]) -> Places {
        let text = fs::read(self.path(handle)).unwrap_or_default();
        let known: Places = serde_json::from_slice(&text).unwrap_or_default();
        containers.iter().map(|name| (name.clone(), known.get(name).copied().unwrap_or(0))).collect()
    }

    /// Writes down up to where they were sent.
    pub fn put(&self, handle: &Handle, places: &Places) {
        let written = serde_json::to_vec(places).map(|text| private::write(&self.path(handle), &text));
        if let Ok(Err(error)) = written {
            tracing::debug!(%handle, %error, "up to where a log was sent cannot be written down");
        }
    }

    /// All was sent.
    pub fn forget(&self, handle: &Handle) {
        // What is not there is forgotten.
        drop(fs::remove_file(self.path(handle)));
    }

    fn path(&self, handle: &Handle) -> PathBuf {
        self.dir.join(handle.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_known_after_a_restart_until_all_was_sent() {
        let temp = tempfile::tempdir().unwrap();
        let handle = Handle { task: "u".to_owned(), attempt: 1 };
        let containers = ["addon".to_owned(), "silent".to_owned()];
        let from = |addon: u64| Places::from([("addon".to_owned(), addon), ("silent".to_owned(), 0)]);
        let open = || SentPlaces::open(&temp.path().join("sent")).unwrap();
        assert_eq!(open().get(&handle, &containers), from(0));
        open().put(&handle, &from(7));
        assert_eq!(open().get(&handle, &containers), from(7));
        fs::write(temp.path().join("sent/u-1"), "{\"cut").unwrap();
        assert_eq!(open().get(&handle, &containers), from(0), "what cannot be read is sent again");
        open().put(&handle, &from(7));
        open().forget(&handle);
        assert_eq!(open().get(&handle, &containers), from(0));
    }
}
