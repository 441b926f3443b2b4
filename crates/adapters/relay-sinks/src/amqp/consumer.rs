//! Consuming: a durable queue of its own, bound to an exchange; each message stays until it is acknowledged.

use muster_ports::publisher::PublishError;

use super::connection::{CHANNEL, Connection, garbled};
use super::frame::{BODY, Frame, HEADER, METHOD, MethodId, method, put_frame};
use super::publisher::{declare_exchange, message_id};
use super::wire::{Decoder, Field};
use crate::address::Address;

const QUEUE_DECLARE: MethodId = (50, 10);
const QUEUE_DECLARE_OK: MethodId = (50, 11);
const QUEUE_BIND: MethodId = (50, 20);
const QUEUE_BIND_OK: MethodId = (50, 21);
const QOS: MethodId = (60, 10);
const QOS_OK: MethodId = (60, 11);
const CONSUME: MethodId = (60, 20);
const CONSUME_OK: MethodId = (60, 21);
const DELIVER: MethodId = (60, 60);
const ACK: MethodId = (60, 80);
const NACK: MethodId = (60, 120);
const DURABLE: u8 = 1 << 1;
const REQUEUE: u8 = 1 << 1;

/// A message that was delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Names it until it is acknowledged.
    pub tag: u64,
    /// It was delivered before, perhaps to somebody else.
    pub redelivered: bool,
    /// Routing key.
    pub topic: String,
    /// Id that its publisher gave it.
    pub id: String,
    /// What it says.
    pub body: Vec<u8>,
}

/// A consumer of one queue.
pub struct Consumer {
    connection: Connection,
    /// A message of which not all is here, and how long its body is.
    partial: Option<(Delivery, Option<usize>)>,
}

/// Makes a durable queue and binds it.
async fn declare_queue(
    connection: &mut Connection,
    exchange: &str,
    queue: &str,
    keys: &[&str],
    arguments: &[(&str, Field<'_>)],
) -> Result<(), PublishError> {
    let declared = connection.call(QUEUE_DECLARE, QUEUE_DECLARE_OK, |it| {
        it.short(0).text(queue).octet(DURABLE).table(arguments);
    });
    declared.await?;
    for key in keys {
        let bound = connection.call(QUEUE_BIND, QUEUE_BIND_OK, |it| {
            it.short(0).text(queue).text(exchange).text(key).octet(0).table(&[]);
        });
        bound.await?;
    }
    Ok(())
}

impl Consumer {
    /// Makes the queue, binds it, and begins. At most `prefetch` messages are here unacknowledged.
    pub async fn open(
        address: &Address,
        exchange: &str,
        queue: &str,
        keys: &[&str],
        prefetch: u16,
    ) -> Result<Self, PublishError> {
        let mut connection = Connection::open(address).await?;
        declare_exchange(&mut connection, exchange, "topic").await?;
        declare_queue(&mut connection, exchange, queue, keys, &[]).await?;
        Self::begin(connection, queue, prefetch).await
    }

    /// The same with a place for what is given up: a queue `…-dlq` behind an exchange `…-dlx`. What is given up goes there
    /// under the name of that queue, whatever its own key was, so that it is kept.
    pub async fn open_with_dead_letters(
        address: &Address,
        exchange: &str,
        queue: &str,
        keys: &[&str],
        prefetch: u16,
    ) -> Result<Self, PublishError> {
        let mut connection = Connection::open(address).await?;
        let (letters, kept) = (format!("{exchange}-dlx"), format!("{exchange}-dlq"));
        declare_exchange(&mut connection, exchange, "topic").await?;
        declare_exchange(&mut connection, &letters, "direct").await?;
        declare_queue(&mut connection, &letters, &kept, &[&kept], &[]).await?;
        let arguments = [
            ("x-dead-letter-exchange", Field::Text(&letters)),
            ("x-dead-letter-routing-key", Field::Text(&kept)),
        ];
        declare_queue(&mut connection, exchange, queue, keys, &arguments).await?;
        Self::begin(connection, queue, prefetch).await
    }

    /// Listens to a queue that is there.
    pub async fn open_queue(address: &Address, queue: &str, prefetch: u16) -> Result<Self, PublishError> {
        Self::begin(Connection::open(address).await?, queue, prefetch).await
    }

    async fn begin(mut connection: Connection, queue: &str, prefetch: u16) -> Result<Self, PublishError> {
        connection
            .call(QOS, QOS_OK, |it| {
                it.long(0).short(prefetch).octet(0);
            })
            .await?;
        let consuming = connection.call(CONSUME, CONSUME_OK, |it| {
            it.short(0).text(queue).text("").octet(0).table(&[]);
        });
        consuming.await?;
        Ok(Self { connection, partial: None })
    }

    /// The next message. Can be given up without loss.
    pub async fn next(&mut self) -> Result<Delivery, PublishError> {
        loop {
            let frame = self.connection.next_frame().await?;
            self.take_in(&frame)?;
            let is_whole = |(delivery, size): &mut (Delivery, Option<usize>)| {
                size.is_some_and(|size| delivery.body.len() >= size)
            };
            if let Some((delivery, _)) = self.partial.take_if(is_whole) {
                return Ok(delivery);
            }
        }
    }

    fn take_in(&mut self, frame: &Frame) -> Result<(), PublishError> {
        match (frame.sort, &mut self.partial) {
            (HEADER, Some((delivery, size))) => {
                delivery.id = message_id(&frame.payload).unwrap_or_default();
                let mut header = Decoder(&frame.payload);
                header.take(4).ok_or_else(garbled)?;
                let told = header.long_long().ok_or_else(garbled)?;
                *size = Some(usize::try_from(told).map_err(|_| garbled())?);
            }
            (BODY, Some((delivery, _))) => delivery.body.extend_from_slice(&frame.payload),
            _ => {
                let Some((DELIVER, mut arguments)) = frame.as_method() else { return Ok(()) };
                arguments.text().ok_or_else(garbled)?;
                let tag = arguments.long_long().ok_or_else(garbled)?;
                let redelivered = arguments.octet().ok_or_else(garbled)? & 1 == 1;
                arguments.text().ok_or_else(garbled)?;
                let topic = arguments.text().ok_or_else(garbled)?.to_owned();
                let delivery = Delivery { tag, redelivered, topic, id: String::new(), body: Vec::new() };
                self.partial = Some((delivery, None));
            }
        }
        Ok(())
    }

    /// A message was dealt with; with `all`, so was every one before it.
    pub async fn acknowledge(&self, tag: u64, all: bool) -> Result<(), PublishError> {
        self.answer(&method(ACK, |it| {
            it.long_long(tag).octet(u8::from(all));
        }))
        .await
    }

    /// A message was not dealt with: it is delivered again, or given up.
    pub async fn reject(&self, tag: u64, again: bool) -> Result<(), PublishError> {
        let bits = if again { REQUEUE } else { 0 };
        self.answer(&method(NACK, |it| {
            it.long_long(tag).octet(bits);
        }))
        .await
    }

    async fn answer(&self, payload: &[u8]) -> Result<(), PublishError> {
        let mut bytes = Vec::new();
        put_frame(&mut bytes, METHOD, CHANNEL, payload);
        self.connection.write(bytes).await
    }
}
