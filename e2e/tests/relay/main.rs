//! The relay with real brokers: RabbitMQ, Redis and Mosquitto.

#[cfg(test)]
mod consumer;
#[cfg(test)]
mod real_broker_conformance;
#[cfg(test)]
mod real_broker_kills;
#[cfg(test)]
mod real_broker_troubles;
#[cfg(test)]
mod world;
