//! Brokers that are not there, do not let us in, or are not as we want them: each is told, and mends when the broker does.

use muster_e2e::brokers::{Rabbit, free_port};
use muster_e2e::server::Server;
use muster_e2e::wait::wait_for;
use muster_egress::EgressPolicy;
use muster_ports::publisher::Publisher as _;
use muster_relay_sinks::address::Address;
use muster_relay_sinks::amqp::{AmqpPublisher, Connection};
use serde_json::json;

use crate::consumer::Consumer;
use crate::world::{LONG, make_sink, make_task, status, wait_for_reason};

/// A relay that may connect to the brokers of these tests.
const RELAY: [&str; 4] = ["--roles", "api,relay", "--egress-allow", "127.0.0.0/8,::1"];

#[test]
fn each_trouble_with_a_broker_has_its_reason() {
    let rabbit = Rabbit::start();
    let server = Server::start(&RELAY);
    let amqp = |url: String, exchange: &str| json!({"amqp": {"url": url, "exchange": exchange}});
    make_sink(&server, "nobody", &amqp(format!("amqp://127.0.0.1:{}", free_port()), ""));
    make_sink(&server, "stranger", &amqp(rabbit.url_for("guest:wrong", ""), ""));
    make_sink(&server, "nowhere", &amqp(rabbit.url_for("guest:guest", "no-such-vhost"), ""));
    make_sink(&server, "other-type", &amqp(rabbit.url(), "amq.direct"));
    make_sink(&server, "no-variable", &amqp("amqp://${MUSTER_SINK_UNSET}@127.0.0.1".to_owned(), ""));
    make_sink(&server, "no-amqp", &amqp(format!("amqp://{}", server.address()), ""));
    let said = |name: &str, reason: &str| wait_for_reason(&server, name, "Connected", reason);
    assert!(said("nobody", "Unreachable").contains("cannot be reached"));
    assert!(said("stranger", "AccessRefused").contains("ACCESS_REFUSED"));
    assert!(said("nowhere", "NotFound").contains("no-such-vhost"));
    assert!(said("other-type", "ExchangeMismatch").contains("inequivalent arg 'type'"));
    assert!(said("no-variable", "NoSuchVariable").contains("MUSTER_SINK_UNSET"));
    wait_for("a server that speaks something else is noticed", LONG, || {
        let reason = crate::world::condition(&status(&server, "no-amqp"), "Connected")["reason"].clone();
        reason == "Unreachable" || reason == "Disconnected"
    });
}

#[test]
fn what_no_queue_takes_is_kept_until_one_does() {
    let rabbit = Rabbit::start();
    let server = Server::start(&RELAY);
    make_sink(&server, "rabbit", &json!({"amqp": {"url": rabbit.url()}}));
    wait_for_reason(&server, "rabbit", "Connected", "Connected");
    make_task(&server, "a");
    let message = wait_for_reason(&server, "rabbit", "Delivering", "Unroutable");
    assert_eq!(message, "no queue is bound to cdsresponder for cds.job.starting; bind one");
    assert_eq!(status(&server, "rabbit")["backlog"], 1);
    let consumer = Consumer::start(&rabbit.url(), "late");
    wait_for("the message", LONG, || consumer.with(|heard| heard.messages > 0));
    wait_for_reason(&server, "rabbit", "Delivering", "Confirmed");
}

#[test]
fn a_broker_whose_disk_is_full_is_told_of_and_gets_everything_when_it_is_not() {
    let rabbit = Rabbit::start();
    let consumer = Consumer::start(&rabbit.url(), "full");
    let server = Server::start(&RELAY);
    make_sink(&server, "rabbit", &json!({"amqp": {"url": rabbit.url()}}));
    wait_for_reason(&server, "rabbit", "Connected", "Connected");
    rabbit.control(&["set_disk_free_limit", "900000GB"]);
    make_task(&server, "a");
    let message = wait_for_reason(&server, "rabbit", "Connected", "Blocked");
    assert!(message.contains("low on disk"), "{message}");
    assert_eq!(consumer.with(|heard| heard.messages), 0);
    rabbit.control(&["set_disk_free_limit", "1MB"]);
    wait_for("the message", LONG, || consumer.with(|heard| heard.messages > 0));
    wait_for("all is confirmed", LONG, || status(&server, "rabbit")["backlog"].is_null());
}

#[test]
fn a_broker_that_speaks_tls_is_trusted_if_its_authority_is() {
    let dir = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (dir.path().join("certificate.pem"), dir.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let rabbit = Rabbit::start_tls(&certificate, &key);
    let sink = json!({"amqp": {"url": format!("amqps://guest:guest@localhost:{}", rabbit.port())}});
    let stranger = Server::start(&RELAY);
    make_sink(&stranger, "rabbit", &sink);
    let message = wait_for_reason(&stranger, "rabbit", "Connected", "NotTrusted");
    assert!(message.contains("certificate"), "{message}");
    let trust = [("SSL_CERT_FILE", certificate.display().to_string())];
    let friend = Server::start_with(&RELAY, &trust);
    make_sink(&friend, "rabbit", &sink);
    wait_for_reason(&friend, "rabbit", "Connected", "Connected");
    make_task(&friend, "a");
    // It was spoken to: it says that nobody listens.
    wait_for_reason(&friend, "rabbit", "Delivering", "Unroutable");
}

#[tokio::test]
async fn a_connection_that_the_broker_ends_is_noticed_while_idle() {
    let mut rabbit = Rabbit::start();
    let address = Address::parse(&rabbit.url()).unwrap();
    assert!(Connection::open(&address).await.is_ok());
    let mut session =
        AmqpPublisher::new(address, "e", EgressPolicy::unrestricted().into()).open().await.unwrap();
    rabbit.kill();
    let error = session.verdicts().await.unwrap_err();
    assert_eq!(error.reason, "Disconnected");
}
