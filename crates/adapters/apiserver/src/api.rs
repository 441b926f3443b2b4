//! From a request to its answer: who, what, may they, do it.

use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::header::AUTHORIZATION;
use hyper::{HeaderMap, Method, Request, StatusCode};
use muster_ports::clock::Clock;
use muster_ports::pages::PLACE;
use muster_ports::rates::Rates;
use muster_ports::store::Store;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::access::{Bound, User};
use crate::call::Call;
use crate::cluster_users::user_of;
use crate::continuation::Continuations;
use crate::events::{self, EventKind};
use crate::front_proxy::{self, Fronted};
use crate::kind::{Kind, Part};
use crate::metrics::Metrics;
use crate::negotiate::choose_form;
use crate::options::Options;
use crate::parts::Parts;
use crate::query::Query;
use crate::refusal::Refusal;
use crate::registry::Registry;
use crate::respond::{self, Reply};
use crate::shares::Shares;
use crate::shutdown::Shutdown;
use crate::subresources::{self, PartCall, Subresource};
use crate::target::{ResourcePath, Target, parse_target};
use crate::tokens::Tokens;
use crate::validity::Validity;
use crate::{attempt_tokens, discovery, impersonation, namespaces, openapi, reviews, tokens, verbs};

/// Limits and habits of the server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Largest request body.
    pub max_body: usize,
    /// Longest path and query.
    pub max_uri: usize,
    /// Watches open at once.
    pub max_watches: usize,
    /// Requests per second and token; twice that at once; zero is no limit.
    pub requests_per_second: u32,
    /// How long a client may take to send a body.
    pub body_timeout: Duration,
    /// What the names of logs end in among the attachments of a task.
    pub log_suffix: String,
    /// How often a watch says where it is.
    pub bookmark_every: Duration,
    /// Largest file that is taken.
    pub max_file: u64,
}

impl Settings {
    fn rates(&self) -> Option<Rates> {
        let allowed = self.requests_per_second;
        (allowed > 0).then(|| Rates::new(allowed, allowed.saturating_mul(2)))
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_body: 3 * 1024 * 1024,
            max_uri: 8 * 1024,
            max_watches: 10_000,
            requests_per_second: 20_000,
            body_timeout: Duration::from_secs(30),
            bookmark_every: Duration::from_mins(1),
            log_suffix: ".log".to_owned(),
            max_file: 1 << 30,
        }
    }
}

/// The server without its sockets.
pub struct Api {
    pub(crate) registry: Registry,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    pub(crate) tokens: Tokens,
    pub(crate) continuations: Continuations,
    pub(crate) watches: Arc<Shares>,
    pub(crate) uploads: Arc<Shares>,
    pub(crate) shutdown: Shutdown,
    pub(crate) parts: Parts,
    pub(crate) metrics: Metrics,
    /// Where the documents of our kinds are, which do not change while the server runs.
    pub(crate) openapi_entries: Map<String, Value>,
    /// How fast each token may ask; nothing is no limit.
    rates: Option<Mutex<Rates>>,
}

/// Files on their way in at once, each of which has a thread that writes it: half of those there are.
const MAX_UPLOADS: usize = 256;
/// Those of one token.
const UPLOADS_OF_ONE: usize = 64;

impl Api {
    /// A server of `registry` over `store`.
    pub fn new(
        registry: Registry,
        store: Store,
        clock: Arc<dyn Clock>,
        settings: Settings,
        shutdown: Shutdown,
        parts: Parts,
    ) -> Arc<Self> {
        Arc::new(Self {
            openapi_entries: openapi::entries_of_ours(&registry),
            registry,
            tokens: Tokens::new(store.clone()),
            store,
            clock,
            continuations: Continuations::default(),
            watches: Shares::new(
                "watches",
                settings.max_watches,
                settings.max_watches - settings.max_watches / 10,
            ),
            uploads: Shares::new("files", MAX_UPLOADS, UPLOADS_OF_ONE),
            rates: settings.rates().map(Mutex::new),
            metrics: Metrics::new(parts.telemetry.clone()),
            settings,
            shutdown,
            parts,
        })
    }

