//! `muster store`: what is done with a store while no server uses it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use muster_ports::blobs::{CopiedFiles, copy_files};
use muster_ports::store::{Log, Revision};
use muster_store_sql::{Copied, PostgresLog, SqliteLog, copy};

use crate::cli::{CopyArgs, StoreCommand};
use crate::files_choice::open_place;
use crate::output::progress::Progress;
use crate::output::streams;
use crate::store_choice::Place;

/// Carries out a verb of `store`.
pub fn run(command: &StoreCommand) -> anyhow::Result<ExitCode> {
    match command {
        StoreCommand::Copy(args) => copy_store(args),
    }
}

fn copy_store(args: &CopyArgs) -> anyhow::Result<ExitCode> {
    let mut from = open_source(args)?;
    // First: a store that was copied whole has all its files.
    if let (Some(from), Some(to)) = (&args.files_from, &args.files_to) {
        copy_all_files(from, to)?;
    }
    let copied = match Place::parse(args.to.as_deref().unwrap_or_default())? {
        Place::Sqlite(path) => copy_to_file(&mut *from, &path)?,
        Place::Postgres(target) => {
            // Until it is whole, no server takes it for its own.
            let mut to = PostgresLog::open(&target, &format!("(copy) {}", args.installation))?;
            let copied = copy_rows(&mut *from, &mut to)?;
            to.rename_installation(&args.installation)?;
            copied
        }
    };
    let before = if copied.found > 0 { format!(", {} of them before", copied.found) } else { String::new() };
    let Copied { rows, revision, .. } = copied;
    streams::report(format!("{rows} rows copied{before}, and compared; both are at revision {revision}"))?;
    Ok(ExitCode::SUCCESS)
}

fn open_source(args: &CopyArgs) -> anyhow::Result<Box<dyn Log>> {
    match Place::parse(args.from.as_deref().unwrap_or_default())? {
        // A typo must not make a store.
        Place::Sqlite(path) if !path.exists() => bail!("there is no store in {}", path.display()),
        Place::Sqlite(path) => Ok(Box::new(SqliteLog::open(&path)?)),
        Place::Postgres(target) => Ok(Box::new(PostgresLog::open(&target, &args.installation)?)),
    }
}

fn copy_all_files(from: &Path, to: &Path) -> anyhow::Result<()> {
    let is_directory = !from.to_str().is_some_and(|text| text.starts_with("s3://"));
    if is_directory && !from.is_dir() {
        bail!("there are no files in {}", from.display());
    }
    let (from, to) = (open_place(from)?, open_place(to)?);
    let mut shown: Option<Progress> = None;
    let copied = copy_files(&*from, &*to, &mut |done, of| {
        shown.get_or_insert_with(|| Progress::new("files copied", of)).step(done);
    });
    if let Some(mut shown) = shown {
        shown.clear();
    }
    let CopiedFiles { files, bytes, found } =
        copied.context("the files were not copied; try again, it goes on where it was")?;
    let before = if found > 0 { format!(", {found} of them before") } else { String::new() };
    let word = if files == 1 { "file" } else { "files" };
    streams::report(format!("{files} {word} of {bytes} bytes copied{before}"))?;
    Ok(())
}

fn copy_rows(from: &mut dyn Log, to: &mut dyn Log) -> anyhow::Result<Copied> {
    let count = |revision: Revision| usize::try_from(revision.0).unwrap_or(usize::MAX);
    let mut shown: Option<Progress> = None;
    let copied = copy(from, to, &mut |reached, of| {
        shown.get_or_insert_with(|| Progress::new("copied up to revision", count(of))).step(count(reached));
    });
    if let Some(mut shown) = shown {
        shown.clear();
    }
    Ok(copied?)
}

/// Under another name until it is whole.
fn copy_to_file(from: &mut dyn Log, path: &Path) -> anyhow::Result<Copied> {
    if path.exists() {
        bail!("{} is there already; name a file that is not", path.display());
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".copying");
    let unfinished = PathBuf::from(name);
    let mut to = SqliteLog::open(&unfinished)?;
    let copied = copy_rows(from, &mut to)?;
    drop(to);
    fs::rename(&unfinished, path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(copied)
}
