//! Sockets: accepting, TLS, limits on connections, and an end that does not cut answers off.
//!
//! One port speaks both HTTPS and, where that was allowed, plain HTTP: the first byte of a connection tells.

mod rest;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use muster_ports::publisher::Boxed;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;

use crate::api::Api;
use crate::front_proxy::Fronted;
use crate::shutdown::Shutdown;
use crate::tls::Tls;
use rest::Requests;

/// Connections at once.
const MAX_CONNECTIONS: usize = 20_000;
/// Time for the first byte and the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time to send the head of a request; also how long a connection may rest between two.
const HEAD: Duration = Duration::from_mins(2);
/// Time for a connection that rested too long to say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);
/// Longest time a client may take none of what is sent to it.
const STALLED: Duration = Duration::from_mins(1);
/// Time for open requests to end after shutdown was asked for.
const DRAIN: Duration = Duration::from_secs(5);
/// Bytes of request head.
const MAX_HEAD: usize = 64 * 1024;
/// The first byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 0x16;

/// What a listener speaks.
#[derive(Clone)]
pub struct Listening {
    /// TLS, if there is an identity.
    pub tls: Option<Arc<Tls>>,
    /// Plain HTTP is answered too.
    pub plain: bool,
}

/// Serves until shutdown is asked for, then lets open requests end. Boxed, so that its code is made and optimized in this crate and
/// not in the one that polls it.
pub fn serve(
    api: Arc<Api>,
    listener: TcpListener,
    listening: Listening,
    shutdown: Shutdown,
) -> Boxed<'static, ()> {
    Box::pin(accept(api, listener, listening, shutdown))
}

async fn accept(api: Arc<Api>, listener: TcpListener, listening: Listening, shutdown: Shutdown) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(place) = room.clone().acquire_owned().await else { break };
        let accepted = tokio::select! {
            () = shutdown.requested() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let (api, listening, shutdown) = (api.clone(), listening.clone(), shutdown.clone());
                connections.spawn(async move {
                    connection(api, stream, listening, shutdown).await;
                    drop(place);
                });
            }
            Err(error) => {
                // Out of file descriptors, most likely: let some connections end.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    let drained =
        tokio::time::timeout(DRAIN, async { while connections.join_next().await.is_some() {} }).await;
    if drained.is_err() {
        tracing::info!(open = connections.len(), "connections were still open after the drain time");
    }
}

async fn connection(api: Arc<Api>, stream: TcpStream, listening: Listening, shutdown: Shutdown) {
    // Small answers must not wait for more.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set nodelay");
    }
    let mut first = [0];
    let peeked = tokio::time::timeout(HANDSHAKE, stream.peek(&mut first)).await;
    if !matches!(peeked, Ok(Ok(1))) {
        return;
    }
    match (first[0] == TLS_HANDSHAKE, listening.tls) {
        (true, Some(tls)) => {
            let secured = tls.current();
            let handshake = TlsAcceptor::from(secured.config.clone()).accept(stream);
            match tokio::time::timeout(HANDSHAKE, handshake).await {
                Ok(Ok(stream)) => {
                    let fronted = secured.fronted(stream.get_ref().1.peer_certificates());
                    speak(api, stream, fronted, shutdown).await;
                }
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                Err(_) => tracing::debug!("TLS handshake took too long"),
            }
        }
        (false, _) if listening.plain => speak(api, stream, None, shutdown).await,
        (false, _) => refuse_plain(stream).await,
        (true, None) => {}
    }
}

/// Tells a client that spoke HTTP to a TLS port what to do.
async fn refuse_plain(mut stream: TcpStream) {
    let answer = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n\
                   this server speaks HTTPS only; use https:// in the URL\n";
    drop(tokio::io::AsyncWriteExt::write_all(&mut stream, answer).await);
}

async fn speak<S>(api: Arc<Api>, stream: S, fronted: Option<Fronted>, shutdown: Shutdown)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let requests = Arc::new(Requests::default());
    let opened = requests.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (api, open) = (api.clone(), opened.open());
        if let Some(fronted) = &fronted {
            request.extensions_mut().insert(fronted.clone());
        }
        async move { Ok::<_, std::convert::Infallible>(open.held_by(api.handle(request).await)) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    // The library's own limit on the time for a head sets up and takes down a timer for every request.
    builder.http1().header_read_timeout(None).max_buf_size(MAX_HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(250)
        .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX))
        .keep_alive_interval(Some(Duration::from_secs(30)))
        .keep_alive_timeout(STALLED);
    let stream = TokioIo::new(Impatient::new(stream, requests.clone()));
    let connection = builder.serve_connection(stream, service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.requested() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = requests.rest(HEAD) => {
            connection.as_mut().graceful_shutdown();
            loop {
                match tokio::time::timeout(GOODBYE, connection.as_mut()).await {
                    Ok(ended) => break ended,
                    Err(_) if requests.have_rested(GOODBYE) => break Ok(()),
                    // A request came at the last moment.
                    Err(_) => {}
                }
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

/// A stream that gives up on a peer that takes nothing.
struct Impatient<S> {
    stream: S,
    requests: Arc<Requests>,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Impatient<S> {
    fn new(stream: S, requests: Arc<Requests>) -> Self {
        Self { stream, requests, stalled: None }
    }

    /// What waits to be written is no sign of life.
    fn wrote(&self, written: &Poll<io::Result<usize>>) {
        if matches!(written, Poll::Ready(Ok(_))) {
            self.requests.wrote();
        }
    }

    fn timed<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let timer =
            self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + STALLED)));
        match timer.as_mut().poll(cx) {
            Poll::Ready(()) => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer reads nothing")))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Impatient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Impatient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.wrote(&written);
        self.timed(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.wrote(&written);
        self.timed(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.timed(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
