//! `muster backup` and `muster restore`: everything a server keeps in one file, and a server from such a file.

use std::fs::{self, File};
use std::io::{BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use muster_apiserver::backup::{self, Into, Summary};
use muster_blobs::LocalBlobs;
use muster_ports::clock::{Clock as _, SystemClock};
use muster_ports::store::Log as _;
use muster_store_sql::SqliteLog;

use super::session::Session;
use crate::cli::Globals;
use crate::data_dir::DataDir;
use crate::output::streams;

/// Makes a backup, under another name until it is whole.
pub async fn back_up(globals: &Globals, path: &Path) -> anyhow::Result<ExitCode> {
    if path.exists() {
        bail!("{} is there already; name a file that is not", path.display());
    }
    let unfinished = beside(path, ".unfinished");
    let outcome = fetch(globals, &unfinished).await;
    let summary = match outcome {
        Ok(summary) => summary,
        Err(error) => {
            drop(fs::remove_file(&unfinished));
            return Err(error);
        }
    };
    fs::rename(&unfinished, path).with_context(|| format!("cannot write {}", path.display()))?;
    streams::report(format!("{}: {}", path.display(), told(&summary)))?;
    Ok(ExitCode::SUCCESS)
}

async fn fetch(globals: &Globals, path: &Path) -> anyhow::Result<Summary> {
    let session = Session::open(globals).await?;
    let mut stream = session.client.backup().await?;
    let fail = || format!("cannot write {}", path.display());
    let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path);
    let mut file = file.with_context(fail)?;
    while let Some(piece) = stream.next().await? {
        file.write_all(&piece).with_context(fail)?;
    }
    file.sync_all().with_context(fail)?;
    check(path)
}

/// Makes a data directory of a backup, under another name until it is whole.
pub fn restore(globals: &Globals, path: &Path) -> anyhow::Result<ExitCode> {
    let data = DataDir::choose(globals.data.as_deref())?;
    let (wanted, unfinished) = (data.path(), beside(data.path(), ".restoring"));
    if fs::read_dir(wanted).is_ok_and(|mut entries| entries.next().is_some()) || wanted.is_file() {
        bail!(
            "{} is not empty, and perhaps in use; name another directory with --data DIR",
            wanted.display()
        );
    }
    if unfinished.exists() {
        bail!("{} is what a restore that was cut left; delete it first", unfinished.display());
    }
    check(path)?;
    let summary = match make(path, &DataDir::choose(Some(&unfinished))?) {
        Ok(summary) => summary,
        Err(error) => {
            drop(fs::remove_dir_all(&unfinished));
            return Err(error);
        }
    };
    fs::rename(&unfinished, wanted).with_context(|| format!("cannot make {}", wanted.display()))?;
    streams::report(format!("{}: {}", wanted.display(), told(&summary)))?;
    Ok(ExitCode::SUCCESS)
}

/// Reads all of it once, so that nothing is made of what is not whole.
fn check(path: &Path) -> anyhow::Result<Summary> {
    backup::read(open(path)?, None).with_context(|| format!("cannot use {}", path.display()))
}

fn make(path: &Path, data: &DataDir) -> anyhow::Result<Summary> {
    data.create()?;
    let blobs = LocalBlobs::open(&data.folder("files")?)?;
    let mut log = SqliteLog::open(&data.database())?;
    log.header()?;
    log.load(&mut |_| {})?;
    let into = Into { log: &mut log, blobs: &blobs, now: SystemClock.now() };
    let summary = backup::read(open(path)?, Some(into)).context("cannot restore")?;
    drop(log);
    // What was written is read, as the server will.
    let mut log = SqliteLog::open(&data.database())?;
    let (header, mut rows) = (log.header()?, 0);
    log.load(&mut |_| rows += 1)?;
    if (header.revision, rows) != (summary.revision, summary.rows) {
        bail!("what was restored is not what is in {}: is the disk sound?", path.display());
    }
    Ok(summary)
}

fn open(path: &Path) -> anyhow::Result<BufReader<File>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    Ok(BufReader::with_capacity(1 << 20, file))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn told(Summary { revision, rows, files }: &Summary) -> String {
    format!("{rows} objects and {files} files at revision {revision}")
}
