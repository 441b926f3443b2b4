//! What an addon asks from inside of its attempt: its report, its attachments, its bucket.
//!
//! A script may do this hundreds of times, each time in a new process. So it costs one connection and one request: no
//! kubeconfig, no discovery, no authorities of the machine unless the URL asks for TLS.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::error::{ClientError, Peer};
use crate::query::{Query, segment};
use crate::resource::Resource;

/// Time to get a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Bytes of a file that are read at once.
const CHUNK: usize = 64 * 1024;

/// A body that is sent.
pub type Sent = UnsyncBoxBody<Bytes, io::Error>;

/// The task that an addon works on, and how to reach the server.
#[derive(Clone)]
pub struct Addon {
    uri: Uri,
    token: String,
    namespace: String,
    task: String,
    authority: Option<Vec<u8>>,
    peer: Peer,
}

impl fmt::Debug for Addon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Addon").field("peer", &self.peer).field("task", &self.task).finish_non_exhaustive()
    }
}

impl Addon {
    /// The task `namespace/task` on the server at `url`; `authority` (PEM) is who vouches for it if it speaks TLS.
    pub fn new(
        url: &str,
        token: String,
        namespace: &str,
        task: &str,
        authority: Option<Vec<u8>>,
    ) -> Result<Self, ClientError> {
        let bad = |reason: &str| ClientError::BadServerUrl { url: url.to_owned(), reason: reason.to_owned() };
        let uri: Uri = url.trim_end_matches('/').parse().map_err(|_| bad("it cannot be read"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(bad("it does not begin with https:// or http://"));
        }
        let peer = Peer { url: url.to_owned(), credentials: "the token in MUSTER_TOKEN".to_owned() };
        Ok(Self { uri, token, namespace: namespace.to_owned(), task: task.to_owned(), authority, peer })
    }

    /// Sends a report or asks for it; the answer is the report as it is now.
    pub async fn report(&self, method: Method, document: Option<&Value>) -> Result<Value, ClientError> {
        let body = document.map_or_else(empty, |document| full(document.to_string().into_bytes()));
        let answer = self.ask(method, "/report", &Query::default(), "application/json", body).await?;
        self.read_json("the report", answer).await
    }

    /// Keeps a file with the task, at a line of its activity if one is named.
    pub async fn attach(&self, name: &str, activity: Option<u64>, body: Sent) -> Result<(), ClientError> {
        let line = activity.map(|line| line.to_string());
        let query = Query::default().with_some("activity", line.as_deref());
        let path = format!("/attachments/{}", segment(name));
        self.ask(Method::PUT, &path, &query, "application/octet-stream", body).await.map(drop)
    }

    /// Asks for something of the task's bucket. A path that ends in `/` is a directory.
    pub async fn bucket(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Sent,
    ) -> Result<Response<Incoming>, ClientError> {
        let mut encoded = String::from("/bucket");
        for part in path.trim_start_matches('/').split_inclusive('/') {
            encoded.push('/');
            encoded.push_str(&segment(part.trim_end_matches('/')));
        }
        if path.ends_with('/') && !encoded.ends_with('/') {
            encoded.push('/');
        }
        self.ask(method, &encoded, &Query::default(), content_type, body).await
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        query: &Query,
        content_type: &str,
        body: Sent,
    ) -> Result<Response<Incoming>, ClientError> {
        let base = Resource::tasks().object(&self.namespace, &self.task);
        let prefix = self.uri.path().trim_end_matches('/');
        let authority = self.uri.authority().map_or("", hyper::http::uri::Authority::as_str);
        let host = authority.rsplit('@').next().unwrap_or_default();
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{prefix}{base}{path}{}", query.as_str()))
            .header(HOST, host)
            .header(AUTHORIZATION, format!("Bearer {}", self.token));
        if !content_type.is_empty() {
            request = request.header(CONTENT_TYPE, content_type);
        }
        let setup = |reason: String| ClientError::Setup { url: self.peer.url.clone(), reason };
        let request = request.body(body).map_err(|error| setup(error.to_string()))?;
        let answer = self.send(request).await?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let code = answer.status();
        let body = answer.into_body().collect().await.map_err(|error| self.peer.unanswered(&error))?;
        Err(self.peer.refused(code, &body.to_bytes()))
    }

    async fn send(&self, request: Request<Sent>) -> Result<Response<Incoming>, ClientError> {
        let host = self.uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let tls = self.uri.scheme_str() == Some("https");
        let port = self.uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let connect = tokio::time::timeout(CONNECT, TcpStream::connect((host.as_str(), port)));
        let stream = connect
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(|error| self.peer.unanswered(&error))?;
        stream.set_nodelay(true).map_err(|error| self.peer.unanswered(&error))?;
        if !tls {
            return self.speak(stream, request).await;
        }
        let setup = |reason: String| ClientError::Setup { url: self.peer.url.clone(), reason };
        let name = ServerName::try_from(host).map_err(|error| setup(error.to_string()))?;
        let connector = TlsConnector::from(Arc::new(self.trust()?));
        let stream = connector.connect(name, stream).await.map_err(|error| self.peer.unanswered(&error))?;
        self.speak(stream, request).await
    }

    async fn speak<S>(&self, stream: S, request: Request<Sent>) -> Result<Response<Incoming>, ClientError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.peer.unanswered(&error))?;
        // It ends with the answer; its errors are those of the request.
        drop(tokio::spawn(connection));
        sender.send_request(request).await.map_err(|error| self.peer.unanswered(&error))
    }

    fn trust(&self) -> Result<ClientConfig, ClientError> {
        let setup = |reason: String| ClientError::Setup { url: self.peer.url.clone(), reason };
        let pem = self.authority.as_deref().ok_or_else(|| {
            setup("it speaks TLS; name a file with its certificate authority in MUSTER_CA_FILE".to_owned())
        })?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate =
                certificate.map_err(|error| setup(format!("the authority cannot be read: {error}")))?;
            roots.add(certificate).map_err(|error| setup(error.to_string()))?;
        }
        Ok(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
    }

    async fn read_json(&self, what: &str, answer: Response<Incoming>) -> Result<Value, ClientError> {
        let body = answer.into_body().collect().await.map_err(|error| self.peer.unanswered(&error))?;
        serde_json::from_slice(&body.to_bytes()).map_err(|error| self.peer.unintelligible(what, error))
    }
}

