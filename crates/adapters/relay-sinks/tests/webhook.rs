//! A web hook as a sink: what it keeps, what it refuses, and what it does to whoever sends.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use muster_egress::EgressPolicy;
use muster_ports::publisher::conformance::{Subject, all, message};
use muster_ports::publisher::{PublishError, Publisher, Verdict};
use muster_relay_sinks::WebhookPublisher;
use muster_relay_sinks::address::Address;
use tokio::net::TcpListener;
use tokio::sync::Mutex;

/// A policy for the servers of these tests.
fn allowed() -> Arc<EgressPolicy> {
    Arc::new(EgressPolicy::new(vec!["127.0.0.0/8".parse().expect("a range")], Vec::new()))
}

type Heard = Arc<Mutex<Vec<(hyper::HeaderMap, Bytes)>>>;

/// A server that answers every request the same way, or never.
struct Hook {
    url: String,
    heard: Heard,
}

impl Hook {
    async fn start(code: Option<u16>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/in/box?a=b", listener.local_addr().expect("an address"));
        let heard = Heard::default();
        let kept = heard.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let kept = kept.clone();
                let answer = service_fn(move |request: Request<Incoming>| {
                    let kept = kept.clone();
                    async move {
                        assert_eq!(request.uri().to_string(), "/in/box?a=b");
                        let (parts, body) = request.into_parts();
                        let body =
                            body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
                        kept.lock().await.push((parts.headers, body));
                        let Some(code) = code else { return std::future::pending().await };
                        let answer =
                            Response::builder().status(code).header("Location", "http://127.0.0.1:1/");
                        Ok::<_, Infallible>(
                            answer.body(Full::new(Bytes::from_static(b"why"))).expect("an answer"),
                        )
                    }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer),
                );
            }
        });
        Self { url, heard }
    }

    fn publisher(&self) -> WebhookPublisher {
        let address = Address::parse(&self.url).expect("an address");
        WebhookPublisher::new(address, "secret", Duration::from_millis(500), 3, allowed())
    }

    async fn verdict(&self) -> Verdict {
        let mut session = self.publisher().open().await.expect("somebody listens");
        session.send(&[(1, message("a", "a"))]).await.expect("it is handed over");
        session.verdicts().await.expect("a verdict").remove(0).1
    }
}

impl Subject for Hook {
    fn publisher(&self) -> Arc<dyn Publisher> {
        Arc::new(self.publisher())
    }

    async fn arrived(&self, _least: usize) -> Vec<String> {
        let heard = self.heard.lock().await;
        let id = |headers: &hyper::HeaderMap| headers["Webhook-Id"].to_str().unwrap_or_default().to_owned();
        heard.iter().map(|(headers, _)| id(headers)).collect()
    }
}

#[tokio::test]
async fn it_does_what_every_publisher_must() {
    all(&Hook::start(Some(204)).await).await;
}

#[tokio::test]
async fn a_message_is_signed_and_carries_its_attributes() {
    let hook = Hook::start(Some(200)).await;
    assert_eq!(hook.verdict().await, Verdict::Confirmed);
    let heard = hook.heard.lock().await;
    let (headers, body) = &heard[0];
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["ce-id"], "a");
    assert!(headers["Webhook-Signature"].to_str().unwrap().starts_with("v1,"));
    assert_eq!(body, "{\"job-id\":\"a\"}");
}

#[tokio::test]
async fn each_answer_that_is_no_success_has_its_reason() {
    for (code, reason, counts) in [
        (500, "Refused", true),
        (400, "Refused", true),
        (429, "Busy", false),
        (503, "Busy", false),
        (302, "Redirected", true),
    ] {
        let verdict = Hook::start(Some(code)).await.verdict().await;
        let Verdict::Refused { error, tries } = verdict else { panic!("{code}: {verdict:?}") };
        assert_eq!((error.reason, tries.is_some()), (reason, counts), "{code}: {error}");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_a_timeout() {
    let verdict = Hook::start(None).await.verdict().await;
    assert!(
        matches!(&verdict, Verdict::Refused { error, tries: None } if error.reason == "Timeout"),
        "{verdict:?}"
    );
}

#[tokio::test]
async fn where_nobody_listens_nothing_is_opened() {
    let address = Address::parse("http://127.0.0.1:1/").unwrap();
    let publisher = WebhookPublisher::new(address, "", Duration::from_secs(1), 1, allowed());
    let error: PublishError = publisher.open().await.err().unwrap();
    assert_eq!(error.reason, "Unreachable");
}

#[tokio::test]
async fn a_server_that_the_policy_denies_is_not_connected_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0", "2130706433"] {
        let address = Address::parse(&format!("http://{host}:{port}/")).unwrap();
        let policy = Arc::new(EgressPolicy::default());
        let publisher = WebhookPublisher::new(address, "", Duration::from_secs(1), 1, policy);
        let error: PublishError = publisher.open().await.err().unwrap();
        assert_eq!(error.reason, "EgressDenied", "{host}: {error}");
        assert!(error.message.contains("--egress-allow "), "{host}: {error}");
    }
    let waiting = std::future::poll_fn(|context| match listener.poll_accept(context) {
        std::task::Poll::Pending => std::task::Poll::Ready(None),
        std::task::Poll::Ready(accepted) => std::task::Poll::Ready(Some(accepted)),
    });
    assert!(waiting.await.is_none(), "nobody connected");
}
