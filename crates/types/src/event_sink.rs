//! The EventSink: where messages about changes go. What may be asked for is here; what is reported is in
//! [`crate::event_sink_status`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::Duration;
use crate::event_sink_status::EventSinkStatus;
use crate::metadata::{StringMap, is_default, null_is_default};
use crate::name_rules::path_below;
use crate::names::Names;
use crate::object::{Object, Resource};

/// Where messages about changes go.
pub type EventSink = Object<EventSinkSpec>;

/// An annotation that asks for one test message; its value names the request.
pub const TEST_REQUEST: &str = "muster.dev/sink-test";
/// An annotation that asks for messages to be sent again: a revision or a time, `#`, and a name of the request.
pub const REPLAY_REQUEST: &str = "muster.dev/sink-replay";
/// The exchange of a broker if none is named.
pub const DEFAULT_EXCHANGE: &str = "cdsresponder";
/// Messages under way at once if nothing else is said.
pub const DEFAULT_WINDOW: u32 = 2000;

impl Resource for EventSinkSpec {
    type Status = EventSinkStatus;
    const NAMES: Names = Names::muster("EventSink", "eventsinks", "eventsink", &["msink"]);
    const ABOUT: &'static str = "EventSink sends a message about each transition of tasks and other objects to a \
        broker, a web hook or a file. A message is sent until it is confirmed, in order for each object, and always \
        under the same id.";

    object_text!();
}

/// Where messages go, which, and how they look. In URLs and secrets, `${NAME}` is replaced by the server's environment
/// variable of that name, which must begin with MUSTER_SINK_.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EventSinkSpec {
    /// A broker that speaks AMQP 0-9-1, such as RabbitMQ. Exactly one of amqp, webhook, mqtt and file is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amqp: Option<AmqpSink>,
    /// A web server that takes CloudEvents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookSink>,
    /// A broker that speaks MQTT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mqtt: Option<MqttSink>,
    /// A file on the server's machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FileSink>,
    /// What messages look like. Default: cds for amqp, cloudevents for the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// How a CloudEvent is written. Default: structured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<EventMode>,
    /// What is told about. Default: the work of the sink's own namespace.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub sources: Sources,
    /// Leaves out some of it. Default: nothing is left out.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub filter: SinkFilter,
    /// Where it is written down how far messages were confirmed. Default: in the server's own store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<Journal>,
    /// Messages that may be under way at once. Default: 2000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
    /// True sends nothing until it is set to false; then it goes on where it was. Default: false.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub suspend: bool,
}

/// A broker that speaks AMQP 0-9-1.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AmqpSink {
    /// Such as amqp://user:${MUSTER_SINK_PASSWORD}@broker:5672/%2f, or amqps://.
    #[serde(deserialize_with = "null_is_default")]
    pub url: String,
    /// A durable topic exchange, which is made if it is not there. Default: cdsresponder.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub exchange: String,
}

impl AmqpSink {
    /// The exchange that is meant.
    pub fn exchange(&self) -> &str {
        if self.exchange.is_empty() { DEFAULT_EXCHANGE } else { &self.exchange }
    }
}

/// A web server that takes CloudEvents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookSink {
    /// Where each message is posted to.
    #[serde(deserialize_with = "null_is_default")]
    pub url: String,
    /// Signs each message: the header Webhook-Signature holds v1, a comma, and the base64 of the HMAC-SHA256 of
    /// Webhook-Id, Webhook-Timestamp and body, joined by dots.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub secret: String,
    /// How long an answer may take. Default: 10s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// How often a message is sent that the server refuses, before it is set aside. Default: 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tries: Option<u32>,
}

/// A broker that speaks MQTT.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MqttSink {
    /// Such as mqtt://user:${MUSTER_SINK_PASSWORD}@broker:1883, or mqtts://.
    #[serde(deserialize_with = "null_is_default")]
    pub url: String,
    /// The topic that messages go below, each under a topic of its own. Default: muster/events.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub topic: String,
}

