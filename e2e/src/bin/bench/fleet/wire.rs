//! One MQTT connection, as light as can be: the packets of rumqttc on a bare socket, so that ten thousand fit into one process.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context as _, bail};
use bytes::BytesMut;
use rumqttc::mqttbytes::v5::{
    Connect, ConnectAuth, ConnectProperties, ConnectReturnCode, LastWill, Packet, PubAck, Publish, Subscribe,
    SubscribeFilter,
};
use rumqttc::mqttbytes::{Error, QoS};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

/// Seconds without a word after which the broker takes a robot for dead, by half as much again.
const KEEP_ALIVE: u16 = 60;
/// Seconds for which a broker keeps a session.
const SESSION: u32 = 3600;
/// Addresses of this machine that connections come from: one alone has too few ports for those that ended a moment ago.
const SOURCES: usize = 8;

/// Who connects.
pub struct Hello {
    pub client: String,
    pub user: String,
    pub password: String,
    /// Topic and payload of what is said when the connection is lost.
    pub will: Option<(String, Vec<u8>)>,
    /// Any number: spreads connections over addresses.
    pub number: usize,
}

/// A connection.
pub struct Wire {
    stream: TcpStream,
    inbox: BytesMut,
    last_id: u16,
}

impl Wire {
    /// Connects and waits until the broker has let it in.
    pub async fn open(broker: SocketAddr, hello: Hello) -> anyhow::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        let source = u8::try_from(1 + hello.number % SOURCES)?;
        socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, source), 0)))?;
        let stream = socket.connect(broker).await?;
        stream.set_nodelay(true)?;
        let mut wire = Self { stream, inbox: BytesMut::new(), last_id: 0 };
        let mut properties = ConnectProperties::new();
        properties.session_expiry_interval = Some(SESSION);
        let connect = Connect {
            keep_alive: KEEP_ALIVE,
            client_id: hello.client,
            clean_start: true,
            properties: Some(properties),
        };
        let will = hello.will.map(|(topic, said)| LastWill::new(topic, said, QoS::AtLeastOnce, false, None));
        let auth = ConnectAuth::UsernamePassword {
            username: hello.user,
            password: hello.password.into_bytes().into(),
        };
        wire.send([Packet::Connect(connect, will, auth)]).await?;
        match wire.next().await? {
            Packet::ConnAck(ack) if ack.code == ConnectReturnCode::Success => Ok(wire),
            other => bail!("the broker does not let a client in: {other:?}"),
        }
    }

    /// Subscribes and waits until the broker has noted it.
    pub async fn subscribe(&mut self, filters: Vec<String>) -> anyhow::Result<()> {
        let filters = filters.into_iter().map(|filter| SubscribeFilter::new(filter, QoS::AtLeastOnce));
        let mut subscribe = Subscribe::new_many(filters, None);
        subscribe.pkid = self.next_id();
        self.send([Packet::Subscribe(subscribe)]).await?;
        match self.next().await? {
            Packet::SubAck(_) => Ok(()),
            other => bail!("the broker does not take a subscription: {other:?}"),
        }
    }

    /// A message, to be sent.
    pub fn publish(&mut self, topic: &str, payload: impl Into<bytes::Bytes>) -> Packet {
        let mut publish = Publish::new(topic, QoS::AtLeastOnce, payload, None);
        publish.pkid = self.next_id();
        Packet::Publish(publish)
    }

    /// Acknowledges a message that came.
    pub fn acknowledge(publish: &Publish) -> Packet {
        Packet::PubAck(PubAck::new(publish.pkid, None))
    }

    /// Sends packets.
    pub async fn send(&mut self, packets: impl IntoIterator<Item = Packet>) -> anyhow::Result<()> {
        let mut out = BytesMut::new();
        for packet in packets {
            packet.write(&mut out, None)?;
        }
        self.stream.write_all(&out).await.context("the broker is gone")
    }

    /// The next packet. May be given up and asked for again.
    pub async fn next(&mut self) -> anyhow::Result<Packet> {
        loop {
            match Packet::read(&mut self.inbox, None) {
                Ok(packet) => {
                    if self.inbox.is_empty() {
                        self.inbox = BytesMut::new();
                    }
                    return Ok(packet);
                }
                Err(Error::InsufficientBytes(_)) => {}
                Err(error) => return Err(error.into()),
            }
            self.inbox.reserve(1024);
            if self.stream.read_buf(&mut self.inbox).await? == 0 {
                bail!("the broker closed the connection");
            }
        }
    }

    fn next_id(&mut self) -> u16 {
        self.last_id = self.last_id.checked_add(1).unwrap_or(1);
        self.last_id
    }
}
