//! Where a database is and how it is reached: a connection string, completed by the variables that every PostgreSQL client reads.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use muster_ports::store::LogError;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::tls::{self, Files, Trust};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long what was sent may stay unanswered by the other machine.
const SILENCE: Duration = Duration::from_secs(10);

/// A database to connect to.
#[derive(Clone)]
pub struct Target {
    pub(super) config: Config,
    pub(super) tls: MakeRustlsConnect,
    place: String,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("place", &self.place).finish_non_exhaustive()
    }
}

impl fmt::Display for Target {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)
    }
}

impl Target {
    /// Reads `postgres://…` or `host=… dbname=…`. What it leaves open is taken from variables such as `PGHOST`.
    pub fn parse(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, LogError> {
        let bad = |why: String| {
            LogError::Io(format!(
                "this is not a connection string of PostgreSQL: {why}; write postgres://USER:PASSWORD@HOST:PORT/DATABASE"
            ))
        };
        let (text, own) = Options::take_from(text);
        let text = with_ports(text, &variable).map_err(bad)?;
        let mut config: Config = text.parse().map_err(|error| bad(super::errors::tell(&error)))?;
        let options = own.or(&variable);
        complete(&mut config, &variable).map_err(bad)?;
        let (mode, trust) = options.mode().map_err(bad)?;
        config.ssl_mode(mode);
        let tls = tls::connector(trust, &options.files).map_err(bad)?;
        let place = place(&config);
        Ok(Self { config, tls, place })
    }
}

/// A URL that names hosts and no port gets what the variable says: the library would take the usual one.
fn with_ports(text: String, variable: &impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let (Some((scheme, rest)), Some(port)) = (text.split_once("://"), variable("PGPORT")) else {
        return Ok(text);
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (user, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    let has_port = |host: &str| host.contains(':') && !host.ends_with(']');
    if hosts.is_empty() || hosts.split(',').any(has_port) {
        return Ok(text);
    }
    let mut ports = port.split(',').cycle();
    let mut hosts_with_ports = Vec::new();
    for host in hosts.split(',') {
        let port = ports.next().unwrap_or_default();
        let port: u16 = port.parse().map_err(|_| format!("PGPORT={port} is not a port"))?;
        hosts_with_ports.push(format!("{host}:{port}"));
    }
    Ok(format!("{scheme}://{user}{}{path}", hosts_with_ports.join(",")))
}

/// What the variables say and the string does not.
fn complete(config: &mut Config, variable: &impl Fn(&str) -> Option<String>) -> Result<(), String> {
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        for host in variable("PGHOST").unwrap_or_else(|| "localhost".into()).split(',') {
            config.host(host);
        }
    }
    if config.get_ports().is_empty()
        && let Some(ports) = variable("PGPORT")
    {
        for port in ports.split(',') {
            config.port(port.parse().map_err(|_| format!("PGPORT={port} is not a port"))?);
        }
    }
    if config.get_user().is_none() {
        let user = variable("PGUSER").or_else(|| variable("USER")).unwrap_or_else(|| "postgres".into());
        config.user(user);
    }
    if let (None, Some(password)) = (config.get_password(), variable("PGPASSWORD")) {
        config.password(password);
    }
    if let (None, Some(name)) = (config.get_dbname(), variable("PGDATABASE")) {
        config.dbname(name);
    }
    if let (None, Some(options)) = (config.get_options(), variable("PGOPTIONS")) {
        config.options(options);
    }
    if config.get_application_name().is_none() {
        config.application_name(variable("PGAPPNAME").unwrap_or_else(|| "muster".into()));
    }
    if config.get_connect_timeout().is_none() {
        let seconds = variable("PGCONNECT_TIMEOUT").and_then(|text| text.parse().ok());
        config.connect_timeout(seconds.map_or(CONNECT, Duration::from_secs));
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE);
    }
    config.keepalives_idle(SILENCE).keepalives_interval(SILENCE / 4).keepalives_retries(3);
    // Of several hosts, the one that takes writes.
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    Ok(())
}

fn place(config: &Config) -> String {
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        })
        .chain(config.get_hostaddrs().iter().map(ToString::to_string))
        .collect();
    let ports: Vec<String> = config.get_ports().iter().map(ToString::to_string).collect();
    let port = if ports.is_empty() { "5432".to_owned() } else { ports.join(",") };
    let name = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("{name} at {}:{port}", hosts.join(","))
}

/// What is said about TLS, which the client library knows only a part of.
#[derive(Debug, Default)]
struct Options {
    mode: Option<String>,
    files: Files,
}

impl Options {
    /// Takes them out of a connection string.
    fn take_from(text: &str) -> (String, Self) {
        let mut options = Self::default();
        let is_url = text.starts_with("postgres://") || text.starts_with("postgresql://");
        if is_url && let Some((base, query)) = text.split_once('?') {
            let rest: Vec<_> = query.split('&').filter(|pair| !options.take(pair)).collect();
            let text = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
            return (text, options);
        }
        if is_url {
            return (text.to_owned(), options);
        }
        let rest: Vec<_> = text.split(' ').filter(|pair| !options.take(pair)).collect();
        (rest.join(" "), options)
    }

