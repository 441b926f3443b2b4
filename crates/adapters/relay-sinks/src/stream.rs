//! Connections, plain or encrypted.

use std::sync::Arc;
use std::time::Duration;

use muster_egress::{EgressError, EgressPolicy};
use muster_ports::publisher::PublishError;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use crate::address::Address;

/// Time for a server to take a connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Duplex for T {}

/// Connects, where the policy allows it.
pub async fn connect(
    address: &Address,
    usual_port: u16,
    policy: &EgressPolicy,
) -> Result<Box<dyn Duplex>, PublishError> {
    let port = address.port.unwrap_or(usual_port);
    let place = format!("{}:{port}", address.host);
    let unreachable =
        |why: String| PublishError::new("Unreachable", format!("{place} cannot be reached: {why}"));
    let connecting = policy.connect(&address.host, port);
    let stream = tokio::time::timeout(PATIENCE, connecting)
        .await
        .map_err(|_| unreachable("no answer in ten seconds".to_owned()))?
        .map_err(|error| unconnected(&place, error))?;
    stream.set_nodelay(true).map_err(|error| unreachable(error.to_string()))?;
    if !address.is_secure() {
        return Ok(Box::new(stream));
    }
    let name = ServerName::try_from(address.host.clone()).map_err(|error| unreachable(error.to_string()))?;
    let secured = TlsConnector::from(trust()?).connect(name, stream);
    let secured = tokio::time::timeout(PATIENCE, secured)
        .await
        .map_err(|_| unreachable("no TLS in ten seconds".to_owned()))?
        .map_err(|error| PublishError::new("NotTrusted", format!("{place}: {error}")))?;
    Ok(Box::new(secured))
}

/// Why there is no connection.
pub fn unconnected(place: &str, error: EgressError) -> PublishError {
    match error {
        EgressError::Denied(denial) => PublishError::new("EgressDenied", denial),
        EgressError::Failed(error) => {
            PublishError::new("Unreachable", format!("{place} cannot be reached: {error}"))
        }
    }
}

/// Whom this machine trusts.
fn trust() -> Result<Arc<ClientConfig>, PublishError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| PublishError::new("NotTrusted", error))?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}
