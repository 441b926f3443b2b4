//! A key of a Redis server, as a journal.

use std::time::Duration;

use muster_ports::publisher::{Boxed, Journal, JournalError, PublishError};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;

use crate::address::Address;
use crate::stream::{Duplex, connect};

/// Time for the server to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest value that is read.
const MAX_VALUE: usize = 1 << 20;

/// One key of a server.
pub struct RedisKey {
    address: Address,
    key: String,
    /// Opened when it is needed, and again after it failed.
    connection: Mutex<Option<BufReader<Box<dyn Duplex>>>>,
}

impl RedisKey {
    /// A key; nothing is opened yet.
    pub fn new(address: Address, key: &str) -> Self {
        Self { address, key: key.to_owned(), connection: Mutex::new(None) }
    }

    /// One command and its answer.
    async fn ask(&self, words: &[&str]) -> Result<Option<String>, JournalError> {
        let mut slot = self.connection.lock().await;
        let asking = async {
            let mut connection = match slot.take() {
                Some(connection) => connection,
                None => self.connect().await?,
            };
            let answer = exchange(&mut connection, words).await?;
            *slot = Some(connection);
            Ok(answer)
        };
        match tokio::time::timeout(PATIENCE, asking).await {
            Ok(answer) => answer,
            Err(_) => Err(JournalError("Redis does not answer".to_owned())),
        }
    }

    async fn connect(&self) -> Result<BufReader<Box<dyn Duplex>>, JournalError> {
        let opened = connect(&self.address, 6379).await;
        let mut connection =
            BufReader::new(opened.map_err(|PublishError { message, .. }| JournalError(message))?);
        let Address { user, password, .. } = &self.address;
        if !password.is_empty() {
            let words: &[&str] =
                if user.is_empty() { &["AUTH", password] } else { &["AUTH", user, password] };
            exchange(&mut connection, words).await?;
        }
        if let Some(database) = self.address.decoded_path().filter(|path| !path.is_empty()) {
            exchange(&mut connection, &["SELECT", &database]).await?;
        }
        Ok(connection)
    }
}

impl Journal for RedisKey {
    fn read(&self) -> Boxed<'_, Result<Option<String>, JournalError>> {
        Box::pin(async { self.ask(&["GET", &self.key]).await })
    }

    fn write<'a>(&'a self, value: &'a str) -> Boxed<'a, Result<(), JournalError>> {
        Box::pin(async move { self.ask(&["SET", &self.key, value]).await.map(drop) })
    }
}

async fn exchange(
    connection: &mut BufReader<Box<dyn Duplex>>,
    words: &[&str],
) -> Result<Option<String>, JournalError> {
    let broken = |error: std::io::Error| JournalError(format!("Redis: {error}"));
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
    connection.write_all(&bytes).await.map_err(broken)?;
    connection.flush().await.map_err(broken)?;
    let mut line = String::new();
    if connection.read_line(&mut line).await.map_err(broken)? == 0 {
        return Err(JournalError("Redis closed the connection".to_owned()));
    }
    let line = line.trim_end();
    let strange = || JournalError("the server does not speak as Redis does".to_owned());
    match line.split_at_checked(1).ok_or_else(strange)? {
        ("+" | ":", rest) => Ok(Some(rest.to_owned())),
        ("-", rest) => Err(JournalError(format!("Redis says {rest}"))),
        ("$", "-1") => Ok(None),
        ("$", size) => {
            let size: usize = size.parse().map_err(|_| strange())?;
            if size > MAX_VALUE {
                return Err(JournalError("the value is too long".to_owned()));
            }
            let mut value = vec![0; size + 2];
            connection.read_exact(&mut value).await.map_err(broken)?;
            value.truncate(size);
            Ok(Some(String::from_utf8_lossy(&value).into_owned()))
        }
        _ => Err(strange()),
    }
}
