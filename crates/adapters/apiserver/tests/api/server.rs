//! A server over a store in memory, and what its answers and watches hold.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method};
use muster_apiserver::access::Role;
use muster_apiserver::api::{Api, Settings};
use muster_apiserver::attempt_tokens::AttemptTokens;
use muster_apiserver::cluster_users::ClusterUsers;
use muster_apiserver::front_proxy::Fronted;
use muster_apiserver::kinds;
use muster_apiserver::parts::Parts;
use muster_apiserver::registry::Registry;
use muster_apiserver::shutdown::Shutdown;
use muster_apiserver::tokens::NewToken;
use muster_ports::blobs::MemoryBlobs;
use muster_ports::clock::{Clock, ManualClock};
use muster_ports::delegate::{FrontProxy, ScriptedDelegate};
use muster_ports::runtime::Handle;
use muster_ports::store::{Batch, Draft, History, Key, Precondition, ResourceName, Store, Write};
use muster_types::addon::Grant;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::fakes::{FakeExplain, FakeLogs};
use crate::fallible_log::Faults;
pub use crate::open_watch::{Event, Watching};
use crate::place;

/// How long anything may take that should happen at once.
pub const SOON: Duration = Duration::from_secs(20);

pub const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
pub const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";

pub const JSON_PATCH: &str = "application/json-patch+json";
pub const MERGE_PATCH: &str = "application/merge-patch+json";
pub const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
pub const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// The collection of a kind in the namespace `default`.
pub fn path(plural: &str) -> String {
    path_in("default", plural)
}

pub fn path_in(namespace: &str, plural: &str) -> String {
    format!("/apis/muster.dev/v1alpha1/namespaces/{namespace}/{plural}")
}

/// The collection of a kind over all namespaces.
pub fn path_everywhere(plural: &str) -> String {
    format!("/apis/muster.dev/v1alpha1/{plural}")
}

pub fn application(name: &str) -> Value {
    json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Application",
        "metadata": {"name": name}, "spec": {"properties": {"n": 0}},
    })
}

pub fn task(name: &str) -> Value {
    json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Task",
        "metadata": {"name": name}, "spec": {"container": {"command": ["true"]}},
    })
}

/// `resourceVersion` as a number.
pub fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

pub fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

pub fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(name).collect()
}

pub struct Server {
    pub api: Arc<Api>,
    pub store: Store,
    pub faults: Faults,
    pub clock: ManualClock,
    pub shutdown: Shutdown,
    pub registry: Registry,
    pub blobs: MemoryBlobs,
    pub logs: FakeLogs,
    pub explain: FakeExplain,
    pub attempts: AttemptTokens,
    admin: String,
}

impl Server {
    pub async fn start() -> Self {
        Self::with(Settings::default(), History::default()).await
    }

    pub async fn with(settings: Settings, history: History) -> Self {
        let (faults, clock) = (Faults::default(), ManualClock::default());
        clock.advance(1_700_000_000_000);
        let store = place::open(&faults, history, clock.clone());
        let registry = kinds::registry().with_types_of(&store);
        let shutdown = Shutdown::default();
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let settings = Settings { requests_per_second: 0, ..settings };
        let (blobs, logs, explain) = (MemoryBlobs::default(), FakeLogs::default(), FakeExplain::default());
        let attempts = AttemptTokens::open(&store).await.unwrap();
        let parts = Parts {
            blobs: Some(Arc::new(blobs.clone())),
            logs: Some(Arc::new(logs.clone())),
            explain: Some(Arc::new(explain.clone())),
            attempt_tokens: Some(attempts.clone()),
            ..Parts::default()
        };
        let api = Api::new(registry.clone(), store.clone(), shared, settings, shutdown.clone(), parts);
        let admin = api.tokens().create("admin", Role::Admin, None, clock.now()).await.unwrap();
        Self { api, store, faults, clock, shutdown, registry, blobs, logs, explain, attempts, admin }
    }

    /// The same store behind a server that has no optional parts.
    pub fn without_parts(&self) -> Self {
        self.behind(self.registry.clone())
    }

    /// The same store behind a server that has just started.
    pub fn restarted(&self) -> Self {
        self.behind(kinds::registry().with_types_of(&self.store))
    }

