//! Keeps a shepherd running: starts it, passes on what it reports, and starts another when it is gone.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_exec::{Decoder, Report};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::watch;

use crate::link::Link;
use crate::runtime::Settings;
use crate::shepherd_process::{Met, ShepherdProcess, SpawnError};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A shepherd that lived this long was not broken from the start.
const LIVED: Duration = Duration::from_secs(10);
const READ: usize = 64 << 10;
/// How long a shepherd that was told to end may take to say what it saw last. It is waited for afterwards in any case.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Until when there is a shepherd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    /// There is to be one.
    Wanted,
    /// It is to end, and all that it runs.
    Ended,
    /// It is left alone, with all that it runs.
    Left,
}

/// Runs until it is no longer wanted. Unless it is left alone, everything a shepherd ran is gone when this returns, and whenever `Lost`
/// is reported.
pub(crate) async fn supervise(link: Arc<Link>, settings: Settings, mut service: watch::Receiver<Service>) {
    let mut pause = FIRST_PAUSE;
    while *service.borrow_and_update() == Service::Wanted {
        let begun = Instant::now();
        match run_one(&link, &settings, &mut service).await {
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
        tokio::time::timeout(pause, service.changed()).await.ok();
    }
    if *service.borrow() == Service::Ended {
        link.report_lost("the server ended");
        link.fail_waiting("the server ended");
    }
    link.end();
}

/// Why there is no shepherd any more.
enum Loss {
    NotStarted(SpawnError),
    Gone(String),
}

/// The life of one shepherd; comes back without a loss if it is no longer wanted.
async fn run_one(
    link: &Link,
    settings: &Settings,
    service: &mut watch::Receiver<Service>,
) -> Result<(), Loss> {
    let met = ShepherdProcess::meet(settings.clone()).await;
    let Met { process, socket, shepherd } = met.map_err(Loss::NotStarted)?;
    let socket = Arc::new(socket);
    link.connect(Arc::clone(&socket), shepherd);
    let mut reports = Reports { decoder: Decoder::default(), buffer: vec![0; READ] };
    let wanted = tokio::select! {
        why = serve(link, &socket, &mut reports) => Err(Loss::Gone(why)),
        changed = service.wait_for(|service| *service != Service::Wanted) => {
            Ok(changed.map_or(Service::Ended, |service| *service))
        }
    };
    match wanted {
        Ok(Service::Left) => return Ok(()),
        Ok(Service::Ended | Service::Wanted) => {
            link.end_shepherd();
            // It closes its socket when nothing runs any more; what it says before has ended by itself.
            tokio::time::timeout(LAST_WORDS, serve(link, &socket, &mut reports)).await.ok();
        }
        Err(_) => {}
    }
    // Closes the socket: the link has the only other reference to it.
    link.release();
    drop(socket);
    process.wait().await;
    wanted.map(|_| ())
}

/// What was read from a shepherd and not taken in yet.
struct Reports {
    decoder: Decoder,
    buffer: Vec<u8>,
}

/// Passes on reports and waiting orders until the shepherd is gone; answers why. Nothing is lost if the caller stops waiting.
async fn serve(link: &Link, socket: &UnixStream, reports: &mut Reports) -> String {
    loop {
        let interest =
            if link.flush() { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
        tokio::select! {
            ready = socket.ready(interest) => match ready {
                Ok(ready) if ready.is_readable() => {
                    if let Err(why) = reports.read(link, socket) {
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

impl Reports {
    /// Takes in what is there to read.
    fn read(&mut self, link: &Link, socket: &UnixStream) -> Result<(), String> {
        let Self { decoder, buffer } = self;
        match socket.try_read(buffer) {
            Ok(0) => return Err("its socket was closed".into()),
            Ok(read) => decoder.extend(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
        while let Some(report) = decoder.next_message().map_err(|error| error.to_string())? {
            match report {
                Report::Fact(fact) => link.observe(fact),
                // It was said before.
                Report::Ready { .. } => {}
                Report::Notice(notice) => {
                    tracing::info!("{notice}");
                    link.observe_notice(notice);
                }
                Report::Failed { message } => return Err(message),
            }
        }
        Ok(())
    }
}
