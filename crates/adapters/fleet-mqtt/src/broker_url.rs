//! Where a broker is, as people write it.

use thiserror::Error;

/// What web sockets of brokers are asked for if nothing is said.
const USUAL_PATH: &str = "/mqtt";

/// Where a broker is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerUrl {
    /// Its name.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether it is spoken to over TLS.
    pub tls: bool,
    /// The path of its web socket, if it is spoken to through one.
    pub web_path: Option<String>,
    /// User and password, if the address has them.
    pub login: Option<(String, String)>,
}

/// Why an address is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{0:?} is not the address of a broker; write mqtt://HOST:PORT, mqtts://HOST:PORT, ws://HOST:PORT/PATH or wss://…"
)]
pub struct BrokerUrlError(String);

impl BrokerUrl {
    /// A broker that is spoken to without TLS.
    pub fn plain(host: &str, port: u16) -> Self {
        Self { host: host.to_owned(), port, tls: false, web_path: None, login: None }
    }

    /// Reads `mqtt://[user:password@]host[:port]`, `mqtts://…`, `ws://…[/path]` or `wss://…`.
    pub fn parse(text: &str) -> Result<Self, BrokerUrlError> {
        // The rest may be a secret.
        let shown = || BrokerUrlError(text.rsplit('@').next().unwrap_or_default().to_owned());
        let (scheme, rest) = text.split_once("://").ok_or_else(shown)?;
        let (tls, web, usual) = match scheme {
            "mqtt" => (false, false, 1883),
            "mqtts" => (true, false, 8883),
            "ws" => (false, true, 80),
            "wss" => (true, true, 443),
            _ => return Err(shown()),
        };
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => (login.split_once(':'), place),
            None => (None, rest),
        };
        let (address, path) = match place.find('/') {
            Some(at) => place.split_at(at),
            None => (place, ""),
        };
        if !web && !matches!(path, "" | "/") {
            return Err(shown());
        }
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| shown())?),
            None => (address, usual),
        };
        if host.is_empty() {
            return Err(shown());
        }
        let path = if path.is_empty() { USUAL_PATH } else { path };
        let login = login.map(|(user, password)| (user.to_owned(), password.to_owned()));
        Ok(Self { host: host.to_owned(), port, tls, web_path: web.then(|| path.to_owned()), login })
    }

    /// What people are shown: everything but user and password.
    pub fn public(&self) -> String {
        let scheme = match (self.web_path.is_some(), self.tls) {
            (false, false) => "mqtt",
            (false, true) => "mqtts",
            (true, false) => "ws",
            (true, true) => "wss",
        };
        format!("{scheme}://{}:{}{}", self.host, self.port, self.web_path.as_deref().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let url = BrokerUrl::parse("mqtt://127.0.0.1:1884/").unwrap();
        assert_eq!(url, BrokerUrl::plain("127.0.0.1", 1884));
        let url = BrokerUrl::parse("mqtts://me:se:cret@broker.example").unwrap();
        assert_eq!((url.host.as_str(), url.port, url.tls), ("broker.example", 8883, true));
        assert_eq!(url.login, Some(("me".to_owned(), "se:cret".to_owned())));
    }

    #[test]
    fn addresses_of_web_sockets_have_a_path() {
        let url = BrokerUrl::parse("ws://broker.example").unwrap();
        assert_eq!((url.port, url.tls, url.web_path.as_deref()), (80, false, Some("/mqtt")));
        let url = BrokerUrl::parse("wss://me:secret@broker.example:8443/a/b?c=d").unwrap();
        assert_eq!((url.port, url.tls, url.web_path.as_deref()), (8443, true, Some("/a/b?c=d")));
        assert_eq!(url.public(), "wss://broker.example:8443/a/b?c=d");
    }

    #[test]
    fn what_is_no_address_is_refused_without_its_secrets() {
        for text in
            ["http://a", "mqtt://", "mqtt://a:b:c", "mqtt://u:secret@:1", "mqtt://a/path", "ws:///x", "a"]
        {
            let error = BrokerUrl::parse(text).unwrap_err().to_string();
            assert!(error.contains("mqtt://HOST:PORT") && !error.contains("secret"), "{error}");
        }
    }
}
