//! Adapters and event sinks that aim at the server's own machine and network, and at the variables of its environment.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use muster_e2e::server::Server;
use muster_e2e::wait::{SOON, wait_for};
use serde_json::{Value, json};

const OWN: &str = "/apis/muster.dev/v1alpha1";
const SINKS: &str = "/apis/muster.dev/v1alpha1/namespaces/default/eventsinks";
const MANAGED: &str = "/apis/resources.muster.dev/v1alpha1/namespaces/default";
/// A client that was told to retry waits in between.
const LONG: Duration = Duration::from_mins(1);
const FINE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
/// Ways to write an address of this machine; the path is the same for all.
const HOSTS: [&str; 5] = ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0"];

/// A server of this test that notes every connection, and what it is asked first.
struct Target {
    port: u16,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Target {
    /// Listens at an address and answers everything the same way.
    fn at(address: &str, answer: impl Into<String>) -> Self {
        let listener = TcpListener::bind((address, 0)).expect("a port is free");
        let port = listener.local_addr().expect("a listener has an address").port();
        let (heard, answer) = (Arc::<Mutex<Vec<String>>>::default(), answer.into());
        let noted = heard.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let number = {
                    let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
                    noted.push(String::new());
                    noted.len() - 1
                };
                let (noted, answer) = (noted.clone(), answer.clone());
                thread::spawn(move || {
                    let mut asked = [0; 4096];
                    let read = stream.read(&mut asked).unwrap_or_default();
                    let text = String::from_utf8_lossy(&asked[..read]).into_owned();
                    noted.lock().unwrap_or_else(PoisonError::into_inner)[number] = text;
                    // Who asked may be gone.
                    drop(stream.write_all(answer.as_bytes()));
                });
            }
        });
        Self { port, heard }
    }

    /// What it was asked, one text for each connection.
    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn object(api: &str, kind: &str, name: &str, spec: &Value) -> String {
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec}).to_string()
}

#[track_caller]
fn create(server: &Server, path: &str, object: &str) {
    let answer = server.http().post(path, object);
    assert_eq!(answer.code, 201, "{}", answer.text());
}

/// Makes a kind with an adapter that calls a URL, and one resource of it.
#[track_caller]
fn call(server: &Server, plural: &str, kind: &str, url: &str) {
    let own = "muster.dev/v1alpha1";
    let spec = json!({"names": {"kind": kind, "plural": plural}, "adapters": [plural]});
    create(server, &format!("{OWN}/resourcetypes"), &object(own, "ResourceType", plural, &spec));
    let spec = json!({"resourceType": plural, "http": {"url": url}});
    create(server, &format!("{OWN}/namespaces/default/adapters"), &object(own, "Adapter", plural, &spec));
    let resource = object("resources.muster.dev/v1alpha1", kind, "x", &json!({}));
    create(server, &format!("{MANAGED}/{plural}"), &resource);
}

/// The status of the resource, as text.
fn standing(server: &Server, plural: &str) -> String {
    server.http().get(&format!("{MANAGED}/{plural}/x")).json()["status"].to_string()
}

