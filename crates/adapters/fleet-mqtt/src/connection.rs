//! One connection to a broker, which is made again whenever it ends.
//!
//! Publishing never waits for the network: what cannot be sent yet stands in a queue with a bound. What was confirmed can be
//! waited for. What comes in is handed on in order; when nobody takes it, the broker is not read from.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rumqttc::{
    AsyncClient, Broker, ConnectionError, EventLoop, Incoming, LastWill, MqttOptions, PublishOptions,
    PublishProperties, QoS, SessionMode, TlsConfiguration, Transport,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::sync::mpsc;

use crate::broker_url::BrokerUrl;
use crate::messages::MAX_PAYLOAD;

/// Messages on their way out at once.
const OUTGOING: usize = 4096;
/// Messages that were sent and not confirmed. Room is made for all of them at once, and a robot has little.
const UNCONFIRMED: u16 = 256;
/// Messages that came and were not taken yet.
const INCOMING: usize = 4096;
/// Seconds without a word after which either side takes the other for dead, by half as much again.
const KEEP_ALIVE: u16 = 20;
/// Pause before the next try, at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Seconds for which a broker keeps a session whose client is away.
const SESSION_SECONDS: u32 = 24 * 3600;
/// What goes with a payload.
const OVERHEAD: usize = 4 << 10;

/// Trusts the authorities of a file alone.
pub fn trust_file(path: &Path) -> io::Result<Arc<rustls::ClientConfig>> {
    let failed = |why: String| io::Error::other(format!("{}: {why}", path.display()));
    let mut roots = rustls::RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        roots.add(certificate).map_err(|error| failed(error.to_string()))?;
    }
    Ok(Arc::new(rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()))
}

/// Who connects.
#[derive(Clone)]
pub struct Login {
    /// The client, by which the broker knows a session.
    pub client: String,
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

/// The client id of a robot that wants to join: its own is for the robot that has.
pub fn joining_client(robot: &str) -> String {
    format!("join-{robot}")
}

/// What the broker says when a connection ends without a word.
#[derive(Debug, Clone)]
pub struct Will {
    /// Where.
    pub topic: String,
    /// What.
    pub payload: Vec<u8>,
}

/// What happens on a connection.
#[derive(Debug)]
pub enum Event {
    /// It is there, and everything was subscribed to.
    Connected,
    /// It is gone, or could not be made.
    Disconnected {
        /// Why, for people.
        why: String,
        /// The broker refuses this user.
        refused: bool,
    },
    /// A message.
    Message {
        /// On which topic.
        topic: String,
        /// What.
        payload: bytes::Bytes,
    },
}

/// A connection that is made again whenever it ends. Ends with its last copy.
#[derive(Clone)]
pub struct Connection {
    client: AsyncClient,
    _ends: Arc<mpsc::Sender<()>>,
}

impl Connection {
    /// Begins to connect. The broker keeps what comes while the connection is away. Must be called from within tokio.
    pub fn open(
        url: &BrokerUrl,
        login: &Login,
        will: Option<Will>,
        filters: Vec<String>,
        trust: Option<Arc<rustls::ClientConfig>>,
    ) -> (Self, mpsc::Receiver<Event>) {
        let mut options = options(url, login);
        options.set_session_mode(SessionMode::Persistent);
        options.set_session_expiry_interval(Some(SESSION_SECONDS));
        // What was under way in a former process is asked for again by the protocol above: only what this one begins goes on.
        options.set_clean_start(true);
        if let Some(will) = will {
            options.set_last_will(LastWill::new(will.topic, will.payload, QoS::AtLeastOnce, false, None));
        }
        Self::begin(options, Session::Kept, url, filters, trust)
    }

    /// The same for somebody of whom nothing is kept while the connection is away: what several share goes to the others from the
    /// moment on in which the broker knows that it is gone.
    #[cfg(feature = "server")]
    pub(crate) fn open_brief(
        url: &BrokerUrl,
        login: &Login,
        filters: Vec<String>,
        trust: Option<Arc<rustls::ClientConfig>>,
    ) -> (Self, mpsc::Receiver<Event>) {
        let mut options = options(url, login);
        options.set_session_mode(SessionMode::Clean);
        Self::begin(options, Session::Brief, url, filters, trust)
    }

