//! Connections for calls of URLs, made where the policy allows them.

use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper_util::rt::TokioIo;
use muster_egress::{EgressError, EgressPolicy};
use muster_ports::publisher::Boxed;
use tokio::net::TcpStream;
use tower_service::Service;

/// Resolves the server of a URL, judges its addresses, and connects to one that is allowed. Each new connection is judged.
#[derive(Clone)]
pub struct EgressConnector(pub Arc<EgressPolicy>);

impl Service<Uri> for EgressConnector {
    type Response = TokioIo<TcpStream>;
    type Error = EgressError;
    type Future = Boxed<'static, Result<Self::Response, EgressError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), EgressError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let policy = self.0.clone();
        Box::pin(async move {
            let usual_port = if uri.scheme_str() == Some("https") { 443 } else { 80 };
            let port = uri.port_u16().unwrap_or(usual_port);
            let stream = policy.connect(uri.host().unwrap_or_default(), port).await?;
            stream.set_nodelay(true)?;
            Ok(TokioIo::new(stream))
        })
    }
}
