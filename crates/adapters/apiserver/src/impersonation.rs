//! `kubectl --as NAME`: an admin asks as the holder of another token would. Nobody else may, and nothing of it is ignored: a request
//! that was meant for a lesser user must not be done as a greater one.

use hyper::HeaderMap;
use muster_ports::clock::Clock;

use crate::access::{Role, User};
use crate::refusal::Refusal;
use crate::tokens::Tokens;

/// What all headers about it begin with.
const PREFIX: &str = "impersonate-";
/// The one that names the user.
const USER: &str = "impersonate-user";

/// Who is to be taken for the one who asks.
pub fn act_as(user: User, headers: &HeaderMap, tokens: &Tokens, clock: &dyn Clock) -> Result<User, Refusal> {
    let mut asked = headers.keys().filter(|name| name.as_str().starts_with(PREFIX)).peekable();
    if asked.peek().is_none() {
        return Ok(user);
    }
    if user.role != Role::Admin {
        return Err(Refusal::forbidden(format!("only an admin may act as somebody else, not {}", user.name)));
    }
    if let Some(other) = asked.find(|name| name.as_str() != USER) {
        return Err(Refusal::forbidden(format!(
            "the header {other} has no meaning here: there are no groups; name the holder of a token with --as"
        )));
    }
    let mut names = headers.get_all(USER).iter().map(|name| name.to_str().unwrap_or_default());
    let name = names.next().filter(|_| names.next().is_none()).unwrap_or_default();
    tokens.holder(name, clock).ok_or_else(|| {
        Refusal::forbidden(format!(
            "there is no valid token of the name {name:?} to act as; `muster token list` shows those there are"
        ))
    })
}
