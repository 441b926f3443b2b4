//! A connection with one channel, and what its errors mean.

use std::time::Duration;

use futures_util::StreamExt as _;
use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::runtime::default_runtime;
use lapin::tcp::TLSConfig;
use lapin::types::{AMQPValue, FieldTable, LongString};
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use lapin::{AsyncTcpStream, Channel, ConnectionProperties, Error, ErrorKind, Event, ExchangeKind};
use muster_egress::{EgressError, EgressPolicy};
use muster_ports::publisher::PublishError;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;

use crate::address::Address;
use crate::stream::unconnected;

/// Time for the broker to answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often each side shows that it is alive, in seconds.
const HEARTBEATS: u16 = 10;

/// An open connection.
pub struct Connection {
    /// The one channel.
    pub channel: Channel,
    events: UnboundedReceiver<Event>,
    /// The worker that listens has the connection, which is closed with it.
    _listening: JoinSet<()>,
}

impl Connection {
    /// Connects to a broker that a flag or the environment of the server names.
    pub async fn open(address: &Address) -> Result<Self, PublishError> {
        Self::open_within(address, &EgressPolicy::unrestricted()).await
    }

    /// Connects where the policy allows it, says who we are, and opens the channel.
    pub async fn open_within(address: &Address, policy: &EgressPolicy) -> Result<Self, PublishError> {
        let port = port_of(address);
        let place = format!("{}:{port}", address.host);
        let resolving = tokio::time::timeout(PATIENCE, policy.resolve(&address.host, port)).await;
        let addresses = resolving
            .unwrap_or_else(|late| Err(EgressError::Failed(late.into())))
            .map_err(|error| unconnected(&place, error))?;
        let opening = async {
            let name = ConnectionProperties::default().with_connection_name("muster".into());
            let connection = lapin::Connection::connector(
                uri_of(address),
                default_runtime()?,
                // The name stays in the URI, for the certificate; the connection goes to the addresses that were judged.
                async move |uri, runtime| {
                    let stream = AsyncTcpStream::connect(&runtime, addresses.clone()).await?;
                    Ok(match uri.scheme {
                        AMQPScheme::AMQP => stream,
                        AMQPScheme::AMQPS => {
                            stream.into_tls(&uri.authority.host, TLSConfig::default()).await?
                        }
                    })
                },
                name,
            )
            .await?;
            Ok((connection.create_channel().await?, connection))
        };
        match tokio::time::timeout(PATIENCE, opening).await {
            Ok(Ok((channel, connection))) => {
                let (sender, events) = unbounded_channel();
                let mut listening = JoinSet::new();
                listening.spawn(async move {
                    let mut heard = Box::pin(connection.events_listener());
                    while let Some(event) = heard.next().await {
                        if sender.send(event).is_err() {
                            return;
                        }
                    }
                });
                Ok(Self { channel, events, _listening: listening })
            }
            Ok(Err(error)) => Err(unopened(&place, &error)),
            Err(_) => {
                Err(PublishError::new("Unreachable", format!("{place} does not answer as a broker does")))
            }
        }
    }

    /// Waits for what ends the connection, or the broker's willingness. Can be given up without loss.
    pub async fn ending(&mut self) -> PublishError {
        loop {
            match self.events.recv().await {
                Some(Event::ConnectionBlocked(why)) => {
                    return PublishError::new(
                        "Blocked",
                        format!("the broker takes no messages: {why}; look at its memory and disk alarms"),
                    );
                }
                Some(Event::Error(error)) => return broken(&error),
                // That it is open, or open again.
                Some(_) => {}
                None => return PublishError::new("Disconnected", "the broker closed the connection"),
            }
        }
    }

    /// Makes a durable exchange, or finds it as it is.
    pub async fn declare_exchange(&self, exchange: &str, kind: ExchangeKind) -> Result<(), PublishError> {
        let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
        let declared = self.channel.exchange_declare(exchange.into(), kind, options, FieldTable::default());
        declared.await.map_err(|error| broken(&error))
    }

    /// Makes a durable queue with arguments, and binds it.
    pub async fn declare_queue(
        &self,
        exchange: &str,
        queue: &str,
        keys: &[&str],
        arguments: &[(&str, &str)],
    ) -> Result<(), PublishError> {
        let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        let mut table = FieldTable::default();
        for (name, value) in arguments {
            table.insert((*name).into(), AMQPValue::LongString(LongString::from(*value)));
        }
        let declared = self.channel.queue_declare(queue.into(), options, table);
        declared.await.map_err(|error| broken(&error))?;
        for key in keys {
            let (options, table) = (QueueBindOptions::default(), FieldTable::default());
            let bound = self.channel.queue_bind(queue.into(), exchange.into(), (*key).into(), options, table);
            bound.await.map_err(|error| broken(&error))?;
        }
        Ok(())
    }
}

fn port_of(address: &Address) -> u16 {
    address.port.unwrap_or(if address.is_secure() { 5671 } else { 5672 })
}

fn uri_of(address: &Address) -> AMQPUri {
    let is_guest = address.user.is_empty();
    let or_guest = |text: &str| if is_guest { "guest".to_owned() } else { text.to_owned() };
    let (username, password) = (or_guest(&address.user), or_guest(&address.password));
    AMQPUri {
        scheme: if address.is_secure() { AMQPScheme::AMQPS } else { AMQPScheme::AMQP },
        authority: AMQPAuthority {
            userinfo: AMQPUserInfo { username, password },
            host: address.host.clone(),
            port: port_of(address),
        },
        vhost: address.decoded_path().filter(|path| !path.is_empty()).unwrap_or_else(|| "/".to_owned()),
        query: AMQPQueryString { heartbeat: Some(HEARTBEATS), ..AMQPQueryString::default() },
    }
}

/// Why a connection was not opened.
fn unopened(place: &str, error: &Error) -> PublishError {
    match error.kind() {
        ErrorKind::ProtocolError(_) => broken(error),
        _ if error.to_string().contains("certificate") => PublishError::new(
            "NotTrusted",
            format!("{place}: {error}; make this machine trust its authority"),
        ),
        _ => PublishError::new("Unreachable", format!("{place} cannot be reached: {error}")),
    }
}

/// What ended a connection or a channel.
pub fn broken(error: &Error) -> PublishError {
    let ErrorKind::ProtocolError(said) = error.kind() else {
        return PublishError::new("Disconnected", format!("the connection to the broker broke: {error}"));
    };
    let code = said.get_id();
    let reason = match code {
        403 => "AccessRefused",
        406 => "ExchangeMismatch",
        404 | 530 => "NotFound",
        320 => "Disconnected",
        _ => "BrokerRefused",
    };
    PublishError::new(reason, format!("the broker says {code}: {}", said.get_message()))
}
