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
use thiserror::Error;
use tokio::sync::mpsc;

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

/// Where a broker is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerUrl {
    /// Its name.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether it is spoken to over TLS.
    pub tls: bool,
    /// User and password, if the address has them.
    pub login: Option<(String, String)>,
}

/// Why an address is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not the address of a broker; write mqtt://HOST:PORT or mqtts://HOST:PORT")]
pub struct BrokerUrlError(String);

impl BrokerUrl {
    /// Reads `mqtt://[user:password@]host[:port]` or `mqtts://…`.
    pub fn parse(text: &str) -> Result<Self, BrokerUrlError> {
        // The rest may be a secret.
        let shown = || BrokerUrlError(text.rsplit('@').next().unwrap_or_default().to_owned());
        let (tls, rest) = match (text.strip_prefix("mqtts://"), text.strip_prefix("mqtt://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err(shown()),
        };
        let (login, address) = match rest.rsplit_once('@') {
            Some((login, address)) => (login.split_once(':'), address),
            None => (None, rest),
        };
        let address = address.trim_end_matches('/');
        let usual = if tls { 8883 } else { 1883 };
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| shown())?),
            None => (address, usual),
        };
        if host.is_empty() {
            return Err(shown());
        }
        let login = login.map(|(user, password)| (user.to_owned(), password.to_owned()));
        Ok(Self { host: host.to_owned(), port, tls, login })
    }
}

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
    /// Begins to connect. Must be called from within tokio.
    pub fn open(
        url: &BrokerUrl,
        login: &Login,
        will: Option<Will>,
        filters: Vec<String>,
        trust: Option<Arc<rustls::ClientConfig>>,
    ) -> (Self, mpsc::Receiver<Event>) {
        let mut options = MqttOptions::new(&login.client, Broker::tcp(&url.host, url.port));
        options.set_credentials(&login.user, login.password.clone().into_bytes());
        options.set_keep_alive(KEEP_ALIVE);
        options.set_outgoing_inflight_upper_limit(UNCONFIRMED);
        options.set_session_mode(SessionMode::Persistent);
        options.set_session_expiry_interval(Some(SESSION_SECONDS));
        // What was under way in a former process is asked for again by the protocol above: only what this one begins goes on.
        options.set_clean_start(true);
        options.set_max_packet_size(u32::try_from(MAX_PAYLOAD + OVERHEAD).ok());
        if let Some(will) = will {
            options.set_last_will(LastWill::new(will.topic, will.payload, QoS::AtLeastOnce, false, None));
        }
        if url.tls {
            let transport = match trust {
                Some(config) => Transport::tls_with_config(TlsConfiguration::Rustls(config)),
                None => Transport::tls_with_default_config(),
            };
            options.set_transport(transport);
        }
        let (client, events) = AsyncClient::builder(options).capacity(OUTGOING).build();
        let (sender, receiver) = mpsc::channel(INCOMING);
        let (alive, ended) = mpsc::channel(1);
        tokio::spawn(drive(events, client.clone(), filters, sender, ended));
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
    filters: Vec<String>,
    out: mpsc::Sender<Event>,
    mut ended: mpsc::Receiver<()>,
) {
    let mut pause = FIRST_PAUSE;
    loop {
        let polled = tokio::select! {
            polled = events.poll() => polled,
            _ = ended.recv() => return,
        };
        let event = match polled {
            Ok(rumqttc::Event::Incoming(Incoming::ConnAck(_))) => {
                pause = FIRST_PAUSE;
                events.options.set_clean_start(false);
                for filter in &filters {
                    if let Err(error) = client.try_subscribe(filter.as_str(), QoS::AtLeastOnce) {
                        tracing::warn!(filter, %error, "cannot subscribe");
                    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let url = BrokerUrl::parse("mqtt://127.0.0.1:1884").unwrap();
        assert_eq!((url.host.as_str(), url.port, url.tls), ("127.0.0.1", 1884, false));
        let url = BrokerUrl::parse("mqtts://me:se:cret@broker.example").unwrap();
        assert_eq!((url.host.as_str(), url.port, url.tls), ("broker.example", 8883, true));
        assert_eq!(url.login, Some(("me".to_owned(), "se:cret".to_owned())));
    }

    #[test]
    fn what_is_no_address_is_refused_without_its_secrets() {
        for text in ["http://a", "mqtt://", "mqtt://a:b:c", "mqtt://u:secret@:1"] {
            let error = BrokerUrl::parse(text).unwrap_err().to_string();
            assert!(error.contains("mqtt://HOST:PORT") && !error.contains("secret"), "{error}");
        }
    }
}
