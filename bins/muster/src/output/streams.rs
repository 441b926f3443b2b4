//! Standard output and standard error, which may be closed at any time.
//!
//! Reading verbs stop when nobody reads any more: the error reaches `main`, which ends in silence. Verbs that change
//! something go on with their work: what was asked for does not depend on who is watching.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use tracing_subscriber::EnvFilter;

use crate::cli::LogFormat;

/// Prints text, as it is.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Prints the result of a change, if somebody reads it.
pub fn report(line: impl Display) -> io::Result<()> {
    match print(&format!("{line}\n")) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// True while the whole terminal is drawn on, where a note would stand in the middle of a picture.
static HUSHED: AtomicBool = AtomicBool::new(false);

/// Keeps notes back, or no longer.
pub fn hush(hushed: bool) {
    HUSHED.store(hushed, Ordering::Relaxed);
}

/// Tells the user something beside the result.
pub fn note(line: impl Display) {
    if HUSHED.load(Ordering::Relaxed) {
        return;
    }
    // There is nowhere to say that this could not be said.
    drop(writeln!(io::stderr().lock(), "{line}"));
}

/// Logs to standard error, in colour if that is a terminal. When nobody reads it any more, nothing is said: a complaint about that
/// would go the same way, and end whoever wanted to log.
pub fn start_logging(filter: EnvFilter, format: LogFormat) {
    let logging =
        tracing_subscriber::fmt().with_env_filter(filter).log_internal_errors(false).with_writer(io::stderr);
    match format {
        LogFormat::Text => logging.with_ansi(io::stderr().is_terminal()).init(),
        LogFormat::Json => logging.json().flatten_event(true).init(),
    }
}

/// True if an error says that nobody reads what is printed.
pub fn is_closed(error: &anyhow::Error) -> bool {
    let closed = |link: &(dyn std::error::Error + 'static)| {
        link.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    error.chain().any(closed)
}
