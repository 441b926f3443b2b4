//! Where messages go, and the queue from which the responder takes them: AMQP 0-9-1, web hooks, MQTT and files; and a journal in Redis.
//!
//! Is: one file or folder per sort of sink, each a `Publisher`. Is not: a place that decides what is told, or when it is tried
//! again.
//!
//! AMQP and Redis are spoken by the usual crates, MQTT is spoken here: what is needed of it is small (see
//! `docs/decisions/0017-clients-of-brokers.md`).
//!
//! Start here: [`SinkMaker`] makes what an EventSink asks for.

pub mod address;
pub mod amqp;
mod beneath;
mod file;
mod line;
mod mqtt;
mod redis_journal;
mod sink_maker;
mod stream;
mod webhook;

pub use file::FilePublisher;
pub use mqtt::MqttPublisher;
pub use redis_journal::RedisKey;
pub use sink_maker::SinkMaker;
pub use webhook::WebhookPublisher;