fn is_ready(server: &Server, plural: &str) -> bool {
    let resource = server.http().get(&format!("{MANAGED}/{plural}/x")).json();
    let conditions = resource["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

#[track_caller]
fn make_hook(server: &Server, name: &str, url: &str) {
    let spec = json!({"webhook": {"url": url}, "profile": "cds"});
    create(server, SINKS, &object("muster.dev/v1alpha1", "EventSink", name, &spec));
}

fn condition(server: &Server, sink: &str, r#type: &str) -> Value {
    let sink = server.http().get(&format!("{SINKS}/{sink}")).json();
    let conditions = sink["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == r#type).unwrap_or_default()
}

/// A letter for each host: names of kinds have no digits.
fn numbered() -> impl Iterator<Item = (String, String, &'static str)> {
    HOSTS
        .iter()
        .zip('a'..='z')
        .map(|(host, letter)| (format!("{letter}calls"), format!("Call{letter}"), *host))
}

#[test]
fn an_adapter_calls_no_loopback_address_unless_the_server_allows_it() {
    let target = Target::at("127.0.0.1", FINE);
    let server = Server::start(&["--roles", "api,engine", "--slots", "1"]);
    for (plural, kind, host) in numbered() {
        call(&server, &plural, &kind, &format!("http://{host}:{}/read", target.port));
        wait_for(&format!("{host} to be denied"), LONG, || {
            let said = standing(&server, &plural);
            said.contains("which the egress policy denies; start the server with --egress-allow ")
        });
    }
    assert_eq!(target.heard(), [""; 0], "nobody connected");
    let allowed = ["--egress-allow", "127.0.0.0/8,::1", "--egress-allow", "0.0.0.0/8"];
    let server = Server::start(&[&["--roles", "api,engine", "--slots", "1"], &allowed[..]].concat());
    for (plural, kind, host) in numbered() {
        call(&server, &plural, &kind, &format!("http://{host}:{}/{plural}", target.port));
        wait_for(&format!("{host} to be called"), LONG, || is_ready(&server, &plural));
        let path = format!("GET /{plural} HTTP/1.1\r\n");
        assert!(target.heard().iter().any(|asked| asked.starts_with(&path)), "{host}: {:?}", target.heard());
    }
}

#[test]
fn a_web_hook_reaches_no_loopback_address_unless_the_server_allows_it() {
    let target = Target::at("127.0.0.1", FINE);
    let server = Server::start(&["--roles", "api,relay"]);
    for (name, _, host) in numbered() {
        make_hook(&server, &name, &format!("http://{host}:{}/read", target.port));
        wait_for(&format!("{host} to be denied"), LONG, || {
            condition(&server, &name, "Connected")["reason"] == "EgressDenied"
        });
        let message = condition(&server, &name, "Connected")["message"].to_string();
        assert!(message.contains("; start the server with --egress-allow "), "{host}: {message}");
    }
    assert_eq!(target.heard(), [""; 0], "nobody connected");
    let allowed = ["--egress-allow", "127.0.0.0/8,::1,0.0.0.0/8"];
    let server = Server::start(&[&["--roles", "api,relay"], &allowed[..]].concat());
    for (name, _, host) in numbered() {
        make_hook(&server, &name, &format!("http://{host}:{}/read", target.port));
        wait_for(&format!("{host} to be connected to"), LONG, || {
            condition(&server, &name, "Connected")["status"] == "True"
        });
    }
    wait_for("all connections to arrive", SOON, || target.heard().len() >= HOSTS.len());
}

#[test]
fn brokers_and_the_metadata_service_are_denied_as_well_and_a_denied_name_is_not_resolved() {
    let target = Target::at("127.0.0.1", FINE);
    let server = Server::start(&["--roles", "api,relay", "--egress-deny", "*.example.org"]);
    let port = target.port;
    for (name, spec, expected) in [
        ("amqp", json!({"amqp": {"url": format!("amqp://localhost:{port}")}}), "--egress-allow "),
        ("mqtt", json!({"mqtt": {"url": format!("mqtt://127.0.0.1:{port}")}}), "--egress-allow 127.0.0.0/8"),
        (
            "metadata",
            json!({"webhook": {"url": "http://169.254.169.254/latest"}}),
            "--egress-allow 169.254.0.0/16",
        ),
        ("named", json!({"webhook": {"url": "https://hooks.example.org/in"}}), "--egress-deny *.example.org"),
    ] {
        create(&server, SINKS, &object("muster.dev/v1alpha1", "EventSink", name, &spec));
        wait_for(&format!("{name} to be denied"), LONG, || {
            condition(&server, name, "Connected")["reason"] == "EgressDenied"
        });
        let message = condition(&server, name, "Connected")["message"].to_string();
        assert!(message.contains(expected), "{name}: {message}");
    }
    assert_eq!(target.heard(), [""; 0], "nobody connected");
}

#[test]
fn a_redirect_leads_from_no_allowed_address_to_a_denied_one() {
    let denied = Target::at("127.0.0.2", FINE);
    let to = format!("http://127.0.0.2:{}/inner", denied.port);
    let redirect = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    let allowed = Target::at("127.0.0.1", redirect);
    let server =
        Server::start(&["--roles", "api,engine,relay", "--slots", "1", "--egress-allow", "127.0.0.1"]);
    let url = format!("http://127.0.0.1:{}/outer", allowed.port);
    call(&server, "calls", "Call", &url);
    wait_for("the answer to be reported", LONG, || standing(&server, "calls").contains("307"));
    make_hook(&server, "hook", &url);
    let task = json!({"container": {"command": ["true"]}});
    let task = object("muster.dev/v1alpha1", "Task", "told", &task);
    create(&server, &format!("{OWN}/namespaces/default/tasks"), &task);
    wait_for("the redirect to be refused", LONG, || {
        condition(&server, "hook", "Delivering")["reason"] == "Redirected"
    });
    assert!(!allowed.heard().is_empty());
    assert_eq!(denied.heard(), [""; 0], "nobody followed");
}

#[test]
fn a_url_reads_no_variable_of_the_server_that_is_not_exposed() {
    let target = Target::at("127.0.0.1", FINE);
    let variable = |name: &'static str, value: &str| (name, value.to_owned());
    let env = [
        variable("MUSTER_INNER_SECRET", "hunter2"),
        variable("MUSTER_ADAPTER_TOKEN", "exposed"),
        variable("MUSTER_ADAPTER_KUBECONFIG", "/nowhere/hunter2"),
    ];
    let flags = ["--roles", "api,engine,relay", "--slots", "1", "--egress-allow", "127.0.0.0/8"];
    let server = Server::start_with(&flags, &env);
    for (plural, kind, name) in [
        ("secrets", "Secret", "MUSTER_INNER_SECRET"),
        ("prefixes", "Prefix", "MUSTER_ADAPTER_TOKEN"),
        ("flags", "Flag", "KUBECONFIG"),
        ("homes", "Home", "HOME"),
    ] {
        call(&server, plural, kind, &format!("http://127.0.0.1:{}/{{{{ env.{name} }}}}", target.port));
        wait_for(&format!("{name} to be refused"), LONG, || {
            standing(&server, plural).contains("there is no field")
        });
        let said = standing(&server, plural);
        assert!(!said.contains("hunter2") && said.contains(name), "{said}");
    }
    for (url, code) in [("http://127.0.0.1/${MUSTER_INNER_SECRET}", 422), ("http://127.0.0.1/${HOME}", 422)] {
        let sink = object("muster.dev/v1alpha1", "EventSink", "sink", &json!({"webhook": {"url": url}}));
        let answer = server.http().post(SINKS, &sink);
        assert_eq!(answer.code, code, "{}", answer.text());
        assert!(answer.text().contains("MUSTER_SINK_"), "{}", answer.text());
    }
    make_hook(&server, "unset", &format!("http://127.0.0.1:{}/${{MUSTER_SINK_UNSET}}", target.port));
    wait_for("the unset variable to be named", LONG, || {
        let connected = condition(&server, "unset", "Connected");
        connected["reason"] == "NoSuchVariable"
            && connected["message"].to_string().contains("MUSTER_SINK_UNSET")
    });
    assert_eq!(target.heard(), [""; 0], "nothing was sent");
    call(&server, "exposed", "Exposed", &format!("http://127.0.0.1:{}/{{{{ env.TOKEN }}}}", target.port));
    wait_for("the exposed variable to arrive", LONG, || {
        target.heard().iter().any(|asked| asked.starts_with("GET /exposed HTTP/1.1\r\n"))
    });
}
