//! Publishing with confirms: persistent and mandatory, so that a confirmed message is on a queue.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::{AMQPValue, FieldTable, LongString};
use lapin::{BasicProperties, Confirmation, Error, ExchangeKind};
use muster_egress::EgressPolicy;
use muster_ports::publisher::{Boxed, PublishError, Publisher, Session, Verdict};
use muster_types::Message;

use super::connection::{Connection, broken};
use crate::address::Address;

const PERSISTENT: u8 = 2;

/// A topic exchange of a broker.
#[derive(Debug, Clone)]
pub struct AmqpPublisher {
    address: Address,
    exchange: String,
    policy: Arc<EgressPolicy>,
}

impl AmqpPublisher {
    /// The exchange, which is made if it is not there.
    pub fn new(address: Address, exchange: &str, policy: Arc<EgressPolicy>) -> Self {
        Self { address, exchange: exchange.to_owned(), policy }
    }
}

impl Publisher for AmqpPublisher {
    fn open(&self) -> Boxed<'_, Result<Box<dyn Session>, PublishError>> {
        Box::pin(async {
            let connection = Connection::open_within(&self.address, &self.policy).await?;
            connection.declare_exchange(&self.exchange, ExchangeKind::Topic).await?;
            let confirming = connection.channel.confirm_select(ConfirmSelectOptions::default());
            confirming.await.map_err(|error| broken(&error))?;
            let confirms = FuturesUnordered::new();
            let session = AmqpSession { connection, exchange: self.exchange.clone(), confirms };
            Ok(Box::new(session) as Box<dyn Session>)
        })
    }
}

/// What will be known of a message.
type Confirm = Pin<Box<dyn Future<Output = (u64, Result<Confirmation, Error>)> + Send>>;

struct AmqpSession {
    connection: Connection,
    exchange: String,
    confirms: FuturesUnordered<Confirm>,
}

impl Session for AmqpSession {
    fn send<'a>(&'a mut self, messages: &'a [(u64, Arc<Message>)]) -> Boxed<'a, Result<(), PublishError>> {
        Box::pin(async move {
            for (number, message) in messages {
                let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
                let sent = self.connection.channel.basic_publish(
                    self.exchange.as_str().into(),
                    message.topic.as_str().into(),
                    options,
                    &message.body,
                    properties_of(message),
                );
                let (confirm, number) = (sent.await.map_err(|error| broken(&error))?, *number);
                self.confirms.push(Box::pin(async move { (number, confirm.await) }));
            }
            Ok(())
        })
    }

    fn verdicts(&mut self) -> Boxed<'_, Result<Vec<(u64, Verdict)>, PublishError>> {
        Box::pin(async {
            let first = tokio::select! {
                Some(first) = self.confirms.next() => first,
                ending = self.connection.ending() => return Err(ending),
            };
            let mut verdicts = vec![self.judge(first)?];
            // Whatever is known is told at once.
            while let Some(Some(next)) = self.confirms.next().now_or_never() {
                verdicts.push(self.judge(next)?);
            }
            Ok(verdicts)
        })
    }
}

impl AmqpSession {
    fn judge(
        &self,
        (number, confirmation): (u64, Result<Confirmation, Error>),
    ) -> Result<(u64, Verdict), PublishError> {
        let refused = |reason, text| Verdict::Refused { error: PublishError::new(reason, text), tries: None };
        let verdict = match confirmation.map_err(|error| broken(&error))? {
            // A message that nobody wants comes back, and what confirms it says only that it did.
            Confirmation::Ack(Some(returned)) | Confirmation::Nack(Some(returned)) => {
                let (topic, exchange) = (&returned.delivery.routing_key, &self.exchange);
                refused("Unroutable", format!("no queue is bound to {exchange} for {topic}; bind one"))
            }
            Confirmation::Ack(None) => Verdict::Confirmed,
            Confirmation::Nack(None) | Confirmation::NotRequested => {
                refused("Refused", "the broker could not keep it".to_owned())
            }
        };
        Ok((number, verdict))
    }
}

fn properties_of(message: &Message) -> BasicProperties {
    let mut headers = FieldTable::default();
    for (name, value) in &message.attributes {
        // Names as the AMQP binding of CloudEvents has them, in the form that travels through headers everywhere.
        let value = AMQPValue::LongString(LongString::from(value.as_str()));
        headers.insert(format!("cloudEvents_{name}").into(), value);
    }
    BasicProperties::default()
        .with_content_type(message.content_type.into())
        .with_headers(headers)
        .with_delivery_mode(PERSISTENT)
        .with_message_id(message.id.as_str().into())
}
