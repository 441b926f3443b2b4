//! How a socket speaks TLS, with a certificate that can be replaced while it runs, and whom it believes to be the cluster's own API server, which may change while it runs.

use std::sync::Arc;

use muster_ports::delegate::FrontProxy;
use parking_lot::{Mutex, RwLock};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use tokio::sync::watch;

use crate::certs::CertError;
use crate::front_proxy::{Fronted, is_named};

/// What is known of the cluster's own API server; nothing as long as the cluster was not asked.
pub type KnownProxy = watch::Receiver<Option<Arc<FrontProxy>>>;

/// What a server proves itself with. Every handshake asks for it.
#[derive(Debug)]
struct Identity(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Identity {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().clone())
    }
}

/// The TLS of a server.
pub struct Tls {
    identity: Arc<Identity>,
    proxy: Option<KnownProxy>,
    made: Mutex<Secured>,
}

/// The TLS of one connection.
#[derive(Clone)]
pub struct Secured {
    /// How it is spoken.
    pub config: Arc<ServerConfig>,
    proxy: Option<Arc<FrontProxy>>,
}

impl Secured {
    /// True of a peer with these certificates, which are those that were checked, if it is the cluster's API server.
    pub fn fronted(&self, certificates: Option<&[CertificateDer<'_>]>) -> Option<Fronted> {
        let (proxy, certificate) = (self.proxy.as_ref()?, certificates?.first()?);
        is_named(proxy, certificate).then(|| Fronted(proxy.clone()))
    }
}

impl Tls {
    /// The TLS of a server with this identity.
    pub fn new(identity: CertifiedKey) -> Result<Self, CertError> {
        let identity = Arc::new(Identity(RwLock::new(Arc::new(identity))));
        let made = Mutex::new(Secured { config: config(&identity, None)?, proxy: None });
        Ok(Self { identity, proxy: None, made })
    }

    /// The same, behind the API server of a cluster.
    #[must_use]
    pub fn behind(self, proxy: KnownProxy) -> Self {
        Self { proxy: Some(proxy), ..self }
    }

    /// New connections see this identity; those that are open go on.
    pub fn replace(&self, identity: CertifiedKey) {
        *self.identity.0.write() = Arc::new(identity);
    }

    /// The TLS of the broker of robots, with the same identity.
    pub fn of_broker(&self) -> Result<Arc<ServerConfig>, CertError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self.identity.clone());
        config.alpn_protocols = vec![b"mqtt".to_vec()];
        Ok(Arc::new(config))
    }

    /// The TLS of the next connection.
    pub fn current(&self) -> Secured {
        let mut made = self.made.lock();
        let Some(known) = self.proxy.as_ref().map(|proxy| proxy.borrow().clone()) else {
            return made.clone();
        };
        if known != made.proxy {
            match config(&self.identity, known.as_deref()) {
                Ok(config) => *made = Secured { config, proxy: known },
                Err(error) => {
                    tracing::error!(%error, "what the cluster says about its API server cannot be used");
                }
            }
        }
        made.clone()
    }
}

fn config(identity: &Arc<Identity>, proxy: Option<&FrontProxy>) -> Result<Arc<ServerConfig>, CertError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let builder = match proxy {
        None => builder.with_no_client_auth(),
        Some(proxy) => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(proxy.authorities.as_bytes()) {
                roots.add(certificate.map_err(|error| CertError::Authority(error.to_string()))?)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(|error| CertError::Authority(error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_cert_resolver(identity.clone());
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