impl MqttSink {
    /// The topic that is meant.
    pub fn topic(&self) -> &str {
        if self.topic.is_empty() { "muster/events" } else { &self.topic }
    }
}

/// A file on the server's machine, one message in a line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FileSink {
    /// A path below the directory sinks of the server's data, such as audit.jsonl or team/audit.jsonl. Neither an absolute path nor one
    /// with .. is allowed, and symbolic links are not followed.
    #[serde(deserialize_with = "null_is_default")]
    pub path: String,
    /// A file larger than this many bytes is put aside and a new one begun; at least 65536. Default: 104857600.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// How many files that were put aside are kept, at most 100. Default: 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<u32>,
}

impl FileSink {
    /// Smallest size at which a file is put aside.
    pub const LEAST_MAX_BYTES: u64 = 64 << 10;
    /// Most files that are kept: all of them are renamed whenever one more is put aside.
    pub const MOST_KEPT: u32 = 100;

    /// The size that is meant. Sinks that were stored before there was a least one get that.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes.unwrap_or(100 << 20).max(Self::LEAST_MAX_BYTES)
    }

    /// The number of files that is meant, bounded in the same way.
    pub fn keep(&self) -> u32 {
        self.keep.unwrap_or(5).min(Self::MOST_KEPT)
    }

    /// Says what is wrong with a path and which ones are allowed.
    pub fn check_path(path: &str) -> Result<(), String> {
        path_below(path).map_err(|why| {
            format!(
                "{why}; name a file below the directory sinks of the server's data, such as audit.jsonl or team/audit.jsonl"
            )
        })
    }
}

words! {
    /// What messages look like.
    pub enum Profile {
        /// The messages cds.job.starting, running, retry, success and failed of CDS, about tasks.
        Cds = "cds",
        /// CloudEvents 1.0 about every transition of every kind of work.
        CloudEvents = "cloudevents",
    }
}

words! {
    /// How a CloudEvent is written.
    pub enum EventMode {
        /// Everything in one JSON document.
        Structured = "structured",
        /// The data in the body, everything else in headers.
        Binary = "binary",
    }
}

/// What is told about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Sources {
    /// Objects of this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkSource>,
    /// Jobs of the Kubernetes cluster that the server knows. If they alone are named, the server's own objects are not told
    /// about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_jobs: Option<KubeJobSource>,
}

impl Sources {
    /// True if objects of this server are told about.
    pub fn has_work(&self) -> bool {
        self.work.is_some() || self.kube_jobs.is_none()
    }
}

/// Jobs of a Kubernetes cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeJobSource {
    /// Namespace they are in. Default: the one that the server itself runs in.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub namespace: String,
    /// What is done when the cluster has forgotten changes that were not seen yet. Default: resync.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_expired: Option<OnExpired>,
}

impl KubeJobSource {
    /// What is done when the cluster has forgotten changes.
    pub fn on_expired(&self) -> OnExpired {
        self.on_expired.unwrap_or(OnExpired::Resync)
    }
}

words! {
    /// What is done when a cluster has forgotten changes that were not seen yet.
    pub enum OnExpired {
        /// All jobs are compared with what was told of them, and what was missed is told.
        Resync = "resync",
        /// What was missed is not told; what comes from now on is.
        Latest = "latest",
    }
}

/// Objects of this server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkSource {
    /// Namespaces they are in; * is all of them. Default: that of the sink.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub namespaces: Vec<String>,
}

/// Which messages are sent; each list that is empty allows all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SinkFilter {
    /// Kinds of objects, such as Task.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub kinds: Vec<String>,
    /// Last words of topics, such as failed or succeeded.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub transitions: Vec<String>,
    /// Labels that objects must have.
    #[serde(skip_serializing_if = "StringMap::is_empty", deserialize_with = "null_is_default")]
    pub labels: StringMap,
}

