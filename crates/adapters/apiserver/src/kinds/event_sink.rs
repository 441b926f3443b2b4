//! EventSink: what may be asked for, and how it is shown.

use muster_types::EventSink;
use muster_types::condition::find_condition;
use muster_types::event_sink::{EventSinkSpec, FileSink, MqttSink, Profile};
use muster_types::name_rules;
use serde_json::json;

use crate::kind::{Column, Strategy, Writing};
use crate::refusal::Causes;

/// Most messages under way at once.
const MOST_WINDOW: u32 = 50_000;

impl Strategy for EventSinkSpec {
    /// A sink that was told nothing yet is told what comes after it, also when it is changed before that.
    fn prepare_change(old: &EventSink, new: &mut EventSink, _by: Writing<'_>) {
        if !old.spec.suspend && new.status.confirmed_revision.is_none() {
            new.status.confirmed_revision = old.metadata.resource_version.parse().ok();
        }
    }

    fn validate(sink: &EventSink, causes: &mut Causes) {
        let spec = &sink.spec;
        validate_sort(spec, causes);
        validate_urls(spec, causes);
        validate_sources(spec, causes);
        if spec.window.is_some_and(|window| window == 0 || window > MOST_WINDOW) {
            let why = format!("must be between 1 and {MOST_WINDOW}");
            causes.invalid("spec.window", spec.window.unwrap_or(0), why);
        }
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::<Self>::text("Sort", "What sort of sink it is.", |it| json!(it.spec.sort())),
            Column::<Self>::text("Profile", "What its messages look like.", |it| {
                json!(it.spec.profile().to_string())
            }),
            Column::<Self>::text("Connected", "Whether messages are taken.", |it| {
                let connected = find_condition(&it.status.conditions, "Connected");
                let word = connected.map_or("Unknown", |condition| condition.status.as_str());
                json!(if it.spec.suspend { "Paused" } else { word })
            }),
            Column::<Self>::number("Confirmed", "Messages that were confirmed.", |it| {
                json!(it.status.confirmed)
            }),
            Column::<Self>::number("Backlog", "Messages that are not confirmed yet.", |it| {
                json!(it.status.backlog)
            }),
            Column::<Self>::text("Lag", "Age of the oldest change that was not told yet.", |it| {
                json!(it.status.lag.map_or_else(|| "0s".to_owned(), |lag| lag.to_string()))
            }),
            Column::<Self>::number("Revision", "Everything up to here was told.", |it| {
                json!(it.status.confirmed_revision.unwrap_or(0))
            })
            .wide(),
            Column::<Self>::number("Dead", "Messages that were set aside.", |it| {
                json!(it.status.dead_lettered)
            })
            .wide(),
            Column::<Self>::number("Resyncs", "How often changes were forgotten untold.", |it| {
                json!(it.status.resyncs)
            })
            .wide(),
        ]
    }
}

