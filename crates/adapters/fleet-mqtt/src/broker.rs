//! The embedded broker: for one machine and small fleets. Large ones have a Mosquitto or an EMQX of their own.
//!
//! A client is the bridge, a robot, or somebody who wants to join; nobody else gets in. A robot connects under its own id and
//! may use its own topics alone. What is under way is not kept over a restart: the bridge asks robots again.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mqtt5::broker::config::{BrokerConfig, StorageBackend, TlsConfig};
use mqtt5::broker::{AuthProvider, AuthResult, BrokerShutdownHandle, MqttBroker};
use mqtt5::packet::connect::ConnectPacket;
use mqtt5::protocol::v5::reason_codes::ReasonCode;
use thiserror::Error;

use crate::connection::{Login, joining_client};
use crate::credentials::{Claim, Credentials, hex};
use crate::messages::MAX_PAYLOAD;
use crate::topics::Topics;

/// The user of the bridge. No robot can be called so.
const BRIDGE: &str = "$bridge";
/// What users are called that have joined, and that want to.
const ROBOT: &str = "robot:";
const JOINING: &str = "joining:";
/// Messages of one client in a second, at most.
const MESSAGE_RATE: u32 = 1000;
/// How long sessions of robots that are away are kept.
const SESSIONS: Duration = Duration::from_hours(24);

/// Why there is no broker.
#[derive(Debug, Error)]
#[error(
    "cannot listen for robots on {address}: {why}; choose an address with --mqtt-listen HOST:PORT, or --mqtt-listen off"
)]
pub struct BrokerError {
    address: SocketAddr,
    why: String,
}

/// How the broker listens.
#[derive(Debug, Clone)]
pub struct BrokerSettings {
    /// Where.
    pub listen: SocketAddr,
    /// Certificate and key, if it speaks TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// What topics begin with.
    pub topics: Topics,
    /// The most clients at once.
    pub max_clients: usize,
}

/// A broker that runs. Ends when it is dropped.
pub struct EmbeddedBroker {
    /// Where robots reach it.
    pub address: SocketAddr,
    /// Where the bridge reaches it: plain, on this machine alone.
    pub inner: SocketAddr,
    /// What the bridge proves itself with.
    pub login: Login,
    shutdown: BrokerShutdownHandle,
}

impl EmbeddedBroker {
    /// Starts it. When this returns, it takes connections.
    pub async fn start(settings: BrokerSettings, credentials: Credentials) -> Result<Self, BrokerError> {
        let failed = |why: String| BrokerError { address: settings.listen, why };
        let mut secret = [0_u8; 32];
        getrandom::fill(&mut secret).map_err(|error| failed(error.to_string()))?;
        let secret = hex(&secret);
        let config = configure(&settings);
        let provider = Gate { credentials, topics: settings.topics.clone(), secret: secret.clone() };
        let broker = MqttBroker::with_config(config).await.map_err(|error| failed(error.to_string()))?;
        let mut broker = broker.with_auth_provider(Arc::new(provider));
        let inner = broker.local_addr().unwrap_or(settings.listen);
        let address = broker.tls_local_addr().filter(|_| settings.tls.is_some()).unwrap_or(inner);
        let (shutdown, mut ready) = (broker.shutdown_handle(), broker.ready_receiver());
        tokio::spawn(async move {
            if let Err(error) = broker.run().await {
                tracing::error!(%error, "the broker of robots ended");
            }
        });
        ready.wait_for(|ready| *ready).await.map_err(|error| failed(error.to_string()))?;
        let login = Login { client: "muster-bridge".to_owned(), user: BRIDGE.to_owned(), password: secret };
        Ok(Self { address, inner, login, shutdown })
    }
}

impl Drop for EmbeddedBroker {
    fn drop(&mut self) {
        self.shutdown.shutdown();
    }
}

fn configure(settings: &BrokerSettings) -> BrokerConfig {
    let inner = SocketAddr::from(([127, 0, 0, 1], 0));
    let tls = settings.tls.as_ref().map(|(cert, key)| {
        let mut tls = TlsConfig::new(cert.clone(), key.clone());
        tls.bind_addresses = vec![settings.listen];
        tls
    });
    let mut config = BrokerConfig {
        bind_addresses: vec![if tls.is_some() { inner } else { settings.listen }],
        tls_config: tls,
        max_clients: settings.max_clients,
        session_expiry_interval: SESSIONS,
        max_packet_size: MAX_PAYLOAD + (4 << 10),
        max_message_rate_per_client: MESSAGE_RATE,
        retain_available: false,
        sys_topics_enabled: false,
        ..BrokerConfig::default()
    };
    // Secrets cannot be guessed; a lock by address would lock out all robots behind one router.
    config.auth_config.rate_limit.enabled = false;
    config.storage_config.backend = StorageBackend::Memory;
    config.storage_config.max_queued_messages_per_client = 1000;
    config.storage_config.max_queued_bytes_per_client = 4 << 20;
    config
}

/// Who gets in, and what they may do.
struct Gate {
    credentials: Credentials,
    topics: Topics,
    secret: String,
}

impl Gate {
    fn who(&self, connect: &ConnectPacket) -> Option<String> {
        let user = connect.username.as_deref()?;
        let password = std::str::from_utf8(connect.password.as_deref()?).ok()?;
        if user == BRIDGE {
            return (password == self.secret).then(|| BRIDGE.to_owned());
        }
        // Of two clients with one id the broker keeps the later: nobody connects under the id of another.
        match self.credentials.check(user, password) {
            Claim::Robot if connect.client_id == user => Some(format!("{ROBOT}{user}")),
            Claim::Joining if connect.client_id == joining_client(user) => Some(format!("{JOINING}{user}")),
            Claim::Robot | Claim::Joining | Claim::Refused => None,
        }
    }
}

/// A robot and whether it has joined.
fn robot_of(user: &str) -> Option<(&str, bool)> {
    let joined = user.strip_prefix(ROBOT).map(|robot| (robot, true));
    joined.or_else(|| user.strip_prefix(JOINING).map(|robot| (robot, false)))
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl AuthProvider for Gate {
    fn authenticate<'a>(
        &'a self,
        connect: &'a ConnectPacket,
        _: SocketAddr,
    ) -> Answer<'a, mqtt5::Result<AuthResult>> {
        Box::pin(async move {
            Ok(match self.who(connect) {
                Some(user) => AuthResult::success_with_user(user),
                None => AuthResult::fail(ReasonCode::NotAuthorized),
            })
        })
    }

    fn authorize_publish<'a>(&'a self, _: &str, user: Option<&'a str>, topic: &'a str) -> Answer<'a, bool> {
        let allowed = match user {
            Some(BRIDGE) => true,
            Some(user) => {
                robot_of(user).is_some_and(|(robot, joined)| self.topics.may_publish(robot, joined, topic))
            }
            None => false,
        };
        Box::pin(async move { allowed })
    }

    fn authorize_subscribe<'a>(
        &'a self,
        _: &str,
        user: Option<&'a str>,
        topic_filter: &'a str,
    ) -> Answer<'a, bool> {
        let allowed = match user {
            Some(BRIDGE) => true,
            Some(user) => robot_of(user)
                .is_some_and(|(robot, joined)| self.topics.may_subscribe(robot, joined, topic_filter)),
            None => false,
        };
        Box::pin(async move { allowed })
    }
}
