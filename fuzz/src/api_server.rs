//! An API server in this process, with one object of each kind, and what every answer of it must be.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Request, Uri};
use muster_apiserver::access::Role;
use muster_apiserver::api::{Api, Settings};
use muster_apiserver::attempt_tokens::AttemptTokens;
use muster_apiserver::kind::KindInfo;
use muster_apiserver::kinds;
use muster_apiserver::parts::Parts;
use muster_apiserver::registry::Registry;
use muster_apiserver::shutdown::Shutdown;
use muster_ports::blobs::MemoryBlobs;
use muster_ports::clock::{Clock, ManualClock};
use muster_ports::store::{History, Log, MemoryLog, Store};
use muster_web::console::Console;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::json_reference::is_exact;
use crate::store_rows::{KeptRow, KeptRows};

pub const JSON: &str = "application/json";
pub const YAML: &str = "application/yaml";
pub const MERGE_PATCH: &str = "application/merge-patch+json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// One good object of each kind.
const FURNITURE: &str = include_str!("furniture.json");
/// How long an answer may take that ends.
const SOON: Duration = Duration::from_secs(30);
/// Deeper objects are not read as YAML.
const YAML_DEPTH: usize = 60;

/// A request.
#[derive(Debug, Clone)]
pub struct Ask {
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Ask {
    pub fn new(method: &str, target: &str) -> Self {
        Self { method: method.to_owned(), target: target.to_owned(), headers: Vec::new(), body: Vec::new() }
    }

    pub fn header(mut self, name: &HeaderName, value: &str) -> Self {
        self.headers.push((name.to_string(), value.to_owned()));
        self
    }

    pub fn body(mut self, media: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.header(&CONTENT_TYPE, media)
    }

    /// As hyper would hand it over; nothing if hyper would refuse it before.
    fn request(&self, secret: &str) -> Option<Request<Full<Bytes>>> {
        let mut request = Request::new(Full::new(Bytes::from(self.body.clone())));
        *request.method_mut() = Method::from_bytes(self.method.as_bytes()).ok()?;
        *request.uri_mut() = uri_of(&self.target)?;
        for (name, value) in &self.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            request.headers_mut().append(name, HeaderValue::from_bytes(value.as_bytes()).ok()?);
        }
        let bearer = HeaderValue::from_str(&format!("Bearer {secret}")).ok()?;
        request.headers_mut().entry(AUTHORIZATION).or_insert(bearer);
        Some(request)
    }
}

