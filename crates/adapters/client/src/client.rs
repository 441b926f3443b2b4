//! Requests: one method for each thing the command line asks of a server.

use std::time::Duration;

use hyper::header::WARNING;
use hyper::{HeaderMap, Method, Response, StatusCode};
use kube::client::{APIGroupDiscoveryList, Body};
use serde_json::{Value, json};

use crate::access::Access;
use crate::catalog::Catalog;
use crate::error::ClientError;
use crate::query::Query;
use crate::resource::{Resource, Scope};
use crate::transport::{Ask, Transport};

/// How discovery is asked for.
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                         application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// A client of one server.
#[derive(Clone)]
pub struct Client {
    transport: Transport,
}

/// How objects are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Whole.
    Objects,
    /// As rows for people, with the metadata of each object.
    Table,
    /// Metadata only.
    Metadata,
}

impl Form {
    fn accept(self) -> &'static str {
        match self {
            Self::Objects => "application/json",
            Self::Table => "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            Self::Metadata => {
                "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,\
                 application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
            }
        }
    }
}

/// Which objects of a collection are meant.
#[derive(Debug, Clone, Default)]
pub struct Selectors {
    /// Label selector.
    pub labels: Option<String>,
    /// Field selector.
    pub fields: Option<String>,
}

/// A part of a list.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The list, table or metadata list as the server sent it.
    pub document: Value,
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
    /// The revision of the whole list.
    pub revision: String,
}

/// How to apply.
#[derive(Debug, Clone)]
pub struct ApplyOptions {
    /// Who owns the applied fields.
    pub manager: String,
    /// Take fields over from other managers.
    pub force: bool,
    /// Change nothing.
    pub dry_run: bool,
}

/// What became of an applied object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was not there.
    Created,
    /// It was changed.
    Configured,
    /// It was like that already.
    Unchanged,
}

/// An object that was written.
#[derive(Debug, Clone)]
pub struct Written {
    /// As it is now.
    pub object: Value,
    /// What happened.
    pub outcome: Outcome,
    /// What the server has to say about it.
    pub warnings: Vec<String>,
}

/// What happens to the objects that a deleted one owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted afterwards.
    Background,
    /// They are deleted first.
    Foreground,
    /// They stay.
    Orphan,
}

/// How to delete.
#[derive(Debug, Clone)]
pub struct DeleteOptions {
    /// What happens to dependents.
    pub propagation: Propagation,
    /// Change nothing.
    pub dry_run: bool,
    /// Delete only the object with this identity.
    pub uid: Option<String>,
}

/// What became of a deleted object.
#[derive(Debug, Clone)]
pub enum Deleted {
    /// It is gone.
    Gone,
    /// It is marked and waits for its finalizers.
    Marked(Value),
}

impl Client {
    /// A client with these credentials. Nothing is sent yet.
    pub fn new(access: &Access) -> Result<Self, ClientError> {
        Ok(Self { transport: Transport::new(access)? })
    }

