//! Keeps a shepherd running: starts it, passes on what it reports, and starts another when it is gone.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_exec::{Command, Decoder, Report};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::watch;

use crate::link::Link;
use crate::runtime::Settings;
use crate::shepherd_process::{ShepherdProcess, SpawnError};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A shepherd that lived this long was not broken from the start.
const LIVED: Duration = Duration::from_secs(10);
const READ: usize = 64 << 10;

/// Runs until `closed` says so. Everything a shepherd ran is gone when this returns, and whenever `Lost` is reported.
pub(crate) async fn supervise(link: Arc<Link>, settings: Settings, mut closed: watch::Receiver<bool>) {
    let mut pause = FIRST_PAUSE;
    while !*closed.borrow_and_update() {
        let begun = Instant::now();
        match run_one(&link, &settings, &mut closed).await {
            Ok(()) => break,
            Err(Loss::NotStarted(error)) => {
                tracing::error!(%error, "no process can be started");
                link.fail_waiting(&error.to_string());
            }
            Err(Loss::Gone(why)) => {
                tracing::error!(%why, "the shepherd is gone");
                link.report_lost(&format!("the process that ran it ended unexpectedly: {why}"));
            }
        }
        pause = if begun.elapsed() < LIVED { (pause * 2).min(LONGEST_PAUSE) } else { FIRST_PAUSE };
        tokio::time::timeout(pause, closed.changed()).await.ok();
    }
    link.report_lost("the server ended");
    link.fail_waiting("the server ended");
    link.end();
}

/// Why there is no shepherd any more.
enum Loss {
    NotStarted(SpawnError),
    Gone(String),
}

/// The life of one shepherd; comes back without a loss if it was closed.
async fn run_one(link: &Link, settings: &Settings, closed: &mut watch::Receiver<bool>) -> Result<(), Loss> {
    let Settings { program, arguments, executor, patience } = settings.clone();
    let root: PathBuf = executor.work_root.clone();
    let spawned = ShepherdProcess::spawn(program, arguments, root, patience).await;
    let (process, socket) = spawned.map_err(Loss::NotStarted)?;
    let socket = Arc::new(socket);
    link.connect(Arc::clone(&socket), &Command::Begin(executor));
    let served = tokio::select! {
        served = serve(link, &socket) => Err(served),
        _ = closed.wait_for(|closed| *closed) => Ok(()),
    };
    // Closes the socket: the link has the only other reference to it.
    link.release();
    drop(socket);
    process.wait().await;
    served.map_err(Loss::Gone)
}

/// Passes on reports and waiting orders until the shepherd is gone; answers why.
async fn serve(link: &Link, socket: &UnixStream) -> String {
    let mut decoder = Decoder::default();
    let mut buffer = vec![0; READ];
    loop {
        let interest =
            if link.flush() { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
        tokio::select! {
            ready = socket.ready(interest) => match ready {
                Ok(ready) if ready.is_readable() => {
                    if let Err(why) = read(link, socket, &mut decoder, &mut buffer) {
                        return why;
                    }
                }
                Ok(_) => {}
                Err(error) => return error.to_string(),
            },
            () = link.blocked.notified() => {}
        }
    }
}

fn read(link: &Link, socket: &UnixStream, decoder: &mut Decoder, buffer: &mut [u8]) -> Result<(), String> {
    match socket.try_read(buffer) {
        Ok(0) => return Err("its socket was closed".into()),
        Ok(read) => decoder.extend(&buffer[..read]),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
        Err(error) => return Err(error.to_string()),
    }
    while let Some(report) = decoder.next_message().map_err(|error| error.to_string())? {
        match report {
            Report::Fact(fact) => link.observe(fact),
            Report::Ready { shepherd } => link.observe_ready(shepherd),
            Report::Notice(notice) => {
                tracing::info!("{notice}");
                link.observe_notice(notice);
            }
            Report::Failed { message } => return Err(message),
        }
    }
    Ok(())
}
