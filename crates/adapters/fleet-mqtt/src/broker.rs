//! The embedded broker: for one machine and small fleets. Large ones have a Mosquitto or an EMQX of their own.
//!
//! A client is the bridge, a robot, or somebody who wants to join; nobody else gets in. A robot connects under its own id and
//! may use its own topics alone. What is under way is not kept over a restart: the bridge asks robots again.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mqtt5::broker::config::{BrokerConfig, StorageBackend};
use mqtt5::broker::{AuthProvider, AuthResult, BrokerShutdownHandle, MqttBroker};
use mqtt5::packet::connect::ConnectPacket;
use mqtt5::protocol::v5::reason_codes::ReasonCode;
use muster_ports::clock::{Clock as _, SystemClock};
use parking_lot::Mutex;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::ServerConfig;
use thiserror::Error;
use tokio::sync::oneshot;

use crate::connection::{Login, joining_client};
use crate::credentials::{Claim, Credentials, hex};
use crate::link::Patience;
use crate::messages::MAX_PAYLOAD;
use crate::tls_front::TlsFront;
use crate::topics::Topics;

/// The user of the bridge. No robot can be called so.
const BRIDGE: &str = "$bridge";
/// What users are called that have joined, and that want to.
const ROBOT: &str = "robot:";
const JOINING: &str = "joining:";
/// Files and connections of the rest of the server.
const OTHER_DESCRIPTORS: u64 = 2000;
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
    /// How it speaks TLS, if it does. The certificate may change while it runs.
    pub tls: Option<Arc<ServerConfig>>,
    /// What topics begin with.
    pub topics: Topics,
    /// The most clients at once.
    pub max_clients: usize,
}

/// A broker that runs, on a thread of its own. Ends when it is dropped.
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
        // A robot that speaks TLS has a connection to the front, and the front one to the broker, which has two ends.
        let each = if settings.tls.is_some() { 3 } else { 1 };
        raise_descriptor_limit(settings.max_clients.saturating_mul(each));
        let failed = |why: String| BrokerError { address: settings.listen, why };
        let mut secret = [0_u8; 32];
        getrandom::fill(&mut secret).map_err(|error| failed(error.to_string()))?;
        let secret = hex(&secret);
        let config = configure(&settings);
        let gate = Gate {
            credentials,
            topics: settings.topics.clone(),
            secret: secret.clone(),
            patience: Mutex::default(),
        };
        let secure = settings.tls.clone().map(|tls| (settings.listen, tls, settings.max_clients));
        let (told, begun) = oneshot::channel();
        std::thread::Builder::new()
            .name("broker".to_owned())
            .spawn(move || serve(config, gate, secure, told))
            .map_err(|error| failed(error.to_string()))?;
        let begun = begun.await.map_err(|_| failed("its thread ended".to_owned()))?;
        // The broker says at length that an address is taken; trying it again says so in a few words. Trying it before would take
        // it: a program that is started meanwhile holds what is open here until it runs.
        let briefly = |why: String| {
            std::net::TcpListener::bind(settings.listen).err().map_or(why, |error| error.to_string())
        };
        let Begun { plain, secure, shutdown } = begun.map_err(|why| failed(briefly(why)))?;
        let inner = plain.unwrap_or(settings.listen);
        let address = secure.unwrap_or(inner);
        let login = Login { client: "muster-bridge".to_owned(), user: BRIDGE.to_owned(), password: secret };
        Ok(Self { address, inner, login, shutdown })
    }
}

/// A broker that takes connections.
struct Begun {
    plain: Option<SocketAddr>,
    secure: Option<SocketAddr>,
    shutdown: BrokerShutdownHandle,
}

/// Serves until it is told to end, on this thread alone: what goes from one client to another never waits for another thread, and
/// robots that are loud take no thread from those who ask the API.
fn serve(
    config: BrokerConfig,
    gate: Gate,
    secure: Option<Secure>,
    told: oneshot::Sender<Result<Begun, String>>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        // Whoever asked is gone, or hears of it.
        Err(error) => return drop(told.send(Err(error.to_string()))),
    };
    runtime.block_on(async {
        let broker = match MqttBroker::with_config(config).await {
            Ok(broker) => broker,
            Err(error) => return drop(told.send(Err(error.to_string()))),
        };
        let mut broker = broker.with_auth_provider(Arc::new(gate));
        let plain = broker.local_addr();
        let front = match bind_front(secure).await {
            Ok(front) => front,
            Err(error) => return drop(told.send(Err(error.to_string()))),
        };
        let (front, secure) = front.unzip();
        let begun = Begun { plain, secure, shutdown: broker.shutdown_handle() };
        let mut ready = broker.ready_receiver();
        let announce = async move {
            let outcome = ready.wait_for(|ready| *ready).await.map(|_| ()).map_err(|error| error.to_string());
            drop(told.send(outcome.map(|()| begun)));
        };
        let before = async move {
            match front.zip(plain) {
                Some((front, plain)) => front.run(plain).await,
                None => std::future::pending().await,
            }
        };
        let run = async move {
            tokio::select! {
                ended = broker.run() => if let Err(error) = ended {
                    tracing::error!(%error, "the broker of robots ended");
                },
                () = before => {}
            }
        };
        tokio::join!(run, announce);
    });
}