    /// The same store behind a server that stands behind a cluster, whose API server is known or not.
    pub fn in_cluster(&self, delegate: ScriptedDelegate, proxy: Option<FrontProxy>) -> Self {
        let (known, proxy) = watch::channel(proxy.map(Arc::new));
        // Nothing changes any more.
        drop(known);
        let cluster = Some(ClusterUsers { delegate: Arc::new(delegate), proxy });
        self.with_parts(self.registry.clone(), Parts { cluster, ..Parts::default() })
    }

    fn behind(&self, registry: Registry) -> Self {
        self.with_parts(registry, Parts::default())
    }

    fn with_parts(&self, registry: Registry, parts: Parts) -> Self {
        let shared: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let settings = Settings { requests_per_second: 0, ..Settings::default() };
        let (store, shutdown) = (self.store.clone(), self.shutdown.clone());
        let api = Api::new(registry.clone(), store.clone(), shared, settings, shutdown.clone(), parts);
        Self {
            api,
            store,
            faults: self.faults.clone(),
            clock: self.clock.clone(),
            shutdown,
            registry,
            blobs: self.blobs.clone(),
            logs: self.logs.clone(),
            explain: self.explain.clone(),
            attempts: self.attempts.clone(),
            admin: self.admin.clone(),
        }
    }

    /// Writes fields of the status of a task to the store, as the engine does. Returns its uid.
    pub async fn set_status(&self, task: &str, status: &Value) -> String {
        self.set_status_of("tasks", task, status).await
    }

    /// The same of an object of any kind in the namespace `default`.
    pub async fn set_status_of(&self, plural: &str, name: &str, status: &Value) -> String {
        let key = Key::new(&ResourceName::new(&format!("{plural}.muster.dev")), "default", name);
        let stored = self.store.get(&key).expect("the object is there");
        let mut object: Value = serde_json::from_slice(stored.json()).unwrap();
        for (field, value) in status.as_object().expect("a status is an object") {
            object["status"][field] = value.clone();
            if value.is_null() {
                object["status"].as_object_mut().unwrap().remove(field);
            }
        }
        let uid = object["metadata"]["uid"].as_str().unwrap().to_owned();
        object["metadata"]["resourceVersion"] = json!("");
        let draft = Draft::of_object(object.to_string().into_bytes()).expect("it has a revision");
        let expect = Precondition::At(stored.revision);
        self.store.commit(Batch::of(Write::Put { key, expect, draft })).await.unwrap();
        uid
    }

    /// Has a task there whose attempt runs. Returns its uid.
    pub async fn run_task(&self, task: &Value, attempt: u32) -> String {
        self.create(task).await;
        self.set_status(name(task), &json!({"state": "Running", "attempt": attempt})).await
    }

    /// The token of an attempt at a task in the namespace `default`.
    pub fn attempt_token(&self, task: &str, uid: &str, attempt: u32) -> String {
        self.attempt_token_with(task, uid, attempt, &[])
    }

    /// The same, of an attempt whose addon was granted something.
    pub fn attempt_token_with(&self, task: &str, uid: &str, attempt: u32, grants: &[Grant]) -> String {
        self.attempts.mint("default", task, &Handle { task: uid.to_owned(), attempt }, grants)
    }

    pub async fn token(&self, name: &str, role: Role) -> String {
        let adapter = (role == Role::Reporter).then_some("dns");
        let wanted = NewToken { name, role, adapter, lifetime_seconds: None, uses: None };
        self.api.tokens().make(wanted, self.clock.now()).await.unwrap()
    }

    pub fn revision(&self) -> u64 {
        self.store.revision().0
    }

    /// The answer as it begins.
    pub async fn reply(&self, ask: Ask) -> hyper::Response<UnsyncBoxBody<Bytes, Infallible>> {
        self.api.clone().handle(ask.request(&self.admin)).await
    }

    pub async fn send(&self, ask: Ask) -> Answer {
        let reply = self.reply(ask).await;
        let (head, body) = reply.into_parts();
        let body = tokio::time::timeout(SOON, body.collect()).await.expect("the answer ends");
        let bytes = body.unwrap().to_bytes();
        Answer { code: head.status.as_u16(), headers: head.headers, bytes }
    }

