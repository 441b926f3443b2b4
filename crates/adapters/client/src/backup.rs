//! Everything that a server keeps.

use crate::client::Client;
use crate::error::ClientError;
use crate::tasks::LogStream;
use crate::transport::Ask;

impl Client {
    /// Begins a backup. Only whoever reads it to its end knows whether it is whole.
    pub async fn backup(&self) -> Result<LogStream, ClientError> {
        let ask = Ask { accept: "application/x-tar, */*", ..Ask::get("/backup") };
        let body = self.transport().begin(ask).await?.into_body();
        Ok(LogStream::new(body, self.transport().peer().clone()))
    }
}
