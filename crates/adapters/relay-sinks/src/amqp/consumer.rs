//! Consuming: a durable queue of its own, bound to an exchange; each message stays until it is acknowledged.

use futures_util::StreamExt as _;
use lapin::ExchangeKind;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions};
use lapin::types::FieldTable;
use muster_ports::publisher::PublishError;

use super::connection::{Connection, broken};
use crate::address::Address;

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
    deliveries: lapin::Consumer,
    connection: Connection,
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
        let connection = Connection::open(address).await?;
        connection.declare_exchange(exchange, ExchangeKind::Topic).await?;
        connection.declare_queue(exchange, queue, keys, &[]).await?;
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
        let connection = Connection::open(address).await?;
        let (letters, kept) = (format!("{exchange}-dlx"), format!("{exchange}-dlq"));
        connection.declare_exchange(exchange, ExchangeKind::Topic).await?;
        connection.declare_exchange(&letters, ExchangeKind::Direct).await?;
        connection.declare_queue(&letters, &kept, &[&kept], &[]).await?;
        let arguments = [("x-dead-letter-exchange", &*letters), ("x-dead-letter-routing-key", &*kept)];
        connection.declare_queue(exchange, queue, keys, &arguments).await?;
        Self::begin(connection, queue, prefetch).await
    }

    /// Listens to a queue that is there.
    pub async fn open_queue(address: &Address, queue: &str, prefetch: u16) -> Result<Self, PublishError> {
        Self::begin(Connection::open(address).await?, queue, prefetch).await
    }

    async fn begin(connection: Connection, queue: &str, prefetch: u16) -> Result<Self, PublishError> {
        let channel = &connection.channel;
        let limited = channel.basic_qos(prefetch, BasicQosOptions::default());
        limited.await.map_err(|error| broken(&error))?;
        let (options, table) = (BasicConsumeOptions::default(), FieldTable::default());
        let begun = channel.basic_consume(queue.into(), "".into(), options, table);
        let deliveries = begun.await.map_err(|error| broken(&error))?;
        Ok(Self { deliveries, connection })
    }

    /// The next message. Can be given up without loss.
    pub async fn next(&mut self) -> Result<Delivery, PublishError> {
        match self.deliveries.next().await {
            Some(Ok(delivery)) => Ok(Delivery {
                tag: delivery.delivery_tag,
                redelivered: delivery.redelivered,
                topic: delivery.routing_key.to_string(),
                id: delivery.properties.message_id().as_ref().map(ToString::to_string).unwrap_or_default(),
                body: delivery.data,
            }),
            Some(Err(error)) => Err(broken(&error)),
            None => Err(PublishError::new("Disconnected", "the broker gives no more messages")),
        }
    }

    /// A message was dealt with; with `all`, so was every one before it.
    pub async fn acknowledge(&self, tag: u64, all: bool) -> Result<(), PublishError> {
        let answered = self.connection.channel.basic_ack(tag, BasicAckOptions { multiple: all });
        answered.await.map(drop).map_err(|error| broken(&error))
    }

    /// A message was not dealt with: it is delivered again, or given up.
    pub async fn reject(&self, tag: u64, again: bool) -> Result<(), PublishError> {
        let options = BasicNackOptions { multiple: false, requeue: again };
        let answered = self.connection.channel.basic_nack(tag, options);
        answered.await.map(drop).map_err(|error| broken(&error))
    }
}
