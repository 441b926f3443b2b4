//! Where kept logs and attachments are: a directory, or a bucket that several servers share.

use std::sync::Arc;

use anyhow::Context as _;
use muster_blobs::{LocalBlobs, S3Blobs, S3Place};
use muster_ports::blobs::Blobs;

use crate::cli::StoreArgs;
use crate::data_dir::DataDir;

/// Opens the place for files of a server.
pub async fn open(data: &DataDir, wanted: &StoreArgs) -> anyhow::Result<Arc<dyn Blobs>> {
    let text = wanted.files.as_ref().and_then(|files| files.to_str());
    if let Some(text) = text.filter(|text| text.starts_with("s3://")) {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let place = S3Place::parse(text, variables)?;
        // The service is waited for.
        let opened = tokio::task::spawn_blocking(move || S3Blobs::open(&place)).await?;
        return Ok(Arc::new(opened.context("cannot keep files")?));
    }
    let files = match &wanted.files {
        Some(shared) => shared.clone(),
        None => data.folder("files")?,
    };
    let blobs = LocalBlobs::open(&files);
    Ok(Arc::new(blobs.with_context(|| format!("cannot keep files in {}", files.display()))?))
}
