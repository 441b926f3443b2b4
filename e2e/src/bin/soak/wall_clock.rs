//! The clock on the wall of all servers: libfaketime shows what a file says, which can change while they run. Time that passes
//! is real.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::recorder::Recorder;

/// Where the harness says that the library is.
const VARIABLE: &str = "MUSTER_FAKETIME";

/// A clock that can be set.
pub struct WallClock {
    library: PathBuf,
    file: PathBuf,
}

impl WallClock {
    /// A clock that shows the right time.
    pub fn new(dir: &Path) -> anyhow::Result<Self> {
        let library = std::env::var_os(VARIABLE);
        let library = library
            .with_context(|| format!("{VARIABLE} must name libfaketime; `cargo xtask soak` sets it"))?;
        let clock = Self { library: library.into(), file: dir.join("clock") };
        clock.set(0);
        Ok(clock)
    }

    /// What makes a program look at this clock.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.display().to_string()),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("NO_FAKE_STAT", "1".to_owned()),
        ]
    }

    /// The clock jumps by so many milliseconds.
    pub fn jump(&self, recorder: &Recorder, millis: i64) {
        recorder.jump(millis, |lead| self.set(lead));
    }

    fn set(&self, lead: i64) {
        let sign = if lead < 0 { '-' } else { '+' };
        let lead = lead.unsigned_abs();
        let text = format!("{sign}{}.{:03}\n", lead / 1000, lead % 1000);
        let new = self.file.with_extension("new");
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &self.file));
        written.expect("the clock can be set");
    }
}
