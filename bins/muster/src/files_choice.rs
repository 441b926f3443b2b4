//! Where kept logs and attachments are: a directory, or a bucket that several servers share.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use muster_blobs::{LocalBlobs, S3Blobs, S3Place};
use muster_ports::blobs::Blobs;

use crate::cli::StoreArgs;
use crate::data_dir::DataDir;

/// Opens the place for files of a server.
pub async fn open(data: &DataDir, wanted: &StoreArgs) -> anyhow::Result<Arc<dyn Blobs>> {
    let files = match &wanted.files {
        Some(shared) => shared.clone(),
        None => data.folder("files")?,
    };
    // A service is waited for.
    tokio::task::spawn_blocking(move || open_place(&files)).await?
}

/// Opens a directory, or what `s3://BUCKET/PREFIX` names. Waits.
pub fn open_place(files: &Path) -> anyhow::Result<Arc<dyn Blobs>> {
    if let Some(text) = files.to_str().filter(|text| text.starts_with("s3://")) {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let place = S3Place::parse(text, variables)?;
        return Ok(Arc::new(S3Blobs::open(&place).context("cannot keep files")?));
    }
    let blobs = LocalBlobs::open(files);
    Ok(Arc::new(blobs.with_context(|| format!("cannot keep files in {}", files.display()))?))
}
