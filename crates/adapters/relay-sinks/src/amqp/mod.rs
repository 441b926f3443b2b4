//! AMQP 0-9-1: as much of it as a publisher with confirms and a consumer need.

mod connection;
mod consumer;
mod frame;
mod inbox;
mod publisher;
mod wire;

pub use connection::Connection;
pub use consumer::{Consumer, Delivery};
pub use inbox::AmqpInboxes;
pub use publisher::AmqpPublisher;
