//! Certificates of the server: short enough that a stolen key is soon worth nothing, and renewed without a client that fails or
//! a server that is started again.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use muster_e2e::brokers::free_port;
use muster_e2e::server::Server;
use muster_e2e::wait::{SOON, wait_for};
use rcgen::{CertificateParams, DnType, Issuer, KeyPair, SanType};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tempfile::TempDir;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The server reads the files of users every few seconds.
const LONG: Duration = Duration::from_mins(1);
const DAY: i64 = 24 * 3600;
const NOT_SERVED: &str = "are not served";

/// The certificate that a server shows to a client who trusts these, or why the client does not take it.
fn shown(address: &str, trusted: &[&str]) -> Result<CertificateDer<'static>, String> {
    let mut roots = RootCertStore::empty();
    for text in trusted {
        for cert in CertificateDer::pem_slice_iter(text.as_bytes()) {
            roots.add(cert.expect("a certificate as PEM")).expect("a certificate");
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    let mut client = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
    stream.set_read_timeout(Some(SOON)).expect("a socket takes a timeout");
    while client.is_handshaking() {
        client.complete_io(&mut stream).map_err(|error| error.to_string())?;
    }
    let certificates = client.peer_certificates().expect("a server shows a certificate");
    Ok(certificates[0].clone())
}

/// From when until when it is valid, in seconds.
fn validity(cert: &CertificateDer<'_>) -> (i64, i64) {
    let (_, cert) = X509Certificate::from_der(cert).expect("a certificate");
    (cert.validity().not_before.timestamp(), cert.validity().not_after.timestamp())
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    i64::try_from(since.as_secs()).expect("a time")
}

/// The authority that a kubeconfig names.
fn trusted_by(kubeconfig: &str) -> String {
    let data = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("certificate-authority-data: "));
    let bytes = BASE64_STANDARD.decode(data.expect("it names an authority")).expect("base64");
    String::from_utf8(bytes).expect("PEM")
}

fn kubeconfig_of(server: &Server) -> String {
    fs::read_to_string(server.kubeconfig()).expect("the server writes a kubeconfig")
}

fn log_of(server: &Server) -> String {
    fs::read_to_string(server.log()).expect("the server has a log")
}

/// What a client with this kubeconfig gets, or what it says is wrong.
fn get_tasks(kubeconfig: &Path) -> Result<(), String> {
    let program = std::env::var_os("MUSTER_BIN").expect("MUSTER_BIN names the program");
    let mut command = Command::new(program);
    command.arg("--kubeconfig").arg(kubeconfig).args(["get", "tasks"]);
    let output = command.output().expect("the program can be started");
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// A pair of files below a link, which is how Kubernetes shows Secrets: all files of a directory change at once.
struct Pairs {
    dir: TempDir,
}

impl Pairs {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a temporary directory can be made") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("current").join(name)
    }

    fn flags(&self) -> [String; 4] {
        let path = |name: &str| self.path(name).display().to_string();
        ["--tls-cert".to_owned(), path("cert.pem"), "--tls-key".to_owned(), path("key.pem")]
    }

    fn show(&self, name: &str, cert: &str, key: &str) {
        let dir = self.dir.path().join(name);
        fs::create_dir(&dir).expect("a directory can be made");
        fs::write(dir.join("cert.pem"), cert).expect("a file can be written");
        fs::write(dir.join("key.pem"), key).expect("a file can be written");
        let link = self.dir.path().join("next");
        symlink(&dir, &link).expect("a link can be made");
        fs::rename(&link, self.dir.path().join("current")).expect("a link can be replaced");
    }

    /// Shows a new pair and returns its certificate.
    fn show_new(&self, name: &str) -> String {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        self.show(name, &made.cert.pem(), &made.signing_key.serialize_pem());
        made.cert.pem()
    }
}

fn start(flags: &[&str], pairs: &Pairs) -> Server {
    let files = pairs.flags();
    let flags: Vec<&str> = flags.iter().copied().chain(files.iter().map(String::as_str)).collect();
    Server::start(&flags)
}

#[test]
fn a_generated_certificate_is_valid_for_ninety_days_at_most() {
    let server = Server::start(&[]);
    let authority = trusted_by(&kubeconfig_of(&server));
    let (from, until) = validity(&shown(server.address(), &[&authority]).expect("it is trusted"));
    assert!(from <= now() && now() < until, "{from} {until}");
    assert!(until - from <= 90 * DAY, "{} days", (until - from) / DAY);
    let authority = CertificateDer::from_pem_slice(authority.as_bytes()).expect("PEM");
    let (from, until) = validity(&authority);
    assert!(until - from <= 3650 * DAY, "{} days", (until - from) / DAY);
    let key = fs::metadata(server.data().join("tls-ca-key.pem")).expect("the key is kept");
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
}

