//! The fleet, put together: a broker, the bridge, and what the engine needs to know.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use muster_apiserver::tls::Tls;
use muster_apiserver::tokens::Tokens;
use muster_engine::fleet;
use muster_engine::settings::Robots;
use muster_fleet::liveness;
use muster_fleet_mqtt::{
    BrokerSettings, BrokerUrl, Credentials, EmbeddedBroker, JoinTokens, Link, Login, Reception,
    ReceptionSettings, RobotRuntime, RobotSettings, Taken, Topics, trust_file,
};
use muster_ports::clock::{Clock, SystemClock};
use muster_ports::logs::Logs;
use muster_ports::runtime::{Fact, Runtime};
use muster_ports::store::Store;
use muster_ports::telemetry::Telemetry;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;

use crate::cli::{Approval, QueueArgs, RobotArgs, UpArgs};
use crate::data_dir::DataDir;

/// How often a sign of life is written down that says nothing new, at most.
const WRITE_EVERY: Duration = Duration::from_mins(1);
/// Robots written down in a second: enough for a hundred thousand within their time.
const WRITES_PER_SECOND: usize = 500;
/// Connections of robots to the broker that is part of the server.
const MAX_CLIENTS: usize = 20_000;

/// Holds the name of the bridge at brokers of others.
const CLIENT: &str = "client";

/// Where the broker listens if nothing else is said.
const USUAL_ADDRESS: &str = "127.0.0.1:1883";

/// Robots beside processes.
pub struct RobotPart {
    /// Settings of the engine.
    pub settings: Robots,
    /// Where robots connect to.
    pub url: String,
    runtime: RobotRuntime,
    facts: Option<UnboundedReceiver<Fact>>,
    desk: Pin<Box<dyn Future<Output = ()> + Send>>,
    own: Option<OwnBroker>,
    liveness: liveness::Settings,
    store: Store,
    clock: Arc<dyn Clock>,
}

/// The broker that is part of the server, and who hears robots there: nobody else can.
struct OwnBroker {
    broker: EmbeddedBroker,
    reception: Reception,
}

/// The access tokens of the server by which robots join.
struct StoredJoinTokens(Tokens);

impl JoinTokens for StoredJoinTokens {
    fn admits(&self, secret: &str, robot: &str) -> bool {
        self.0.admits(secret, robot, &SystemClock)
    }

    fn take<'a>(&'a self, secret: &'a str, robot: &'a str) -> Taken<'a> {
        Box::pin(async move {
            let taken = self.0.take_use(secret, robot, &SystemClock).await;
            taken.map_err(|refusal| refusal.to_string())
        })
    }
}

/// What a server needs to hear robots.
pub struct Ears<'a> {
    pub data: &'a DataDir,
    pub args: &'a RobotArgs,
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub telemetry: Telemetry,
}

impl Ears<'_> {
    /// Who hears robots at a broker of somebody else's, and where that is. It is not asked yet: it may be away.
    pub fn at(self, url: &str) -> anyhow::Result<(Reception, String)> {
        let reach = outside_broker(self.data, self.args, url)?;
        let (credentials, topics) = (self.credentials(), Topics::new(&self.args.mqtt_prefix));
        let link = reach.link(topics, &self.args.robot_namespace);
        Ok((self.reception(link, credentials), reach.url))
    }

    fn credentials(&self) -> Credentials {
        let join = Arc::new(StoredJoinTokens(Tokens::new(self.store.clone())));
        Credentials::new(self.store.clone(), &self.args.robot_namespace, join)
    }

    fn reception(self, link: Link, credentials: Credentials) -> Reception {
        let settings = ReceptionSettings {
            write_every: WRITE_EVERY.min(self.args.robot_offline_after.as_std() / 4),
            writes_per_second: WRITES_PER_SECOND,
        };
        Reception::new(link, settings, self.store, self.clock, credentials, self.telemetry)
    }
}

impl RobotPart {
    /// Makes it, and starts the broker if it is ours. Nothing if nobody asked for a broker and there can be none: the rest of the
    /// server does not need it.
    pub async fn prepare(
        ears: Ears<'_>,
        up: Option<&UpArgs>,
        tls: Option<&Tls>,
        queue: &QueueArgs,
    ) -> anyhow::Result<Option<Self>> {
        let Ears { data, args, .. } = ears;
        let (store, clock) = (ears.store.clone(), ears.clock.clone());
        let topics = Topics::new(&args.mqtt_prefix);
        let (own, reach) = if let Some(url) = &args.mqtt_url {
            (None, outside_broker(data, args, url)?)
        } else {
            let credentials = ears.credentials();
            match own_broker(args, up, tls, &topics, credentials.clone()).await {
                Ok((broker, reach)) => {
                    let link = reach.link(topics.clone(), &args.robot_namespace);
                    let link = Link { is_embedded: true, ..link };
                    (Some(OwnBroker { broker, reception: ears.reception(link, credentials) }), reach)
                }
                Err(error) if args.mqtt_listen.is_some() => return Err(error),
                Err(error) => {
                    tracing::warn!("there is no broker for robots: {error:#}");
                    return Ok(None);
                }
            }
        };
        let settings = RobotSettings { root: data.folder("robots")?, log_max_bytes: queue.log_max.value() };
        let link = reach.link(topics, &args.robot_namespace);
        let (runtime, facts, desk) = RobotRuntime::new(link, settings, store.clone(), clock.clone());
        let liveness = liveness::Settings {
            offline_after: args.robot_offline_after.seconds_rounded_up(),
            approve: args.robot_approval == Approval::Automatic,
            max_robots: args.max_robots,
        };
        let settings = Robots { url: args.robot_url.clone().unwrap_or_default() };
        let (facts, desk) = (Some(facts), Box::pin(desk));
        Ok(Some(Self { settings, url: reach.url, runtime, facts, desk, own, liveness, store, clock }))
    }

