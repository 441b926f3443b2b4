//! Calls of URLs, against small servers of this test.

use std::sync::Arc;
use std::time::Duration;

use muster_egress::EgressPolicy;
use muster_outbound::LiveOutbound;
use muster_ports::outbound::{HttpCall, Outbound as _, OutboundCall, Ticket};
use muster_types::adapter_action::HttpMethod;
use muster_types::metadata::StringMap;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// A server that takes one request and answers it; what it was asked is returned.
async fn serve_once(answer: &'static str) -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let asked = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let mut asked = Vec::new();
        let mut part = [0; 4096];
        loop {
            let read = stream.read(&mut part).await.expect("a request");
            asked.extend_from_slice(&part[..read]);
            let text = String::from_utf8_lossy(&asked).to_lowercase();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.trim().parse().expect("a length")) {
                break;
            }
        }
        stream.write_all(answer.as_bytes()).await.expect("an answer");
        String::from_utf8_lossy(&asked).into_owned()
    });
    (format!("http://{address}"), asked)
}

fn get(url: String) -> HttpCall {
    let (method, headers) = (HttpMethod::Get, StringMap::new());
    HttpCall { method, url, headers, body: None, timeout: Duration::from_secs(20) }
}

async fn call(what: OutboundCall) -> Result<Value, String> {
    call_within(what, EgressPolicy::new(vec!["127.0.0.0/8".parse().expect("a range")], Vec::new())).await
}

async fn call_within(call: OutboundCall, policy: EgressPolicy) -> Result<Value, String> {
    // An error says that another test did it before.
    drop(rustls::crypto::ring::default_provider().install_default());
    let (outbound, mut answers) = LiveOutbound::new(None, Arc::new(policy));
    let ticket = Ticket { uid: "u".into(), adapter: "dns".into(), number: 3 };
    outbound.call(ticket.clone(), call);
    let answer = answers.recv().await.expect("one answer");
    assert_eq!(answer.ticket, ticket);
    answer.answer
}

#[tokio::test]
async fn an_answer_is_a_document_with_its_status_headers_and_body() {
    let (url, asked) =
        serve_once("HTTP/1.1 202 Accepted\r\nContent-Length: 9\r\nX-Mood: good\r\n\r\n{\"a\": 1} ").await;
    let mut wanted = get(format!("{url}/zones/x?dry=1"));
    wanted.method = HttpMethod::Put;
    wanted.headers.insert("Authorization".to_owned(), "Bearer secret".to_owned());
    wanted.body = Some(json!({"zone": "x"}));
    let answer = call(OutboundCall::Http(wanted)).await.unwrap();
    assert_eq!(answer["status"], 202);
    assert_eq!(answer["headers"]["x-mood"], "good");
    assert_eq!(answer["body"], json!({"a": 1}));
    let asked = asked.await.unwrap();
    assert!(asked.starts_with("PUT /zones/x?dry=1 HTTP/1.1\r\n"), "{asked}");
    assert!(asked.to_lowercase().contains("authorization: bearer secret\r\n"), "{asked}");
    assert!(asked.to_lowercase().contains("content-type: application/json\r\n"), "{asked}");
    assert!(asked.ends_with("{\"zone\":\"x\"}"), "{asked}");
}

#[tokio::test]
async fn text_stays_text_and_failures_are_answers_too() {
    let (url, _asked) = serve_once("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnope").await;
    let answer = call(OutboundCall::Http(get(url))).await.unwrap();
    assert_eq!((&answer["status"], &answer["body"]), (&json!(404), &json!("nope")));
}

#[tokio::test]
async fn what_cannot_be_called_says_why() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}/", listener.local_addr().unwrap());
    let mut slow = get(silent.clone());
    slow.timeout = Duration::from_millis(50);
    assert_eq!(call(OutboundCall::Http(slow)).await.unwrap_err(), format!("{silent}: no answer within 50ms"));
    drop(listener);
    let refused = call(OutboundCall::Http(get(silent.clone()))).await.unwrap_err();
    assert!(refused.starts_with(&silent), "{refused}");
    let nowhere = call(OutboundCall::Http(get("zones".into()))).await.unwrap_err();
    assert!(nowhere.starts_with("zones: "), "{nowhere}");
}

#[tokio::test]
async fn without_a_cluster_manifests_say_what_to_do() {
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let why = call(OutboundCall::Apply(manifest)).await.unwrap_err();
    assert_eq!(why, "this server knows no cluster; start it with --adapter-kubeconfig FILE");
}

#[tokio::test]
async fn a_server_that_the_policy_denies_is_not_connected_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0", "2130706433", "0x7f.1"] {
        // TLS knows no names that are numbers.
        let schemes =
            if host.starts_with('0') || host.starts_with("213") { &["http"][..] } else { &["http", "https"] };
        for scheme in schemes {
            let wanted = OutboundCall::Http(get(format!("{scheme}://{host}:{port}/a?key=secret")));
            let why = call_within(wanted, EgressPolicy::default()).await.unwrap_err();
            assert!(why.contains("; start the server with --egress-allow "), "{why}");
            assert!(why.starts_with(&format!("{scheme}://{host}:{port}/a: ")), "{why}");
            assert!(!why.contains("secret"), "{why}");
        }
    }
    let waiting = std::future::poll_fn(|context| match listener.poll_accept(context) {
        std::task::Poll::Pending => std::task::Poll::Ready(None),
        std::task::Poll::Ready(accepted) => std::task::Poll::Ready(Some(accepted)),
    });
    assert!(waiting.await.is_none(), "nobody connected");
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let (url, _asked) =
        serve_once("HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n")
            .await;
    let answer = call(OutboundCall::Http(get(url))).await.unwrap();
    assert_eq!(
        (&answer["status"], &answer["headers"]["location"]),
        (&json!(302), &json!("http://169.254.169.254/"))
    );
}
