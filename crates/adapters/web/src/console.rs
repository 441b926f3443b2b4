//! From a request of a browser to a page: who looks, what is asked for, and what the answer may do.

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, SET_COOKIE};
use hyper::{Method, Request, StatusCode};
use maud::Markup;
use muster_ports::clock::Clock;
use muster_ports::pages::{Coming, FrontDoor, PLACE, Pages, Reply};
use muster_ports::store::Store;

use crate::index::Index;
use crate::live::Live;
use crate::query::Query;
use crate::reply::whole;
use crate::site::{Site, Visit};
use crate::{actions, assets, pages, session};

/// Nothing but our own files runs, and nobody may put a page into theirs.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
/// What a file of a task may do in a browser: nothing.
const SANDBOX: &str = "default-src 'none'; sandbox";

/// The console of a server.
#[derive(Clone)]
pub struct Console {
    site: Site,
    live: Live,
}

impl Console {
    /// The console of a store. It costs nothing until somebody who may look does.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        let index = Index::new(store.clone(), clock.clone());
        Self { site: Site { store, clock, index }, live: Live::default() }
    }

    async fn respond(&self, door: Arc<dyn FrontDoor>, request: Request<Bytes>) -> Reply {
        let path = request.uri().path().to_owned();
        let Some(below) = path.strip_prefix(PLACE).filter(|below| !below.is_empty()) else {
            return go_to("/ui/");
        };
        if let Some(asset) = assets::find(&path) {
            return asset;
        }
        let headers = request.headers();
        let is_write = !matches!(*request.method(), Method::GET | Method::HEAD);
        if is_write && !session::is_ours(headers) {
            return page(
                StatusCode::FORBIDDEN,
                pages::sign_in::page("This did not come from a page of the console."),
            );
        }
        let query = Query::parse(request.uri().query().unwrap_or_default().as_bytes());
        let form = Query::parse(request.body());
        match (below, is_write) {
            ("/sign-in", true) => return sign_in(&*door, &request, &form),
            ("/sign-out", true) => return with_cookie(go_to("/ui/sign-in"), session::forget()),
            _ => {}
        }
        let secret: Arc<str> = session::secret(headers).unwrap_or_default().into();
        let user = match door.admit(Some(&secret).filter(|secret| !secret.is_empty()).map(|secret| &**secret))
        {
            Ok(user) => user,
            Err(_) if secret.is_empty() => return page(StatusCode::UNAUTHORIZED, pages::sign_in::page("")),
            Err(denied) => return page(denied.code, pages::sign_in::page(&denied.why)),
        };
        let path = below.trim_start_matches('/').to_owned();
        let visit = Visit { site: self.site.clone(), door, user, secret, path, query, is_followed: false };
        if is_write {
            return actions::carry_out(&visit, &form).await;
        }
        if let Some(shown) = visit.path.strip_prefix("live/") {
            let path = shown.to_owned();
            return self.live.follow(Visit { path, is_followed: true, ..visit });
        }
        match pages::file(&visit).await {
            Some(file) => sandboxed(file),
            None => pages::page(&visit).await,
        }
    }
}

impl Pages for Console {
    fn answer(&self, door: Arc<dyn FrontDoor>, request: Request<Bytes>) -> Coming<Reply> {
        let console = self.clone();
        Box::pin(async move { safe(Box::pin(console.respond(door, request)).await) })
    }
}

fn sign_in(door: &dyn FrontDoor, request: &Request<Bytes>, form: &Query) -> Reply {
    let secret = form.text("token");
    match door.admit(Some(secret)) {
        Ok(user) if user.may_look => match session::remember(secret, request.headers()) {
            Some(cookie) => with_cookie(go_to("/ui/"), cookie),
            None => page(StatusCode::BAD_REQUEST, pages::sign_in::page("This is not a token.")),
        },
        Ok(user) => {
            let why = format!("A token with the role {} opens no console; use one of a viewer.", user.role);
            page(StatusCode::FORBIDDEN, pages::sign_in::page(&why))
        }
        Err(denied) => page(denied.code, pages::sign_in::page(&denied.why)),
    }
}

/// A page as an answer.
pub fn page(code: StatusCode, html: Markup) -> Reply {
    whole(code, "text/html; charset=utf-8", html.into_string())
}

/// Sends a browser somewhere else in the console.
pub fn go_to(path: &str) -> Reply {
    let mut reply = whole(StatusCode::SEE_OTHER, "text/plain", "");
    // What cannot be an address was never one of ours.
    let place = HeaderValue::try_from(path).unwrap_or(HeaderValue::from_static("/ui/"));
    reply.headers_mut().insert(LOCATION, place);
    reply
}

fn with_cookie(mut reply: Reply, cookie: HeaderValue) -> Reply {
    reply.headers_mut().insert(SET_COOKIE, cookie);
    reply
}

/// A file that a task left: shown as text or saved, never run.
fn sandboxed(mut reply: Reply) -> Reply {
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert("content-security-policy", HeaderValue::from_static(SANDBOX));
    reply
}

fn safe(mut reply: Reply) -> Reply {
    let headers = reply.headers_mut();
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("x-frame-options", "DENY"),
    ] {
        headers.entry(HeaderName::from_static(name)).or_insert(HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    reply
}
