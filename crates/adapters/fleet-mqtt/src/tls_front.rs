//! TLS before the broker. The broker itself reads its certificate once, at its start; here every handshake asks for it, so that
//! one that was renewed is shown without a restart that would cut all robots off.
//!
//! The broker sees all robots that come this way from one address of this machine.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// Time for the handshake of a robot.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time for a robot to take the end of a connection.
const GOODBYE: Duration = Duration::from_secs(1);
/// Pause after a connection could not be accepted: some others may end.
const PAUSE: Duration = Duration::from_millis(100);

/// A listener for robots that speak TLS.
pub(crate) struct TlsFront {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    room: Arc<Semaphore>,
}

impl TlsFront {
    /// Listens. `most` connections are open at once; others wait.
    pub(crate) async fn bind(
        address: SocketAddr,
        config: Arc<ServerConfig>,
        most: usize,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self { listener, acceptor: config.into(), room: Arc::new(Semaphore::new(most)) })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Hands on to a broker what robots say, and back, for ever.
    pub(crate) async fn run(self, broker: SocketAddr) {
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let Ok(place) = self.room.clone().acquire_owned().await else { return };
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    let acceptor = self.acceptor.clone();
                    connections.spawn(async move {
                        if let Err(error) = hand_on(&acceptor, stream, broker).await {
                            tracing::debug!(%peer, %error, "a robot's TLS connection ended");
                        }
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a robot");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

/// Until one of the two ends the connection.
async fn hand_on(acceptor: &TlsAcceptor, stream: TcpStream, broker: SocketAddr) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let robot = timeout(HANDSHAKE, acceptor.accept(stream)).await??;
    let mut broker = TcpStream::connect(broker).await?;
    broker.set_nodelay(true)?;
    let (mut from_broker, mut to_broker) = broker.split();
    let (mut from_robot, mut to_robot) = tokio::io::split(robot);
    tokio::select! {
        said = copy(&mut from_robot, &mut to_broker) => said.map(drop),
        told = copy(&mut from_broker, &mut to_robot) => {
            told?;
            timeout(GOODBYE, to_robot.shutdown()).await?
        }
    }
}
