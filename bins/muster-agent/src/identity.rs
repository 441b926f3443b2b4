//! Who this robot is: its id, and the credential it got when it joined, which only its owner can read.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use muster_fleet_mqtt::messages::{Register, Response, VERSION};
use muster_fleet_mqtt::{BrokerUrl, Connection, Event, Login, Topics, joining_client};
use muster_types::metadata::StringMap;

use crate::args::Args;
use crate::device::device_info;
use crate::private;

/// How long an answer to the wish to join may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause before it asks again.
const PAUSE: Duration = Duration::from_secs(5);

/// Who this robot is and how it reaches its fleet.
#[derive(Clone)]
pub struct Identity {
    pub id: String,
    pub url: BrokerUrl,
    pub topics: Topics,
    pub trust: Option<std::sync::Arc<rustls::ClientConfig>>,
    labels: StringMap,
    max_tasks: u32,
    token: Option<String>,
    file: PathBuf,
}

impl Identity {
    /// Reads it from the command line.
    pub fn of(args: &Args, work_dir: &Path) -> anyhow::Result<Self> {
        let id = args.robot_id.clone().unwrap_or_else(|| device_info().hostname.to_lowercase());
        muster_types::name_rules::dns1123_label(&id)
            .map_err(|why| anyhow::anyhow!("--robot-id {id} is not valid: {why}"))?;
        let label = |text: &String| {
            let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
            let (name, value) = parts.with_context(|| format!("--label {text} is not NAME=VALUE"))?;
            Ok::<_, anyhow::Error>((name.to_owned(), value.to_owned()))
        };
        let trust = args.ca_file.as_deref().map(muster_fleet_mqtt::trust_file).transpose()?;
        Ok(Self {
            id,
            url: BrokerUrl::parse(&args.broker)?,
            topics: Topics::new(&args.prefix),
            trust,
            labels: args.label.iter().map(label).collect::<Result<_, _>>()?,
            max_tasks: args.max_tasks,
            token: args.token.clone(),
            file: work_dir.join("credential"),
        })
    }

    /// The credential; joins if there is none yet.
    pub async fn credential(&self) -> anyhow::Result<String> {
        match private::read(&self.file) {
            Ok(secret) => Ok(secret.trim().to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.join().await,
            Err(error) => Err(error).with_context(|| format!("cannot read {}", self.file.display())),
        }
    }

    /// What the broker is shown: its own users if the address names one.
    pub fn login(&self, secret: &str) -> Login {
        let (user, password) = self.url.login.clone().unwrap_or_else(|| (self.id.clone(), secret.to_owned()));
        Login { client: self.id.clone(), user, password }
    }

    async fn join(&self) -> anyhow::Result<String> {
        let Some(token) = &self.token else {
            bail!(
                "this robot has not joined yet: give --token-file with a token made by `muster robot token create`"
            );
        };
        let filters = vec![self.topics.response(&self.id)];
        let login = Login { client: joining_client(&self.id), ..self.login(token) };
        let (connection, mut events) = Connection::open(&self.url, &login, None, filters, self.trust.clone());
        let asked = Register {
            version: VERSION,
            robot_id: self.id.clone(),
            token: token.clone(),
            device_info: device_info(),
            labels: self.labels.clone(),
            max_tasks: Some(self.max_tasks),
        };
        let payload = serde_json::to_vec(&asked)?;
        let mut ask_at = None;
        loop {
            let due = async {
                match ask_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => {
                    connection.publish(&self.topics.register(), payload.clone(), None).await;
                    ask_at = Some(tokio::time::Instant::now() + PATIENCE);
                }
                event = events.recv() => match event {
                    Some(Event::Connected) => ask_at = Some(tokio::time::Instant::now()),
                    Some(Event::Disconnected { why, refused }) => {
                        ask_at = None;
                        if refused {
                            bail!("the broker refuses this robot: the token is not valid, or another robot works as {}", self.id);
                        }
                        tracing::warn!(%why, "no connection to the broker; trying again");
                    }
                    Some(Event::Message { payload, .. }) => {
                        let Ok(response) = serde_json::from_slice::<Response>(&payload) else { continue };
                        match (response.success, response.credential) {
                            (true, Some(secret)) => {
                                keep(&self.file, &secret)?;
                                tracing::info!(robot = self.id, "joined");
                                return Ok(secret);
                            }
                            (true, None) => {}
                            (false, _) => {
                                tracing::warn!(why = response.message, "not let in; asking again");
                                ask_at = Some(tokio::time::Instant::now() + PAUSE);
                            }
                        }
                    }
                    None => bail!("the connection ended"),
                },
            }
        }
    }
}

fn keep(file: &Path, secret: &str) -> anyhow::Result<()> {
    let written = private::write(file, secret.as_bytes()).and_then(|file| file.sync_all());
    written.with_context(|| format!("cannot write {}", file.display()))
}
