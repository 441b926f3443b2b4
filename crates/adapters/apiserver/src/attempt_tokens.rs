//! Tokens of attempts: made without a write, and good for as long as the attempt.
//!
//! A token says which attempt it is for and carries a proof under a key that only servers of this store have:
//! `muster_a_<base64url of namespace/name/uid/attempt/grants>.<base64url of HMAC-SHA256>`, where grants are what the addon of
//! the attempt was granted, with commas between them; nothing, and no slash before it, for most. It opens something only while that
//! task is there with that uid, its latest attempt has that number, and it is Pending or Running; nothing has to be
//! revoked.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use muster_ports::store::{Batch, CommitError, Draft, Key, Precondition, ResourceName, Store, Write};
use muster_types::addon::Grant;
use muster_types::attempt::Handle;
use muster_types::task::Subject;
use muster_types::task_status::{FIRST_ATTEMPT, State};
use ring::hmac;
use serde::Deserialize;

use crate::access::{Bound, BoundAttempt, Role, User};
use crate::ids;
use crate::refusal::Refusal;

/// Where the key is kept.
const RESOURCE: &str = "secrets.internal";
/// Its name there.
const NAME: &str = "attempt-tokens";
/// What a token of an attempt starts with.
pub const PREFIX: &str = "muster_a_";
/// More than any token needs.
const MAX_TOKEN: usize = 1024;

/// Makes and checks tokens of attempts. A clone is the same.
#[derive(Clone)]
pub struct AttemptTokens {
    key: Arc<hmac::Key>,
    store: Store,
    tasks: ResourceName,
}

#[derive(Deserialize)]
struct KeyRecord {
    key: String,
}

/// What of a task decides whether a token is good.
#[derive(Deserialize)]
struct TaskHead {
    metadata: HeadMetadata,
    #[serde(default)]
    spec: HeadSpec,
    #[serde(default)]
    status: HeadStatus,
}

#[derive(Deserialize)]
struct HeadMetadata {
    uid: String,
}

#[derive(Deserialize, Default)]
struct HeadSpec {
    #[serde(default)]
    subject: Option<Subject>,
}

#[derive(Deserialize, Default)]
struct HeadStatus {
    #[serde(default)]
    state: Option<State>,
    #[serde(default)]
    attempt: u32,
    #[serde(default)]
    prefetched: bool,
}