#[test]
fn files_that_are_replaced_are_served_without_a_restart_and_garbage_is_not() {
    let pairs = Pairs::new();
    let one = pairs.show_new("one");
    let server = start(&[], &pairs);
    let before = shown(server.address(), &[&one]).expect("the first is served");

    let two = pairs.show_new("two");
    wait_for("the second pair to be served", LONG, || shown(server.address(), &[&two]).is_ok());
    assert_ne!(shown(server.address(), &[&two]).expect("the second is served"), before);
    wait_for("the kubeconfig to name it", SOON, || trusted_by(&kubeconfig_of(&server)) == two);
    assert_eq!(get_tasks(&server.kubeconfig()), Ok(()));

    pairs.show("garbage", "garbage", "garbage");
    wait_for("the garbage to be told", LONG, || log_of(&server).contains(NOT_SERVED));
    shown(server.address(), &[&two]).expect("the second is still served");
    let log = log_of(&server);
    let told = log.lines().find(|line| line.contains(NOT_SERVED)).expect("it was found");
    let file = pairs.path("cert.pem").display().to_string();
    assert!(told.contains(&file) && told.contains("write a certificate and its key there"), "{told}");

    let three = pairs.show_new("three");
    wait_for("the third pair to be served", LONG, || shown(server.address(), &[&three]).is_ok());
    assert_eq!(log_of(&server).matches(NOT_SERVED).count(), 1, "one change, one warning");
}

#[test]
fn the_broker_of_robots_shows_a_replaced_certificate_too() {
    let pairs = Pairs::new();
    let one = pairs.show_new("one");
    let port = free_port();
    let listen = format!("0.0.0.0:{port}");
    let server = start(&["--roles", "api,engine,bridge", "--mqtt-listen", &listen], &pairs);
    let broker = format!("127.0.0.1:{port}");
    shown(&broker, &[&one]).expect("the first is served");
    let two = pairs.show_new("two");
    wait_for("the second pair to be served", LONG, || shown(&broker, &[&two]).is_ok());
    shown(server.address(), &[&two]).expect("the API serves it too");
}

/// Replaces the certificate in a data directory by one of the same authority that ends in so many days.
fn age(data: &Path, days: i64) {
    let key = fs::read_to_string(data.join("tls-ca-key.pem")).expect("the key is kept");
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "muster");
    let issuer = Issuer::new(authority, KeyPair::from_pem(&key).expect("a key"));
    let mut leaf = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    leaf.subject_alt_names.push(SanType::IpAddress([127, 0, 0, 1].into()));
    let at = |seconds: i64| {
        let seconds = u64::try_from(seconds).expect("a time after 1970");
        rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds)
    };
    leaf.not_after = at(now() + days * DAY);
    leaf.not_before = at(now() + (days - 90) * DAY);
    let key = KeyPair::generate().expect("a key");
    let cert = leaf.signed_by(&key, &issuer).expect("a certificate");
    fs::write(data.join("tls-cert.pem"), cert.pem()).expect("a file can be written");
    fs::write(data.join("tls-key.pem"), key.serialize_pem()).expect("a file can be written");
}

#[test]
fn a_certificate_that_ends_is_renewed_at_the_start_and_copied_kubeconfigs_work() {
    let mut server = Server::start(&[]);
    let (address, data) = (server.address().to_owned(), server.data());
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let copy = dir.path().join("kubeconfig");
    fs::copy(server.kubeconfig(), &copy).expect("a file can be copied");
    let authority = trusted_by(&fs::read_to_string(&copy).expect("a kubeconfig"));

    for days in [-3, 29] {
        server.stop();
        age(&data, days);
        server.restart();
        let (_, until) = validity(&shown(&address, &[&authority]).expect("the copy trusts it"));
        assert!(until - now() > 80 * DAY, "{days}: {} days left", (until - now()) / DAY);
        assert_eq!(get_tasks(&copy), Ok(()));
    }

    server.stop();
    age(&data, 40);
    let kept = fs::read(data.join("tls-cert.pem")).expect("a certificate");
    server.restart();
    shown(&address, &[&authority]).expect("the copy trusts it");
    assert_eq!(fs::read(data.join("tls-cert.pem")).expect("a certificate"), kept, "40 days are enough");
}

#[test]
fn a_data_directory_without_the_key_of_its_authority_gets_another_one_and_says_so() {
    let mut server = Server::start(&[]);
    let before = trusted_by(&kubeconfig_of(&server));
    server.stop();
    fs::remove_file(server.data().join("tls-ca-key.pem")).expect("the key is kept");
    server.restart();
    let after = trusted_by(&kubeconfig_of(&server));
    assert_ne!(after, before);
    shown(server.address(), &[&after]).expect("the new kubeconfig trusts it");
    shown(server.address(), &[&before]).expect_err("the old one does not");
    let log = log_of(&server);
    assert_eq!(log.matches("a new certificate authority replaces").count(), 1, "{log}");
}
