//! MQTT 3.1.1: publishing with quality of service 1.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use muster_egress::EgressPolicy;
use muster_ports::publisher::{Boxed, PublishError, Publisher, Session, Verdict};
use muster_types::Message;

use crate::address::Address;
use crate::line::Line;
use crate::stream::connect;

/// After this much silence either side takes the other for dead.
const SILENCE: Duration = Duration::from_secs(45);
/// Time for the broker to answer.
const PATIENCE: Duration = Duration::from_secs(15);
const CONNECT: u8 = 0x10;
const CONNACK: u8 = 0x20;
const PUBLISH_ONCE_OR_MORE: u8 = 0x32;
const PUBACK: u8 = 0x40;
const PING: [u8; 2] = [0xC0, 0];
const CLEAN_SESSION: u8 = 0x02;
const HAS_USER: u8 = 0x80;
const HAS_PASSWORD: u8 = 0x40;

/// A topic of a broker, below which messages go.
#[derive(Debug, Clone)]
pub struct MqttPublisher {
    address: Address,
    topic: String,
    client: String,
    policy: Arc<EgressPolicy>,
}

impl MqttPublisher {
    /// `client` names us; of two with the same name the broker keeps the later one.
    pub fn new(address: Address, topic: &str, client: &str, policy: Arc<EgressPolicy>) -> Self {
        let topic = topic.trim_end_matches('/').to_owned();
        Self { address, topic, client: client.to_owned(), policy }
    }

    fn greeting(&self) -> Vec<u8> {
        let mut body = Vec::new();
        text(&mut body, "MQTT");
        let who = if self.address.user.is_empty() { 0 } else { HAS_USER | HAS_PASSWORD };
        body.extend([4, CLEAN_SESSION | who]);
        body.extend(u16::try_from(SILENCE.as_secs()).unwrap_or(u16::MAX).to_be_bytes());
        text(&mut body, &self.client);
        if who != 0 {
            text(&mut body, &self.address.user);
            text(&mut body, &self.address.password);
        }
        packet(CONNECT, &body)
    }
}

impl Publisher for MqttPublisher {
    fn open(&self) -> Boxed<'_, Result<Box<dyn Session>, PublishError>> {
        Box::pin(async {
            let usual_port = if self.address.is_secure() { 8883 } else { 1883 };
            let stream = connect(&self.address, usual_port, &self.policy).await?;
            let mut line = Line::new(stream, PING.to_vec(), SILENCE);
            line.write(self.greeting()).await?;
            let silent = |_| PublishError::new("Unreachable", "the broker does not answer");
            let (sort, body) =
                tokio::time::timeout(PATIENCE, next_packet(&mut line)).await.map_err(silent)??;
            match (sort, body.get(1)) {
                (CONNACK, Some(0)) => {}
                (CONNACK, Some(4 | 5)) => {
                    return Err(PublishError::new(
                        "AccessRefused",
                        "the broker refuses the user and password",
                    ));
                }
                (CONNACK, Some(code)) => {
                    return Err(PublishError::new("BrokerRefused", format!("the broker says {code}")));
                }
                _ => return Err(garbled()),
            }
            let topic = self.topic.clone();
            let session = MqttSession { line, topic, sent: BTreeMap::new(), last: 0 };
            Ok(Box::new(session) as Box<dyn Session>)
        })
    }
}

struct MqttSession {
    line: Line,
    topic: String,
    /// By the number of the packet: ours.
    sent: BTreeMap<u16, u64>,
    last: u16,
}

impl MqttSession {
    /// A number that is free: there are more numbers than messages under way.
    fn next_number(&mut self) -> Option<u16> {
        if self.sent.len() >= usize::from(u16::MAX) {
            return None;
        }
        loop {
            self.last = self.last.checked_add(1).unwrap_or(1);
            if !self.sent.contains_key(&self.last) {
                return Some(self.last);
            }
        }
    }
}

