//! What is taken in of event sinks and what is not, and how they are shown.

use serde_json::{Value, json};

use crate::server::{MERGE_PATCH, Server, path};

fn sink(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "muster.dev/v1alpha1", "kind": "EventSink", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn a_sink_that_cannot_be_is_refused_with_the_field() {
    let server = Server::start().await;
    let amqp = json!({"url": "amqp://broker"});
    for (spec, field, why) in [
        (json!({}), "spec.amqp", "one of amqp, webhook, mqtt and file"),
        (json!({"amqp": amqp, "file": {"path": "a"}}), "spec.file", "only one of"),
        (json!({"amqp": {"url": "http://broker"}}), "spec.amqp.url", "must begin with amqp:// or amqps://"),
        (json!({"webhook": {"url": ""}}), "spec.webhook.url", "must begin with http:// or https://"),
        (json!({"mqtt": {"url": "mqtt://b", "topic": "a/#"}}), "spec.mqtt.topic", "has no +"),
        (json!({"file": {}}), "spec.file.path", "name the file"),
        (json!({"file": {"path": "../muster.db"}}), "spec.file.path", "below the directory sinks"),
        (json!({"file": {"path": "a/../../muster.db"}}), "spec.file.path", "below the directory sinks"),
        (
            json!({"file": {"path": "/etc/cron.d/x"}}),
            "spec.file.path",
            "begins with a slash; name a file below",
        ),
        (json!({"file": {"path": "a", "maxBytes": 5}}), "spec.file.maxBytes", "at least 65536"),
        (json!({"file": {"path": "a", "keep": 101}}), "spec.file.keep", "no more than 100"),
        (json!({"amqp": amqp, "mode": "binary"}), "spec.mode", "profile cloudevents"),
        (json!({"amqp": amqp, "window": 0}), "spec.window", "between 1 and"),
        (json!({"amqp": {"url": "amqp://${HOME}"}}), "spec.amqp.url", "begin with MUSTER_SINK_"),
        (json!({"amqp": {"url": "amqp://${MUSTER_SINK_A"}}), "spec.amqp.url", "ends with }"),
        (
            json!({"amqp": amqp, "sources": {"work": {"namespaces": ["A"]}}}),
            "spec.sources.work.namespaces[0]",
            "lower case",
        ),
        (
            json!({"amqp": amqp, "sources": {"kubeJobs": {"namespace": "A"}}}),
            "spec.sources.kubeJobs.namespace",
            "lower case",
        ),
        (
            json!({
                "amqp": amqp, "sources": {"work": {}, "kubeJobs": {}}, "journal": {"redis": {"url": "redis://r"}},
            }),
            "spec.journal",
            "make two sinks",
        ),
        (
            json!({"amqp": amqp, "journal": {"redis": {"url": "x"}}}),
            "spec.journal.redis.url",
            "must begin with redis://",
        ),
    ] {
        let answer = server.post(&path("eventsinks"), &sink("s", &spec)).await;
        assert_eq!(answer.code, 422, "{spec}: {}", answer.json());
        let causes = &answer.json()["details"]["causes"];
        assert_eq!((&causes[0]["field"], &causes[1]), (&json!(field), &Value::Null), "{causes}");
        assert!(causes[0]["message"].as_str().unwrap().contains(why), "{causes}");
    }
}

#[tokio::test]
async fn a_sink_that_is_changed_before_it_was_told_anything_says_where_it_begins() {
    let server = Server::start().await;
    let spec = json!({"amqp": {"url": "amqp://broker"}});
    let made = server.post(&path("eventsinks"), &sink("s", &spec)).await.json();
    let begins: u64 = made["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    for window in [5, 6] {
        let change = json!({"spec": {"window": window}});
        let changed = server.patch(&path("eventsinks/s"), MERGE_PATCH, &change).await.json();
        assert_eq!(changed["status"]["confirmedRevision"], begins, "{changed}");
    }
    // A sink that was created suspended begins when it is resumed.
    let suspended = json!({"amqp": {"url": "amqp://broker"}, "suspend": true});
    server.post(&path("eventsinks"), &sink("later", &suspended)).await;
    let resumed =
        server.patch(&path("eventsinks/later"), MERGE_PATCH, &json!({"spec": {"suspend": false}})).await;
    assert!(resumed.json()["status"]["confirmedRevision"].is_null(), "{}", resumed.json());
}

#[tokio::test]
async fn a_refused_url_is_not_repeated_because_it_may_hold_a_secret() {
    let server = Server::start().await;
    let spec = json!({"amqp": {"url": "http://user:hunter2@broker"}});
    let answer = server.post(&path("eventsinks"), &sink("s", &spec)).await;
    assert!(!answer.json().to_string().contains("hunter2"), "{}", answer.json());
}
