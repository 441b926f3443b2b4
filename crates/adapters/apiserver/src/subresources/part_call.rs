//! One request on a part of an object: who asks for what, and how the object is read and changed.

use std::sync::Arc;

use hyper::HeaderMap;
use muster_ports::store::{Batch, CommitError, Key, Precondition, Stored, Write};
use muster_types::{JsonText, Task};

use crate::access::User;
use crate::api::Api;
use crate::encode::Encoded;
use crate::kind::{AnyObject, Kind, KindInfo};
use crate::options::Options;
use crate::query::Query;
use crate::refusal::{Causes, Refusal};

/// Times a change is made again because somebody else was faster.
const TRIES: usize = 32;

/// A request on a part of an object, read and authorized.
pub struct PartCall {
    /// The server.
    pub api: Arc<Api>,
    /// The kind of the object: Task, or a declared one.
    pub kind: Arc<dyn Kind>,
    /// Namespace of the object; empty for kinds without namespaces.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// What is to be done.
    pub verb: &'static str,
    /// What follows the subresource in the path.
    pub rest: Vec<String>,
    /// The path ends in `/`.
    pub folder: bool,
    /// The query.
    pub query: Query,
    /// What the query says that every path understands.
    pub options: Options,
    /// Who asks.
    pub user: User,
    /// The headers of the request.
    pub headers: HeaderMap,
}

impl PartCall {
    /// What the kind is called.
    pub fn info(&self) -> &KindInfo {
        self.kind.info()
    }

    /// The key of the object.
    pub fn key(&self) -> Key {
        Key::new(&self.info().resource, &self.namespace, &self.name)
    }

    /// The task as it is stored.
    pub fn read(&self) -> Result<(Stored, Task), Refusal> {
        self.read_object()
    }

    /// The object as it is stored.
    pub fn read_object<O: JsonText>(&self) -> Result<(Stored, O), Refusal> {
        let stored = self.api.store.get(&self.key());
        let stored = stored.ok_or_else(|| Refusal::not_found(self.info(), &self.name))?;
        let object = O::from_json(stored.json())
            .map_err(|error| Refusal::internal(format!("the stored object cannot be read: {error}")))?;
        Ok((stored, object))
    }

    /// The task as it is stored, if it is still the one with this uid.
    pub fn read_same(&self, uid: &str) -> Option<Task> {
        self.read().ok().map(|(_, task)| task).filter(|task| task.metadata.uid == uid)
    }

    /// Changes the object and stores it, over and over until nobody else was faster. A dry run stores nothing.
    pub async fn change<O: AnyObject + JsonText, T>(
        &self,
        edit: impl Fn(&mut O) -> Result<T, Refusal>,
    ) -> Result<(O, T), Refusal> {
        for _ in 0..TRIES {
            let (stored, mut object) = self.read_object()?;
            let outcome = edit(&mut object)?;
            let encoded = Encoded::new(&mut object)?;
            if encoded.same_as(&stored) || self.options.dry_run {
                return Ok((object, outcome));
            }
            let (key, expect) = (self.key(), Precondition::At(stored.revision));
            let write = Write::Put { key, expect, draft: encoded.into_draft() };
            match self.api.store.commit(Batch::of(write)).await {
                Ok(_) => return Ok((object, outcome)),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(Refusal::of_commit(&error, self.info(), &self.name)),
            }
        }
        Err(Refusal::modified(self.info(), &self.name))
    }

    /// 422 with the one field that is wrong.
    pub fn invalid(&self, field: &str, why: &str) -> Refusal {
        let mut causes = Causes::default();
        causes.forbidden(field, why);
        Refusal::invalid(self.info(), &self.name, causes)
    }

    /// 409: not in the state the object is in.
    pub fn conflict(&self, why: impl std::fmt::Display) -> Refusal {
        Refusal::conflict(self.info(), &self.name, why)
    }
}
