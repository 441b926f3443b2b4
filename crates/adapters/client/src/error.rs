//! What can go wrong between a command and its answer, in words that say what to do next.
//!
//! Nothing here carries a token or a part of a kubeconfig: errors end up in terminals, logs and bug reports.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use hyper::StatusCode;
use serde::Deserialize;
use thiserror::Error;

/// Errors of the client.
#[derive(Debug, Error)]
pub enum ClientError {
    /// There is nothing that says which server to talk to.
    #[error(
        "no kubeconfig found (looked for {looked}); start a server with `muster up`, or name a kubeconfig with \
         --kubeconfig FILE"
    )]
    NoKubeconfig {
        /// Where one was expected.
        looked: String,
    },
    /// The data directory was named and has no kubeconfig.
    #[error(
        "{path} does not exist; `muster up` writes it when it starts with the same --data, or name a kubeconfig with \
         --kubeconfig FILE"
    )]
    NoKubeconfigInData {
        /// The file that was expected.
        path: String,
    },
    /// A kubeconfig is there but cannot be used.
    #[error("cannot use the kubeconfig {path}: {reason}")]
    BadKubeconfig {
        /// The file, or where it came from.
        path: String,
        /// Why, without any of its text.
        reason: String,
    },
    /// `--server` is not a URL.
    #[error("\"{url}\" is not the URL of a server ({reason}); write one such as https://127.0.0.1:7400")]
    BadServerUrl {
        /// What was given.
        url: String,
        /// Why.
        reason: String,
    },
    /// The connection cannot even be tried.
    #[error("cannot prepare a connection to {url}: {reason}")]
    Setup {
        /// The server.
        url: String,
        /// Why.
        reason: String,
    },
    /// Nobody answers.
    #[error(
        "no server answers at {url} ({reason}); start one with `muster up`, or name another one with --server or \
         --kubeconfig"
    )]
    Unreachable {
        /// The server.
        url: String,
        /// Why.
        reason: String,
    },
    /// Somebody answers who cannot prove to be the server.
    #[error(
        "the certificate of {url} is not trusted by {credentials} ({reason}); use the kubeconfig that belongs to this \
         server, with --kubeconfig FILE"
    )]
    Untrusted {
        /// The server.
        url: String,
        /// Why.
        reason: String,
        /// Where the trusted authority came from.
        credentials: String,
    },
    /// The server refused.
    #[error("{0}")]
    Refused(Box<Refused>),
    /// The answer is not what the API promises.
    #[error("{url} answered {what} with something else than expected ({reason}); is it a Muster server?")]
    Unintelligible {
        /// The server.
        url: String,
        /// What was asked for.
        what: String,
        /// Why.
        reason: String,
    },
    /// No resource of that name.
    #[error("the server has no resource \"{word}\"; it has {known}")]
    NoSuchResource {
        /// What was asked for.
        word: String,
        /// What there is.
        known: String,
    },
    /// No resource of that kind.
    #[error("the server has no kind {kind} in {api_version}; it has {known}")]
    NoSuchKind {
        /// The kind of the object.
        kind: String,
        /// Its API version.
        api_version: String,
        /// What there is.
        known: String,
    },
    /// An object lacks what every object has.
    #[error("{0}")]
    BadObject(String),
}

/// A request that the server refused, with its reasons.
#[derive(Debug, Clone)]
pub struct Refused {
    /// HTTP status.
    pub code: StatusCode,
    /// Machine-readable reason (`NotFound`, `Conflict`, …); empty if the answer had none.
    pub reason: String,
    /// The server's words.
    pub message: String,
    /// Which server.
    pub url: String,
    /// Where the credentials came from.
    pub credentials: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, reason, message, url, credentials } = self;
        match code.as_u16() {
            401 if message.contains("muster token") => {
                write!(f, "{url} does not accept {credentials}: {message}")
            }
            401 => write!(
                f,
                "{url} does not accept {credentials}: {message}; an admin makes a new kubeconfig with `muster token \
                 create NAME --role ROLE --as-kubeconfig`"
            ),
            _ if reason.is_empty() => write!(f, "{url} answered {code}: {message}"),
            _ => f.write_str(message),
        }
    }
}

impl ClientError {
    /// True if the object or path is not there.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(StatusCode::NOT_FOUND)
    }

    /// True if the revision asked for is forgotten and a new list is needed.
    pub fn is_expired(&self) -> bool {
        self.code() == Some(StatusCode::GONE)
    }

    /// True if fields belong to another manager, or the object changed meanwhile.
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(StatusCode::CONFLICT)
    }

    /// True if the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused(refused) => matches!(refused.code.as_u16(), 429 | 500 | 502 | 503 | 504),
            _ => false,
        }
    }

    /// The HTTP status of a refusal.
    pub fn code(&self) -> Option<StatusCode> {
        match self {
            Self::Refused(refused) => Some(refused.code),
            _ => None,
        }
    }
}

/// The parts of a `Status` object that matter here.
#[derive(Deserialize)]
struct Status {
    kind: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    reason: String,
    code: Option<u16>,
}

/// Where answers come from, for the words of errors.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub url: String,
    pub credentials: String,
}

