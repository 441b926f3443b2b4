//! The relay with real brokers: RabbitMQ, Redis and Mosquitto.

#[cfg(test)]
mod bad_brokers;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod consumer;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod world;