impl Session for MqttSession {
    fn send<'a>(&'a mut self, messages: &'a [(u64, Arc<Message>)]) -> Boxed<'a, Result<(), PublishError>> {
        Box::pin(async move {
            let mut bytes = Vec::new();
            for (number, message) in messages {
                let packet_number = self.next_number().ok_or_else(|| {
                    PublishError::new("WindowTooLarge", "MQTT numbers only 65535 messages at once")
                })?;
                self.sent.insert(packet_number, *number);
                let mut body = Vec::with_capacity(message.body.len() + 128);
                text(&mut body, &format!("{}/{}", self.topic, message.topic));
                body.extend(packet_number.to_be_bytes());
                body.extend_from_slice(&message.body);
                bytes.extend(packet(PUBLISH_ONCE_OR_MORE, &body));
            }
            self.line.write(bytes).await
        })
    }

    fn verdicts(&mut self) -> Boxed<'_, Result<Vec<(u64, Verdict)>, PublishError>> {
        Box::pin(async {
            let mut verdicts = Vec::new();
            loop {
                while let Some((sort, body)) = take_packet(&mut self.line.buffer)? {
                    if let (PUBACK, Some([high, low])) = (sort, body.get(..2)) {
                        let number = self.sent.remove(&u16::from_be_bytes([*high, *low]));
                        verdicts.extend(number.map(|number| (number, Verdict::Confirmed)));
                    }
                }
                if !verdicts.is_empty() {
                    return Ok(verdicts);
                }
                self.line.fill().await?;
            }
        })
    }
}

fn garbled() -> PublishError {
    PublishError::new("Unreachable", "the broker does not speak MQTT 3.1.1")
}

fn text(out: &mut Vec<u8>, text: &str) {
    let cut = &text.as_bytes()[..text.floor_char_boundary(usize::from(u16::MAX))];
    out.extend(u16::try_from(cut.len()).unwrap_or(u16::MAX).to_be_bytes());
    out.extend_from_slice(cut);
}

fn packet(head: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![head];
    let mut left = body.len();
    loop {
        let digit = u8::try_from(left % 128).unwrap_or(0);
        left /= 128;
        out.push(if left > 0 { digit | 0x80 } else { digit });
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(body);
    out
}

async fn next_packet(line: &mut Line) -> Result<(u8, Vec<u8>), PublishError> {
    loop {
        if let Some(packet) = take_packet(&mut line.buffer)? {
            return Ok(packet);
        }
        line.fill().await?;
    }
}

/// Takes the first packet out of a buffer, if it is whole.
fn take_packet(buffer: &mut BytesMut) -> Result<Option<(u8, Vec<u8>)>, PublishError> {
    let mut size = 0_usize;
    for place in 1..=4 {
        let Some(digit) = buffer.get(place).copied() else { return Ok(None) };
        size += usize::from(digit & 0x7F) << (7 * (place - 1));
        if digit & 0x80 == 0 {
            if buffer.len() < 1 + place + size {
                return Ok(None);
            }
            let sort = buffer.first().copied().unwrap_or(0) & 0xF0;
            buffer.advance(1 + place);
            return Ok(Some((sort, buffer.split_to(size).to_vec())));
        }
    }
    Err(garbled())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_taken_when_they_are_whole() {
        let large = packet(PUBACK, &[7; 300]);
        let mut buffer = BytesMut::from(&large[..200]);
        assert!(take_packet(&mut buffer).unwrap().is_none());
        buffer.extend_from_slice(&large[200..]);
        buffer.extend_from_slice(&PING);
        assert_eq!(take_packet(&mut buffer).unwrap(), Some((PUBACK, vec![7; 300])));
        assert_eq!(take_packet(&mut buffer).unwrap(), Some((0xC0, vec![])));
        assert!(take_packet(&mut BytesMut::from(&[0x20, 255, 255, 255, 255][..])).is_err());
    }
}
