//! From a request of a browser to a page: who looks, what is asked for, and what the answer may do.

use std::sync::Arc;

use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, SET_COOKIE};
use hyper::{HeaderMap, Method, Request, StatusCode};
use maud::Markup;
use muster_ports::clock::Clock;
use muster_ports::pages::{Coming, Denied, FrontDoor, PLACE, Pages, Reply, Unread, Visitor};
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
/// More than any token, from somebody who is not known yet.
const MAX_SIGN_IN: usize = 4 << 10;
/// More than any form of the console, from somebody who is.
const MAX_FORM: usize = 256 << 10;
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

    async fn respond(&self, door: Arc<dyn FrontDoor>, request: Request<Unread>) -> Reply {
        let (request, body) = request.into_parts();
        let path = request.uri.path().to_owned();
        let Some(below) = path.strip_prefix(PLACE).filter(|below| !below.is_empty()) else {
            return go_to("/ui/");
        };
        if let Some(asset) = assets::find(&path) {
            return asset;
        }
        let headers = &request.headers;
        let is_write = !matches!(request.method, Method::GET | Method::HEAD);
        if is_write && !session::is_ours(headers) {
            return page(
                StatusCode::FORBIDDEN,
                pages::sign_in::page("This did not come from a page of the console."),
            );
        }
        match (below, is_write) {
            ("/sign-in", true) => {
                return match door.clone().read(body, MAX_SIGN_IN).await {
                    Ok(form) => sign_in(&*door, headers, &Query::parse(&form)),
                    Err(denied) => page(denied.code, pages::sign_in::page(&denied.why)),
                };
            }
            ("/sign-out", true) => return with_cookie(go_to("/ui/sign-in"), session::forget()),
            _ => {}
        }
        let secret: Arc<str> = session::secret(headers).unwrap_or_default().into();
        let user = match admit(&*door, &secret) {
            Ok(user) => user,
            Err(_) if secret.is_empty() => return page(StatusCode::UNAUTHORIZED, pages::sign_in::page("")),
            Err(denied) => return page(denied.code, pages::sign_in::page(&denied.why)),
        };
        let query = Query::parse(request.uri.query().unwrap_or_default().as_bytes());
        let path = below.trim_start_matches('/').to_owned();
        let visit = Visit { site: self.site.clone(), door, user, secret, path, query, is_followed: false };
        if is_write {
            return match visit.door.clone().read(body, MAX_FORM).await {
                Ok(form) => actions::carry_out(&visit, &Query::parse(&form)).await,
                Err(denied) => page(denied.code, pages::sign_in::page(&denied.why)),
            };
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
    fn answer(&self, door: Arc<dyn FrontDoor>, request: Request<Unread>) -> Coming<Reply> {
        let console = self.clone();
        Box::pin(async move { safe(Box::pin(console.respond(door, request)).await) })
    }
}

/// Who has a token, if they may see what the console shows: all of it, whatever they ask for.
pub fn admit(door: &dyn FrontDoor, secret: &str) -> Result<Visitor, Denied> {
    let user = door.admit(Some(secret).filter(|secret| !secret.is_empty()))?;
    if user.may_look {
        return Ok(user);
    }
    let why = format!("A token with the role {} opens no console; use one of a viewer.", user.role);
    Err(Denied { code: StatusCode::FORBIDDEN, why })
}

fn sign_in(door: &dyn FrontDoor, headers: &HeaderMap, form: &Query) -> Reply {
    let secret = form.text("token");
    match admit(door, secret) {
        Ok(_) => match session::remember(secret, headers) {
            Some(cookie) => with_cookie(go_to("/ui/"), cookie),
            None => page(StatusCode::BAD_REQUEST, pages::sign_in::page("This is not a token.")),
        },
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