/// Where robots that speak TLS come, how it is spoken, and how many there may be.
type Secure = (SocketAddr, Arc<ServerConfig>, usize);

async fn bind_front(secure: Option<Secure>) -> io::Result<Option<(TlsFront, SocketAddr)>> {
    let Some((address, tls, most)) = secure else { return Ok(None) };
    let front = TlsFront::bind(address, tls, most).await?;
    let address = front.address()?;
    Ok(Some((front, address)))
}

impl Drop for EmbeddedBroker {
    fn drop(&mut self) {
        self.shutdown.shutdown();
    }
}

/// Every client is a descriptor, and the usual limit is too low for a thousand of them. Where it cannot be raised, fewer clients
/// fit.
fn raise_descriptor_limit(clients: usize) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = u64::try_from(clients).unwrap_or(u64::MAX).saturating_add(OTHER_DESCRIPTORS);
    let wanted = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if current.is_some_and(|current| current < wanted)
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })
    {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}

fn configure(settings: &BrokerSettings) -> BrokerConfig {
    let inner = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut config = BrokerConfig {
        bind_addresses: vec![if settings.tls.is_some() { inner } else { settings.listen }],
        max_clients: settings.max_clients,
        session_expiry_interval: SESSIONS,
        max_packet_size: MAX_PAYLOAD + (4 << 10),
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
    /// What each robot may still say. The bridge speaks to all of them and has no limit.
    patience: Mutex<Patience>,
}

impl Gate {
    /// A robot may publish on its own topics, and not without end.
    fn may_publish(&self, user: &str, topic: &str) -> bool {
        let Some((robot, joined)) = robot_of(user) else { return false };
        if !self.topics.may_publish(robot, joined, topic) {
            return false;
        }
        self.patience.lock().hears(user, SystemClock.now())
    }

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
            Some(user) => self.may_publish(user, topic),
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

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};

    use muster_ports::store::{History, MemoryLog, Store};

    use super::*;

    #[tokio::test]
    async fn a_flood_of_a_robot_is_refused_and_the_bridge_says_what_it_likes() {
        let store = Store::open(MemoryLog::default(), History::default(), SystemClock).unwrap();
        let gate = Gate {
            credentials: Credentials::new(store, "default", Arc::new(None)),
            topics: Topics::new("p"),
            secret: String::new(),
            patience: Mutex::default(),
        };
        let mut heard = 0;
        for _ in 0..100_000 {
            assert!(gate.authorize_publish("", Some(BRIDGE), "p/robots/r1/tasks/dispatch").await);
            heard += u32::from(gate.authorize_publish("", Some("robot:r1"), "p/heartbeat").await);
        }
        assert!((1000..100_000).contains(&heard), "{heard}");
        assert!(gate.authorize_publish("", Some("robot:r2"), "p/heartbeat").await, "others are unharmed");
    }

    /// A program that is started holds what is open here until it runs.
    #[tokio::test]
    async fn a_broker_gets_its_address_while_programs_are_started() {
        let free: Vec<_> = (0..400).map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<_> = free.iter().map(|listener| listener.local_addr().unwrap()).collect();
        drop(free);
        let enough = Arc::new(AtomicBool::new(false));
        let starter = std::thread::spawn({
            let enough = Arc::clone(&enough);
            move || {
                while !enough.load(Ordering::Relaxed) {
                    Command::new("true").status().unwrap();
                }
            }
        });
        let mut refused = Vec::new();
        for listen in addresses {
            let store = Store::open(MemoryLog::default(), History::default(), SystemClock).unwrap();
            let credentials = Credentials::new(store, "default", Arc::new(None));
            let settings = BrokerSettings { listen, tls: None, topics: Topics::new("p"), max_clients: 1 };
            refused.extend(EmbeddedBroker::start(settings, credentials).await.err());
        }
        enough.store(true, Ordering::Relaxed);
        starter.join().unwrap();
        assert!(refused.is_empty(), "{refused:?}");
    }

    #[tokio::test]
    async fn an_address_that_is_taken_is_told_in_a_few_words() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = taken.local_addr().unwrap();
        let store = Store::open(MemoryLog::default(), History::default(), SystemClock).unwrap();
        let credentials = Credentials::new(store, "default", Arc::new(None));
        let settings = BrokerSettings { listen, tls: None, topics: Topics::new("p"), max_clients: 1 };
        let error = EmbeddedBroker::start(settings, credentials).await.err().unwrap();
        assert_eq!(
            error.to_string(),
            format!(
                "cannot listen for robots on {listen}: Address already in use (os error 98); choose an address with \
                 --mqtt-listen HOST:PORT, or --mqtt-listen off"
            )
        );
    }
}