impl Peer {
    /// Reads the body of an answer that is no success.
    pub fn refused(&self, code: StatusCode, body: &[u8]) -> ClientError {
        let status = serde_json::from_slice::<Status>(body).ok().filter(|status| status.kind == "Status");
        let (reason, message) = match status {
            Some(status) => (status.reason, status.message),
            None => (String::new(), first_line(body)),
        };
        self.refusal(code, reason, message)
    }

    /// Reads a `Status` that came in a stream.
    pub fn refused_in_stream(&self, object: &serde_json::Value) -> ClientError {
        let status = Status::deserialize(object).ok();
        let code = status.as_ref().and_then(|status| status.code);
        let code = code.and_then(|code| StatusCode::from_u16(code).ok());
        let (reason, message) = status.map(|status| (status.reason, status.message)).unwrap_or_default();
        self.refusal(code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), reason, message)
    }

    fn refusal(&self, code: StatusCode, reason: String, message: String) -> ClientError {
        let Self { url, credentials } = self.clone();
        ClientError::Refused(Box::new(Refused { code, reason, message, url, credentials }))
    }

    /// Says why a request got no answer.
    pub fn unanswered(&self, error: &(dyn StdError + 'static)) -> ClientError {
        let chain = chain(error);
        let tls = chain.iter().find_map(|link| link.downcast_ref::<rustls::Error>());
        match tls {
            Some(rustls::Error::InvalidCertificate(why)) => ClientError::Untrusted {
                url: self.url.clone(),
                reason: certificate_words(why),
                credentials: self.credentials.clone(),
            },
            Some(why) => ClientError::Unreachable { url: self.url.clone(), reason: format!("TLS: {why}") },
            None => {
                let reason = chain.last().map_or_else(|| error.to_string(), ToString::to_string);
                ClientError::Unreachable { url: self.url.clone(), reason }
            }
        }
    }

    pub fn unintelligible(&self, what: &str, reason: impl fmt::Display) -> ClientError {
        ClientError::Unintelligible {
            url: self.url.clone(),
            what: what.to_owned(),
            reason: reason.to_string(),
        }
    }
}

fn certificate_words(why: &rustls::CertificateError) -> String {
    match why {
        rustls::CertificateError::UnknownIssuer => {
            "it was issued by an authority that is not known here".to_owned()
        }
        rustls::CertificateError::Expired => "it has expired".to_owned(),
        other => other.to_string(),
    }
}

/// An error and what caused it, down to what the operating system said.
fn chain<'a>(error: &'a (dyn StdError + 'static)) -> Vec<&'a (dyn StdError + 'static)> {
    const DEEPEST: usize = 16;
    let mut links: Vec<&'a (dyn StdError + 'static)> = vec![error];
    let mut current = error;
    while links.len() < DEEPEST {
        // An I/O error shows the source of what it carries, not what it carries.
        let inner = current.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let next = match inner {
            Some(inner) => Some(inner as &'a (dyn StdError + 'static)),
            None => current.source(),
        };
        let Some(next) = next else { break };
        links.push(next);
        current = next;
    }
    links
}

/// What is worth repeating of an answer that is not a `Status`.
fn first_line(body: &[u8]) -> String {
    const MOST: usize = 200;
    let text = String::from_utf8_lossy(body);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("nothing");
    line.chars().filter(|character| !character.is_control()).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer() -> Peer {
        Peer { url: "https://h:1".into(), credentials: "the kubeconfig /k".into() }
    }

    #[test]
    fn the_servers_words_are_repeated() {
        let body = br#"{"kind":"Status","code":404,"reason":"NotFound","message":"tasks \"a\" not found"}"#;
        let error = peer().refused(StatusCode::NOT_FOUND, body);
        assert_eq!(error.to_string(), "tasks \"a\" not found");
        assert!(error.is_not_found() && !error.is_transient());
    }

    #[test]
    fn an_answer_that_is_no_status_names_server_and_code() {
        let error = peer().refused(StatusCode::BAD_GATEWAY, b"\n<html>\x1b[1m</html>\nmore");
        assert_eq!(error.to_string(), "https://h:1 answered 502 Bad Gateway: <html>[1m</html>");
        assert!(error.is_transient());
    }

    #[test]
    fn a_refused_token_names_where_it_came_from() {
        let body = br#"{"kind":"Status","reason":"Unauthorized","message":"Unauthorized: expired"}"#;
        let text = peer().refused(StatusCode::UNAUTHORIZED, body).to_string();
        assert!(text.starts_with("https://h:1 does not accept the kubeconfig /k: Unauthorized"), "{text}");
        assert!(text.contains("--as-kubeconfig"), "{text}");
    }

    #[test]
    fn a_certificate_inside_of_an_io_error_is_found() {
        let inner = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let error = peer().unanswered(&io::Error::other(inner));
        assert!(matches!(error, ClientError::Untrusted { .. }), "{error}");
    }

    #[test]
    fn a_silent_port_says_how_to_start_a_server() {
        let error = peer().unanswered(&io::Error::from(io::ErrorKind::ConnectionRefused));
        let expected = "no server answers at https://h:1 (connection refused); start one with `muster up`, or name \
                        another one with --server or --kubeconfig";
        assert_eq!(error.to_string(), expected);
    }
}