    /// The tokens of the server's store.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Answers a request. Never fails: a refusal is an answer.
    pub async fn handle<B>(self: Arc<Self>, request: Request<B>) -> Reply
    where
        B: hyper::body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let started = Instant::now();
        let mut label = Label::default();
        let reply = match self.answer(request, &mut label).await {
            Ok(reply) => reply,
            Err(refusal) => {
                tracing::debug!(verb = label.verb, resource = label.resource, code = refusal.code.as_u16(), %refusal, "refused");
                respond::refusal(&refusal)
            }
        };
        self.metrics.answered(
            label.verb,
            &label.resource,
            reply.status().as_u16(),
            started.elapsed().as_secs_f64(),
        );
        reply
    }

    async fn answer<B>(self: &Arc<Self>, request: Request<B>, label: &mut Label) -> Result<Reply, Refusal>
    where
        B: hyper::body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        let length = head.uri.path_and_query().map_or(0, |text| text.as_str().len());
        if length > self.settings.max_uri {
            return Err(Refusal::uri_too_long(self.settings.max_uri));
        }
        if let Some(pages) = self.parts.pages.as_ref().filter(|_| is_page(&head)) {
            label.verb = "page";
            let body = body.map_err(std::io::Error::other).boxed_unsync();
            return Ok(pages.answer(self.clone(), Request::from_parts(head, body)).await);
        }
        let target = parse_target(head.uri.path());
        let is_read = matches!(head.method, Method::GET | Method::HEAD);
        if let (Target::Health(_) | Target::Version, true) = (&target, is_read) {
            return Ok(self.public(&target, head.uri.query().unwrap_or_default()));
        }
        let user = self.admit_request(&head.headers, head.extensions.get()).await?;
        let user = impersonation::act_as(user, &head.headers, &self.tokens, &*self.clock)?;
        match target {
            Target::Resource(path) => {
                let query = head.uri.query().unwrap_or_default();
                let options = Options::parse(query)?;
                let subresource = subresources::find(&path);
                let verb = match subresource {
                    Some(subresource) => subresource.verb_of(&head.method)?,
                    None => verb_of(&head.method, &path, &options)?,
                };
                label.verb = verb;
                let query = Query::parse(query);
                let headers = head.headers;
                let goes_on = verb == "watch" || subresource.is_some();
                let validity = goes_on.then(|| Validity::of(self, bearer(&headers), &user)).flatten();
                let limit = validity.clone();
                let wanted = Wanted { verb, subresource, path, options, query, user, headers, validity };
                let reply = self.resource(wanted, body, label).await?;
                Ok(match limit {
                    Some(limit) => limit.limit_reply(reply),
                    None => reply,
                })
            }
            Target::Tokens(name) => {
                label.verb = "tokens";
                let body = self.read_body(body).await?;
                self.token_request(&head.method, name, &user, &body).await
            }
            Target::Backup => {
                label.verb = "backup";
                self.backup_request(&head.method, &user).await
            }
            document if is_read => {
                if self.store.is_shared() {
                    self.catch_up().await?;
                }
                self.document(&document, &user, &head.headers).await
            }
            Target::Unknown => Err(Refusal::no_such_path()),
            _ => Err(Refusal::method_not_allowed()),
        }
    }

    /// Who asks: somebody with a token, or somebody that a cluster knows.
    async fn admit_request(&self, headers: &HeaderMap, fronted: Option<&Fronted>) -> Result<User, Refusal> {
        if let Some(identity) = fronted.and_then(|by| front_proxy::identity_of(&by.0, headers)) {
            return self.admit_user(user_of(identity));
        }
        let secret = bearer(headers);
        if let Some(foreign) = secret.filter(|secret| !secret.trim().starts_with(tokens::PREFIX))
            && let Some(user) = self.identify(foreign.trim()).await?
        {
            return self.admit_user(user);
        }
        if self.store.is_shared() && secret.is_some() && self.authenticate(secret).is_err() {
            // Perhaps it was made a moment ago, on another server.
            self.catch_up().await?;
        }
        self.admit(secret)
    }

    /// Who has a token of this server, if they do not ask too often.
    pub fn admit(&self, secret: Option<&str>) -> Result<User, Refusal> {
        self.admit_user(self.authenticate(secret)?)
    }

    fn admit_user(&self, user: User) -> Result<User, Refusal> {
        let allowed = self.rates.as_ref().is_none_or(|rates| rates.lock().take(&user.name, self.clock.now()));
        if allowed {
            return Ok(user);
        }
        self.metrics.turned_away("rate");
        Err(Refusal::too_many(format!(
            "more than {} requests per second with token \"{}\"",
            self.settings.requests_per_second, user.name
        )))
    }

    fn authenticate(&self, secret: Option<&str>) -> Result<User, Refusal> {
        let Some(secret) = secret else {
            self.metrics.turned_away("no token");
            return Err(Refusal::unauthorized(
                "Unauthorized: send a bearer token; `muster token create` makes one",
            ));
        };
        let secret = secret.trim();
        let of_attempt = secret.starts_with(attempt_tokens::PREFIX);
        self.holder_of(secret).ok_or_else(|| {
            self.metrics.turned_away("bad token");
            Refusal::unauthorized(if of_attempt {
                "Unauthorized: the attempt that this token was made for does not run, or has expired"
            } else {
                "Unauthorized: the token is unknown, expired or revoked"
            })
        })
    }

    /// Who has a token of this server.
    pub(crate) fn holder_of(&self, secret: &str) -> Option<User> {
        match &self.parts.attempt_tokens {
            Some(tokens) if secret.starts_with(attempt_tokens::PREFIX) => tokens.verify(secret),
            _ => self.tokens.authenticate(secret, &*self.clock),
        }
    }

    pub(crate) async fn read_body<B>(&self, body: B) -> Result<Bytes, Refusal>
    where
        B: hyper::body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.read_body_up_to(body, self.settings.max_body).await
    }

    /// The same with another limit.
    pub(crate) async fn read_body_up_to<B>(&self, body: B, most: usize) -> Result<Bytes, Refusal>
    where
        B: hyper::body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut whole = std::pin::pin!(Limited::new(body, most).collect());
        // Most bodies are there already and need no timer.
        let at_once = std::future::poll_fn(|cx| Poll::Ready(whole.as_mut().poll(cx))).await;
        let read = match at_once {
            Poll::Ready(read) => Ok(read),
            Poll::Pending => tokio::time::timeout(self.settings.body_timeout, whole).await,
        };
        match read {
            Ok(Ok(collected)) => Ok(collected.to_bytes()),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                Err(Refusal::too_large(format!("the request body is larger than {most} bytes")))
            }
            Ok(Err(error)) => {
                Err(Refusal::bad_request(format!("the request body could not be read: {error}")))
            }
            Err(_) => Err(Refusal::bad_request("the request body was not sent in time")),
        }
    }

    async fn resource<B>(
        self: &Arc<Self>,
        wanted: Wanted,
        body: B,
        label: &mut Label,
    ) -> Result<Reply, Refusal>
    where
        B: hyper::body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let Wanted { verb, subresource, path, options, query, user, headers, validity } = wanted;
        if verb == "create" && path.name.is_none() && discovery::is_review(&path.group, &path.plural) {
            let body = self.read_body(body).await?;
            let question = reviews::read(&headers, &body)?;
            if let Some(Bound::Cluster(identity)) = &user.bound {
                let answer = self.review(identity, &path.plural, &question).await?;
                return Ok(respond::document(StatusCode::CREATED, &answer));
            }
            let answer = reviews::answer(self, &user, &path.group, &path.plural, &question);
            return answer
                .unwrap_or_else(|| Err(Refusal::no_such_path()))
                .map(|answer| respond::document(StatusCode::CREATED, &answer));
        }
        self.authorize(&user, &path.ask(verb, &path.resource())).await?;
        self.freshen(verb, &options).await?;
        if namespaces::are_meant(&path) {
            return namespaces::answer(self, verb, path.name.as_deref(), &options)
                .map(|answer| respond::document(StatusCode::OK, &answer));
        }
        let events = events::dialect_of(&path);
        let kind = match events {
            Some(dialect) => Some(Arc::new(EventKind::new(dialect)) as Arc<dyn Kind>),
            None => match self.registry.find(&path.group, &path.version, &path.plural) {
                // Perhaps somebody declared it a moment ago, on another server.
                None if self.store.is_shared() => {
                    self.catch_up().await?;
                    self.registry.find(&path.group, &path.version, &path.plural)
                }
                found => found,
            },
        };
        let kind = kind.ok_or_else(Refusal::no_such_path)?;
        label.resource.clone_from(&kind.info().plural);
        let part = match path.subresource.as_deref() {
            None => Part::Main,
            Some("status") if kind.info().has_status && path.rest.is_empty() => Part::Status,
            Some(_) if subresource.is_some() => Part::Main,
            Some(_) => return Err(Refusal::no_such_path()),
        };
        let namespace = match (kind.info().namespaced, path.namespace) {
            (true, namespace) => namespace,
            (false, None) => Some(String::new()),
            (false, Some(_)) => return Err(Refusal::no_such_path()),
        };
        if let Some(namespace) = namespace.as_deref().filter(|namespace| !namespace.is_empty()) {
            muster_types::name_rules::dns1123_label(namespace).map_err(|why| {
                Refusal::bad_request(format!("the namespace \"{namespace}\" is not valid: {why}"))
            })?;
        }
        if kind.info().namespaced && namespace.is_none() && path.name.is_some() {
            return Err(Refusal::no_such_path());
        }
        let (api, name) = (self.clone(), path.name);
        if let Some(subresource) = subresource {
            label.resource = format!("{}/{}", kind.info().plural, subresource.name);
            let (namespace, name) = (namespace.unwrap_or_default(), name.unwrap_or_default());
            let (rest, folder) = (path.rest, path.folder);
            let call =
                PartCall { api, kind, namespace, name, verb, rest, folder, query, options, user, headers };
            let body = body.map_err(std::io::Error::other).boxed_unsync();
            let body = match validity {
                Some(validity) => validity.limit_request(body),
                None => body,
            };
            return subresources::answer(subresource, call, body).await;
        }
        let form = choose_form(&headers)?;
        let mut call =
            Call { api, kind, namespace, name, part, options, form, user, headers, warnings: Vec::new() };
        if let Some(dialect) = events {
            return events::answer(&call, verb, dialect);
        }
        let mut reply = self.carry_out(verb, &mut call, body).await?;
        respond::warn(&mut reply, &call.warnings);
        Ok(reply)
    }

    async fn carry_out<B>(&self, verb: &'static str, call: &mut Call, body: B) -> Result<Reply, Refusal>
    where
        B: hyper::body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        match verb {
            "get" => {
                let stored = call.fetch()?;
                call.show(StatusCode::OK, &stored)
            }
            "list" => verbs::list::list(call),
            "watch" => {
                if let Some(name) = &call.name {
                    // The old way to watch one object.
                    let only = format!("metadata.name={name}");
                    call.options.fields =
                        only.parse().map_err(|error: muster_types::field_selector::FieldSelectorError| {
                            Refusal::bad_request(error.to_string())
                        })?;
                }
                verbs::watch::watch(call)
            }
            "create" => verbs::create::create(call, &self.read_body(body).await?).await,
            "update" => verbs::update::replace(call, &self.read_body(body).await?).await,
            "patch" => verbs::patch::patch_object(call, &self.read_body(body).await?).await,
            "delete" => verbs::delete::delete_object(call, &self.read_body(body).await?).await,
            "deletecollection" => verbs::delete::delete_collection(call, &self.read_body(body).await?).await,
            _ => Err(Refusal::method_not_allowed()),
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
    header.strip_prefix("Bearer ").or_else(|| header.strip_prefix("bearer "))
}

/// True for pages, and for the root if a browser asks.
fn is_page(head: &hyper::http::request::Parts) -> bool {
    let path = head.uri.path();
    let accepts = head.headers.get(hyper::header::ACCEPT).and_then(|value| value.to_str().ok());
    let below = path.strip_prefix(PLACE).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    below || (path == "/" && accepts.is_some_and(|accepts| accepts.contains("text/html")))
}

/// A request on a resource, taken apart once.
struct Wanted {
    verb: &'static str,
    subresource: Option<&'static Subresource>,
    path: ResourcePath,
    options: Options,
    query: Query,
    user: User,
    headers: HeaderMap,
    /// For how long it may go on, if that is for long.
    validity: Option<Validity>,
}

/// What a request is counted as.
#[derive(Default)]
struct Label {
    verb: &'static str,
    resource: String,
}

fn verb_of(method: &Method, path: &ResourcePath, options: &Options) -> Result<&'static str, Refusal> {
    let named = path.name.is_some();
    match (method.as_str(), named) {
        ("GET" | "HEAD", _) if options.watch => Ok("watch"),
        ("GET" | "HEAD", true) => Ok("get"),
        ("GET" | "HEAD", false) => Ok("list"),
        ("POST", false) => Ok("create"),
        ("PUT", true) => Ok("update"),
        ("PATCH", true) => Ok("patch"),
        ("DELETE", true) if path.subresource.is_none() => Ok("delete"),
        ("DELETE", false) => Ok("deletecollection"),
        _ => Err(Refusal::method_not_allowed()),
    }
}
