//! Which server to talk to, and as whom: choosing and reading a kubeconfig.
//!
//! The first of these that applies is used, and the others are not looked at: the file that was named, the one in the
//! data directory, the standard one (`KUBECONFIG`, `~/.kube/config`). A data directory that was named is never passed
//! over for the standard file: what was meant for a local server must not reach a cluster.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use hyper::Uri;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Config, Error};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};

use crate::error::{ClientError, Peer};

/// Time to get a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// Where a kubeconfig may come from.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The file the user named.
    pub named: Option<PathBuf>,
    /// The file in the data directory.
    pub data: Option<PathBuf>,
    /// The user named the data directory.
    pub data_is_named: bool,
    /// URL that takes the place of the one in the kubeconfig.
    pub server: Option<String>,
}

/// What was chosen.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    File(PathBuf),
    Standard,
    /// No credentials; the server was named.
    Nothing,
}

/// A server and what it takes to talk to it.
#[derive(Clone)]
pub struct Access {
    config: Config,
    peer: Peer,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Access {
    /// Chooses and reads a kubeconfig.
    pub async fn load(sources: &Sources) -> Result<Self, ClientError> {
        let choice = choose(sources, standard().is_some(), |path| path.try_exists().unwrap_or(true))?;
        let (mut config, credentials) = match choice {
            Choice::File(path) => {
                let shown = path.display().to_string();
                let read = Kubeconfig::read_from(&path).map_err(|error| bad(&shown, &error))?;
                (configure(read, &shown).await?, format!("the kubeconfig {shown}"))
            }
            Choice::Standard => {
                let shown = standard().unwrap_or_default();
                let read = Kubeconfig::read().map_err(|error| bad(&shown, &error))?;
                (configure(read, &shown).await?, format!("the kubeconfig {shown}"))
            }
            Choice::Nothing => (Config::new(Uri::default()), "a request without a token".to_owned()),
        };
        if let Some(server) = &sources.server {
            config.cluster_url = parse_server(server)?;
        }
        config.connect_timeout = Some(CONNECT);
        // A repeated request could do its work twice; whoever asks decides.
        config.default_retry = false;
        if is_loopback(&config.cluster_url) {
            config.proxy_url = None;
        }
        if config.cluster_url.scheme_str() == Some("http") {
            // Nobody is to be trusted, and reading the authorities of this machine takes a while.
            config.root_cert.get_or_insert_default();
        }
        let peer = Peer { url: show(&config.cluster_url), credentials };
        Ok(Self { config, peer })
    }

    /// A server on this machine that speaks plain HTTP, whose token is known.
    pub fn local(url: &str, token: String, credentials: &str) -> Result<Self, ClientError> {
        let mut config = Config::new(parse_server(url)?);
        config.auth_info.token = Some(token.into());
        config.connect_timeout = Some(CONNECT);
        config.default_retry = false;
        config.root_cert = Some(Vec::new());
        let peer = Peer { url: show(&config.cluster_url), credentials: credentials.to_owned() };
        Ok(Self { config, peer })
    }

    /// The server of an attempt and the attempt's own token; `authority` (PEM) is who vouches for it if it speaks TLS, those of this
    /// machine if nothing is said.
    pub fn of_attempt(url: &str, token: String, authority: Option<&[u8]>) -> Result<Self, ClientError> {
        let Self { mut config, peer } = Self::local(url, token, "the token in MUSTER_TOKEN")?;
        if config.cluster_url.scheme_str() == Some("https") {
            let setup = |error: pem::Error| {
                let reason = format!("the authority cannot be read: {error}");
                ClientError::Setup { url: peer.url.clone(), reason }
            };
            let read = |pem| CertificateDer::pem_slice_iter(pem).map(|it| Ok(it.map_err(setup)?.to_vec()));
            config.root_cert = authority.map(|pem| read(pem).collect::<Result<_, _>>()).transpose()?;
        }
        Ok(Self { config, peer })
    }

    /// The server.
    pub fn url(&self) -> &str {
        &self.peer.url
    }

    /// The namespace of the kubeconfig's context.
    pub fn namespace(&self) -> &str {
        &self.config.default_namespace
    }

    /// The certificate authorities that the server is checked against, in PEM.
    pub fn authority(&self) -> Option<String> {
        let certificates = self.config.root_cert.as_deref()?;
        Some(certificates.iter().map(|certificate| certificate_text(certificate)).collect())
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    pub(crate) fn client(&self) -> Result<kube::Client, ClientError> {
        kube::Client::try_from(self.config.clone()).map_err(|error| {
            let reason = match &error {
                // The address of a proxy may hold a password.
                Error::ProxyProtocolDisabled { .. } | Error::ProxyProtocolUnsupported { .. } => {
                    "it would go through a proxy, which is not supported; unset HTTPS_PROXY".to_owned()
                }
                other => other.to_string(),
            };
            ClientError::Setup { url: self.peer.url.clone(), reason }
        })
    }
}

fn choose(sources: &Sources, standard: bool, exists: impl Fn(&Path) -> bool) -> Result<Choice, ClientError> {
    if let Some(path) = &sources.named {
        return Ok(Choice::File(path.clone()));
    }
    if let Some(path) = sources.data.as_ref().filter(|path| exists(path)) {
        return Ok(Choice::File(path.clone()));
    }
    let named_data = sources.data.as_ref().filter(|_| sources.data_is_named);
    if let (Some(path), None) = (named_data, &sources.server) {
        return Err(ClientError::NoKubeconfigInData { path: path.display().to_string() });
    }
    match (named_data, &sources.server) {
        (None, _) if standard => Ok(Choice::Standard),
        (_, Some(_)) => Ok(Choice::Nothing),
        (_, None) => {
            let data = sources.data.as_ref().map(|path| format!("{} and ", path.display()));
            let looked = format!("{}~/.kube/config", data.unwrap_or_default());
            Err(ClientError::NoKubeconfig { looked })
        }
    }
}

/// Where the standard kubeconfig is, if there is one.
fn standard() -> Option<String> {
    let named = env::var("KUBECONFIG").ok().filter(|value| !value.is_empty());
    named.or_else(|| {
        let path = PathBuf::from(env::var_os("HOME")?).join(".kube/config");
        path.exists().then(|| path.display().to_string())
    })
}

async fn configure(kubeconfig: Kubeconfig, shown: &str) -> Result<Config, ClientError> {
    let options = KubeConfigOptions::default();
    Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| bad(shown, &error))
}

/// Says what is wrong with a kubeconfig without quoting it: it holds secrets.
fn bad(path: &str, error: &KubeconfigError) -> ClientError {
    let reason = match error {
        KubeconfigError::ReadConfig(why, _) => why.to_string(),
        KubeconfigError::Parse(why) => match why.location() {
            Some(place) => {
                format!("it is not a valid kubeconfig, see line {} column {}", place.line(), place.column())
            }
            None => "it is not a valid kubeconfig".to_owned(),
        },
        KubeconfigError::CurrentContextNotSet => "it has no current-context".to_owned(),
        other => other.to_string(),
    };
    ClientError::BadKubeconfig { path: path.to_owned(), reason }
}

fn parse_server(text: &str) -> Result<Uri, ClientError> {
    let refuse = |reason: String| ClientError::BadServerUrl { url: text.to_owned(), reason };
    let uri: Uri = text.parse().map_err(|error: hyper::http::uri::InvalidUri| refuse(error.to_string()))?;
    match uri.scheme_str() {
        Some("http" | "https") => Ok(uri),
        _ => Err(refuse("it does not begin with https:// or http://".to_owned())),
    }
}

fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The URL as people know it; what may stand before an `@` is not for showing.
fn show(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or("https");
    let host = uri.host().unwrap_or_default();
    let port = uri.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{scheme}://{host}{port}{}", uri.path().trim_end_matches('/'))
}

fn certificate_text(certificate: &[u8]) -> String {
    const LINE: usize = 64;
    let text = base64::engine::general_purpose::STANDARD.encode(certificate);
    let mut out = String::from("-----BEGIN CERTIFICATE-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, tail) = rest.split_at(rest.len().min(LINE));
        out.push_str(line);
        out.push('\n');
        rest = tail;
    }
    out.push_str("-----END CERTIFICATE-----\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(named: Option<&str>, data_is_named: bool, server: Option<&str>) -> Sources {
        Sources {
            named: named.map(PathBuf::from),
            data: Some("/d/kubeconfig".into()),
            data_is_named,
            server: server.map(str::to_owned),
        }
    }

    #[test]
    fn a_named_file_is_used_even_if_it_is_not_there() {
        let choice = choose(&sources(Some("/k"), true, None), true, |_| false).unwrap();
        assert_eq!(choice, Choice::File("/k".into()));
    }

    #[test]
    fn the_file_of_the_data_directory_comes_before_the_standard_one() {
        let choose = |exists| choose(&sources(None, false, None), true, |_| exists).unwrap();
        assert_eq!(choose(true), Choice::File("/d/kubeconfig".into()));
        assert_eq!(choose(false), Choice::Standard);
    }

    #[test]
    fn a_named_data_directory_is_never_passed_over_for_the_standard_file() {
        let error = choose(&sources(None, true, None), true, |_| false).unwrap_err();
        assert!(matches!(error, ClientError::NoKubeconfigInData { .. }), "{error}");
        let choice = choose(&sources(None, true, Some("http://h")), true, |_| false).unwrap();
        assert_eq!(choice, Choice::Nothing);
    }

    #[test]
    fn without_any_file_the_error_says_how_to_get_one() {
        let error = choose(&sources(None, false, None), false, |_| false).unwrap_err().to_string();
        assert!(error.contains("/d/kubeconfig and ~/.kube/config"), "{error}");
        assert!(error.contains("`muster up`") && error.contains("--kubeconfig"), "{error}");
    }

    #[test]
    fn a_server_without_scheme_is_refused_with_an_example() {
        let error = parse_server("127.0.0.1:7400").unwrap_err().to_string();
        assert!(error.contains("https://127.0.0.1:7400"), "{error}");
        assert!(parse_server("http://[::1]:1/x").is_ok());
    }

    #[test]
    fn a_url_is_shown_without_what_stands_before_the_host() {
        assert_eq!(show(&"https://me:secret@h:1/a/".parse().unwrap()), "https://h:1/a");
    }

    #[tokio::test]
    async fn a_broken_kubeconfig_is_not_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        std::fs::write(&path, "users:\n- user:\n    token: muster_secret\n  broken\n x: [").unwrap();
        let error = Access::load(&Sources { named: Some(path), ..Sources::default() }).await.unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(text.contains("line") && !text.contains("secret"), "{text}");
    }