/// Where it is written down how far messages were confirmed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Journal {
    /// A key of a Redis server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<RedisJournal>,
}

/// A key of a Redis server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RedisJournal {
    /// Such as redis://:${MUSTER_SINK_REDIS}@redis:6379/0.
    #[serde(deserialize_with = "null_is_default")]
    pub url: String,
    /// Name of the key. Default: cdsreaper:most-recent-event.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub key: String,
}

impl RedisJournal {
    /// The key that is meant.
    pub fn key(&self) -> &str {
        if self.key.is_empty() { "cdsreaper:most-recent-event" } else { &self.key }
    }
}

impl EventSinkSpec {
    /// What messages look like.
    pub fn profile(&self) -> Profile {
        let usual = if self.amqp.is_some() { Profile::Cds } else { Profile::CloudEvents };
        self.profile.unwrap_or(usual)
    }

    /// Messages that may be under way at once.
    pub fn window(&self) -> usize {
        self.window.unwrap_or(DEFAULT_WINDOW).max(1) as usize
    }

    /// What sort of sink it is, in a word.
    pub fn sort(&self) -> &'static str {
        match self {
            Self { amqp: Some(_), .. } => "amqp",
            Self { webhook: Some(_), .. } => "webhook",
            Self { mqtt: Some(_), .. } => "mqtt",
            Self { file: Some(_), .. } => "file",
            _ => "none",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_reads_and_writes_back() {
        let example = json!({
            "apiVersion": "muster.dev/v1alpha1",
            "kind": "EventSink",
            "metadata": {"name": "rabbit", "resourceVersion": ""},
            "spec": {
                "amqp": {"url": "amqp://broker", "exchange": "e"},
                "webhook": {"url": "https://a/b", "secret": "s", "timeout": "5s", "tries": 3},
                "mqtt": {"url": "mqtt://broker", "topic": "a/b"},
                "file": {"path": "a.jsonl", "maxBytes": 1000, "keep": 2},
                "profile": "cds",
                "mode": "binary",
                "sources": {
                    "work": {"namespaces": ["*"]},
                    "kubeJobs": {"namespace": "cds", "onExpired": "latest"},
                },
                "filter": {"kinds": ["Task"], "transitions": ["failed"], "labels": {"a": "b"}},
                "journal": {"redis": {"url": "redis://localhost", "key": "k"}},
                "window": 10,
                "suspend": true,
            },
        });
        let sink: EventSink = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&sink).unwrap(), example);
    }

    #[test]
    fn a_file_that_was_stored_without_bounds_is_kept_within_them() {
        let file = FileSink { max_bytes: Some(5), keep: Some(u32::MAX), ..FileSink::default() };
        assert_eq!((file.max_bytes(), file.keep()), (65_536, 100));
        let none = FileSink { keep: Some(0), ..FileSink::default() };
        assert_eq!(none.keep(), 0);
    }

    #[test]
    fn what_is_left_out_is_as_the_seed_has_it() {
        let read = |json| serde_json::from_value::<EventSinkSpec>(json).unwrap();
        let amqp = read(json!({"amqp": {"url": "amqp://broker"}}));
        assert_eq!((amqp.profile(), amqp.sort(), amqp.window()), (Profile::Cds, "amqp", 2000));
        assert_eq!(amqp.amqp.map(|sink| sink.exchange().to_owned()).as_deref(), Some("cdsresponder"));
        assert_eq!(read(json!({"file": {"path": "a"}})).profile(), Profile::CloudEvents);
        let file = FileSink::default();
        assert_eq!((file.max_bytes(), file.keep()), (104_857_600, 5));
        assert_eq!(RedisJournal::default().key(), "cdsreaper:most-recent-event");
        let kube = read(json!({"file": {"path": "a"}, "sources": {"kubeJobs": {}}})).sources;
        assert!(!kube.has_work() && Sources::default().has_work());
        assert_eq!(kube.kube_jobs.map(|source| source.on_expired()), Some(OnExpired::Resync));
    }
}
