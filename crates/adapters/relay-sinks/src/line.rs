//! A connection that is read in pieces and written by a worker.
//!
//! Reading keeps its place in a buffer, so it can be given up and taken up again. The worker also shows that we are alive; a
//! server that takes nothing for a while ends the connection.

use std::time::Duration;

use bytes::BytesMut;
use muster_ports::publisher::PublishError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::stream::Duplex;

/// Time for a server to take what it is sent.
const PATIENCE: Duration = Duration::from_secs(15);
/// Pieces that wait to be written.
const QUEUE: usize = 16;

/// A connection.
pub struct Line {
    reader: ReadHalf<Box<dyn Duplex>>,
    /// What was read and not yet taken.
    pub buffer: BytesMut,
    last_read: Instant,
    silence: Duration,
    writer: mpsc::Sender<Vec<u8>>,
    writing: JoinHandle<()>,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.writing.abort();
    }
}

impl Line {
    /// Takes a connection over. `sign` is written when nothing else was for a third of the longest silence, after which
    /// either side takes the other for dead.
    pub fn new(stream: Box<dyn Duplex>, sign: Vec<u8>, silence: Duration) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        let (sender, pieces) = mpsc::channel(QUEUE);
        Self {
            reader,
            buffer: BytesMut::with_capacity(64 * 1024),
            last_read: Instant::now(),
            silence,
            writer: sender,
            writing: tokio::spawn(write(writer, pieces, sign, silence / 3)),
        }
    }

    /// Hands over bytes to be written.
    pub async fn write(&self, bytes: Vec<u8>) -> Result<(), PublishError> {
        match tokio::time::timeout(PATIENCE, self.writer.send(bytes)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(closed()),
            Err(_) => {
                let advice = "the server takes nothing; look at its memory and disk alarms";
                Err(PublishError::new("Blocked", advice))
            }
        }
    }

    /// Waits for more bytes in the buffer. Can be given up without loss.
    pub async fn fill(&mut self) -> Result<(), PublishError> {
        let limit = self.last_read + self.silence;
        let read = tokio::time::timeout_at(limit, self.reader.read_buf(&mut self.buffer)).await;
        let read = read.map_err(|_| PublishError::new("Disconnected", "the server is silent"))?;
        self.last_read = Instant::now();
        match read {
            Ok(0) => Err(closed()),
            Ok(_) => Ok(()),
            Err(error) => {
                Err(PublishError::new("Disconnected", format!("the connection to the server broke: {error}")))
            }
        }
    }
}

fn closed() -> PublishError {
    PublishError::new("Disconnected", "the server closed the connection")
}

async fn write(
    mut stream: WriteHalf<Box<dyn Duplex>>,
    mut pieces: mpsc::Receiver<Vec<u8>>,
    sign: Vec<u8>,
    pause: Duration,
) {
    loop {
        let written = match tokio::time::timeout(pause, pieces.recv()).await {
            Ok(None) => return,
            Ok(Some(piece)) => stream.write_all(&piece).await,
            Err(_) => stream.write_all(&sign).await,
        };
        // The reader notices too, and says why.
        if written.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
}
