//! The queue of the responders: one for all of them, with a place for what cannot be dealt with.

use muster_ports::inbox::{Answer, Delivered, Inbox, Inboxes};
use muster_ports::publisher::{Boxed, PublishError};

use super::{Consumer, Delivery};
use crate::address::Address;

/// Messages that are here unanswered.
const PREFETCH: u16 = 8;
/// What responders hear of. Nothing that the relay tells is without a queue then.
const KEYS: [&str; 1] = ["cds.job.*"];

/// A queue bound to an exchange.
#[derive(Debug, Clone)]
pub struct AmqpInboxes {
    address: Address,
    exchange: String,
    queue: String,
}

impl AmqpInboxes {
    /// The queue, which is made if it is not there; so are the exchange and the place for dead letters.
    pub fn new(address: Address, exchange: &str, queue: &str) -> Self {
        Self { address, exchange: exchange.to_owned(), queue: queue.to_owned() }
    }
}

impl Inboxes for AmqpInboxes {
    fn open(&self) -> Boxed<'_, Result<Box<dyn Inbox>, PublishError>> {
        Box::pin(async {
            let Self { address, exchange, queue } = self;
            let opened = Consumer::open_with_dead_letters(address, exchange, queue, &KEYS, PREFETCH);
            Ok(Box::new(AmqpInbox(opened.await?)) as Box<dyn Inbox>)
        })
    }
}

struct AmqpInbox(Consumer);

impl Inbox for AmqpInbox {
    fn next(&mut self) -> Boxed<'_, Result<Delivered, PublishError>> {
        Box::pin(async {
            let Delivery { tag, topic, id, body, .. } = self.0.next().await?;
            Ok(Delivered { tag, topic, id, body })
        })
    }

    fn answer(&mut self, tag: u64, answer: Answer) -> Boxed<'_, Result<(), PublishError>> {
        Box::pin(async move {
            match answer {
                Answer::Done => self.0.acknowledge(tag, false).await,
                Answer::Again => self.0.reject(tag, true).await,
                Answer::SetAside => self.0.reject(tag, false).await,
            }
        })
    }
}
