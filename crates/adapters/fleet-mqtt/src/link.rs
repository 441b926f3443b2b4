//! How a server reaches robots.

use std::sync::Arc;
use std::time::Duration;

use muster_ports::clock::Millis;
use muster_ports::rates::Rates;
use tokio::sync::mpsc::Receiver;

use crate::broker_url::BrokerUrl;
use crate::connection::{Connection, Event, Login};
use crate::topics::Topics;

/// How long the end of a session is tried.
const TAKE_OVER: Duration = Duration::from_secs(10);
/// Messages that one robot may say in a second, for long.
const PER_SECOND: u32 = 400;
/// And in a burst.
const BURST: u32 = 1000;

/// How a server reaches robots.
#[derive(Clone)]
pub struct Link {
    /// Where the broker is.
    pub broker: BrokerUrl,
    /// What the broker is shown.
    pub login: Login,
    /// What certificates of the broker are held against, if not the authorities of this machine.
    pub trust: Option<Arc<rustls::ClientConfig>>,
    /// What topics begin with.
    pub topics: Topics,
    /// Namespace of robots.
    pub namespace: String,
    /// The broker is the one of this server.
    pub is_embedded: bool,
}

impl Link {
    /// Connects under the name of this server, with a word behind it if it does so more than once.
    pub(crate) fn open(&self, part: &str, filters: Vec<String>) -> (Connection, Receiver<Event>) {
        let login = Login { client: format!("{}{part}", self.login.client), ..self.login.clone() };
        Connection::open_brief(&self.broker, &login, filters, self.trust.clone())
    }

    /// Ends the session of a client: of two with one id the broker keeps the later, and of this one nothing is left when it goes.
    /// False if that could not be done.
    pub(crate) async fn end_session(&self, client: &str) -> bool {
        let login = Login { client: client.to_owned(), ..self.login.clone() };
        let (connection, mut events) =
            Connection::open_brief(&self.broker, &login, Vec::new(), self.trust.clone());
        let taken_over = async {
            while let Some(event) = events.recv().await {
                match event {
                    Event::Connected => return true,
                    Event::Disconnected { refused: true, why } => {
                        tracing::warn!(client, %why, "the broker does not let the server end the session of a robot");
                        return false;
                    }
                    Event::Disconnected { .. } | Event::Message { .. } => {}
                }
            }
            false
        };
        let taken_over = tokio::time::timeout(TAKE_OVER, taken_over).await.unwrap_or(false);
        drop(connection);
        taken_over
    }
}

/// How much one robot may say: a flood of one does not drown the others.
#[derive(Debug)]
pub(crate) struct Patience(Rates);

impl Default for Patience {
    fn default() -> Self {
        Self(Rates::new(PER_SECOND, BURST))
    }
}

impl Patience {
    /// Takes one message of a robot, if it has not said too much already.
    pub(crate) fn hears(&mut self, robot: &str, now: Millis) -> bool {
        let heard = self.0.take(robot, now);
        if !heard {
            tracing::debug!(robot, "a robot says too much; some of it is ignored");
        }
        heard
    }
}
