//! How a request is refused: the one place where outcomes become HTTP codes and `Status` objects.

use std::fmt;

use hyper::StatusCode;
use muster_ports::store::{CommitError, WatchError};
use serde::Serialize;
use serde_json::{Value, json};

use crate::kind::KindInfo;

/// A request that was not carried out, as the client sees it.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// HTTP status code.
    pub code: StatusCode,
    reason: &'static str,
    message: String,
    details: Box<Details>,
    /// Where a list may go on.
    continue_with: Option<Box<str>>,
}

#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    kind: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u32>,
}

/// One field that is wrong, and why.
#[derive(Debug, Clone, Serialize)]
pub struct Cause {
    reason: &'static str,
    message: String,
    field: String,
}

/// Collects what is wrong with an object.
#[derive(Debug, Default)]
pub struct Causes(Vec<Cause>);

impl Causes {
    /// The value of a field is not allowed.
    pub fn invalid(&mut self, field: impl Into<String>, value: impl fmt::Display, why: impl fmt::Display) {
        let message = format!("Invalid value: \"{value}\": {why}");
        self.0.push(Cause { reason: "FieldValueInvalid", message, field: field.into() });
    }

    /// A field must be given.
    pub fn required(&mut self, field: impl Into<String>, why: impl fmt::Display) {
        let message = format!("Required value: {why}");
        self.0.push(Cause { reason: "FieldValueRequired", message, field: field.into() });
    }

    /// Adds what is wrong with a part that is checked as if it stood alone.
    pub fn extend_below(&mut self, place: &str, found: Self) {
        self.0.extend(
            found.0.into_iter().map(|cause| Cause { field: format!("{place}.{}", cause.field), ..cause }),
        );
    }

    /// A field must not be given or changed now.
    pub fn forbidden(&mut self, field: impl Into<String>, why: impl fmt::Display) {
        let message = format!("Forbidden: {why}");
        self.0.push(Cause { reason: "FieldValueForbidden", message, field: field.into() });
    }

