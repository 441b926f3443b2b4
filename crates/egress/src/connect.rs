//! Connections that a policy allows: resolved once, judged, and made to the judged addresses.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpStream, lookup_host};

use crate::egress_policy::{Denial, EgressPolicy};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// The policy denies all addresses of the host.
    #[error(transparent)]
    Denied(#[from] Denial),
    /// The host has no address, or none of its addresses answers.
    #[error(transparent)]
    Failed(#[from] io::Error),
}

impl EgressPolicy {
    /// The addresses of a host that the policy allows, at least one. The host may be a name, an address, or an address in brackets.
    pub async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, EgressError> {
        let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        self.judge_name(host, port)?;
        let mut allowed = Vec::new();
        let mut denial = None;
        for address in lookup_host((host, port)).await? {
            match self.judge(host, port, address.ip()) {
                Ok(()) => allowed.push(address),
                Err(why) => denial = denial.or(Some(why)),
            }
        }
        match denial {
            Some(denial) if allowed.is_empty() => Err(denial.into()),
            None if allowed.is_empty() => {
                Err(io::Error::new(io::ErrorKind::NotFound, "the host has no address").into())
            }
            _ => Ok(allowed),
        }
    }

    /// Connects to the first address of a host that the policy allows and that answers.
    pub async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, EgressError> {
        let addresses = self.resolve(host, port).await?;
        Ok(TcpStream::connect(&*addresses).await?)
    }
}
