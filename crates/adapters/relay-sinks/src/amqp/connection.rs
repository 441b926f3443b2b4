//! A connection with one channel.

use std::time::Duration;

use muster_ports::publisher::PublishError;

use super::frame::{Frame, HEARTBEAT, METHOD, MethodId, method, put_frame, take_frame};
use super::wire::Field;
use crate::address::Address;
use crate::line::Line;
use crate::stream::connect;

/// Time for the broker to answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often each side shows that it is alive, in seconds.
const HEARTBEATS: u16 = 10;
/// Largest frame we take and make.
const FRAME_MAX: u32 = 131_072;
/// The one channel.
pub const CHANNEL: u16 = 1;

const START: MethodId = (10, 10);
const START_OK: MethodId = (10, 11);
const TUNE: MethodId = (10, 30);
const TUNE_OK: MethodId = (10, 31);
const OPEN: MethodId = (10, 40);
const OPEN_OK: MethodId = (10, 41);
const CLOSE: MethodId = (10, 50);
const BLOCKED: MethodId = (10, 60);
const CHANNEL_OPEN: MethodId = (20, 10);
const CHANNEL_OPEN_OK: MethodId = (20, 11);
const CHANNEL_CLOSE: MethodId = (20, 40);

/// An open connection.
pub struct Connection {
    line: Line,
    frame_max: usize,
}

impl Connection {
    /// Connects, says who we are, and opens the channel.
    pub async fn open(address: &Address) -> Result<Self, PublishError> {
        let usual_port = if address.is_secure() { 5671 } else { 5672 };
        let mut heartbeat = Vec::new();
        put_frame(&mut heartbeat, HEARTBEAT, 0, b"");
        let silence = Duration::from_secs(u64::from(HEARTBEATS) * 2);
        let line = Line::new(connect(address, usual_port).await?, heartbeat, silence);
        line.write(b"AMQP\0\0\x09\x01".to_vec()).await?;
        let mut connection = Self { line, frame_max: FRAME_MAX as usize };
        let greeting = connection.greet(address);
        tokio::time::timeout(PATIENCE, greeting).await.map_err(|_| garbled())??;
        Ok(connection)
    }

    async fn greet(&mut self, address: &Address) -> Result<(), PublishError> {
        self.expect(START).await?;
        let user = if address.user.is_empty() { "guest" } else { &address.user };
        let password = if address.user.is_empty() { "guest" } else { &address.password };
        let proof = format!("\0{user}\0{password}");
        let able = ["publisher_confirms", "basic.nack", "connection.blocked", "authentication_failure_close"];
        let start = method(START_OK, |it| {
            let fields = [("product", Field::Text("muster")), ("capabilities", Field::Flags(&able))];
            it.table(&fields).text("PLAIN").long_text(proof.as_bytes()).text("en_US");
        });
        self.write_method(0, &start).await?;
        let tune = self.expect(TUNE).await?;
        let (_, mut arguments) = tune.as_method().ok_or_else(garbled)?;
        let channels = arguments.short().ok_or_else(garbled)?;
        let offered = arguments.long().ok_or_else(garbled)?;
        let frame_max = if offered == 0 { FRAME_MAX } else { offered.min(FRAME_MAX) };
        self.frame_max = frame_max as usize;
        let tune = method(TUNE_OK, |it| {
            it.short(channels).long(frame_max).short(HEARTBEATS);
        });
        self.write_method(0, &tune).await?;
        let place = address.decoded_path().filter(|path| !path.is_empty()).unwrap_or_else(|| "/".to_owned());
        let open = method(OPEN, |it| {
            it.text(&place).text("").octet(0);
        });
        self.write_method(0, &open).await?;
        self.expect(OPEN_OK).await?;
        self.call(CHANNEL_OPEN, CHANNEL_OPEN_OK, |it| {
            it.text("");
        })
        .await
        .map(drop)
    }

    /// Asks for something on the channel, and waits for the answer.
    pub async fn call(
        &mut self,
        ask: MethodId,
        answer: MethodId,
        arguments: impl FnOnce(&mut super::wire::Encoder),
    ) -> Result<Frame, PublishError> {
        let bytes = method(ask, arguments);
        self.write_method(CHANNEL, &bytes).await?;
        self.expect(answer).await
    }

    async fn write_method(&self, channel: u16, payload: &[u8]) -> Result<(), PublishError> {
        let mut bytes = Vec::with_capacity(payload.len() + 8);
        put_frame(&mut bytes, METHOD, channel, payload);
        self.write(bytes).await
    }

    /// Hands over whole frames to be written.
    pub async fn write(&self, bytes: Vec<u8>) -> Result<(), PublishError> {
        self.line.write(bytes).await
    }

    /// Largest body of a frame.
    pub fn body_max(&self) -> usize {
        self.frame_max - 8
    }

    async fn expect(&mut self, wanted: MethodId) -> Result<Frame, PublishError> {
        let reading = async {
            loop {
                let frame = self.next_frame().await?;
                if frame.as_method().is_some_and(|(id, _)| id == wanted) {
                    return Ok(frame);
                }
            }
        };
        let silent = |_| PublishError::new("Unreachable", "the broker does not answer");
        tokio::time::timeout(PATIENCE, reading).await.map_err(silent)?
    }

    /// The next frame that is not about the connection itself. Can be given up without loss.
    pub async fn next_frame(&mut self) -> Result<Frame, PublishError> {
        loop {
            if let Some(frame) = self.buffered_frame()? {
                return Ok(frame);
            }
            self.line.fill().await?;
        }
    }

    /// The next frame that is here already.
    pub fn buffered_frame(&mut self) -> Result<Option<Frame>, PublishError> {
        while let Some(frame) = take_frame(&mut self.line.buffer, self.frame_max).map_err(|_| garbled())? {
            if frame.sort == HEARTBEAT {
                continue;
            }
            refuse_endings(&frame)?;
            return Ok(Some(frame));
        }
        Ok(None)
    }
}

/// What ends the connection or the channel, or the broker's willingness.
fn refuse_endings(frame: &Frame) -> Result<(), PublishError> {
    let Some((id, mut arguments)) = frame.as_method() else { return Ok(()) };
    match id {
        CLOSE | CHANNEL_CLOSE => {
            let code = arguments.short().unwrap_or(0);
            let text = arguments.text().unwrap_or_default();
            let reason = match code {
                403 => "AccessRefused",
                406 => "ExchangeMismatch",
                404 | 530 => "NotFound",
                320 => "Disconnected",
                _ => "BrokerRefused",
            };
            Err(PublishError::new(reason, format!("the broker says {code}: {text}")))
        }
        BLOCKED => {
            let why = arguments.text().unwrap_or_default();
            Err(PublishError::new("Blocked", format!("the broker takes no messages: {why}")))
        }
        _ => Ok(()),
    }
}

pub fn garbled() -> PublishError {
    PublishError::new("Unreachable", "the broker does not speak AMQP 0-9-1")
}
