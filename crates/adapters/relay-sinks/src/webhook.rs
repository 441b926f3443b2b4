//! A web server that takes messages, each as one request. What it answers with 2xx it keeps; anything else is tried again.
//!
//! Redirects are not followed: a message goes where it was told to go. Signatures are those of the Standard Webhooks: the header
//! `Webhook-Signature` is `v1,` and the base64 of the HMAC-SHA256 of id, timestamp and body, joined by dots.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use muster_egress::EgressPolicy;
use muster_ports::publisher::{Boxed, PublishError, Publisher, Session, Verdict};
use muster_types::Message;
use ring::hmac;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use crate::address::Address;
use crate::stream::connect;

/// Requests under way at once.
const HANDS: usize = 8;
/// As much of an answer is read, so that the connection can be used again.
const MAX_ANSWER: usize = 64 * 1024;
/// As much of an answer is told.
const TOLD: usize = 200;

/// A web server.
#[derive(Clone)]
pub struct WebhookPublisher(Arc<Target>);

struct Target {
    address: Address,
    secret: Option<hmac::Key>,
    timeout: Duration,
    tries: u32,
    policy: Arc<EgressPolicy>,
}

impl WebhookPublisher {
    /// A server; with a secret, messages are signed. A message that was refused `tries` times is set aside.
    pub fn new(
        address: Address,
        secret: &str,
        timeout: Duration,
        tries: u32,
        policy: Arc<EgressPolicy>,
    ) -> Self {
        let secret = (!secret.is_empty()).then(|| hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()));
        Self(Arc::new(Target { address, secret, timeout, tries, policy }))
    }
}

type Job = (u64, Arc<Message>);

struct WebhookSession {
    jobs: mpsc::UnboundedSender<Job>,
    verdicts: mpsc::UnboundedReceiver<(u64, Verdict)>,
    /// Ends the hands when it is dropped.
    _hands: JoinSet<()>,
}

impl Publisher for WebhookPublisher {
    fn open(&self) -> Boxed<'_, Result<Box<dyn Session>, PublishError>> {
        Box::pin(async {
            let (jobs, received) = mpsc::unbounded_channel();
            let received = Arc::new(Mutex::new(received));
            let (told, verdicts) = mpsc::unbounded_channel();
            // Whether somebody is there shows before anything is sent.
            let mut first = Some(self.0.connect().await?);
            let mut hands = JoinSet::new();
            for _ in 0..HANDS {
                hands.spawn(work(self.0.clone(), first.take(), received.clone(), told.clone()));
            }
            Ok(Box::new(WebhookSession { jobs, verdicts, _hands: hands }) as Box<dyn Session>)
        })
    }
}

impl Session for WebhookSession {
    fn send<'a>(&'a mut self, messages: &'a [(u64, Arc<Message>)]) -> Boxed<'a, Result<(), PublishError>> {
        Box::pin(async move {
            for job in messages {
                self.jobs.send(job.clone()).map_err(|_| gone())?;
            }
            Ok(())
        })
    }

    fn verdicts(&mut self) -> Boxed<'_, Result<Vec<(u64, Verdict)>, PublishError>> {
        Box::pin(async {
            let mut verdicts = vec![self.verdicts.recv().await.ok_or_else(gone)?];
            while let Ok(more) = self.verdicts.try_recv() {
                verdicts.push(more);
            }
            Ok(verdicts)
        })
    }
}

fn gone() -> PublishError {
    PublishError::new("Disconnected", "the workers of the web hook ended")
}

type Connection = SendRequest<Full<Bytes>>;

