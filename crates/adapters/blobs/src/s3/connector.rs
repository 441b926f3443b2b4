//! HTTP for the client of S3, by the same client library that everything else here uses.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt as _};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
    HttpResponseBody, HttpService,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an answer may take to begin, its request with a whole part included.
const ANSWER: Duration = Duration::from_mins(1);
/// How long an answer that began may pause.
const PAUSE: Duration = Duration::from_secs(30);
/// How long a connection is kept without use.
const IDLE: Duration = Duration::from_secs(30);

/// Makes clients that trust the authorities of this machine, or those in a file.
#[derive(Debug)]
pub(super) struct HyperConnector {
    tls: ClientConfig,
}

impl HyperConnector {
    pub fn new(authority: Option<PathBuf>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        match authority {
            Some(path) => {
                let named =
                    |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", path.display());
                for certificate in CertificateDer::pem_file_iter(&path).map_err(|error| named(&error))? {
                    let certificate = certificate.map_err(|error| named(&error))?;
                    roots.add(certificate).map_err(|error| named(&error))?;
                }
            }
            None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { tls })
    }
}

impl HttpConnector for HyperConnector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let mut tcp = Tcp::new();
        tcp.set_connect_timeout(Some(CONNECT));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let https = HttpsConnectorBuilder::new().with_tls_config(self.tls.clone());
        let https = https.https_or_http().enable_http1().wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_timer(TokioTimer::new())
            .build(https);
        Ok(HttpClient::new(HyperClient { client }))
    }
}

#[derive(Debug)]
struct HyperClient {
    client: Client<HttpsConnector<Tcp>, HttpRequestBody>,
}

#[async_trait::async_trait]
impl HttpService for HyperClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answer = match tokio::time::timeout(ANSWER, self.client.request(request)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) if error.is_connect() => {
                return Err(HttpError::new(HttpErrorKind::Connect, error));
            }
            Ok(Err(error)) => return Err(HttpError::new(HttpErrorKind::Request, error)),
            Err(late) => return Err(HttpError::new(HttpErrorKind::Timeout, late)),
        };
        Ok(answer.map(|body| HttpResponseBody::new(StreamBody::new(frames(body)))))
    }
}

/// A body that is not waited for without end.
fn frames(body: Incoming) -> impl Stream<Item = Result<Frame<Bytes>, HttpError>> {
    let frames = stream::unfold(Some(body), |body| async move {
        let mut body = body?;
        match tokio::time::timeout(PAUSE, body.frame()).await {
            Ok(None) => None,
            Ok(Some(Ok(frame))) => Some((Ok(frame), Some(body))),
            Ok(Some(Err(error))) => Some((Err(HttpError::new(HttpErrorKind::Interrupted, error)), None)),
            Err(late) => Some((Err(HttpError::new(HttpErrorKind::Timeout, late)), None)),
        }
    });
    // Bodies are also asked after their end.
    frames.fuse()
}