    /// Its logs.
    pub fn logs(&self) -> Arc<dyn Logs> {
        Arc::new(self.runtime.logs())
    }

    /// The runtime, and what it observes.
    pub fn runtime(&mut self) -> (Arc<dyn Runtime>, Option<UnboundedReceiver<Fact>>) {
        (Arc::new(self.runtime.clone()), self.facts.take())
    }

    /// Starts what forwards and what judges robots. To be called once the engine has taken over what was there before.
    pub fn start(self, loops: &mut JoinSet<()>, telemetry: Telemetry) {
        loops.spawn(fleet::run(self.store, self.clock, self.liveness, telemetry));
        loops.spawn(self.desk);
        if let Some(OwnBroker { broker, reception }) = self.own {
            loops.spawn(async move {
                reception.run().await;
                drop(broker);
            });
        }
    }
}

/// How the server reaches a broker.
struct Reach {
    broker: BrokerUrl,
    login: Login,
    trust: Option<Arc<rustls::ClientConfig>>,
    /// For people.
    url: String,
}

impl Reach {
    fn link(&self, topics: Topics, namespace: &str) -> Link {
        let Self { broker, login, trust, .. } = self;
        let (broker, login, trust) = (broker.clone(), login.clone(), trust.clone());
        Link { broker, login, trust, topics, namespace: namespace.to_owned(), is_embedded: false }
    }
}

fn outside_broker(data: &DataDir, args: &RobotArgs, url: &str) -> anyhow::Result<Reach> {
    let broker = BrokerUrl::parse(url).context("--mqtt-url")?;
    let (user, password) = broker.login.clone().unwrap_or_default();
    let trust = args.mqtt_ca_file.as_deref().map(trust_file).transpose()?;
    let url = broker.public();
    let login = Login { client: bridge_client(&data.folder("robots")?.join(CLIENT))?, user, password };
    Ok(Reach { broker, login, trust, url })
}

/// The bridge under a name of its own: of two clients with one name a broker keeps the later, and other servers use the same
/// broker. The name stays, so that the next start takes the place of one that the broker does not know to be gone.
fn bridge_client(file: &Path) -> anyhow::Result<String> {
    if let Ok(name) = fs::read_to_string(file) {
        return Ok(name);
    }
    let mut number = [0; 8];
    getrandom::fill(&mut number).map_err(|error| anyhow::anyhow!("no random numbers to be had: {error}"))?;
    let name = format!("muster-bridge-{:016x}", u64::from_be_bytes(number));
    fs::write(file, &name).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(name)
}

async fn own_broker(
    args: &RobotArgs,
    up: Option<&UpArgs>,
    tls: Option<&Tls>,
    topics: &Topics,
    credentials: Credentials,
) -> anyhow::Result<(EmbeddedBroker, Reach)> {
    let asked = args.mqtt_listen.as_deref().unwrap_or(USUAL_ADDRESS);
    let listen: SocketAddr =
        asked.parse().with_context(|| format!("--mqtt-listen {asked} is not HOST:PORT and not `off`"))?;
    let tls = choose_tls(up, tls, listen)?;
    let secure = tls.is_some();
    let settings = BrokerSettings { listen, tls, topics: topics.clone(), max_clients: MAX_CLIENTS };
    let broker = EmbeddedBroker::start(settings, credentials).await?;
    let inner = broker.inner;
    let reach = Reach {
        broker: BrokerUrl::plain(&inner.ip().to_string(), inner.port()),
        login: broker.login.clone(),
        trust: None,
        url: format!("{}://{}", if secure { "mqtts" } else { "mqtt" }, broker.address),
    };
    Ok((broker, reach))
}

/// The certificate of the API is that of the broker too, where others can reach it, also after it was renewed.
fn choose_tls(
    up: Option<&UpArgs>,
    tls: Option<&Tls>,
    address: SocketAddr,
) -> anyhow::Result<Option<Arc<rustls::ServerConfig>>> {
    let Some(up) = up.filter(|_| !address.ip().is_loopback()) else { return Ok(None) };
    if up.insecure_http && up.tls_cert.is_none() {
        tracing::warn!(%address, "plain MQTT: everybody on the network can read what robots are told");
        return Ok(None);
    }
    if !up.tls_generate && up.tls_cert.is_none() {
        bail!(
            "--mqtt-listen {address} can be reached from other machines, which needs TLS: give --tls-generate, or \
             --tls-cert and --tls-key, or --insecure-http if you know what you do"
        );
    }
    let tls = tls.context("the server has no certificate that its broker could show")?;
    Ok(Some(tls.of_broker()?))
}
