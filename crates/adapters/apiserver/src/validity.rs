//! What goes on for long ends soon after the token it was asked for with is worth nothing any more: watches, followed logs, files on
//! their way in and out.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body, Frame, SizeHint};
use muster_ports::pages::{Reply, Unread};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::access::User;
use crate::api::Api;

/// How often it is looked whether the token is still valid.
const LOOK: Duration = Duration::from_secs(5);

/// Whether a token is valid, as often as one asks.
#[derive(Clone)]
pub struct Validity {
    api: Arc<Api>,
    secret: Arc<str>,
    /// Name of the token that the request acts as (`--as`).
    acts_as: Option<Arc<str>>,
}

impl Validity {
    /// The validity of the token of a request, and of the token it acts as. Users of a cluster have no token, and none ends
    /// theirs.
    pub fn of(api: &Arc<Api>, secret: Option<&str>, user: &User) -> Option<Self> {
        let secret = secret?.trim();
        let holder = api.holder_of(secret)?;
        let acts_as = (holder != *user).then(|| user.name.as_str().into());
        Some(Self { api: api.clone(), secret: secret.into(), acts_as })
    }

    /// An answer that ends with the token. One that is there as a whole is sent already.
    pub fn limit_reply(self, reply: Reply) -> Reply {
        if reply.body().size_hint().exact().is_some() {
            return reply;
        }
        reply.map(|body| Limited::new(body, self, || None).boxed_unsync())
    }

    /// A body that fails when the token ends.
    pub fn limit_request(self, body: Unread) -> Unread {
        let ended = || Some(Err(std::io::Error::other("its token was revoked or has expired")));
        Limited::new(body, self, ended).boxed_unsync()
    }

    fn holds(&self) -> bool {
        let is_there = |name: &Arc<str>| self.api.tokens().holder(name, &*self.api.clock).is_some();
        self.api.holder_of(&self.secret).is_some() && self.acts_as.as_ref().is_none_or(is_there)
    }
}

type Part<E> = Option<Result<Frame<Bytes>, E>>;

/// A body that goes on only as long as a token is valid.
struct Limited<E> {
    body: UnsyncBoxBody<Bytes, E>,
    validity: Validity,
    look: Interval,
    has_ended: bool,
    /// What comes last when the token is not valid any more.
    last: fn() -> Part<E>,
}

impl<E> Limited<E> {
    fn new(body: UnsyncBoxBody<Bytes, E>, validity: Validity, last: fn() -> Part<E>) -> Self {
        let mut look = interval_at(Instant::now() + LOOK, LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { body, validity, look, has_ended: false, last }
    }
}

impl<E> Body for Limited<E> {
    type Data = Bytes;
    type Error = E;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Part<E>> {
        while !self.has_ended && self.look.poll_tick(cx).is_ready() {
            if !self.validity.holds() {
                self.has_ended = true;
                return Poll::Ready((self.last)());
            }
        }
        if self.has_ended {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.has_ended || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