    fn begin(
        mut options: MqttOptions,
        session: Session,
        url: &BrokerUrl,
        filters: Vec<String>,
        trust: Option<Arc<rustls::ClientConfig>>,
    ) -> (Self, mpsc::Receiver<Event>) {
        if url.tls {
            options.set_transport(match (trust.map(TlsConfiguration::Rustls), &url.web_path) {
                (Some(config), None) => Transport::tls_with_config(config),
                (Some(config), Some(_)) => Transport::wss_with_config(config),
                (None, None) => Transport::tls_with_default_config(),
                (None, Some(_)) => Transport::wss_with_default_config(),
            });
        }
        let (client, events) = AsyncClient::builder(options).capacity(OUTGOING).build();
        let (sender, receiver) = mpsc::channel(INCOMING);
        let (alive, ended) = mpsc::channel(1);
        tokio::spawn(drive(events, client.clone(), session, filters, sender, ended));
        (Self { client, _ends: Arc::new(alive) }, receiver)
    }

    /// Queues a message. Waits only while the queue is full.
    pub async fn publish(&self, topic: &str, payload: Vec<u8>, expires: Option<Duration>) {
        let options = with_expiry(expires);
        if let Err(error) = self.client.publish(topic, payload, options).await {
            tracing::debug!(topic, %error, "a message could not be queued");
        }
    }

    /// Sends a message and waits until the broker has it. False if that is not certain.
    pub async fn publish_confirmed(&self, topic: &str, payload: Vec<u8>) -> bool {
        match self.client.publish_tracked(topic, payload, with_expiry(None)).await {
            Ok(notice) => notice.wait_async().await.is_ok(),
            Err(_) => false,
        }
    }
}

/// What becomes of a session when its connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Session {
    /// It goes on with the next connection.
    Kept,
    /// It ends too.
    #[cfg(feature = "server")]
    Brief,
}

fn options(url: &BrokerUrl, login: &Login) -> MqttOptions {
    let mut options = MqttOptions::new(&login.client, broker(url));
    options.set_credentials(&login.user, login.password.clone().into_bytes());
    options.set_keep_alive(KEEP_ALIVE);
    options.set_outgoing_inflight_upper_limit(UNCONFIRMED);
    options.set_max_packet_size(u32::try_from(MAX_PAYLOAD + OVERHEAD).ok());
    options
}

fn broker(url: &BrokerUrl) -> Broker {
    let BrokerUrl { host, port, web_path, .. } = url;
    let web = web_path.as_ref().and_then(|path| Broker::websocket(format!("ws://{host}:{port}{path}")).ok());
    web.unwrap_or_else(|| Broker::tcp(host, *port))
}

fn with_expiry(expires: Option<Duration>) -> PublishOptions {
    let options = PublishOptions::new(QoS::AtLeastOnce);
    match expires.and_then(|time| u32::try_from(time.as_secs()).ok()) {
        Some(seconds) => options
            .properties(PublishProperties { message_expiry_interval: Some(seconds), ..Default::default() }),
        None => options,
    }
}

/// Keeps the connection up and hands on what comes.
async fn drive(
    mut events: EventLoop,
    client: AsyncClient,
    session: Session,
    filters: Vec<String>,
    out: mpsc::Sender<Event>,
    mut ended: mpsc::Receiver<()>,
) {
    let mut pause = FIRST_PAUSE;
    // Subscriptions that the broker has not noted yet.
    let mut unconfirmed = 0;
    loop {
        let polled = tokio::select! {
            polled = events.poll() => polled,
            _ = ended.recv() => return,
        };
        let event = match polled {
            Ok(rumqttc::Event::Incoming(Incoming::ConnAck(_))) => {
                pause = FIRST_PAUSE;
                events.options.set_clean_start(session != Session::Kept);
                unconfirmed = 0;
                for filter in &filters {
                    match client.try_subscribe(filter.as_str(), QoS::AtLeastOnce) {
                        Ok(()) => unconfirmed += 1,
                        Err(error) => tracing::warn!(filter, %error, "cannot subscribe"),
                    }
                }
                if unconfirmed > 0 {
                    continue;
                }
                Event::Connected
            }
            Ok(rumqttc::Event::Incoming(Incoming::SubAck(_))) if unconfirmed > 0 => {
                unconfirmed -= 1;
                if unconfirmed > 0 {
                    continue;
                }
                Event::Connected
            }
            Ok(rumqttc::Event::Incoming(Incoming::Publish(publish))) => Event::Message {
                topic: String::from_utf8_lossy(&publish.topic).into_owned(),
                payload: publish.payload,
            },
            Ok(_) => continue,
            Err(error) => {
                let why = error.to_string();
                if matches!(error, ConnectionError::SessionStateMismatch { .. }) {
                    events.options.set_clean_start(true);
                }
                let refused = ["NotAuthorized", "BadUserNamePassword", "Banned"]
                    .iter()
                    .any(|word| why.contains(word) || format!("{error:?}").contains(word));
                let event = Event::Disconnected { why, refused };
                if out.send(event).await.is_err() {
                    return;
                }
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    _ = ended.recv() => return,
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
                continue;
            }
        };
        if out.send(event).await.is_err() {
            return;
        }
    }
}