/// A body without anything in it.
pub fn empty() -> Sent {
    full(Vec::new())
}

/// A body that is there already.
pub fn full(bytes: Vec<u8>) -> Sent {
    UnsyncBoxBody::new(Full::new(Bytes::from(bytes)).map_err(|never| match never {}))
}

/// A body that is read from a file while it is sent.
pub async fn file(path: &Path) -> io::Result<Sent> {
    Ok(streamed(tokio::fs::File::open(path).await?))
}

/// A body that is read while it is sent.
pub fn streamed(source: impl AsyncRead + Send + Unpin + 'static) -> Sent {
    let parts = futures_util::stream::unfold(source, |mut source| async move {
        let mut part = vec![0; CHUNK];
        match source.read(&mut part).await {
            Ok(0) => None,
            Ok(count) => {
                part.truncate(count);
                Some((Ok(Bytes::from(part)), source))
            }
            Err(error) => Some((Err(error), source)),
        }
    });
    UnsyncBoxBody::new(StreamBody::new(parts.map(|part| part.map(Frame::data))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addon(url: &str) -> Result<Addon, ClientError> {
        Addon::new(url, "muster_secret".to_owned(), "default", "a", None)
    }

    #[test]
    fn a_url_that_is_none_is_refused_with_an_example() {
        for url in ["", "127.0.0.1:7400", "ftp://h"] {
            let error = addon(url).unwrap_err().to_string();
            assert!(error.contains("https://127.0.0.1:7400"), "{error}");
        }
    }

    #[test]
    fn no_token_is_shown_when_debugged() {
        assert!(!format!("{:?}", addon("http://127.0.0.1:1").unwrap()).contains("secret"));
    }

    #[test]
    fn tls_without_an_authority_says_which_variable_names_one() {
        let error = addon("https://127.0.0.1:1").unwrap().trust().unwrap_err().to_string();
        assert!(error.contains("MUSTER_CA_FILE"), "{error}");
    }

    #[tokio::test]
    async fn a_streamed_body_has_every_byte_of_its_source() {
        let bytes: Vec<u8> = (0..CHUNK * 2 + 7).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let body = streamed(io::Cursor::new(bytes.clone()));
        assert_eq!(body.collect().await.unwrap().to_bytes(), bytes);
    }
}
