//! Brokers of one's own: RabbitMQ, Redis and Mosquitto in fresh directories on free ports, ended with the test that started
//! them. Each can be killed at any moment and started again with what it kept.

mod own_process;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use crate::wait::wait_for;
pub use own_process::OwnProcess;

/// An Erlang machine on a busy machine.
const SLOW: Duration = Duration::from_mins(2);

/// Ports that are given to those who ask for one: below those that connections are given.
const PORTS: std::ops::Range<u32> = 20_000..32_000;

/// A port that is free, and stays so until it is used: no connection is given it, and no test of this process. It is not tried by
/// listening there: a program that another test starts meanwhile would listen too, until it runs.
pub fn free_port() -> u16 {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    // Those who run at the same time begin at different places.
    let first = std::process::id().wrapping_mul(131);
    let tried = PORTS.map(|_| {
        let number = first.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed));
        u16::try_from(PORTS.start + number % (PORTS.end - PORTS.start)).unwrap_or_default()
    });
    let found = tried.into_iter().find(|port| !takes_connections(*port));
    found.expect("there is a free port")
}

/// A program that the harness names in a variable.
pub fn program(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable);
    assert!(path.is_some(), "{variable} must name a program; `cargo xtask test` sets it");
    path.unwrap_or_default().into()
}

/// True if somebody listens there.
pub fn takes_connections(port: u16) -> bool {
    std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
}

fn answers_ping(port: u16) -> bool {
    use std::io::{Read as _, Write as _};
    let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", port)) else { return false };
    let mut answer = [0; 5];
    stream.write_all(b"PING\r\n").is_ok() && stream.read_exact(&mut answer).is_ok() && answer == *b"+PONG"
}

fn file(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, text).expect("a file can be written");
    path
}

/// A RabbitMQ.
pub struct Rabbit {
    // Before the directory it works in.
    process: OwnProcess,
    _names: OwnProcess,
    port: u16,
    names_port: u16,
    dir: TempDir,
}

impl Rabbit {
    /// Starts one.
    pub fn start() -> Self {
        Self::start_with(|port| format!("listeners.tcp.1 = 127.0.0.1:{port}\n"))
    }

    /// Starts one that speaks TLS alone, with a certificate and its key in two files.
    pub fn start_tls(certificate: &Path, key: &Path) -> Self {
        Self::start_with(|port| {
            let (certificate, key) = (certificate.display(), key.display());
            format!(
                "listeners.tcp = none\nlisteners.ssl.1 = 127.0.0.1:{port}\nssl_options.cacertfile = {certificate}\n\
                 ssl_options.certfile = {certificate}\nssl_options.keyfile = {key}\nssl_options.verify = verify_none\n"
            )
        })
    }

    fn start_with(listen: impl Fn(u16) -> String) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let (port, names_port, own_port) = (free_port(), free_port(), free_port());
        let mut names = Command::new("epmd");
        names.args(["-port", &names_port.to_string(), "-address", "127.0.0.1"]);
        let names = OwnProcess::start(names, dir.path(), "epmd");
        wait_for("the names of Erlang", SLOW, || takes_connections(names_port));
        let place = dir.path();
        let config = format!("{}log.console = true\nlog.console.level = warning\n", listen(port));
        let mut rabbit = Command::new(program("MUSTER_RABBITMQ"));
        rabbit
            .env("RABBITMQ_NODENAME", format!("muster{port}@localhost"))
            .env("RABBITMQ_CONFIG_FILE", file(place, "rabbitmq.conf", &config))
            .env("RABBITMQ_DIST_PORT", own_port.to_string())
            .env("RABBITMQ_MNESIA_BASE", place.join("mnesia"))
            .env("RABBITMQ_LOG_BASE", place.join("log"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", file(place, "enabled_plugins", "[].\n"))
            .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-kernel inet_dist_use_interface {127,0,0,1}")
            // The script becomes the broker, whose id is then the one that was started.
            .env("RUNNING_UNDER_SYSTEMD", "true")
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("ERL_EPMD_PORT", names_port.to_string())
            .env("HOME", place);
        let process = OwnProcess::start(rabbit, place, "rabbitmq");
        let rabbit = Self { process, _names: names, port, names_port, dir };
        rabbit.wait();
        rabbit
    }

    /// Has `rabbitmqctl` do something.
    pub fn control(&self, arguments: &[&str]) {
        let tool = program("MUSTER_RABBITMQ").with_file_name("rabbitmqctl");
        let done = Command::new(tool)
            .args(["--node", &format!("muster{}@localhost", self.port)])
            .args(arguments)
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("ERL_EPMD_PORT", self.names_port.to_string())
            .env("HOME", self.dir.path())
            .output()
            .expect("rabbitmqctl can be started");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "rabbitmqctl {}: {said}", arguments.join(" "));
    }

    fn wait(&self) {
        wait_for("RabbitMQ", SLOW, || {
            self.process.assert_alive();
            takes_connections(self.port)
        });
    }

    /// `amqp://…` for the user guest.
    pub fn url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}", self.port)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The same for somebody else.
    pub fn url_for(&self, who: &str, vhost: &str) -> String {
        format!("amqp://{who}@127.0.0.1:{}/{vhost}", self.port)
    }

    /// Ends it at once, as a power cut would.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again.
    pub fn restart(&mut self) {
        self.process.restart();
        self.wait();
    }
}

/// A Redis that keeps everything at once.
pub struct Redis {
    process: OwnProcess,
    port: u16,
    _dir: TempDir,
}

impl Redis {
    /// Starts one.
    pub fn start() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let port = free_port();
        let mut redis = Command::new(program("MUSTER_REDIS"));
        redis.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""]);
        redis.args(["--appendonly", "yes", "--appendfsync", "always", "--dir"]).arg(dir.path());
        let process = OwnProcess::start(redis, dir.path(), "redis");
        let redis = Self { process, port, _dir: dir };
        redis.wait();
        redis
    }

    fn wait(&self) {
        // After a start it takes connections before it has read what it kept.
        wait_for("Redis", SLOW, || answers_ping(self.port));
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `redis://…`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again.
    pub fn restart(&mut self) {
        self.process.restart();
        self.wait();
    }
}

/// A Mosquitto.
pub struct Mosquitto {
    process: OwnProcess,
    port: u16,
    dir: TempDir,
}

impl Mosquitto {
    /// Starts one that takes anybody.
    pub fn start() -> Self {
        Self::start_with(|_, _| "allow_anonymous true\nmax_queued_messages 0\n".to_owned())
    }

    /// Starts one with a configuration, made for its port and its directory; where it listens goes before it.
    pub fn start_with(configure: impl FnOnce(u16, &Path) -> String) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let port = free_port();
        let config = format!("listener {port} 127.0.0.1\n{}", configure(port, dir.path()));
        let mut mosquitto = Command::new(program("MUSTER_MOSQUITTO"));
        mosquitto.arg("-c").arg(file(dir.path(), "mosquitto.conf", &config));
        let process = OwnProcess::start(mosquitto, dir.path(), "mosquitto");
        let mosquitto = Self { process, port, dir };
        mosquitto.wait();
        mosquitto
    }

    fn wait(&self) {
        wait_for("Mosquitto", SLOW, || {
            self.process.assert_alive();
            takes_connections(self.port)
        });
    }

    /// Where it works.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again.
    pub fn restart(&mut self) {
        self.process.restart();
        self.wait();
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}