/// Posts one message after the other over one connection, which is opened again when it breaks.
async fn work(
    target: Arc<Target>,
    mut connection: Option<Connection>,
    jobs: Arc<Mutex<mpsc::UnboundedReceiver<Job>>>,
    told: mpsc::UnboundedSender<(u64, Verdict)>,
) {
    loop {
        let Some((number, message)) = jobs.lock().await.recv().await else { return };
        let posting = target.post(&mut connection, &message);
        let outcome = match tokio::time::timeout(target.timeout, posting).await {
            Ok(outcome) => outcome,
            Err(_) => Err(PublishError::new("Timeout", "the web hook did not answer in time")),
        };
        let verdict = match outcome {
            Ok(()) => Verdict::Confirmed,
            Err(error) => {
                connection = None;
                // What could not be sent says nothing about the message.
                let about_message = matches!(error.reason, "Refused" | "Redirected");
                Verdict::Refused { tries: about_message.then_some(target.tries), error }
            }
        };
        if told.send((number, verdict)).is_err() {
            return;
        }
    }
}

impl Target {
    async fn connect(&self) -> Result<Connection, PublishError> {
        let usual_port = if self.address.is_secure() { 443 } else { 80 };
        let stream = connect(&self.address, usual_port, &self.policy).await?;
        let (sender, driver) = handshake(TokioIo::new(stream))
            .await
            .map_err(|error| PublishError::new("Unreachable", format!("the web hook: {error}")))?;
        // It ends with its connection, and whoever uses that hears of it.
        tokio::spawn(async move { drop(driver.await) });
        Ok(sender)
    }

    async fn post(&self, connection: &mut Option<Connection>, message: &Message) -> Result<(), PublishError> {
        let broken =
            |error: hyper::Error| PublishError::new("Disconnected", format!("the web hook: {error}"));
        let request = self.request(message)?;
        if connection.as_ref().is_none_or(SendRequest::is_closed) {
            *connection = Some(self.connect().await?);
        }
        let Some(open) = connection else { return Err(gone()) };
        open.ready().await.map_err(broken)?;
        let (head, body) = open.send_request(request).await.map_err(broken)?.into_parts();
        let wait = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = Limited::new(body, MAX_ANSWER).collect().await.map(http_body_util::Collected::to_bytes);
        let said =
            body.as_deref().map(|body| String::from_utf8_lossy(&body[..body.len().min(TOLD)]).into_owned());
        let said = said.unwrap_or_default();
        match head.status {
            status if status.is_success() => Ok(()),
            status if status.is_redirection() => Err(PublishError::new(
                "Redirected",
                format!("the web hook answered {status}; redirects are not followed, change its URL"),
            )),
            status @ (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) => {
                let wait = wait.unwrap_or_default();
                Err(PublishError::new("Busy", format!("the web hook answered {status} {wait}")))
            }
            status => Err(PublishError::new("Refused", format!("the web hook answered {status}: {said}"))),
        }
    }

    fn request(&self, message: &Message) -> Result<Request<Full<Bytes>>, PublishError> {
        let bad =
            |error: hyper::http::Error| PublishError::new("BadAddress", format!("the web hook: {error}"));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let host = &self.address.host;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let host = self.address.port.map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
        let mut request = Request::post(format!("/{}", self.address.path.as_deref().unwrap_or_default()))
            .header(HOST, host)
            .header(USER_AGENT, "muster")
            .header(CONTENT_TYPE, message.content_type)
            .header("Webhook-Id", &message.id)
            .header("Webhook-Timestamp", now);
        if let Some(secret) = &self.secret {
            request = request.header("Webhook-Signature", sign(secret, &message.id, now, &message.body));
        }
        for (name, value) in &message.attributes {
            let name = HeaderName::try_from(format!("ce-{name}")).map_err(|error| bad(error.into()))?;
            request = request.header(name, HeaderValue::try_from(value).map_err(|error| bad(error.into()))?);
        }
        request.body(Full::new(Bytes::from(message.body.clone()))).map_err(bad)
    }
}

fn sign(secret: &hmac::Key, id: &str, now: u64, body: &[u8]) -> String {
    let mut signing = hmac::Context::with_key(secret);
    signing.update(format!("{id}.{now}.").as_bytes());
    signing.update(body);
    format!("v1,{}", STANDARD.encode(signing.sign()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_that_of_the_standard_webhooks() {
        // The example of their specification.
        let secret = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let signed = sign(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