    fn take(&mut self, pair: &str) -> bool {
        let Some((name, value)) = pair.split_once('=') else { return false };
        let value = value.replace("%2F", "/").replace("%2f", "/").replace("%20", " ");
        match name {
            "sslmode" => self.mode = Some(value),
            "sslrootcert" => self.files.authority = Some(value.into()),
            "sslcert" => self.files.certificate = Some(value.into()),
            "sslkey" => self.files.key = Some(value.into()),
            _ => return false,
        }
        true
    }

    fn or(self, variable: &impl Fn(&str) -> Option<String>) -> Self {
        let path = |name: &str| variable(name).map(PathBuf::from);
        Self {
            mode: self.mode.or_else(|| variable("PGSSLMODE")),
            files: Files {
                authority: self.files.authority.or_else(|| path("PGSSLROOTCERT")),
                certificate: self.files.certificate.or_else(|| path("PGSSLCERT")),
                key: self.files.key.or_else(|| path("PGSSLKEY")),
            },
        }
    }

    /// As every client reads it.
    fn mode(&self) -> Result<(SslMode, Trust), String> {
        let with_authority = if self.files.authority.is_some() { Trust::Authority } else { Trust::Anybody };
        match self.mode.as_deref().unwrap_or("prefer") {
            "disable" => Ok((SslMode::Disable, Trust::Anybody)),
            "allow" | "prefer" => Ok((SslMode::Prefer, Trust::Anybody)),
            "require" => Ok((SslMode::Require, with_authority)),
            "verify-ca" => Ok((SslMode::Require, Trust::Authority)),
            "verify-full" => Ok((SslMode::Require, Trust::Host)),
            other => {
                Err(format!("sslmode={other} is none of disable, prefer, require, verify-ca, verify-full"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, variables: &[(&str, &str)]) -> Result<Target, LogError> {
        let find = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Target::parse(text, find)
    }

    #[test]
    fn what_the_string_leaves_open_is_taken_from_variables() {
        let variables = [
            ("PGHOST", "db.example"),
            ("PGPORT", "6000"),
            ("PGUSER", "muster"),
            ("PGPASSWORD", "secret"),
            ("PGDATABASE", "work"),
            ("PGSSLMODE", "disable"),
        ];
        let target = parse("postgres://", &variables).unwrap();
        assert_eq!(target.to_string(), "work at db.example:6000");
        assert_eq!(target.config.get_user(), Some("muster"));
        assert_eq!(target.config.get_password(), Some(&b"secret"[..]));
        assert_eq!(target.config.get_ssl_mode(), SslMode::Disable);
        let target = parse("postgres://me@here:7000/mine", &variables).unwrap();
        assert_eq!(target.to_string(), "mine at here:7000");
        assert_eq!(target.config.get_user(), Some("me"));
        for (text, place) in [
            ("postgres://me@here/mine", "mine at here:6000"),
            ("postgres://me:p%40ss@here?dbname=mine", "mine at here:6000"),
            ("postgres://a,b/mine", "mine at a,b:6000,6000"),
            ("postgres://[::1]/mine", "mine at ::1:6000"),
            ("postgres://a:1,b:2/mine", "mine at a,b:1,2"),
            ("host=here dbname=mine", "mine at here:6000"),
        ] {
            assert_eq!(parse(text, &variables).unwrap().to_string(), place, "{text}");
        }
    }

    #[test]
    fn every_mode_of_tls_is_read_as_other_clients_read_it() {
        let mode = |text: &str| {
            let (rest, options) = Options::take_from(text);
            (rest, options.mode().unwrap())
        };
        let url = "postgres://h/d";
        assert_eq!(mode(url), (url.into(), (SslMode::Prefer, Trust::Anybody)));
        let require = mode("postgres://h/d?sslmode=require");
        assert_eq!(require, (url.into(), (SslMode::Require, Trust::Anybody)));
        let known = mode("postgres://h/d?sslmode=require&application_name=x&sslrootcert=%2Fca.pem");
        let rest = "postgres://h/d?application_name=x";
        assert_eq!(known, (rest.into(), (SslMode::Require, Trust::Authority)));
        assert_eq!(mode("host=h sslmode=verify-full").1, (SslMode::Require, Trust::Host));
        assert_eq!(mode("host=h sslmode=verify-ca").1, (SslMode::Require, Trust::Authority));
        assert_eq!(mode("host=h sslmode=disable dbname=d").0, "host=h dbname=d");
    }

    #[test]
    fn what_is_no_connection_string_is_refused_in_words() {
        for (text, word) in [
            ("postgres://h/d?sslmode=maybe", "sslmode=maybe"),
            ("postgres://h/d?colour=red", "colour"),
            ("postgres://h/d?sslmode=verify-full&sslrootcert=/nowhere.pem", "/nowhere.pem"),
        ] {
            let error = parse(text, &[]).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("postgres://USER"), "{error}");
        }
        assert!(parse("postgres://h/d", &[("PGPORT", "many")]).unwrap_err().to_string().contains("many"));
    }

    #[test]
    fn the_place_that_is_shown_has_no_password() {
        let target = parse("postgres://me:hidden@h:1/d", &[]).unwrap();
        assert!(!format!("{target} {target:?}").contains("hidden"));
    }
}