    /// True if nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Refusal {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: Box::default(), continue_with: None }
    }

    fn about(mut self, kind: &KindInfo, name: &str) -> Self {
        self.details.group.clone_from(&kind.group);
        self.details.kind.clone_from(&kind.plural);
        name.clone_into(&mut self.details.name);
        self
    }

    /// 400: the request itself makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// 400 with the field that could not be read.
    pub fn undecodable(field: &str, message: &str) -> Self {
        let mut refusal = Self::bad_request(message);
        if !field.is_empty() && field != "." {
            refusal.details.causes = vec![Cause {
                reason: "FieldValueInvalid",
                message: message.to_owned(),
                field: field.to_owned(),
            }];
        }
        refusal
    }

    /// 401: who are you?
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", message)
    }

    /// 403: not with this role.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    /// 404 for a path the server does not serve.
    pub fn no_such_path() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
    }

    /// 404 for something that is not an object of a kind.
    pub fn no_such_thing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    /// 404 for an object.
    pub fn not_found(kind: &KindInfo, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", kind.qualified());
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(kind, name)
    }

    /// 405: the resource does not have this verb.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    /// 406: the server cannot answer in that form.
    pub fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json, application/yaml, \
                       application/json;as=Table;v=v1;g=meta.k8s.io, \
                       application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// 409: there is one already.
    pub fn already_exists(kind: &KindInfo, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", kind.qualified());
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(kind, name)
    }

    /// The same, about one part of what was sent.
    #[must_use]
    pub fn within(mut self, part: &str) -> Self {
        self.message = format!("{part}: {}", self.message);
        self
    }

    /// 409 for a name of something that is not an object of a kind.
    pub fn taken(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message)
    }

    /// 409 for files that cannot both be there.
    pub fn clash(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "Conflict", message)
    }

    /// 409: somebody else was faster.
    pub fn conflict(kind: &KindInfo, name: &str, why: impl fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.qualified());
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(kind, name)
    }

    /// 409 of a stale resourceVersion.
    pub fn modified(kind: &KindInfo, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    /// 409 of a server-side apply, one cause per field.
    pub fn apply_conflict(message: String, fields: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut refusal = Self::new(StatusCode::CONFLICT, "Conflict", message);
        let causes = fields.into_iter().map(|(field, message)| Cause {
            reason: "FieldManagerConflict",
            message,
            field,
        });
        refusal.details.causes = causes.collect();
        refusal
    }

    /// 410: what was asked for is forgotten; list again.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// 410 for a list that cannot go on as it was, with the token that goes on in what is there now.
    pub fn expired_list(token: &str) -> Self {
        let mut refusal = Self::expired(
            "the state of the list at its first page is no longer kept; start a new list without continue, or go on with \
             metadata.continue of this answer, which shows the rest as it is now: objects that changed since the first page may \
             be missing or shown twice",
        );
        refusal.continue_with = Some(token.into());
        refusal
    }

    /// 413: too much.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// 414: the address is too long.
    pub fn uri_too_long(most: usize) -> Self {
        Self::new(StatusCode::URI_TOO_LONG, "BadRequest", format!("the URL is longer than {most} bytes"))
    }

    /// 415: the body is of a type the server does not take here.
    pub fn unsupported_media_type(found: &str, accepted: &str) -> Self {
        let message =
            format!("the body of the request was in an unknown format \"{found}\"; accepted: {accepted}");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// 422: the object is well-formed but not allowed.
    pub fn invalid(kind: &KindInfo, name: &str, causes: Causes) -> Self {
        let listed: Vec<_> =
            causes.0.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let listed = if listed.len() == 1 { listed.concat() } else { format!("[{}]", listed.join(", ")) };
        let message = format!("{}.{} \"{name}\" is invalid: {listed}", kind.kind, kind.group);
        let mut refusal = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).about(kind, name);
        refusal.details.kind.clone_from(&kind.kind);
        refusal.details.causes = causes.0;
        refusal
    }

    /// 422 for a patch that does not fit the object.
    pub fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
    }

    /// 429: slow down.
    pub fn too_many(message: impl Into<String>) -> Self {
        let mut refusal = Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
        refusal.details.retry_after_seconds = Some(1);
        refusal
    }

    /// 500: our fault.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// 503: not now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    /// 504: the client is ahead of the server.
    pub fn too_large_revision(message: String) -> Self {
        let mut refusal = Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message.clone());
        refusal.details.retry_after_seconds = Some(1);
        refusal.details.causes =
            vec![Cause { reason: "ResourceVersionTooLarge", message, field: String::new() }];
        refusal
    }

    /// What a failed commit means for the client that asked for it.
    pub fn of_commit(error: &CommitError, kind: &KindInfo, name: &str) -> Self {
        match error {
            CommitError::Conflict { found: None, .. } => Self::not_found(kind, name),
            CommitError::Conflict { .. } => Self::modified(kind, name),
            CommitError::WrittenTwice(_) => Self::internal(error.to_string()),
            CommitError::Unknown(_) => Self::outcome_unknown(error.to_string()),
            CommitError::Refused(_) | CommitError::Broken(_) | CommitError::Closed => {
                Self::unavailable(error.to_string())
            }
        }
    }

    /// 504: it happened or it did not.
    fn outcome_unknown(message: String) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message)
    }

    /// Seconds after which the client may try again, for the `Retry-After` header.
    pub fn retry_after(&self) -> Option<u32> {
        self.details.retry_after_seconds
    }

    /// The `Status` object.
    pub fn status(&self) -> Value {
        let metadata = match &self.continue_with {
            Some(token) => json!({ "continue": token }),
            None => json!({}),
        };
        json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code.as_u16(),
        })
    }
}

impl From<WatchError> for Refusal {
    fn from(error: WatchError) -> Self {
        match error {
            WatchError::Gone { .. } => Self::expired(error.to_string()),
            WatchError::Future { .. } => Self::too_large_revision(error.to_string()),
            WatchError::Closed => Self::unavailable(error.to_string()),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
