//! The relay and the responder as their environment describes them: the variables of CDS (seed 004).

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use muster_relay_sinks::address::{Address, encoded};
use muster_types::event_sink::DEFAULT_EXCHANGE;
use serde_json::{Value, json};

/// The sink that the environment describes.
pub const SINK: &str = "environment";
/// Names under which the sink finds its addresses. What stands in the object itself can be read by every viewer.
const BROKER: &str = "MUSTER_SINK_RABBITMQ_URL";
const JOURNAL: &str = "MUSTER_SINK_REDIS_URL";
/// A pod finds its namespace here.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// What the environment says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RelayEnv {
    broker: Option<String>,
    exchange: String,
    journal: Option<String>,
    /// The namespace that counts as the server's own; in a cluster the pod's own counts.
    pub namespace: Option<String>,
    /// Kubeconfig of the cluster.
    pub kubeconfig: Option<PathBuf>,
    /// Jobs are kept in the cluster after their logs were.
    pub keep_jobs: bool,
    queue: String,
}

impl RelayEnv {
    /// What this process was given.
    pub fn of_process() -> anyhow::Result<Self> {
        let in_cluster = Path::new(NAMESPACE_FILE).exists();
        Self::read(|name| std::env::var(name).ok().filter(|value| !value.is_empty()), in_cluster)
    }

    fn read(variable: impl Fn(&str) -> Option<String>, in_cluster: bool) -> anyhow::Result<Self> {
        let or = |name: &str, usual: &str| variable(name).unwrap_or_else(|| usual.to_owned());
        let number = |name: &str, usual: &str| -> anyhow::Result<u16> {
            let text = or(name, usual);
            text.parse().with_context(|| format!("{name}={text} is no number between 0 and 65535"))
        };
        let broker = match variable("RABBITMQ_HOST") {
            None => None,
            Some(host) => {
                let scheme = if is_yes(variable("RABBITMQ_TLS")) { "amqps" } else { "amqp" };
                let port = number("RABBITMQ_PORT", if scheme == "amqps" { "5671" } else { "5672" })?;
                let user = encoded(&or("RABBITMQ_USER", "guest"));
                let password = encoded(&or("RABBITMQ_PASSWD", "guest"));
                let vhost = encoded(&or("RABBITMQ_VHOST", "/"));
                Some(format!("{scheme}://{user}:{password}@{host}:{port}/{vhost}"))
            }
        };
        let journal = match variable("REDIS_HOST") {
            None => None,
            Some(host) => {
                let port = number("REDIS_PORT", "6379")?;
                let database = number("REDIS_DB_NUM", "0")?;
                let secret =
                    variable("REDIS_PASS").map_or_else(String::new, |pass| format!(":{}@", encoded(&pass)));
                Some(format!("redis://{secret}{host}:{port}/{database}"))
            }
        };
        let exchange = or("MY_EXCHANGE", DEFAULT_EXCHANGE);
        Ok(Self {
            queue: or("MY_QUEUE", &format!("{exchange}-responder")),
            broker,
            exchange,
            journal,
            namespace: variable("NAMESPACE").filter(|_| !in_cluster),
            kubeconfig: variable("KUBE_CONFIG").map(PathBuf::from),
            keep_jobs: is_yes(variable("KEEP_JOBS")),
        })
    }

    /// A variable that sinks may name.
    pub fn variable(&self, name: &str) -> Option<String> {
        match name {
            BROKER => self.broker.clone(),
            JOURNAL => self.journal.clone(),
            _ => None,
        }
    }

    /// Where the broker and the journal are, with their usual ports. The operator named them, so no policy denies them.
    pub fn endpoints(&self) -> impl Iterator<Item = (String, u16)> {
        [&self.broker, &self.journal].into_iter().flatten().filter_map(|url| {
            let address = Address::parse(url).ok()?;
            Some((address.host, address.port?))
        })
    }

    /// The sink that is described, if one is.
    pub fn sink(&self) -> Option<Value> {
        self.broker.as_ref()?;
        let mut spec = json!({
            "amqp": {"url": format!("${{{BROKER}}}"), "exchange": self.exchange},
            "profile": "cds",
            "sources": {"kubeJobs": {}},
        });
        if self.journal.is_some() {
            spec["journal"] = json!({"redis": {"url": format!("${{{JOURNAL}}}")}});
        }
        Some(json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": "EventSink", "metadata": {"name": SINK}, "spec": spec,
        }))
    }

    /// Broker, exchange and queue of the responder.
    pub fn inbox(&self) -> anyhow::Result<(Address, &str, &str)> {
        let Some(broker) = &self.broker else {
            bail!(
                "the role responder listens to RabbitMQ: set RABBITMQ_HOST, and RABBITMQ_USER and RABBITMQ_PASSWD"
            );
        };
        let address = Address::parse(broker).map_err(|error| anyhow::anyhow!("{error}"))?;
        Ok((address, &self.exchange, &self.queue))
    }
}

fn is_yes(value: Option<String>) -> bool {
    value.is_some_and(|value| ["yes", "true", "1"].contains(&value.to_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)], in_cluster: bool) -> anyhow::Result<RelayEnv> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        RelayEnv::read(|name| find(name).map(|(_, value)| (*value).to_owned()), in_cluster)
    }

    #[test]
    fn a_broker_and_a_journal_make_a_sink_without_their_secrets_in_it() {
        let variables = [
            ("RABBITMQ_HOST", "rabbit"),
            ("RABBITMQ_USER", "me"),
            ("RABBITMQ_PASSWD", "p@ss/word"),
            ("REDIS_HOST", "redis"),
            ("REDIS_PASS", "secret"),
            ("REDIS_DB_NUM", "3"),
            ("NAMESPACE", "cds"),
        ];
        let env = read(&variables, false).unwrap();
        assert_eq!(env.variable(BROKER).as_deref(), Some("amqp://me:p%40ss%2Fword@rabbit:5672/%2F"));
        assert_eq!(env.variable(JOURNAL).as_deref(), Some("redis://:secret@redis:6379/3"));
        assert_eq!(env.namespace.as_deref(), Some("cds"));
        let endpoints: Vec<_> = env.endpoints().collect();
        assert_eq!(endpoints, [("rabbit".to_owned(), 5672), ("redis".to_owned(), 6379)]);
        let sink = env.sink().unwrap();
        assert_eq!(sink["spec"]["amqp"]["exchange"], "cdsresponder");
        assert_eq!(sink["spec"]["sources"], json!({"kubeJobs": {}}));
        assert!(!sink.to_string().contains("secret") && !sink.to_string().contains("p@ss"), "{sink}");
        assert_eq!(env.inbox().unwrap().2, "cdsresponder-responder");
        assert_eq!(read(&variables, true).unwrap().namespace, None, "a pod has a namespace of its own");
    }

    #[test]
    fn nothing_is_made_of_nothing_and_nonsense_is_named() {
        let env = read(&[], false).unwrap();
        assert_eq!((env.sink(), env.keep_jobs), (None, false));
        assert!(env.inbox().unwrap_err().to_string().contains("RABBITMQ_HOST"));
        let error = read(&[("RABBITMQ_HOST", "r"), ("RABBITMQ_PORT", "many")], false).unwrap_err();
        assert!(error.to_string().starts_with("RABBITMQ_PORT=many"), "{error}");
        assert!(read(&[("KEEP_JOBS", "Yes")], false).unwrap().keep_jobs);
    }
}
