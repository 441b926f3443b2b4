//! Signals by which a user stops a command that goes on.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A wish of the user to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopWord {
    HangUp,
    Interrupt,
    Terminate,
}

impl StopWord {
    /// The exit code of a program that it ended.
    pub fn code(self) -> i32 {
        match self {
            Self::HangUp => 129,
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// What the user may say while a command goes on.
pub struct Signals {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Listens from now on.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> StopWord {
        tokio::select! {
            _ = self.hangup.recv() => StopWord::HangUp,
            _ = self.interrupt.recv() => StopWord::Interrupt,
            _ = self.terminate.recv() => StopWord::Terminate,
        }
    }
}