/// An address; bytes that no address has are written as escapes, so that they reach the server.
fn uri_of(text: &str) -> Option<Uri> {
    let mut target = String::new();
    for byte in text.bytes() {
        match byte {
            b'!' | b'$'..=b'~' if !b"<>\\^`{|}#\"".contains(&byte) => target.push(char::from(byte)),
            byte => target.push_str(&format!("%{byte:02X}")),
        }
    }
    target.starts_with('/').then(|| target.parse().ok())?
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

impl Answer {
    pub fn is_good(&self) -> bool {
        (200..300).contains(&self.code)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A server over a store in memory whose commits happen on the caller's thread.
pub struct Server {
    runtime: Rc<Runtime>,
    api: Arc<Api>,
    store: Store,
    pub registry: Registry,
    pub secret: String,
}

/// What servers are made of again and again.
struct Bench {
    runtime: Rc<Runtime>,
    registry: Registry,
    rows: KeptRows,
    secret: String,
    server: RefCell<Option<Rc<Server>>>,
}

thread_local! {
    static BENCH: Bench = Bench::new();
}

/// Gives a furnished server to a target. What it changed there is gone afterwards.
pub fn with_server(work: impl FnOnce(&Server)) {
    BENCH.with(|bench| {
        let server = bench.server.take().unwrap_or_else(|| Rc::new(bench.server()));
        let before = server.store.revision();
        work(&server);
        if server.store.revision() == before {
            bench.server.replace(Some(server));
        }
    });
}

/// Gives a target a server over other rows.
pub fn with_server_over(log: KeptRows, work: impl FnOnce(&Server)) {
    BENCH.with(|bench| {
        let mut server = Server::over(bench.runtime.clone(), bench.registry.clone(), log);
        let created = server.api.tokens().create("fuzz-admin", Role::Admin, None, now());
        match server.runtime.block_on(created) {
            Ok(secret) => server.secret = secret,
            // The rows have one of that name already.
            Err(_) => return,
        }
        work(&server);
    });
}

impl Bench {
    fn new() -> Self {
        let name = thread::current().name().unwrap_or("fuzz").to_owned();
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = Rc::new(builder.thread_name(name).enable_all().build().unwrap());
        let mut log = MemoryLog::default();
        let registry = kinds::registry();
        let mut server = Server::over(runtime.clone(), registry.clone(), log.clone());
        let created = server.api.tokens().create("admin", Role::Admin, None, now());
        server.secret = server.runtime.block_on(created).unwrap();
        let furniture: Vec<Value> = serde_json::from_str(FURNITURE).unwrap();
        for object in &furniture {
            let collection = server.collection_of(object).unwrap_or_else(|| panic!("no kind for {object}"));
            let made = server.glance(&Ask::new("POST", &collection).body(JSON, object.to_string()));
            assert!(made.is_good(), "{made:?}: {object}");
        }
        let (secret, header) = (server.secret, log.header().unwrap());
        let mut rows = Vec::new();
        log.load(&mut |row| rows.push(KeptRow::from(row))).unwrap();
        let rows = KeptRows { header, rows: rows.into() };
        Self { runtime, registry, rows, secret, server: RefCell::default() }
    }

    fn server(&self) -> Server {
        let server = Server::over(self.runtime.clone(), self.registry.clone(), self.rows.clone());
        Server { secret: self.secret.clone(), ..server }
    }
}

fn clock() -> ManualClock {
    let clock = ManualClock::default();
    clock.advance(1_700_000_000_000);
    clock
}

fn now() -> muster_ports::clock::Millis {
    clock().now()
}

impl Server {
    fn over(runtime: Rc<Runtime>, registry: Registry, log: impl Log) -> Self {
        let clock = clock();
        let store = Store::open_inline(log, History::default(), clock.clone()).expect("a store");
        let clock: Arc<dyn Clock> = Arc::new(clock);
        let registry = registry.with_types_of(&store);
        let settings = Settings { requests_per_second: 0, ..Settings::default() };
        let attempts = runtime.block_on(AttemptTokens::open(&store)).unwrap();
        let parts = Parts {
            blobs: Some(Arc::new(MemoryBlobs::default())),
            attempt_tokens: Some(attempts),
            pages: Some(Arc::new(Console::new(store.clone(), clock.clone()))),
            ..Parts::default()
        };
        let api = Api::new(registry.clone(), store.clone(), clock, settings, Shutdown::default(), parts);
        Self { runtime, api, store, registry, secret: String::new() }
    }

    pub fn revision(&self) -> u64 {
        self.store.revision().0
    }

    /// The collection that an object belongs to, in the namespace `default`.
    pub fn collection_of(&self, object: &Value) -> Option<String> {
        let kind = self.registry.find_kind(object["apiVersion"].as_str()?, object["kind"].as_str()?)?;
        Some(collection(kind.info()))
    }

    /// Sends a request and takes what there is of the answer, which may never end.
    pub fn glance(&self, ask: &Ask) -> Answer {
        self.try_glance(ask).unwrap_or_else(|| panic!("not a request: {ask:?}"))
    }

    /// The same; nothing if this could not have been sent.
    pub fn try_glance(&self, ask: &Ask) -> Option<Answer> {
        let request = ask.request(&self.secret)?;
        Some(self.runtime.block_on(async {
            let (head, mut body) = self.handle(request).await.into_parts();
            let mut bytes = Vec::new();
            while let Some(Some(Ok(frame))) = tokio::task::unconstrained(body.frame()).now_or_never() {
                bytes.extend_from_slice(&frame.into_data().unwrap_or_default());
            }
            Answer { code: head.status.as_u16(), headers: head.headers, bytes: bytes.into() }
        }))
    }

    /// Sends a request and waits for the end of its answer.
    pub fn send(&self, ask: &Ask) -> Answer {
        let request = ask.request(&self.secret).expect("a request");
        self.runtime.block_on(async {
            let (head, body) = self.handle(request).await.into_parts();
            let whole = tokio::time::timeout(SOON, body.collect()).await.expect("the answer ends");
            let bytes = whole.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            Answer { code: head.status.as_u16(), headers: head.headers, bytes }
        })
    }

    async fn handle(
        &self,
        request: Request<Full<Bytes>>,
    ) -> hyper::Response<UnsyncBoxBody<Bytes, Infallible>> {
        self.api.clone().handle(request).await
    }

    /// Asks, judges the answer, and checks that a refusal changed nothing.
    pub fn ask(&self, ask: &Ask) -> Option<Answer> {
        let before = self.revision();
        let answer = self.try_glance(ask)?;
        judge(&answer);
        assert!(
            answer.code < 400 || self.revision() == before,
            "a refused request changed something: {answer:?}"
        );
        Some(answer)
    }

    /// Asks for everything there is in every form. What is stored may be no object, and is told as that.
    pub fn look_at_everything(&self) {
        let kinds = self.registry.kinds();
        for kind in &kinds {
            let all = collection(kind.info()).replace("namespaces/default/", "");
            for form in [JSON, YAML, TABLE] {
                self.glance(&Ask::new("GET", &all).header(&ACCEPT, form));
            }
            self.glance(&Ask::new(
                "GET",
                &format!("{all}?labelSelector=a%3Db&fieldSelector=metadata.name%21%3Da"),
            ));
            self.glance(&Ask::new(
                "GET",
                &format!(
                    "{all}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true\
                                                  &resourceVersionMatch=NotOlderThan"
                ),
            ));
            let one = format!("{}/a", collection(kind.info()));
            self.glance(&Ask::new("PATCH", &one).body(MERGE_PATCH, r#"{"metadata":{"labels":{"x":"y"}}}"#));
            self.glance(&Ask::new("DELETE", &format!("{one}?propagationPolicy=Foreground")));
        }
        for place in [
            "tasks",
            "jobs",
            "schedules",
            "robots",
            "resources",
            "sinks",
            "tasks/default/a",
            "jobs/default/a",
        ] {
            let cookie = format!("muster_token={}", self.secret);
            self.glance(&Ask::new("GET", &format!("/ui/{place}")).header(&hyper::header::COOKIE, &cookie));
        }
        let alive = self.glance(&Ask::new("GET", "/readyz"));
        assert_eq!(alive.code, 200, "{alive:?}");
    }

    /// What was stored reads back as it was answered, in every form, and storing it again changes nothing.
    pub fn judge_stored(&self, target: &str, answer: &Answer) {
        let object = answer.json();
        let at = self.revision();
        let stored = self.glance(&Ask::new("GET", target));
        assert_eq!(stored.bytes, answer.bytes, "a get shows what was answered");
        let as_form = |form: &str| self.glance(&Ask::new("GET", target).header(&ACCEPT, form));
        let table = as_form(TABLE).json();
        let cells = table["rows"][0]["cells"].as_array().map(Vec::len);
        assert_eq!(cells, table["columnDefinitions"].as_array().map(Vec::len), "{table}");
        // The first change of a sink that was told nothing yet says from where on it is told, whatever else changes.
        let unsettled = object["kind"] == "EventSink" && object["status"].get("confirmedRevision").is_none();
        if unsettled || !is_exact(&object) {
            return;
        }
        let again = self.glance(&Ask::new("PUT", target).body(JSON, answer.bytes.to_vec()));
        assert_eq!(again.bytes, answer.bytes, "what was read can be written back and changes nothing");
        if depth(&object) < YAML_DEPTH {
            let yaml = as_form(YAML).bytes;
            let shown = String::from_utf8_lossy(&yaml);
            let read: Value =
                serde_saphyr::from_slice(&yaml).unwrap_or_else(|error| panic!("{error}: {shown}"));
            assert_eq!(read, object, "YAML says the same: {shown}");
            let put = self.glance(&Ask::new("PUT", target).body(YAML, yaml.to_vec()));
            assert_eq!(put.bytes, answer.bytes, "also as YAML");
        }
        let nothing = self.glance(&Ask::new("PATCH", target).body(MERGE_PATCH, "{}"));
        assert_eq!(nothing.bytes, answer.bytes, "a patch of nothing changes nothing");
        assert_eq!(self.revision(), at, "none of these was a change");
    }
}

/// The collection of a kind, in the namespace `default` if it has any.
pub fn collection(info: &KindInfo) -> String {
    let KindInfo { group, version, plural, namespaced, .. } = info;
    let namespace = if *namespaced { "namespaces/default/" } else { "" };
    format!("/apis/{group}/{version}/{namespace}{plural}")
}

/// What every answer must be: good, or a refusal that says why. The server never says that it failed.
pub fn judge(answer: &Answer) {
    if answer.code < 400 {
        assert!(answer.is_good(), "{answer:?}");
        return;
    }
    let status = answer.json();
    // Kubernetes answers so to a client that knows more than the server.
    let ahead = status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge";
    // The server of a target has no logs and explains nothing, and says so.
    let lacks_part = answer.code == 503 || answer.code == 501;
    assert!(answer.code < 500 || lacks_part || (answer.code == 504 && ahead), "{answer:?}");
    assert_eq!((&status["kind"], &status["apiVersion"]), (&json!("Status"), &json!("v1")));
    assert_eq!((&status["status"], &status["code"]), (&json!("Failure"), &json!(answer.code)));
    for field in ["message", "reason"] {
        assert!(status[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {answer:?}");
    }
    assert_eq!(answer.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes), Some(JSON.as_bytes()));
}

/// How deep a document is nested.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
