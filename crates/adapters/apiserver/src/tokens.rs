//! Access tokens: random secrets of which only the hash is stored.
//!
//! A token is kept under the SHA-256 of its secret, so looking one up is one read and the store never holds anything
//! that opens a door. The secrets are 256 random bits; a slow hash would add nothing.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use muster_ports::clock::{Clock, Millis};
use muster_ports::store::{
    Batch, CommitError, Draft, Key, Precondition, ResourceName, Revision, Store, Write,
};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::access::{Bound, Role, User};
use crate::ids;
use crate::refusal::Refusal;

/// Where tokens are kept.
pub(crate) const RESOURCE: &str = "tokens.internal";
/// What a secret starts with, so that people and scanners recognise one.
pub(crate) const PREFIX: &str = "muster_";
/// Most tokens there may be.
const MAX_TOKENS: usize = 10_000;
/// How many robots join with a token, and for how long, unless its request says otherwise.
const DEFAULT_USES: u32 = 1;
const DEFAULT_JOIN_SECONDS: i64 = 24 * 60 * 60;
/// Most robots that join with one token: all of them stand in its record, which each of them writes.
const MAX_USES: u32 = 1_000;
/// How often a use is tried again because the record was changed meanwhile.
const TRIES: u32 = 16;

/// The tokens of a store.
#[derive(Clone)]
pub struct Tokens {
    store: Store,
    resource: ResourceName,
    /// Those that were used, as they were read: by the hash of their secret.
    used: Arc<RwLock<HashMap<[u8; 32], Arc<Used>>>>,
    /// Robots join one after the other, so that those of one server never change the same record at once.
    joining: Arc<tokio::sync::Mutex<()>>,
}

/// A token that was read.
struct Used {
    key: Key,
    /// Which version was read; another one is read anew.
    revision: Revision,
    record: Record,
}

#[derive(Serialize, Deserialize)]
struct Record {
    name: String,
    role: Role,
    /// The adapter that a reporter reports for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    adapter: Option<String>,
    created: i64,
    expires: Option<i64>,
    /// Who may join with it. Join tokens of former versions have none: any number of robots joins with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uses: Option<Uses>,
}

/// How many robots may join with a token, and which have.
#[derive(Serialize, Deserialize)]
struct Uses {
    most: u32,
    robots: BTreeSet<String>,
}

impl Uses {
    /// A robot that joined may join again: until it used its credential, it may not have received it.
    fn admit(&self, robot: &str) -> bool {
        self.robots.contains(robot) || self.robots.len() < self.most as usize
    }
}

/// What a token is to be.
#[derive(Debug, Clone)]
pub struct NewToken<'a> {
    /// Whom or what it is for.
    pub name: &'a str,
    /// What it may do.
    pub role: Role,
    /// The adapter it reports for; reporters need one, others have none.
    pub adapter: Option<&'a str>,
    /// How long it is valid; if not given, until it is revoked, and a day if robots join with it.
    pub lifetime_seconds: Option<i64>,
    /// How many robots may join with it, one if not given; others have none.
    pub uses: Option<u32>,
}

impl Record {
    /// Whom the token is for, if it is valid now.
    fn user(&self, clock: &dyn Clock) -> Option<User> {
        let is_valid = self.expires.is_none_or(|expires| expires > clock.now().0);
        let bound = || self.adapter.clone().map(Bound::Adapter);
        is_valid.then(|| User { name: self.name.clone(), role: self.role, bound: bound() })
    }

    /// Whether a robot may join with the token now.
    fn admits(&self, robot: &str, clock: &dyn Clock) -> bool {
        let is_join_token = self.user(clock).is_some_and(|user| user.role == Role::Robot);
        is_join_token && self.uses.as_ref().is_none_or(|uses| uses.admit(robot))
    }

    fn to_draft(&self) -> Result<Draft, Refusal> {
        let text = serde_json::to_string(self).map_err(|error| Refusal::internal(error.to_string()))?;
        let json = text.replacen('{', "{\"revision\":,", 1).into_bytes();
        Draft::new(json, "{\"revision\":".len()).ok_or_else(|| Refusal::internal("token too large"))
    }
}

/// The limits of a join token: who may join with it, and until when.
fn limit_uses(role: Role, uses: Option<u32>) -> Result<Option<Uses>, Refusal> {
    match (role, uses.unwrap_or(DEFAULT_USES)) {
        (Role::Robot, most @ 1..=MAX_USES) => Ok(Some(Uses { most, robots: BTreeSet::new() })),
        (Role::Robot, _) => Err(Refusal::unprocessable(format!("uses must be from 1 to {MAX_USES}"))),
        (_, _) if uses.is_some() => Err(Refusal::unprocessable("only a token of the role robot has uses")),
        (_, _) => Ok(None),
    }
}