fn validate_sort(spec: &EventSinkSpec, causes: &mut Causes) {
    let given = [
        ("amqp", spec.amqp.is_some()),
        ("webhook", spec.webhook.is_some()),
        ("mqtt", spec.mqtt.is_some()),
        ("file", spec.file.is_some()),
    ];
    let given: Vec<_> = given.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name).collect();
    match given[..] {
        [] => causes.required("spec.amqp", "one of amqp, webhook, mqtt and file is needed"),
        [_] => {}
        [_, ref rest @ ..] => {
            for name in rest {
                causes
                    .forbidden(format!("spec.{name}"), "only one of amqp, webhook, mqtt and file can be set");
            }
        }
    }
    if spec.mode.is_some() && spec.profile() == Profile::Cds {
        causes.forbidden("spec.mode", "is for the profile cloudevents");
    }
    if let Some(file) = &spec.file {
        if file.path.is_empty() {
            causes.required("spec.file.path", "name the file");
        } else if let Err(why) = FileSink::check_path(&file.path) {
            causes.invalid("spec.file.path", &file.path, why);
        }
        if let Some(bytes) = file.max_bytes.filter(|bytes| *bytes < FileSink::LEAST_MAX_BYTES) {
            let why = format!("must be at least {}", FileSink::LEAST_MAX_BYTES);
            causes.invalid("spec.file.maxBytes", bytes, why);
        }
        if let Some(keep) = file.keep.filter(|keep| *keep > FileSink::MOST_KEPT) {
            causes.invalid("spec.file.keep", keep, format!("must be no more than {}", FileSink::MOST_KEPT));
        }
    }
    if let Some(topic) = spec.mqtt.as_ref().map(MqttSink::topic)
        && topic.contains(['+', '#', '\0'])
    {
        causes.invalid("spec.mqtt.topic", topic, "a topic to publish to has no + and no #");
    }
    if spec.webhook.as_ref().is_some_and(|webhook| webhook.tries == Some(0)) {
        causes.invalid("spec.webhook.tries", 0, "must be at least 1");
    }
    if spec.amqp.as_ref().is_some_and(|amqp| amqp.exchange.len() > 255) {
        causes.invalid("spec.amqp.exchange", "…", "must be no more than 255 bytes");
    }
}

fn validate_urls(spec: &EventSinkSpec, causes: &mut Causes) {
    let redis = spec.journal.as_ref().and_then(|journal| journal.redis.as_ref());
    let urls: [(&str, Option<&String>, &[&str]); 4] = [
        ("spec.amqp.url", spec.amqp.as_ref().map(|sink| &sink.url), &["amqp://", "amqps://"]),
        ("spec.webhook.url", spec.webhook.as_ref().map(|sink| &sink.url), &["http://", "https://"]),
        ("spec.mqtt.url", spec.mqtt.as_ref().map(|sink| &sink.url), &["mqtt://", "mqtts://"]),
        ("spec.journal.redis.url", redis.map(|redis| &redis.url), &["redis://"]),
    ];
    for (field, url, schemes) in urls {
        let Some(url) = url else { continue };
        let known = schemes.iter().find_map(|scheme| url.strip_prefix(scheme));
        if known.is_none_or(str::is_empty) && !url.starts_with("${") {
            // The rest of the text may be a secret.
            let shown = url.split("://").next().filter(|_| url.contains("://")).unwrap_or("…");
            causes.invalid(field, shown, format!("must begin with {}", schemes.join(" or ")));
        }
        validate_variables(field, url, causes);
    }
    if let Some(webhook) = &spec.webhook {
        validate_variables("spec.webhook.secret", &webhook.secret, causes);
    }
}

fn validate_variables(field: &str, text: &str, causes: &mut Causes) {
    for after in text.split("${").skip(1) {
        match after.split_once('}') {
            Some((name, _)) if name.starts_with("MUSTER_SINK_") => {}
            Some((name, _)) => {
                causes.invalid(field, name, "only variables that begin with MUSTER_SINK_ can be named");
            }
            None => causes.invalid(field, "${", "the name of a variable ends with }"),
        }
    }
}

fn validate_sources(spec: &EventSinkSpec, causes: &mut Causes) {
    for (place, namespace) in spec.sources.work.iter().flat_map(|work| work.namespaces.iter().enumerate()) {
        if namespace != "*"
            && let Err(why) = name_rules::dns1123_label(namespace)
        {
            causes.invalid(format!("spec.sources.work.namespaces[{place}]"), namespace, why);
        }
    }
    let Some(jobs) = &spec.sources.kube_jobs else { return };
    if !jobs.namespace.is_empty()
        && let Err(why) = name_rules::dns1123_label(&jobs.namespace)
    {
        causes.invalid("spec.sources.kubeJobs.namespace", &jobs.namespace, why);
    }
    if spec.sources.work.is_some() && spec.journal.is_some() {
        let why = "a journal holds one place, and work and kubeJobs have one each; make two sinks";
        causes.forbidden("spec.journal", why);
    }
}
