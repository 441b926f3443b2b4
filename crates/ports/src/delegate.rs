//! Asking a cluster who somebody is and what they may do, for a server that stands behind the cluster's own API server.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use thiserror::Error;

/// An answer that comes later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = Result<T, DelegateError>> + Send + 'a>>;

/// Somebody the cluster knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Identity {
    /// The name of the user.
    pub name: String,
    /// Tells users of the same name apart; empty if the cluster does not.
    pub uid: String,
    /// What the user belongs to.
    pub groups: Vec<String>,
    /// Whatever else the cluster says, which its own decisions may look at.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// What somebody wants to do.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wish {
    /// With a resource.
    Resource {
        /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
        verb: String,
        /// API group.
        group: String,
        /// Plural.
        resource: String,
        /// Part of the resource; empty for the whole.
        subresource: String,
        /// Namespace; empty for all of them, and for what has none.
        namespace: String,
        /// Name; empty for a collection.
        name: String,
    },
    /// With a path that is no resource.
    Path {
        /// `get`, mostly.
        verb: String,
        /// From the root.
        path: String,
    },
}

/// What the cluster decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// They may.
    Allowed,
    /// They may not, for this reason, which may be empty.
    Denied(String),
}

/// The cluster could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the cluster cannot be asked who may do what: {0}")]
pub struct DelegateError(pub String);

/// A cluster that knows its users.
pub trait Delegate: Send + Sync + 'static {
    /// Who holds this bearer token; `None` if the cluster does not know it.
    fn identify<'a>(&'a self, token: &'a str) -> Later<'a, Option<Identity>>;

    /// Whether somebody may do something.
    fn decide<'a>(&'a self, who: &'a Identity, wish: Wish) -> Later<'a, Decision>;
}

/// How the cluster's own API server proves itself, and how it says for whom it asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrontProxy {
    /// Certificates, in PEM, one of which signed the certificate that it shows.
    pub authorities: String,
    /// Common names that the certificate may have; any, if there are none.
    pub names: Vec<String>,
    /// Headers that hold the name of the user; the first that is there counts.
    pub user_headers: Vec<String>,
    /// Headers that hold the uid of the user.
    pub uid_headers: Vec<String>,
    /// Headers that hold groups.
    pub group_headers: Vec<String>,
    /// What headers with further facts begin with.
    pub extra_prefixes: Vec<String>,
}

/// A cluster that answers as it is told to, and remembers what it was asked.
#[derive(Clone, Default)]
pub struct ScriptedDelegate {
    known: BTreeMap<String, Identity>,
    rules: Vec<(String, String)>,
    asked: Arc<Mutex<Vec<(Identity, Wish)>>>,
    away: bool,
}

impl ScriptedDelegate {
    /// Knows who holds this token.
    #[must_use]
    pub fn with_token(mut self, token: &str, who: Identity) -> Self {
        self.known.insert(token.to_owned(), who);
        self
    }

    /// Lets the user of this name use this verb on everything.
    #[must_use]
    pub fn allowing(mut self, user: &str, verb: &str) -> Self {
        self.rules.push((user.to_owned(), verb.to_owned()));
        self
    }

    /// Does not answer.
    #[must_use]
    pub fn away(mut self) -> Self {
        self.away = true;
        self
    }

    /// What it was asked so far.
    pub fn asked(&self) -> Vec<(Identity, Wish)> {
        self.asked.lock().clone()
    }

    fn answer<T>(&self, answer: T) -> Result<T, DelegateError> {
        if self.away { Err(DelegateError("it is away".to_owned())) } else { Ok(answer) }
    }
}

impl Delegate for ScriptedDelegate {
    fn identify<'a>(&'a self, token: &'a str) -> Later<'a, Option<Identity>> {
        let answer = self.answer(self.known.get(token).cloned());
        Box::pin(async move { answer })
    }

    fn decide<'a>(&'a self, who: &'a Identity, wish: Wish) -> Later<'a, Decision> {
        let (Wish::Resource { verb, .. } | Wish::Path { verb, .. }) = &wish;
        let allowed = self.rules.iter().any(|(user, may)| *user == who.name && may == verb);
        self.asked.lock().push((who.clone(), wish));
        let decision = if allowed { Decision::Allowed } else { Decision::Denied("no rule".to_owned()) };
        let answer = self.answer(decision);
        Box::pin(async move { answer })
    }
}