    #[tokio::test]
    async fn an_access_shows_no_token_when_debugged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        std::fs::write(
            &path,
            "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n\
             clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n\
             users: [{name: a, user: {token: muster_secret}}]\n",
        )
        .unwrap();
        let access = Access::load(&Sources { named: Some(path), ..Sources::default() }).await.unwrap();
        assert_eq!((access.url(), access.namespace()), ("http://127.0.0.1:1", "default"));
        assert!(!format!("{access:?}").contains("secret"));
    }

    #[test]
    fn an_attempt_trusts_whom_it_is_told_to() {
        let of = |url, authority: Option<&str>| {
            Access::of_attempt(url, "muster_a_secret".to_owned(), authority.map(str::as_bytes))
        };
        let access = of("https://h:1", Some(&certificate_text(&[7; 60]))).unwrap();
        assert_eq!(access.config.root_cert, Some(vec![vec![7; 60]]));
        assert!(of("https://h:1", None).unwrap().config.root_cert.is_none(), "those of this machine");
        assert!(!format!("{access:?}").contains("secret"));
    }

    #[test]
    fn certificates_become_lines_of_pem() {
        let text = certificate_text(&[7; 60]);
        let lines: Vec<_> = text.lines().map(str::len).collect();
        assert_eq!(lines, [27, 64, 16, 25]);
    }
}
