//! Directories of the cache that are complete or not there, one installer at a time.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use anyhow::{Context, Result};

/// Written last, so that an interrupted installation is seen and done again.
const COMPLETE: &str = ".complete";

/// The right to change the cache, until dropped. Two checkouts may set up at the same time.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    pub fn take(cache: &Path) -> Result<Self> {
        let shown = cache.display();
        fs::create_dir_all(cache)
            .with_context(|| format!("cannot create {shown}; set MUSTER_CACHE elsewhere"))?;
        let file = File::create(cache.join("lock"))
            .with_context(|| format!("cannot write to {shown}; set MUSTER_CACHE elsewhere"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                println!("==> waiting for another setup that works in {shown}");
                file.lock().with_context(|| format!("cannot lock {shown}"))?;
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {shown}"));
            }
        }
        Ok(Self { _file: file })
    }
}

/// Runs `install` to fill `dir` unless an earlier run completed it; what an interrupted one left is removed.
pub fn install_once(dir: &Path, what: &str, install: impl FnOnce() -> Result<()>) -> Result<()> {
    if dir.join(COMPLETE).exists() {
        return Ok(());
    }
    println!("==> installing {what} into {}", dir.display());
    clear(dir)?;
    install()?;
    fs::write(dir.join(COMPLETE), "").with_context(|| format!("cannot write to {}", dir.display()))
}

fn clear(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("cannot clear {}", dir.display()))?;
    }
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> std::path::PathBuf {
        let dir = std::env::temp_dir().join(format!("xtask-install-{name}-{}", std::process::id()));
        clear(&dir).unwrap();
        dir
    }

    #[test]
    fn what_is_complete_is_not_installed_again() {
        let dir = scratch("complete");
        let mut installs = 0;
        for _ in 0..2 {
            install_once(&dir, "thing", || {
                installs += 1;
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(installs, 1);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_was_interrupted_starts_from_nothing() {
        let dir = scratch("interrupted");
        fs::write(dir.join("half"), "").unwrap();
        install_once(&dir, "thing", || Ok(fs::write(dir.join("whole"), "")?)).unwrap();
        assert!(!dir.join("half").exists());
        assert!(dir.join("whole").exists());
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn the_lock_keeps_a_second_setup_out() {
        let dir = scratch("lock");
        let held = Lock::take(&dir).unwrap();
        let second = File::create(dir.join("lock")).unwrap();
        assert!(matches!(second.try_lock(), Err(TryLockError::WouldBlock)));
        drop(held);
        assert!(second.try_lock().is_ok());
        fs::remove_dir_all(dir).unwrap();
    }
}
