//! Makes what an EventSink asks for.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use muster_egress::EgressPolicy;
use muster_ports::publisher::{Journal, PublishError, Publisher, Sinks};
use muster_types::EventSink;
use muster_types::event_sink::FileSink;

use crate::address::Address;
use crate::amqp::AmqpPublisher;
use crate::file::FilePublisher;
use crate::mqtt::MqttPublisher;
use crate::redis_journal::RedisKey;
use crate::webhook::WebhookPublisher;

/// Variables that sinks may name.
const VARIABLES: &str = "MUSTER_SINK_";
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(10);
const WEBHOOK_TRIES: u32 = 10;

type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Makes publishers and journals.
pub struct SinkMaker {
    directory: PathBuf,
    lookup: Box<Lookup>,
    policy: Arc<EgressPolicy>,
}

impl SinkMaker {
    /// Files go below a directory; `lookup` reads a variable of the environment; connections go where the policy allows it.
    pub fn new(
        directory: impl Into<PathBuf>,
        lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
        policy: EgressPolicy,
    ) -> Self {
        Self { directory: directory.into(), lookup: Box::new(lookup), policy: Arc::new(policy) }
    }

    /// A text with its variables filled in.
    fn filled(&self, text: &str) -> Result<String, PublishError> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            filled.push_str(before);
            let (name, behind) =
                after.split_once('}').ok_or_else(|| PublishError::new("BadAddress", "a ${ has no }"))?;
            filled.push_str(&self.variable(name)?);
            rest = behind;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// A variable that sinks may name. One that is not set is an error: an empty text would be another address or no secret.
    fn variable(&self, name: &str) -> Result<String, PublishError> {
        let refused = |why: String| PublishError::new("NoSuchVariable", why);
        if !name.starts_with(VARIABLES) {
            let why = format!("{name} is not exposed to sinks; name a variable that begins with {VARIABLES}");
            return Err(refused(why));
        }
        let value = (self.lookup)(name).filter(|value| !value.is_empty());
        value.ok_or_else(|| refused(format!("the server has no variable {name}; set it")))
    }

    fn address(&self, url: &str) -> Result<Address, PublishError> {
        Address::parse(&self.filled(url)?)
    }

    fn file(&self, file: &FileSink) -> Arc<dyn Publisher> {
        Arc::new(FilePublisher::new(&self.directory, &file.path, file.max_bytes(), file.keep()))
    }
}

fn full_name(sink: &EventSink) -> String {
    format!("{}.{}", sink.metadata.namespace, sink.metadata.name)
}

impl Sinks for SinkMaker {
    fn publisher(&self, sink: &EventSink) -> Result<Arc<dyn Publisher>, PublishError> {
        let spec = &sink.spec;
        let policy = || self.policy.clone();
        if let Some(amqp) = &spec.amqp {
            return Ok(Arc::new(AmqpPublisher::new(self.address(&amqp.url)?, amqp.exchange(), policy())));
        }
        if let Some(webhook) = &spec.webhook {
            let timeout = webhook.timeout.map_or(WEBHOOK_TIMEOUT, muster_types::Duration::as_std);
            let (address, secret) = (self.address(&webhook.url)?, self.filled(&webhook.secret)?);
            let tries = webhook.tries.unwrap_or(WEBHOOK_TRIES);
            return Ok(Arc::new(WebhookPublisher::new(address, &secret, timeout, tries, policy())));
        }
        if let Some(mqtt) = &spec.mqtt {
            let client = format!("muster-{}", sink.metadata.uid);
            return Ok(Arc::new(MqttPublisher::new(
                self.address(&mqtt.url)?,
                mqtt.topic(),
                &client,
                policy(),
            )));
        }
        if let Some(file) = &spec.file {
            return Ok(self.file(file));
        }
        Err(PublishError::new(
            "NoTarget",
            "the sink names no place; give it one of amqp, webhook, mqtt and file",
        ))
    }

    fn dead_letters(&self, sink: &EventSink) -> Result<Arc<dyn Publisher>, PublishError> {
        let path = format!("{}.dead-letters.jsonl", full_name(sink));
        Ok(self.file(&FileSink { path, ..FileSink::default() }))
    }

    fn journal(&self, sink: &EventSink) -> Result<Option<Arc<dyn Journal>>, PublishError> {
        let redis = sink.spec.journal.as_ref().and_then(|journal| journal.redis.as_ref());
        redis
            .map(|redis| {
                let address = self.address(&redis.url)?;
                Ok(Arc::new(RedisKey::new(address, redis.key(), self.policy.clone())) as _)
            })
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in_and_others_are_out_of_reach() {
        let lookup = |name: &str| match name {
            "MUSTER_SINK_A" => Some("x".to_owned()),
            "MUSTER_SINK_EMPTY" => Some(String::new()),
            "HOME" => Some("/root".to_owned()),
            _ => None,
        };
        let maker = SinkMaker::new("/d", lookup, EgressPolicy::default());
        assert_eq!(maker.filled("a://${MUSTER_SINK_A}@${MUSTER_SINK_A}").unwrap(), "a://x@x");
        let hidden = maker.filled("${HOME}").unwrap_err();
        assert_eq!(hidden.reason, "NoSuchVariable");
        assert!(hidden.message.contains("not exposed to sinks"), "{hidden}");
        assert_eq!(maker.filled("a${MUSTER_SINK_EMPTY}").unwrap_err().reason, "NoSuchVariable");
        assert_eq!(maker.filled("${MUSTER_SINK_B}").unwrap_err().reason, "NoSuchVariable");
        assert_eq!(maker.filled("${MUSTER").unwrap_err().reason, "BadAddress");
    }
}
