//! A key of a Redis server, as a journal.

use std::sync::Arc;
use std::time::Duration;

use muster_egress::{EgressError, EgressPolicy};
use muster_ports::publisher::{Boxed, Journal, JournalError};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, RedisError};
use tokio::sync::Mutex;

use crate::address::Address;

const USUAL_PORT: u16 = 6379;
/// Time for the server to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// One key of a server.
pub struct RedisKey {
    address: Address,
    key: String,
    policy: Arc<EgressPolicy>,
    /// Opened when it is needed, and again after it failed.
    connection: Mutex<Option<MultiplexedConnection>>,
}

impl RedisKey {
    /// A key; nothing is opened yet.
    pub fn new(address: Address, key: &str, policy: Arc<EgressPolicy>) -> Self {
        Self { address, key: key.to_owned(), policy, connection: Mutex::new(None) }
    }

    /// One command and its answer.
    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, JournalError> {
        let failed = |error: RedisError| JournalError(format!("Redis: {error}"));
        let mut slot = self.connection.lock().await;
        let mut connection = match slot.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let answer = command.query_async(&mut connection).await.map_err(failed)?;
        *slot = Some(connection);
        Ok(answer)
    }

    /// Connects to an address of the server that the policy allows. The address stands for its name: Redis is spoken without TLS.
    async fn connect(&self) -> Result<MultiplexedConnection, JournalError> {
        let failed = |error: RedisError| JournalError(format!("Redis: {error}"));
        let port = self.address.port.unwrap_or(USUAL_PORT);
        let addresses = tokio::time::timeout(PATIENCE, self.policy.resolve(&self.address.host, port)).await;
        let addresses = addresses
            .unwrap_or_else(|late| Err(EgressError::Failed(late.into())))
            .map_err(|error| JournalError(format!("Redis: {error}")))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let mut last = JournalError("Redis: the server has no address".to_owned());
        for address in addresses {
            let reached = Address { host: address.ip().to_string(), ..self.address.clone() };
            let client = Client::open(reached.to_url(USUAL_PORT)).map_err(failed)?;
            match client.get_multiplexed_async_connection_with_config(&config).await {
                Ok(connection) => return Ok(connection),
                Err(error) => last = failed(error),
            }
        }
        Err(last)
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
