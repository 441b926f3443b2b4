//! Where the cluster keeps what.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Directories and files of the cluster.
#[derive(Debug)]
pub struct Layout {
    /// Holds the lock, and everything below.
    pub root: PathBuf,
}

impl Layout {
    pub fn at(cache: &Path) -> Self {
        Self { root: cache.join("cluster") }
    }

    /// Everything that lives and dies with one cluster.
    pub fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    /// Of the last cluster, also after it ended.
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    pub fn log(&self, name: &str) -> PathBuf {
        self.logs().join(format!("{name}.log"))
    }

    /// Which process has this part.
    pub fn process(&self, name: &str) -> PathBuf {
        self.root.join("processes").join(name)
    }

    pub fn certificates(&self) -> PathBuf {
        self.state().join("certificates")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.state().join(name)
    }

    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        self.state().join(format!("{user}.kubeconfig"))
    }

    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.kubeconfig("admin")
    }

    /// There as soon as all of the cluster runs; says why there is no node, if there is none.
    pub fn ready(&self) -> PathBuf {
        self.state().join("ready")
    }

    /// There if somebody started the cluster by name.
    pub fn kept(&self) -> PathBuf {
        self.state().join("kept")
    }

    /// Makes the directories of a new cluster.
    pub fn make(&self) -> Result<()> {
        if self.logs().exists() {
            fs::remove_dir_all(self.logs()).context("cannot remove old logs")?;
        }
        for dir in [self.logs(), self.root.join("processes"), self.certificates()] {
            fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        }
        Ok(())
    }

    /// Removes what a cluster left, but for its logs.
    pub fn remove(&self) -> Result<()> {
        for dir in [self.state(), self.root.join("processes")] {
            if dir.exists() {
                fs::remove_dir_all(&dir).with_context(|| format!("cannot remove {}", dir.display()))?;
            }
        }
        Ok(())
    }
}
