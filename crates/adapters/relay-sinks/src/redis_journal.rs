//! A key of a Redis server, as a journal.

use std::time::Duration;

use muster_ports::publisher::{Boxed, Journal, JournalError};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue};
use tokio::sync::Mutex;

use crate::address::Address;

/// Time for the server to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// One key of a server.
pub struct RedisKey {
    address: Address,
    key: String,
    /// Opened when it is needed, and again after it failed.
    connection: Mutex<Option<MultiplexedConnection>>,
}

impl RedisKey {
    /// A key; nothing is opened yet.
    pub fn new(address: Address, key: &str) -> Self {
        Self { address, key: key.to_owned(), connection: Mutex::new(None) }
    }

    /// One command and its answer.
    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, JournalError> {
        let failed = |error: redis::RedisError| JournalError(format!("Redis: {error}"));
        let mut slot = self.connection.lock().await;
        let mut connection = match slot.take() {
            Some(connection) => connection,
            None => self.connect().await.map_err(failed)?,
        };
        let answer = command.query_async(&mut connection).await.map_err(failed)?;
        *slot = Some(connection);
        Ok(answer)
    }

    async fn connect(&self) -> Result<MultiplexedConnection, redis::RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let client = Client::open(self.address.to_url(6379))?;
        client.get_multiplexed_async_connection_with_config(&config).await
    }
}

impl Journal for RedisKey {
    fn read(&self) -> Boxed<'_, Result<Option<String>, JournalError>> {
        Box::pin(async { self.ask(&Cmd::get(&self.key)).await })
    }

    fn write<'a>(&'a self, value: &'a str) -> Boxed<'a, Result<(), JournalError>> {
        Box::pin(async move { self.ask(&Cmd::set(&self.key, value)).await })
    }
}