impl Tokens {
    /// The tokens kept in `store`.
    pub fn new(store: Store) -> Self {
        let (used, joining) = (Arc::default(), Arc::default());
        Self { store, resource: ResourceName::new(RESOURCE), used, joining }
    }

    /// Makes a token that is bound to nothing and returns its secret, which is shown only now.
    pub async fn create(
        &self,
        name: &str,
        role: Role,
        lifetime_seconds: Option<i64>,
        now: Millis,
    ) -> Result<String, Refusal> {
        self.make(NewToken { name, role, adapter: None, lifetime_seconds, uses: None }, now).await
    }

    /// Makes a token and returns its secret, which is shown only now.
    pub async fn make(&self, wanted: NewToken<'_>, now: Millis) -> Result<String, Refusal> {
        let NewToken { name, role, adapter, lifetime_seconds, uses } = wanted;
        muster_types::name_rules::dns1123_label(name).map_err(|why| {
            Refusal::unprocessable(format!("the token name \"{name}\" is not valid: {why}"))
        })?;
        match (role, adapter) {
            (Role::Reporter, None) => {
                return Err(Refusal::unprocessable("a reporter needs the name of its adapter"));
            }
            (Role::Reporter, Some(adapter)) => {
                muster_types::name_rules::dns1123_label(adapter).map_err(|why| {
                    Refusal::unprocessable(format!("the adapter name \"{adapter}\" is not valid: {why}"))
                })?;
            }
            (_, Some(_)) => return Err(Refusal::unprocessable("only a reporter has an adapter")),
            (_, None) => {}
        }
        if self.exists(name) {
            return Err(Refusal::taken(format!(
                "there is a token \"{name}\" already; revoke it first or choose another name"
            )));
        }
        if self.store.snapshot(&self.resource).len() >= MAX_TOKENS {
            return Err(Refusal::too_many(format!("there are {MAX_TOKENS} tokens; revoke some first")));
        }
        if lifetime_seconds.is_some_and(|seconds| seconds <= 0) {
            return Err(Refusal::unprocessable("the lifetime must be longer than zero"));
        }
        let uses = limit_uses(role, uses)?;
        let lifetime_seconds = lifetime_seconds.or((role == Role::Robot).then_some(DEFAULT_JOIN_SECONDS));
        let secret = format!("{PREFIX}{}", ids::hex(&ids::random::<32>()?));
        let record = Record {
            name: name.to_owned(),
            role,
            adapter: adapter.map(str::to_owned),
            created: now.0,
            expires: lifetime_seconds.map(|seconds| now.0.saturating_add(seconds.saturating_mul(1000))),
            uses,
        };
        let key = self.key_of(hash_of(&secret));
        let write = Write::Put { key, expect: Precondition::Absent, draft: record.to_draft()? };
        let committed = self.store.commit(Batch::of(write)).await;
        committed.map_err(|error| Refusal::unavailable(error.to_string()))?;
        Ok(secret)
    }

    /// Who holds this secret, if it is valid now.
    pub fn authenticate(&self, secret: &str, clock: &dyn Clock) -> Option<User> {
        self.read(hash_of(secret))?.record.user(clock)
    }

    /// Whether a robot may join with this secret now.
    pub fn admits(&self, secret: &str, robot: &str, clock: &dyn Clock) -> bool {
        self.read(hash_of(secret)).is_some_and(|used| used.record.admits(robot, clock))
    }

    /// Takes a use of a join token for a robot, which is none if it took one before. False if the robot may not join with it.
    pub async fn take_use(&self, secret: &str, robot: &str, clock: &dyn Clock) -> Result<bool, Refusal> {
        let key = self.key_of(hash_of(secret));
        let _turn = self.joining.lock().await;
        for _ in 0..TRIES {
            let Some(stored) = self.store.get(&key) else { return Ok(false) };
            let mut record: Record = serde_json::from_slice(stored.json())
                .map_err(|error| Refusal::internal(format!("a token cannot be read: {error}")))?;
            if !record.admits(robot, clock) {
                return Ok(false);
            }
            if !record.uses.as_mut().is_some_and(|uses| uses.robots.insert(robot.to_owned())) {
                return Ok(true);
            }
            let expect = Precondition::At(stored.revision);
            let write = Write::Put { key: key.clone(), expect, draft: record.to_draft()? };
            match self.store.commit(Batch::of(write)).await {
                Ok(_) => return Ok(true),
                // Another robot joined with it at another server.
                Err(CommitError::Conflict { .. }) => {
                    let caught_up = self.store.catch_up().await;
                    caught_up.map_err(|error| Refusal::unavailable(error.to_string()))?;
                }
                Err(error) => return Err(Refusal::unavailable(error.to_string())),
            }
        }
        Err(Refusal::unavailable("too many robots join with the token at once; try again"))
    }