    /// The server.
    pub fn url(&self) -> &str {
        &self.transport.peer().url
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// What the server serves.
    pub async fn catalog(&self) -> Result<Catalog, ClientError> {
        let (own, core) = tokio::try_join!(self.discover("/apis"), self.discover("/api"))?;
        Ok(Catalog::new([own, core]))
    }

    async fn discover(&self, path: &str) -> Result<APIGroupDiscoveryList, ClientError> {
        let document: Value = self.transport.read(Ask { accept: DISCOVERY, ..Ask::get(path) }).await?;
        if document["kind"] != "APIGroupDiscoveryList" {
            return Err(self.transport.peer().unintelligible(path, "no aggregated discovery"));
        }
        serde_json::from_value(document).map_err(|error| self.transport.peer().unintelligible(path, error))
    }

    /// The versions that the server says it has.
    pub async fn version(&self) -> Result<Value, ClientError> {
        self.transport.read(Ask::get("/version")).await
    }

    /// One object.
    pub async fn get(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        form: Form,
    ) -> Result<Value, ClientError> {
        let path = resource.object(namespace, name);
        self.transport.read(Ask { accept: form.accept(), ..Ask::get(&path) }).await
    }

    /// One page of a list.
    pub async fn list(
        &self,
        resource: &Resource,
        scope: Scope<'_>,
        selectors: &Selectors,
        form: Form,
        page: PageRequest<'_>,
    ) -> Result<Page, ClientError> {
        let path = resource.collection(scope);
        let query = select(selectors).with("limit", &page.limit.to_string()).with_some("continue", page.from);
        let document: Value =
            self.transport.read(Ask { query, accept: form.accept(), ..Ask::get(&path) }).await?;
        let text = |name: &str| document["metadata"][name].as_str().unwrap_or_default().to_owned();
        let (next, revision) = (text("continue"), text("resourceVersion"));
        Ok(Page { next: (!next.is_empty()).then_some(next), revision, document })
    }

    /// Opens a watch; the answer's body is a stream of lines.
    pub(crate) async fn open_watch(
        &self,
        resource: &Resource,
        scope: Scope<'_>,
        selectors: &Selectors,
        form: Form,
        revision: &str,
        lasts: Duration,
    ) -> Result<Response<Body>, ClientError> {
        let path = resource.collection(scope);
        let query = select(selectors)
            .with("watch", "true")
            .with("allowWatchBookmarks", "true")
            .with("timeoutSeconds", &lasts.as_secs().to_string())
            .with("resourceVersion", revision);
        self.transport.begin(Ask { query, accept: form.accept(), ..Ask::get(&path) }).await
    }

    /// Makes an object be as it is described, and says whether that changed anything.
    pub async fn apply(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        object: &Value,
        options: &ApplyOptions,
    ) -> Result<Written, ClientError> {
        let before = match self.get(resource, namespace, name, Form::Objects).await {
            Ok(before) => Some(before),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let path = resource.object(namespace, name);
        let query = Query::default()
            .with("fieldManager", &options.manager)
            .with("fieldValidation", "Strict")
            .with_if(options.force, "force", "true")
            .with_if(options.dry_run, "dryRun", "All");
        let ask = Ask {
            query,
            content_type: "application/apply-patch+yaml",
            ..Ask::send(Method::PATCH, &path, object)
        };
        let answer = self.transport.whole(ask).await?;
        let after: Value = self.transport.parse(&path, &answer)?;
        let outcome = match &before {
            _ if answer.status == StatusCode::CREATED => Outcome::Created,
            Some(before) if same(before, &after) => Outcome::Unchanged,
            _ => Outcome::Configured,
        };
        Ok(Written { object: after, outcome, warnings: warnings(&answer.headers) })
    }

    /// Makes a new object.
    pub async fn create(
        &self,
        resource: &Resource,
        namespace: &str,
        object: &Value,
        options: &ApplyOptions,
    ) -> Result<Written, ClientError> {
        let path = resource.collection(Scope::Namespace(namespace));
        let query = Query::default()
            .with("fieldManager", &options.manager)
            .with("fieldValidation", "Strict")
            .with_if(options.dry_run, "dryRun", "All");
        let answer = self.transport.whole(Ask { query, ..Ask::send(Method::POST, &path, object) }).await?;
        let object = self.transport.parse(&path, &answer)?;
        Ok(Written { object, outcome: Outcome::Created, warnings: warnings(&answer.headers) })
    }

    /// Deletes an object.
    pub async fn delete(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, ClientError> {
        let path = resource.object(namespace, name);
        let policy = match options.propagation {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        };
        let mut body = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy});
        if options.dry_run {
            body["dryRun"] = json!(["All"]);
        }
        if let Some(uid) = &options.uid {
            body["preconditions"] = json!({"uid": uid});
        }
        let answer: Value = self.transport.read(Ask::send(Method::DELETE, &path, &body)).await?;
        let gone = answer["kind"] == "Status" || answer["metadata"]["deletionTimestamp"].is_null();
        Ok(if gone { Deleted::Gone } else { Deleted::Marked(answer) })
    }
}

/// Which page of a list.
#[derive(Debug, Clone, Copy)]
pub struct PageRequest<'a> {
    /// Most objects in it.
    pub limit: usize,
    /// Where it begins; `None` is the first page.
    pub from: Option<&'a str>,
}

fn select(selectors: &Selectors) -> Query {
    Query::default()
        .with_some("labelSelector", selectors.labels.as_deref())
        .with_some("fieldSelector", selectors.fields.as_deref())
}

/// True if an apply changed nothing. The revision tells, except in a dry run, which makes none.
fn same(before: &Value, after: &Value) -> bool {
    let content = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for name in ["resourceVersion", "generation", "managedFields"] {
                metadata.remove(name);
            }
        }
        object
    };
    before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
        && content(before) == content(after)
}

/// The texts of `Warning` headers: `299 - "text"`.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let texts = headers.get_all(WARNING).iter().filter_map(|value| value.to_str().ok());
    texts
        .filter_map(|text| {
            let (_, quoted) = text.split_once('"')?;
            let (text, _) = quoted.rsplit_once('"')?;
            Some(text.replace("\\\"", "\"").replace("\\\\", "\\"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_read_from_their_headers() {
        let mut headers = HeaderMap::new();
        headers.append(WARNING, r#"299 - "unknown field \"spec.x\"""#.parse().unwrap());
        headers.append(WARNING, "garbage".parse().unwrap());
        assert_eq!(warnings(&headers), [r#"unknown field "spec.x""#]);
    }

    #[test]
    fn an_apply_that_made_no_revision_and_no_difference_changed_nothing() {
        let object = |revision: &str, image: &str| json!({"metadata": {"resourceVersion": revision, "generation": 1}, "spec": {"image": image}});
        assert!(same(&object("1", "a"), &object("1", "a")));
        assert!(!same(&object("1", "a"), &object("2", "a")), "ownership changed");
        assert!(!same(&object("1", "a"), &object("1", "b")), "a dry run makes no revision");
    }
}