    /// Sends a request whose answer may never end, and takes what there is of it.
    pub async fn glance(&self, ask: Ask) -> Answer {
        let reply = self.api.clone().handle(ask.request(&self.admin)).await;
        let (head, mut body) = reply.into_parts();
        let mut bytes = Vec::new();
        while let Some(Some(Ok(frame))) = tokio::task::unconstrained(body.frame()).now_or_never() {
            bytes.extend_from_slice(&frame.into_data().unwrap_or_default());
        }
        Answer { code: head.status.as_u16(), headers: head.headers, bytes: bytes.into() }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Ask::new("GET", path)).await
    }

    pub async fn post(&self, path: &str, object: &Value) -> Answer {
        self.send(Ask::new("POST", path).json(object)).await
    }

    pub async fn put(&self, path: &str, object: &Value) -> Answer {
        self.send(Ask::new("PUT", path).json(object)).await
    }

    pub async fn patch(&self, path: &str, media: &str, change: &Value) -> Answer {
        self.send(Ask::new("PATCH", path).json(change).header(CONTENT_TYPE, media)).await
    }

    pub async fn apply(&self, path: &str, manager: &str, config: &Value) -> Answer {
        self.patch(&format!("{path}?fieldManager={manager}"), APPLY_PATCH, config).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Ask::new("DELETE", path)).await
    }

    /// Deletes a task that runs, and says that its program has ended.
    pub async fn delete_running(&self, path: &str) {
        self.delete(path).await.good();
        self.patch(path, MERGE_PATCH, &json!({"metadata": {"finalizers": null}})).await.good();
        self.get(path).await.refused(404);
    }

    /// Creates an object in its kind's collection in the namespace `default`.
    pub async fn create(&self, object: &Value) -> Value {
        let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
        let answer = self.post(&path(&plural), object).await;
        assert_eq!(answer.code, 201, "{answer:?}");
        answer.json()
    }

    pub async fn watch(&self, path_and_query: &str) -> Watching {
        self.watch_as(path_and_query, "application/json").await
    }

    pub async fn watch_as(&self, path_and_query: &str, accept: &str) -> Watching {
        let ask = Ask::new("GET", path_and_query).header(ACCEPT, accept);
        let reply = self.api.clone().handle(ask.request(&self.admin)).await;
        assert_eq!(reply.status(), 200, "{path_and_query}");
        Watching::new(reply.into_body())
    }
}

/// A request to be sent, as the admin unless told otherwise.
#[derive(Debug, Clone)]
pub struct Ask {
    method: Method,
    target: String,
    headers: HeaderMap,
    body: Bytes,
    fronted: Option<Fronted>,
}

impl Ask {
    pub fn new(method: &str, target: &str) -> Self {
        let method = method.parse().unwrap();
        Self {
            method,
            target: target.to_owned(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            fronted: None,
        }
    }

    pub fn json(self, body: &Value) -> Self {
        self.body(body.to_string())
    }

    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    pub fn header(self, name: HeaderName, value: &str) -> Self {
        self.raw_header(name, HeaderValue::from_str(value).unwrap())
    }

    pub fn raw_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    pub fn token(self, secret: &str) -> Self {
        self.header(AUTHORIZATION, &format!("Bearer {secret}"))
    }

    /// Through the API server of a cluster, which has proved itself.
    pub fn through(mut self, proxy: &FrontProxy) -> Self {
        self.fronted = Some(Fronted(Arc::new(proxy.clone())));
        self.headers.insert(AUTHORIZATION, HeaderValue::from_static(""));
        self
    }

    fn request(self, admin: &str) -> hyper::Request<Full<Bytes>> {
        let mut request = hyper::Request::new(Full::new(self.body));
        *request.method_mut() = self.method;
        *request.uri_mut() = self.target.parse().unwrap();
        *request.headers_mut() = self.headers;
        if let Some(fronted) = self.fronted {
            request.extensions_mut().insert(fronted);
        }
        let bearer = HeaderValue::from_str(&format!("Bearer {admin}")).unwrap();
        request.headers_mut().entry(AUTHORIZATION).or_insert(bearer);
        request
    }
}

#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The object in a good answer.
    #[track_caller]
    pub fn good(&self) -> Value {
        assert!((200..300).contains(&self.code), "{self:?}");
        self.json()
    }

    /// The message of a refusal of this code.
    #[track_caller]
    pub fn refused(&self, code: u16) -> String {
        assert_eq!(self.code, code, "{self:?}");
        let status = self.json();
        assert_eq!(status["kind"], "Status", "{self:?}");
        status["message"].as_str().unwrap().to_owned()
    }
}
