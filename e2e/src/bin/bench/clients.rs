//! Many HTTP clients on keep-alive connections, as cheap as can be: they share the machine with what they measure.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Where requests go.
#[derive(Clone)]
pub struct Endpoint {
    /// `host:port`.
    pub address: String,
    /// The value of the `Authorization` header.
    pub authorization: String,
    /// The authority to trust, for TLS.
    pub ca: Option<Arc<String>>,
}

/// A connection, with or without TLS.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// One keep-alive connection.
pub struct Connection {
    stream: Box<dyn Stream>,
    head: String,
    buffer: Vec<u8>,
    request: Vec<u8>,
}

/// What many requests took.
pub struct Timing {
    /// Requests answered.
    pub count: usize,
    /// From the first to the last.
    pub wall: Duration,
    micros: Vec<u32>,
}

impl Timing {
    /// Requests per second.
    #[allow(clippy::cast_precision_loss, reason = "counts are small")]
    pub fn per_second(&self) -> f64 {
        self.count as f64 / self.wall.as_secs_f64()
    }

    /// A quantile of the latency.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index into a list of samples"
    )]
    pub fn quantile(&self, quantile: f64) -> Duration {
        let index = (self.micros.len() as f64 * quantile) as usize;
        let micros = self.micros.get(index.min(self.micros.len().saturating_sub(1)));
        Duration::from_micros(u64::from(micros.copied().unwrap_or(0)))
    }

    /// From unordered samples.
    pub fn new(mut micros: Vec<u32>, wall: Duration) -> Self {
        micros.sort_unstable();
        Self { count: micros.len(), wall, micros }
    }
}

impl Endpoint {
    /// Opens a connection.
    pub async fn connect(&self) -> anyhow::Result<Connection> {
        let tcp = TcpStream::connect(&self.address).await?;
        tcp.set_nodelay(true)?;
        let stream: Box<dyn Stream> = match &self.ca {
            None => Box::new(tcp),
            Some(ca) => {
                let mut roots = rustls::RootCertStore::empty();
                for cert in rustls::pki_types::CertificateDer::pem_slice_iter(ca.as_bytes()) {
                    roots.add(cert?)?;
                }
                let provider = Arc::new(rustls::crypto::ring::default_provider());
                let config = ClientConfig::builder_with_provider(provider)
                    .with_safe_default_protocol_versions()?
                    .with_root_certificates(roots)
                    .with_no_client_auth();
                let name = ServerName::try_from("127.0.0.1")?;
                Box::new(TlsConnector::from(Arc::new(config)).connect(name, tcp).await?)
            }
        };
        let head = format!("Host: {}\r\nAuthorization: {}\r\n", self.address, self.authorization);
        Ok(Connection { stream, head, buffer: Vec::with_capacity(16 * 1024), request: Vec::new() })
    }
}

impl Connection {
    /// Sends a request and reads the head of its answer, with what came of the body behind it.
    pub async fn send(&mut self, method: &str, path: &str, kind: &str, body: &[u8]) -> anyhow::Result<()> {
        self.request.clear();
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{}Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            self.head,
            body.len()
        );
        self.request.extend_from_slice(head.as_bytes());
        self.request.extend_from_slice(body);
        self.stream.write_all(&self.request).await?;
        self.stream.flush().await?;
        Ok(())
    }

    /// Sends a request and waits for its whole answer, which must have a length. Returns its status.
    pub async fn round_trip(
        &mut self,
        method: &str,
        path: &str,
        kind: &str,
        body: &[u8],
    ) -> anyhow::Result<u16> {
        self.send(method, path, kind, body).await?;
        self.buffer.clear();
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("the server closed the connection");
            }
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
                let status = head.get(9..12).and_then(|code| code.parse().ok()).context("no status code")?;
                let length = content_length(&head).context("no content length")?;
                while self.buffer.len() < end + 4 + length {
                    if self.stream.read_buf(&mut self.buffer).await? == 0 {
                        bail!("the server closed the connection");
                    }
                }
                return Ok(status);
            }
        }
    }

    /// The last answer, for an error message.
    pub fn last_answer(&self) -> String {
        String::from_utf8_lossy(&self.buffer).chars().take(600).collect()
    }

    /// The whole last answer, its head included.
    pub fn whole_answer(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.buffer)
    }

    /// True if the last answer contains a text.
    pub fn last_answer_has(&self, text: &str) -> bool {
        find(&self.buffer, text.as_bytes()).is_some()
    }

    /// Reads what there is.
    pub async fn read_some(&mut self, into: &mut [u8]) -> anyhow::Result<usize> {
        Ok(self.stream.read(into).await?)
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn content_length(head: &str) -> Option<usize> {
    head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    })
}

/// `count` requests from `clients` connections; `body` makes the body of request number n.
pub async fn load(
    endpoint: &Endpoint,
    clients: usize,
    count: usize,
    path: &str,
    body: impl Fn(usize) -> Vec<u8> + Send + Sync + Clone + 'static,
) -> anyhow::Result<Timing> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut connections = Vec::new();
    for _ in 0..clients {
        connections.push(endpoint.connect().await?);
    }
    let started = Instant::now();
    let workers: Vec<_> = connections
        .into_iter()
        .map(|mut connection| {
            let (next, path, body) = (next.clone(), path.to_owned(), body.clone());
            tokio::spawn(async move {
                let mut micros = Vec::with_capacity(count / clients + 1);
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return anyhow::Ok(micros);
                    }
                    let body = body(number);
                    let sent = Instant::now();
                    let status = connection.round_trip("POST", &path, "application/json", &body).await?;
                    if !(200..300).contains(&status) {
                        bail!("answer {status}: {}", connection.last_answer());
                    }
                    micros.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
                }
            })
        })
        .collect();
    let mut micros = Vec::with_capacity(count);
    for worker in workers {
        micros.extend(worker.await??);
    }
    Ok(Timing::new(micros, started.elapsed()))
}
