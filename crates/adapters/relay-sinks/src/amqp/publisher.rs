//! Publishing with confirms: persistent and mandatory, so that a confirmed message is on a queue.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_ports::publisher::{Boxed, PublishError, Publisher, Session, Verdict};
use muster_types::Message;

use super::connection::{CHANNEL, Connection, garbled};
use super::frame::{BODY, Frame, HEADER, METHOD, MethodId, method, put_frame};
use super::wire::{Decoder, Encoder, Field};
use crate::address::Address;

const EXCHANGE_DECLARE: MethodId = (40, 10);
const EXCHANGE_DECLARE_OK: MethodId = (40, 11);
const CONFIRM_SELECT: MethodId = (85, 10);
const CONFIRM_SELECT_OK: MethodId = (85, 11);
const PUBLISH: MethodId = (60, 40);
const ACK: MethodId = (60, 80);
const NACK: MethodId = (60, 120);
/// Content type, headers, delivery mode, message id.
const PROPERTIES: u16 = 1 << 15 | 1 << 13 | 1 << 12 | 1 << 7;
const PERSISTENT: u8 = 2;
const DURABLE: u8 = 1 << 1;
const MANDATORY: u8 = 1;

/// A topic exchange of a broker.
#[derive(Debug, Clone)]
pub struct AmqpPublisher {
    address: Address,
    exchange: String,
}

impl AmqpPublisher {
    /// The exchange, which is made if it is not there.
    pub fn new(address: Address, exchange: &str) -> Self {
        Self { address, exchange: exchange.to_owned() }
    }
}

impl Publisher for AmqpPublisher {
    fn open(&self) -> Boxed<'_, Result<Box<dyn Session>, PublishError>> {
        Box::pin(async {
            let mut connection = Connection::open(&self.address).await?;
            declare_exchange(&mut connection, &self.exchange, "topic").await?;
            connection
                .call(CONFIRM_SELECT, CONFIRM_SELECT_OK, |it| {
                    it.octet(0);
                })
                .await?;
            let (exchange, sent) = (self.exchange.clone(), BTreeMap::new());
            let session = AmqpSession { connection, exchange, sent, last_tag: 0, returned: BTreeSet::new() };
            Ok(Box::new(session) as Box<dyn Session>)
        })
    }
}

/// Makes a durable exchange, or finds it as it is.
pub async fn declare_exchange(
    connection: &mut Connection,
    exchange: &str,
    sort: &str,
) -> Result<(), PublishError> {
    let declared = connection.call(EXCHANGE_DECLARE, EXCHANGE_DECLARE_OK, |it| {
        it.short(0).text(exchange).text(sort).octet(DURABLE).table(&[]);
    });
    declared.await.map(drop)
}

struct AmqpSession {
    connection: Connection,
    exchange: String,
    /// By the broker's number: ours, and the id of the message.
    sent: BTreeMap<u64, (u64, Arc<Message>)>,
    last_tag: u64,
    /// Ids of messages that came back; what confirms them says only that they did.
    returned: BTreeSet<String>,
}

impl Session for AmqpSession {
    fn send<'a>(&'a mut self, messages: &'a [(u64, Arc<Message>)]) -> Boxed<'a, Result<(), PublishError>> {
        Box::pin(async move {
            let mut bytes = Vec::with_capacity(messages.len() * 512);
            for (number, message) in messages {
                put_message(&mut bytes, &self.exchange, message, self.connection.body_max());
                self.last_tag += 1;
                self.sent.insert(self.last_tag, (*number, message.clone()));
            }
            self.connection.write(bytes).await
        })
    }

    fn verdicts(&mut self) -> Boxed<'_, Result<Vec<(u64, Verdict)>, PublishError>> {
        Box::pin(async {
            let mut verdicts = Vec::new();
            let mut frame = Some(self.connection.next_frame().await?);
            while let Some(found) = frame {
                self.judge(&found, &mut verdicts)?;
                frame = match self.connection.buffered_frame()? {
                    // What was heard must be told before waiting again.
                    None if verdicts.is_empty() => Some(self.connection.next_frame().await?),
                    next => next,
                };
            }
            Ok(verdicts)
        })
    }
}

