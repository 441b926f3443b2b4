//! What people see in a browser, and what its pages may ask of the API.
//!
//! Whoever serves the API also serves pages under [`PLACE`], made by a [`Pages`]. Those have no rights of their own: they ask
//! through a [`FrontDoor`] with the token of whoever looks.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;

/// Where pages for browsers are.
pub const PLACE: &str = "/ui";

/// The body of a request of which nothing was read yet.
pub type Unread = UnsyncBoxBody<Bytes, std::io::Error>;
/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;
/// An answer.
pub type Reply = Response<Body>;
/// An answer that is on its way.
pub type Coming<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Makes pages. It sees to its own access, before it has a body read.
pub trait Pages: Send + Sync {
    /// Answers a request under [`PLACE`].
    fn answer(&self, door: Arc<dyn FrontDoor>, request: Request<Unread>) -> Coming<Reply>;
}

/// The API, as its pages ask it.
pub trait FrontDoor: Send + Sync {
    /// Who has a token, if they do not ask too often.
    fn admit(&self, secret: Option<&str>) -> Result<Visitor, Denied>;

    /// Reads a body of at most so many bytes, if it is sent in time.
    fn read(self: Arc<Self>, body: Unread, most: usize) -> Coming<Result<Bytes, Denied>>;

    /// Answers a request as any client's.
    fn ask(self: Arc<Self>, request: Request<Bytes>) -> Coming<Reply>;

    /// Waits until the server is to stop.
    fn closing(&self) -> Coming<()>;
}

/// Somebody with a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visitor {
    /// The name of the token.
    pub name: String,
    /// What its role is called.
    pub role: String,
    /// They may see everything.
    pub may_look: bool,
    /// They may change things.
    pub may_write: bool,
    /// They may change sinks, robots and other infrastructure too.
    pub may_administer: bool,
}

/// Why somebody is not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// The code of the answer.
    pub code: StatusCode,
    /// Why, and what to do.
    pub why: String,
}
