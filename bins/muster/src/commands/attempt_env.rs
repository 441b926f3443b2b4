//! What the environment says inside of an attempt: where the server is, and the attempt's own token.

use std::env;
use std::path::Path;

use anyhow::{Context as _, anyhow};

use crate::cli::Globals;
use crate::data_dir::DataDir;

/// An attempt as its environment describes it.
pub struct AttemptEnv {
    /// Where the server is.
    pub url: String,
    /// The attempt's own token.
    pub token: String,
    /// Name of its task.
    pub task: String,
}

impl AttemptEnv {
    /// Reads the environment; the error names the first variable that is missing.
    pub fn read() -> anyhow::Result<Self> {
        let variable = |name: &str| {
            env::var(name).ok().filter(|value| !value.is_empty()).ok_or_else(|| {
                anyhow!(
                    "{name} is not set; `muster report` is for programs that a server runs as attempts of a task, which \
                     gives it to them"
                )
            })
        };
        let (url, token) = (variable("MUSTER_URL")?, variable("MUSTER_TOKEN")?);
        Ok(Self { url, token, task: variable("MUSTER_TASK")? })
    }

    /// Who vouches for the server, in PEM, if it speaks TLS.
    pub fn authority(&self, globals: &Globals) -> anyhow::Result<Option<Vec<u8>>> {
        if !self.url.starts_with("https://") {
            return Ok(None);
        }
        if let Some(path) = env::var_os("MUSTER_CA_FILE").filter(|path| !path.is_empty()) {
            let shown = Path::new(&path).display().to_string();
            let pem = std::fs::read(&path)
                .with_context(|| format!("cannot read {shown}, named by MUSTER_CA_FILE"))?;
            return Ok(Some(pem));
        }
        let data = DataDir::choose(globals.data.as_deref()).ok();
        Ok(data.and_then(|data| std::fs::read(data.authority()).ok()))
    }
}
