//! AMQP 0-9-1, spoken by `lapin`: a publisher with confirms, and a consumer with acknowledgements.

mod connection;
mod consumer;
mod inbox;
mod publisher;

pub use connection::Connection;
pub use consumer::{Consumer, Delivery};
pub use inbox::AmqpInboxes;
pub use publisher::AmqpPublisher;