    /// Who holds the token of this name, if it is valid now.
    pub fn holder(&self, name: &str, clock: &dyn Clock) -> Option<User> {
        let stored = self.find_by_name(name).and_then(|key| self.store.get(&key))?;
        serde_json::from_slice::<Record>(stored.json()).ok()?.user(clock)
    }

    /// The token with this hash, if there is one now. What was read before is not read again.
    fn read(&self, hash: [u8; 32]) -> Option<Arc<Used>> {
        let known = self.used.read().get(&hash).cloned();
        let key = known.as_ref().map_or_else(|| self.key_of(hash), |used| used.key.clone());
        let Some(stored) = self.store.get(&key) else {
            if known.is_some() {
                self.used.write().remove(&hash);
            }
            return None;
        };
        if let Some(used) = known.filter(|used| used.revision == stored.revision) {
            return Some(used);
        }
        let record = serde_json::from_slice(stored.json()).ok()?;
        let used = Arc::new(Used { key, revision: stored.revision, record });
        let mut all = self.used.write();
        if all.len() >= MAX_TOKENS {
            // Most of them are gone.
            all.clear();
        }
        all.insert(hash, used.clone());
        Some(used)
    }

    /// All tokens, without anything secret.
    pub fn list(&self) -> Value {
        let snapshot = self.store.snapshot(&self.resource);
        let mut records: Vec<Record> = snapshot
            .range(None, None)
            .filter_map(|stored| serde_json::from_slice(stored.json()).ok())
            .collect();
        records.sort_by(|a, b| a.name.cmp(&b.name));
        let time = |millis: i64| muster_types::Timestamp::from_second(millis.div_euclid(1000));
        let items: Vec<_> = records
            .into_iter()
            .map(|record| {
                json!({
                    "name": record.name,
                    "role": record.role,
                    "adapter": record.adapter,
                    "created": time(record.created),
                    "expires": record.expires.map(time),
                    "uses": record.uses.as_ref().map(|uses| uses.most),
                    "robots": record.uses.as_ref().map(|uses| &uses.robots),
                })
            })
            .collect();
        json!({ "items": items })
    }

    /// Makes a token worthless.
    pub async fn revoke(&self, name: &str) -> Result<(), Refusal> {
        let key = self.find_by_name(name).ok_or_else(|| {
            Refusal::no_such_thing(format!(
                "there is no token \"{name}\"; `muster token list` shows those there are"
            ))
        })?;
        let write = Write::Delete { key, expect: Precondition::Exists };
        self.store.commit(Batch::of(write)).await.map_err(|error| Refusal::unavailable(error.to_string()))?;
        Ok(())
    }

    /// Removes tokens that expired at least this long ago. Returns when the next of the others expires, if any does.
    pub async fn remove_expired(&self, since: Millis) -> Result<Option<Millis>, CommitError> {
        let (mut next, mut writes) = (None::<Millis>, Vec::new());
        for stored in self.store.snapshot(&self.resource).range(None, None) {
            let record = serde_json::from_slice::<Record>(stored.json());
            let Some(expires) = record.ok().and_then(|record| record.expires).map(Millis) else { continue };
            if expires <= since {
                let key = Key { resource: self.resource.clone(), path: stored.path.clone() };
                writes.push(Write::Delete { key, expect: Precondition::At(stored.revision) });
            } else {
                next = Some(next.map_or(expires, |next| next.min(expires)));
            }
        }
        for write in writes {
            match self.store.commit(Batch::of(write)).await {
                // Somebody else removed it.
                Ok(_) | Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(next)
    }

    /// True if there is a token of this name, valid or not.
    pub fn exists(&self, name: &str) -> bool {
        self.find_by_name(name).is_some()
    }

    fn find_by_name(&self, name: &str) -> Option<Key> {
        let snapshot = self.store.snapshot(&self.resource);
        let found = snapshot.range(None, None).find(|stored| {
            serde_json::from_slice::<Record>(stored.json()).is_ok_and(|record| record.name == name)
        })?;
        Some(Key { resource: self.resource.clone(), path: found.path.clone() })
    }

    fn key_of(&self, hash: [u8; 32]) -> Key {
        Key::new(&self.resource, "", &ids::hex(&hash))
    }
}

fn hash_of(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}
