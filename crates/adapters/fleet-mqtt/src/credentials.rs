//! What robots prove themselves with: a join token once, then a credential of their own, of which only the hash is stored.
//!
//! A credential is bound to the Robot object it was made for: when that is deleted, it opens nothing any more. A join token lets
//! as many robots join as it has uses, under names that are not taken. A name is taken once its credential was used: the robot then
//! has the condition Connected, so nothing more is written down.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;

use muster_ports::store::{Batch, CommitError, Draft, Key, Precondition, ResourceName, Store, Write};
use muster_types::Robot;
use muster_types::robot_status::CONNECTED;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Where credentials are kept.
const RESOURCE: &str = "robotcredentials.internal";
const ROBOTS: &str = "robots.muster.dev";
/// What a secret starts with.
const PREFIX: &str = "musterrobot_";

/// The answer to whether a use was taken.
pub type Taken<'a> = Pin<Box<dyn Future<Output = Result<bool, String>> + Send + 'a>>;

/// The join tokens that there are.
pub trait JoinTokens: Send + Sync {
    /// Whether a robot may join with this secret now.
    fn admits(&self, secret: &str, robot: &str) -> bool;

    /// Takes a use of the token for the robot, unless it took one before. False if the robot may not join with it.
    fn take<'a>(&'a self, secret: &'a str, robot: &'a str) -> Taken<'a>;
}

/// One secret with which any number of robots joins, or none at all: for a broker without a server.
impl JoinTokens for Option<&'static str> {
    fn admits(&self, secret: &str, _robot: &str) -> bool {
        self.is_some_and(|known| known == secret)
    }

    fn take<'a>(&'a self, secret: &'a str, robot: &'a str) -> Taken<'a> {
        Box::pin(async move { Ok(self.admits(secret, robot)) })
    }
}

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
    join: Arc<dyn JoinTokens>,
    /// Uids of robots whose credential was used and that do not show it yet.
    used: Arc<Mutex<HashSet<String>>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    hash: String,
    /// Uid of the Robot.
    robot: String,
}

impl Credentials {
    /// Credentials of robots that live in a namespace.
    pub fn new(store: Store, namespace: &str, join: Arc<dyn JoinTokens>) -> Self {
        let (resource, robots) = (ResourceName::new(RESOURCE), ResourceName::new(ROBOTS));
        Self { store, namespace: namespace.to_owned(), resource, robots, join, used: Arc::default() }
    }

    /// Who holds this secret. Whoever shows a credential has used it.
    pub fn check(&self, robot: &str, secret: &str) -> Claim {
        let stored = self.robot(robot);
        let known = self
            .record(robot)
            .filter(|record| stored.as_ref().is_some_and(|stored| stored.metadata.uid == record.robot));
        let was_seen =
            stored.is_some_and(|robot| robot.status.conditions.iter().any(|it| it.r#type == CONNECTED));
        if let Some(record) = known.as_ref().filter(|record| record.hash == hash(secret)) {
            self.note_use(&record.robot, was_seen);
            return Claim::Robot;
        }
        // A name that is in use is not given to somebody else.
        let free = known.is_none_or(|record| !was_seen && !self.used.lock().contains(&record.robot));
        if free && self.join.admits(secret, robot) { Claim::Joining } else { Claim::Refused }
    }

    /// Takes a use of a join token for a robot. False if it may not join with it.
    pub async fn take_use(&self, robot: &str, secret: &str) -> Result<bool, String> {
        self.join.take(secret, robot).await
    }

    /// Remembers that a credential was used, until the robot itself shows it.
    fn note_use(&self, uid: &str, was_seen: bool) {
        let mut used = self.used.lock();
        if !was_seen {
            used.insert(uid.to_owned());
        } else if used.remove(uid) && used.is_empty() {
            *used = HashSet::new();
        }
    }

    /// Makes the credential of a robot, which is shown only now.
    pub async fn issue(&self, robot: &str) -> Result<String, String> {
        let uid = self.robot(robot).ok_or("the robot is gone")?.metadata.uid;
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| format!("no random numbers to be had: {error}"))?;
        let secret = format!("{PREFIX}{}", hex(&bytes));
        self.write(robot, &Record { hash: hash(&secret), robot: uid })
            .await
            .map_err(|error| error.to_string())?;
        Ok(secret)
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

    fn robot(&self, name: &str) -> Option<Robot> {
        let stored = self.store.get(&Key::new(&self.robots, &self.namespace, name))?;
        serde_json::from_slice(stored.json()).ok()
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
