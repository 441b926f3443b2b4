//! What robots prove themselves with: a join token once, then a credential of their own, of which only the hash is stored.
//!
//! A credential is bound to the Robot object it was made for: when that is deleted, it opens nothing any more. Whoever has a
//! join token can join under any name that is not taken. A name is taken once its credential was used.

use std::sync::Arc;

use muster_ports::store::{Batch, CommitError, Draft, Key, Precondition, ResourceName, Store, Write};
use muster_types::Robot;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Where credentials are kept.
const RESOURCE: &str = "robotcredentials.internal";
const ROBOTS: &str = "robots.muster.dev";
/// What a secret starts with.
const PREFIX: &str = "musterrobot_";

/// Says whether a secret is a join token that is valid now.
pub type JoinCheck = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Who somebody is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The robot.
    Robot,
    /// Somebody who may join under this name.
    Joining,
    /// Nobody.
    Refused,
}

/// The credentials of a store.
#[derive(Clone)]
pub struct Credentials {
    store: Store,
    namespace: String,
    resource: ResourceName,
    robots: ResourceName,
    join: JoinCheck,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    hash: String,
    /// Uid of the Robot.
    robot: String,
    used: bool,
}

impl Credentials {
    /// Credentials of robots that live in a namespace.
    pub fn new(store: Store, namespace: &str, join: JoinCheck) -> Self {
        let (resource, robots) = (ResourceName::new(RESOURCE), ResourceName::new(ROBOTS));
        Self { store, namespace: namespace.to_owned(), resource, robots, join }
    }

    /// Who holds this secret.
    pub fn check(&self, robot: &str, secret: &str) -> Claim {
        let known = self.record(robot).filter(|record| Some(&record.robot) == self.uid_of(robot).as_ref());
        if known.as_ref().is_some_and(|record| record.hash == hash(secret)) {
            return Claim::Robot;
        }
        // A name that is in use is not given to somebody else.
        let free = known.is_none_or(|record| !record.used);
        if free && (self.join)(secret) { Claim::Joining } else { Claim::Refused }
    }

    /// Makes the credential of a robot, which is shown only now.
    pub async fn issue(&self, robot: &str) -> Result<String, String> {
        let uid = self.uid_of(robot).ok_or("the robot is gone")?;
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| format!("no random numbers to be had: {error}"))?;
        let secret = format!("{PREFIX}{}", hex(&bytes));
        self.write(robot, &Record { hash: hash(&secret), robot: uid, used: false })
            .await
            .map_err(|error| error.to_string())?;
        Ok(secret)
    }

    /// The credential was used: nobody else can join under this name.
    pub async fn mark_used(&self, robot: &str) {
        let Some(record) = self.record(robot).filter(|record| !record.used) else { return };
        if let Err(error) = self.write(robot, &Record { used: true, ..record }).await {
            tracing::warn!(robot, %error, "cannot write down that a credential was used");
        }
    }

    async fn write(&self, robot: &str, record: &Record) -> Result<(), CommitError> {
        let text = serde_json::to_string(record).unwrap_or_default();
        let json = text.replacen('{', "{\"revision\":,", 1).into_bytes();
        let Some(draft) = Draft::new(json, "{\"revision\":".len()) else { return Ok(()) };
        let key = self.key(robot);
        let expect =
            self.store.get(&key).map_or(Precondition::Absent, |stored| Precondition::At(stored.revision));
        let write = Write::Put { key, expect, draft };
        self.store.commit(Batch::of(write)).await.map(drop)
    }

    fn record(&self, robot: &str) -> Option<Record> {
        serde_json::from_slice(self.store.get(&self.key(robot))?.json()).ok()
    }

    fn uid_of(&self, robot: &str) -> Option<String> {
        let stored = self.store.get(&Key::new(&self.robots, &self.namespace, robot))?;
        serde_json::from_slice::<Robot>(stored.json()).ok().map(|robot| robot.metadata.uid)
    }

    fn key(&self, robot: &str) -> Key {
        Key::new(&self.resource, "", robot)
    }
}

fn hash(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |text, byte| text + &format!("{byte:02x}"))
}
