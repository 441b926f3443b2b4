//! Addresses of servers: `scheme://user:password@host:port/path`.

use std::fmt;

use muster_ports::publisher::PublishError;

/// Where a server is and who we are there.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// Such as `amqps`.
    pub scheme: String,
    /// Who we are; empty if nobody.
    pub user: String,
    /// The secret.
    pub password: String,
    /// Name or number.
    pub host: String,
    /// Port, if it is named.
    pub port: Option<u16>,
    /// What follows, without the first slash; `None` if there is no slash.
    pub path: Option<String>,
}

impl fmt::Debug for Address {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{:?}", self.scheme, self.host, self.port)
    }
}

impl Address {
    /// Reads an address. What is wrong is told without repeating it: it may hold a secret.
    pub fn parse(text: &str) -> Result<Self, PublishError> {
        let bad = |why: &str| PublishError::new("BadAddress", format!("the URL cannot be read: {why}"));
        let (scheme, rest) = text.split_once("://").ok_or_else(|| bad("there is no ://"))?;
        let (server, path) = match rest.split_once('/') {
            Some((server, path)) => (server, Some(path.to_owned())),
            None => (rest, None),
        };
        let (who, place) = server.rsplit_once('@').unwrap_or(("", server));
        let (user, password) = who.split_once(':').unwrap_or((who, ""));
        let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, rest)) => (host, rest.strip_prefix(':')),
            None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
        };
        let port = port.map(|port| port.parse().map_err(|_| bad("the port is no number"))).transpose()?;
        if host.is_empty() {
            return Err(bad("there is no host"));
        }
        let decode = |text: &str| decoded(text).ok_or_else(|| bad("a % is not followed by two digits"));
        Ok(Self {
            scheme: scheme.to_owned(),
            user: decode(user)?,
            password: decode(password)?,
            host: host.to_owned(),
            port,
            path,
        })
    }

    /// The same as text again, with its secret.
    pub fn to_url(&self, usual_port: u16) -> String {
        let Self { scheme, user, password, host, .. } = self;
        let who = match (user.is_empty(), password.is_empty()) {
            (true, true) => String::new(),
            _ => format!("{}:{}@", encoded(user), encoded(password)),
        };
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let port = self.port.unwrap_or(usual_port);
        format!("{scheme}://{who}{host}:{port}/{}", self.path.as_deref().unwrap_or_default())
    }

    /// The path, decoded.
    pub fn decoded_path(&self) -> Option<String> {
        self.path.as_deref().and_then(decoded)
    }

    /// True if the connection is to be encrypted.
    pub fn is_secure(&self) -> bool {
        matches!(self.scheme.as_str(), "amqps" | "mqtts" | "https")
    }
}

/// A text as it may stand in an address.
pub fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let (high, low) = (digit(rest.next())?, digit(rest.next())?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_are_read_and_decoded() {
        let address = Address::parse("amqps://me:p%40ss%2F@broker:5671/%2f").unwrap();
        assert_eq!((address.user.as_str(), address.password.as_str()), ("me", "p@ss/"));
        assert_eq!((address.host.as_str(), address.port), ("broker", Some(5671)));
        assert_eq!(address.decoded_path().as_deref(), Some("/"));
        assert!(address.is_secure());
        let plain = Address::parse("redis://[::1]").unwrap();
        assert_eq!((plain.host.as_str(), plain.port, plain.path), ("::1", None, None));
    }

    #[test]
    fn an_address_is_written_as_it_was_read() {
        for text in ["redis://:p%40ss@redis:6380/3", "redis://[::1]:1/", "redis://me:x@h:2/"] {
            assert_eq!(Address::parse(text).unwrap().to_url(6379), text);
        }
        assert_eq!(Address::parse("redis://h").unwrap().to_url(6379), "redis://h:6379/");
    }

    #[test]
    fn what_is_encoded_is_decoded_to_the_same() {
        let text = "p@ss:/%ü word";
        assert_eq!(decoded(&encoded(text)).as_deref(), Some(text));
    }

    #[test]
    fn what_cannot_be_read_is_not_repeated() {
        for text in ["broker", "amqp://", "amqp://a:hunter2@b:port", "amqp://a:hunter2%zz@b"] {
            let error = Address::parse(text).unwrap_err();
            assert_eq!(error.reason, "BadAddress");
            assert!(!error.message.contains("hunter2"), "{error}");
        }
    }
}