impl AmqpSession {
    fn judge(&mut self, frame: &Frame, verdicts: &mut Vec<(u64, Verdict)>) -> Result<(), PublishError> {
        if frame.sort == HEADER {
            // Only what came back has content here.
            self.returned.extend(message_id(&frame.payload));
            return Ok(());
        }
        let Some((id, mut arguments)) = frame.as_method() else { return Ok(()) };
        match id {
            ACK | NACK => {
                let tag = arguments.long_long().ok_or_else(garbled)?;
                let multiple = arguments.octet().ok_or_else(garbled)? & 1 == 1;
                for (number, message) in self.take_tags(tag, multiple) {
                    verdicts.push((number, self.verdict(&message, id == ACK)));
                }
                Ok(())
            }
            // A message that came back is known by its header, which follows.
            _ => Ok(()),
        }
    }

    fn take_tags(&mut self, tag: u64, multiple: bool) -> Vec<(u64, Arc<Message>)> {
        if !multiple {
            return self.sent.remove(&tag).into_iter().collect();
        }
        let later = self.sent.split_off(&(tag + 1));
        std::mem::replace(&mut self.sent, later).into_values().collect()
    }

    fn verdict(&mut self, message: &Message, is_taken: bool) -> Verdict {
        let refused = |reason, text| Verdict::Refused { error: PublishError::new(reason, text), tries: None };
        if self.returned.remove(&message.id) {
            let (topic, exchange) = (&message.topic, &self.exchange);
            return refused("Unroutable", format!("no queue is bound to {exchange} for {topic}; bind one"));
        }
        if is_taken {
            Verdict::Confirmed
        } else {
            refused("Refused", "the broker could not keep it".to_owned())
        }
    }
}

/// The id of a message, from its header.
pub fn message_id(payload: &[u8]) -> Option<String> {
    let mut header = Decoder(payload);
    header.take(12)?;
    let flags = header.short()?;
    let has = |bit: u16| flags & (1 << bit) != 0;
    for bit in [15, 14] {
        if has(bit) {
            header.text()?;
        }
    }
    if has(13) {
        header.long_text()?;
    }
    for bit in [12, 11] {
        if has(bit) {
            header.octet()?;
        }
    }
    for bit in [10, 9, 8] {
        if has(bit) {
            header.text()?;
        }
    }
    has(7).then(|| header.text().map(str::to_owned))?
}

/// The frames of a message.
fn put_message(bytes: &mut Vec<u8>, exchange: &str, message: &Message, body_max: usize) {
    let publish = method(PUBLISH, |it| {
        it.short(0).text(exchange).text(&message.topic).octet(MANDATORY);
    });
    put_frame(bytes, METHOD, CHANNEL, &publish);
    let mut header = Encoder::default();
    header.short(60).short(0).long_long(message.body.len() as u64).short(PROPERTIES);
    header.text(message.content_type);
    // Names as the AMQP binding of CloudEvents has them, in the form that travels through headers everywhere.
    let names: Vec<_> =
        message.attributes.iter().map(|(name, value)| (format!("cloudEvents_{name}"), value)).collect();
    let fields: Vec<_> = names.iter().map(|(name, value)| (name.as_str(), Field::Text(value))).collect();
    header.table(&fields);
    header.octet(PERSISTENT).text(&message.id);
    put_frame(bytes, HEADER, CHANNEL, &header.0);
    for part in message.body.chunks(body_max) {
        put_frame(bytes, BODY, CHANNEL, part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_comes_back_is_known_by_its_id() {
        let mut header = Encoder::default();
        header.short(60).short(0).long_long(3).short(PROPERTIES);
        header.text("application/json").table(&[("a", Field::Text("b"))]).octet(2).text("u/success");
        assert_eq!(message_id(&header.0).as_deref(), Some("u/success"));
        assert_eq!(message_id(&header.0[..14]), None);
    }
}
