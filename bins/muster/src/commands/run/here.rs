//! Where a command runs and with what, if it runs on this machine.

use anyhow::Context as _;

use crate::commands::new_task::NewTask;

/// What goes to the directory and becomes the command.
const GO_THERE: &str = r#"cd "$1" && shift && exec "$@""#;

/// The task, in the current directory.
pub fn in_current_directory(mut task: NewTask) -> anyhow::Result<NewTask> {
    let place = std::env::current_dir()
        .context("cannot tell the current directory; run in the attempt's own with --in-work-dir")?;
    let place = place.to_str().context(
        "the name of the current directory is not UTF-8; run in the attempt's own with --in-work-dir",
    )?;
    if let Some(container) = &mut task.spec.container {
        let before = ["/bin/sh", "-c", GO_THERE, "sh", place].map(str::to_owned);
        container.command.splice(0..0, before);
    }
    Ok(task)
}

/// The environment of this process, without what cannot be passed on.
pub fn environment() -> Vec<(String, String)> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).filter(|(name, _)| !name.is_empty() && !name.contains('=')).collect()
}
