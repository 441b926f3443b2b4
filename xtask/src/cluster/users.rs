//! Who uses the cluster: runs of the tests, each for as long as it lasts.

use std::fs::{self, File};

use anyhow::{Context, Result};

use super::layout::Layout;
use crate::setup;

/// One use of the cluster, until dropped; also a run that is killed leaves none behind.
#[derive(Debug)]
pub struct Use {
    file: File,
}

impl Use {
    pub fn begin() -> Result<Self> {
        let root = Layout::at(&setup::cache()?).root;
        fs::create_dir_all(&root).with_context(|| format!("cannot create {}", root.display()))?;
        let file = File::create(root.join("users")).context("cannot write to the cache")?;
        file.lock_shared().context("cannot lock the cluster")?;
        Ok(Self { file })
    }

    /// Ends this use. True if nobody else has one.
    pub fn was_the_last(self) -> Result<bool> {
        self.file.unlock().context("cannot unlock the cluster")?;
        Ok(self.file.try_lock().is_ok())
    }
}