impl AttemptTokens {
    /// Reads the key of a store, which is made by whoever comes first.
    pub async fn open(store: &Store) -> Result<Self, Refusal> {
        let at = Key::new(&ResourceName::new(RESOURCE), "", NAME);
        if store.get(&at).is_none() {
            let after = format!(r#","key":"{}"}}"#, ids::hex(&ids::random::<32>()?));
            let draft = Draft::joined(r#"{"revision":"#, &after);
            let write = Write::Put { key: at.clone(), expect: Precondition::Absent, draft };
            match store.commit(Batch::of(write)).await {
                // Another server was faster; its key is as good.
                Ok(_) | Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(Refusal::unavailable(error.to_string())),
            }
        }
        let stored =
            store.get(&at).ok_or_else(|| Refusal::unavailable("the key of attempt tokens is gone"))?;
        let record: KeyRecord = serde_json::from_slice(stored.json()).map_err(|error| {
            Refusal::internal(format!("the key of attempt tokens cannot be read: {error}"))
        })?;
        let key = Arc::new(hmac::Key::new(hmac::HMAC_SHA256, record.key.as_bytes()));
        Ok(Self { key, store: store.clone(), tasks: ResourceName::new("tasks.muster.dev") })
    }

    /// The token of an attempt at a task, and of what its addon was granted.
    pub fn mint(&self, namespace: &str, name: &str, handle: &Handle, grants: &[Grant]) -> String {
        let mut claim = format!("{namespace}/{name}/{}/{}", handle.task, handle.attempt);
        if !grants.is_empty() {
            claim.push('/');
            claim.push_str(&grants.iter().map(|grant| grant.as_str()).collect::<Vec<_>>().join(","));
        }
        let proof = hmac::sign(&self.key, claim.as_bytes());
        format!("{PREFIX}{}.{}", URL_SAFE_NO_PAD.encode(claim), URL_SAFE_NO_PAD.encode(proof))
    }

    /// Who holds this token, if the attempt it was made for is the latest and has not ended.
    pub fn verify(&self, token: &str) -> Option<User> {
        let (claim, proof) =
            token.strip_prefix(PREFIX)?.split_once('.').filter(|_| token.len() <= MAX_TOKEN)?;
        let claim = URL_SAFE_NO_PAD.decode(claim).ok()?;
        let proof = URL_SAFE_NO_PAD.decode(proof).ok()?;
        hmac::verify(&self.key, &claim, &proof).ok()?;
        let claim = String::from_utf8(claim).ok()?;
        let (four, grants) = match claim.match_indices('/').nth(3) {
            Some((at, _)) => (&claim[..at], &claim[at + 1..]),
            None => (claim.as_str(), ""),
        };
        let [namespace, name, uid, attempt] = four.split('/').collect::<Vec<_>>().try_into().ok()?;
        let attempt: u32 = attempt.parse().ok()?;
        // A newer server may know more of them; what is not known here is not granted here.
        let grants = grants.split(',').filter_map(|grant| grant.parse().ok()).collect();
        let stored = self.store.get(&Key::new(&self.tasks, namespace, name))?;
        let head: TaskHead = serde_json::from_slice(stored.json()).ok()?;
        let status = head.status;
        // A program that was prefetched may ask before anything says that it runs.
        let alive = status.prefetched || matches!(status.state, Some(State::Pending | State::Running));
        let current = if status.prefetched { FIRST_ATTEMPT } else { status.attempt };
        let holds = alive && head.metadata.uid == uid && current == attempt;
        let bound = BoundAttempt {
            namespace: namespace.to_owned(),
            task: name.to_owned(),
            attempt,
            subject: head.spec.subject,
            grants,
        };
        let name = format!("attempt {attempt} of {namespace}/{name}");
        holds.then_some(User { name, role: Role::Addon, bound: Some(Bound::Attempt(bound)) })
    }
}

#[cfg(test)]
mod tests {
    use muster_ports::clock::ManualClock;
    use muster_ports::store::{History, MemoryLog};

    use super::*;

    fn store() -> Store {
        Store::open_inline(MemoryLog::default(), History::default(), ManualClock::default()).expect("a store")
    }

    async fn put_task(store: &Store, uid: &str, state: &str, attempt: u32) {
        let key = Key::new(&ResourceName::new("tasks.muster.dev"), "ns", "a");
        let expect = store.get(&key).map_or(Precondition::Absent, |stored| Precondition::At(stored.revision));
        let after =
            format!(r#"","uid":"{uid}"}},"spec":{{}},"status":{{"state":"{state}","attempt":{attempt}}}}}"#);
        let draft = Draft::joined(r#"{"metadata":{"resourceVersion":""#, &after);
        store.commit(Batch::of(Write::Put { key, expect, draft })).await.expect("a commit");
    }

    fn handle(uid: &str, attempt: u32) -> Handle {
        Handle { task: uid.to_owned(), attempt }
    }

    #[tokio::test]
    async fn a_token_is_good_while_its_attempt_is_pending_or_running() {
        let store = store();
        let tokens = AttemptTokens::open(&store).await.unwrap();
        let token = tokens.mint("ns", "a", &handle("u1", 2), &[]);
        assert!(tokens.verify(&token).is_none(), "there is no such task");
        for (uid, state, attempt, good) in [
            ("u1", "Pending", 2, true),
            ("u1", "Running", 2, true),
            ("u1", "Ready", 2, false),
            ("u1", "Running", 3, false),
            ("u1", "Running", 1, false),
            ("u2", "Running", 2, false),
            ("u1", "Succeeded", 2, false),
            ("u1", "Canceled", 2, false),
        ] {
            put_task(&store, uid, state, attempt).await;
            assert_eq!(tokens.verify(&token).is_some(), good, "{uid} {state} {attempt}");
        }
    }

    #[tokio::test]
    async fn a_token_is_bound_to_its_task() {
        let store = store();
        let tokens = AttemptTokens::open(&store).await.unwrap();
        put_task(&store, "u1", "Running", 1).await;
        let user = tokens.verify(&tokens.mint("ns", "a", &handle("u1", 1), &[])).unwrap();
        let Some(Bound::Attempt(bound)) = user.bound else { panic!("{user:?}") };
        assert_eq!((bound.namespace.as_str(), bound.task.as_str(), bound.attempt), ("ns", "a", 1));
        assert_eq!(user.role, Role::Addon);
    }

    #[tokio::test]
    async fn a_token_carries_what_the_addon_was_granted() {
        let store = store();
        let tokens = AttemptTokens::open(&store).await.unwrap();
        put_task(&store, "u1", "Running", 1).await;
        for grants in [&[][..], &[Grant::SubjectTags]] {
            let user = tokens.verify(&tokens.mint("ns", "a", &handle("u1", 1), grants)).unwrap();
            let Some(Bound::Attempt(bound)) = user.bound else { panic!("{user:?}") };
            assert_eq!(bound.grants, grants);
        }
    }

    #[tokio::test]
    async fn servers_of_one_store_agree_on_the_key_and_others_do_not() {
        let (one, two) = (store(), store());
        put_task(&one, "u1", "Running", 1).await;
        put_task(&two, "u1", "Running", 1).await;
        let first = AttemptTokens::open(&one).await.unwrap();
        let second = AttemptTokens::open(&one).await.unwrap();
        let stranger = AttemptTokens::open(&two).await.unwrap();
        let token = first.mint("ns", "a", &handle("u1", 1), &[]);
        assert!(second.verify(&token).is_some());
        assert!(stranger.verify(&token).is_none());
    }

    #[tokio::test]
    async fn no_part_of_a_token_can_be_changed() {
        let store = store();
        let tokens = AttemptTokens::open(&store).await.unwrap();
        put_task(&store, "u1", "Running", 1).await;
        let token = tokens.mint("ns", "a", &handle("u1", 1), &[]);
        assert!(tokens.verify(&token).is_some());
        for at in PREFIX.len()..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(tokens.verify(&changed).is_none(), "byte {at}");
        }
        for text in ["", PREFIX, "muster_a_.", "muster_a_YQ", &token[..token.len() - 1], &format!("{token}A")]
        {
            assert!(tokens.verify(text).is_none(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_a_token_by_chance(text in ".{0,80}") {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let store = store();
            let tokens = runtime.block_on(AttemptTokens::open(&store)).unwrap();
            runtime.block_on(put_task(&store, "u1", "Running", 1));
            proptest::prop_assert!(tokens.verify(&text).is_none());
            let prefixed = format!("{PREFIX}{text}");
            proptest::prop_assert!(tokens.verify(&prefixed).is_none());
        }
    }
}
