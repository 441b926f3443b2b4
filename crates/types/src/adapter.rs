//! The Adapter: brings managed resources of one type to what their specs say, and reports how they stand.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::adapter_action::{HttpAction, ManifestAction};
use crate::condition::Condition;
use crate::duration::Duration;
use crate::metadata::{is_default, null_is_default};
use crate::names::Names;
use crate::object::{Object, Resource};
use crate::task_template::EmbeddedTask;

/// How long a finished result is reused, if the adapter does not say.
pub const RESULT_TTL: Duration = Duration::from_secs(30 * 60);

/// Sees to the managed resources of one type in its namespace.
pub type Adapter = Object<AdapterSpec>;

impl Resource for AdapterSpec {
    type Status = AdapterStatus;
    const NAMES: Names = Names::muster("Adapter", "adapters", "adapter", &["madapter"]);
    const ABOUT: &'static str = "Adapter sees to the managed resources of one type in its namespace. On each pulse it \
        reads its params, checks its preconditions, makes or reuses a Task (or applies a manifest, or calls a URL), and \
        reports the outcome on the resource.";

    object_text!();
}

/// What an adapter does on a pulse, and how it reports.
///
/// Expressions are CEL. Texts of a template may contain `{{ expression }}`. Both know `resource` (the managed resource),
/// `event` (the pulse), `env` (variables of the server whose name starts with MUSTER_ADAPTER_, without that prefix),
/// `params`, and `done` (names of the adapters that are available at the latest generation).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AdapterSpec {
    /// The ResourceType it is for, by its plural.
    #[serde(deserialize_with = "null_is_default")]
    pub resource_type: String,
    /// Values for templates and expressions, each may use those before it.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub params: Vec<Param>,
    /// What must be true before anything is done; if it is not, that is reported.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub preconditions: Vec<AdapterPrecondition>,
    /// The task to make. Exactly one of task, manifest and http is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<EmbeddedTask>,
    /// The manifest to apply to the Kubernetes cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<ManifestAction>,
    /// The URL to call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpAction>,
    /// What is done when the resource is deleted. Default: nothing; of a manifest, its deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete: Option<DeleteAction>,
    /// When a finished result is reused, and when it is made anew.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub lifecycle: AdapterLifecycle,
    /// Conditions of the report, said by expressions over work that ended; they replace those of the same type that are
    /// reported anyway (Applied, Available and Health). They also know `task`, `object` or `response`.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub report: Vec<ReportRule>,
    /// CEL that gives the data of the report. Default: the result of the task.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub report_data: String,
    /// True does nothing until it is set to false. Default: false.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub suspend: bool,
}

/// A named value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Param {
    /// Its name; others know it as `params.name`.
    #[serde(deserialize_with = "null_is_default")]
    pub name: String,
    /// CEL that gives its value.
    #[serde(deserialize_with = "null_is_default")]
    pub value: String,
}

/// What must be true before an adapter acts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AdapterPrecondition {
    /// CEL that gives true or false.
    #[serde(deserialize_with = "null_is_default")]
    pub expression: String,
    /// What to tell people when it is false. Default: the expression.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub message: String,
}

/// What an adapter does when a resource is deleted. At most one of task and http may be given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DeleteAction {
    /// The task to make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<EmbeddedTask>,
    /// The URL to call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpAction>,
}

/// When a finished result is reused, and when it is made anew.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AdapterLifecycle {
    /// A pulse on a result younger than this reports it again; on an older one it is made anew. Default: 30m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Duration>,
    /// What is reported while it fails. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<AdapterRetry>,
    /// What makes a pulse start anew for the same generation. Default: Failed and Expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub recreate_on: Option<Vec<RecreateOn>>,
}

impl AdapterLifecycle {
    /// How long a finished result is reused.
    pub fn ttl(&self) -> Duration {
        self.ttl.unwrap_or(RESULT_TTL)
    }

    /// True if a pulse starts anew for this reason.
    pub fn recreates_on(&self, reason: RecreateOn) -> bool {
        self.recreate_on.as_ref().is_none_or(|reasons| reasons.contains(&reason))
    }

    /// True if a failure is not reported, but tried again until there is none.
    pub fn until_success(&self) -> bool {
        self.retry == Some(AdapterRetry::UntilSuccess)
    }
}

words! {
    /// What an adapter reports while it fails.
    pub enum AdapterRetry {
        /// A failure is reported as Available False.
        None = "none",
        /// Available stays Unknown until it succeeds.
        UntilSuccess = "untilSuccess",
    }
}

words! {
    /// What makes a pulse start anew for the same generation.
    pub enum RecreateOn {
        /// The last one failed or was canceled.
        Failed = "Failed",
        /// The ttl of the last result is over.
        Expired = "Expired",
    }
}

/// A condition of a report, said by expressions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReportRule {
    /// The type of the condition.
    #[serde(deserialize_with = "null_is_default")]
    pub r#type: String,
    /// CEL that gives the status: true, false, or one of the words True, False and Unknown.
    #[serde(deserialize_with = "null_is_default")]
    pub status: String,
    /// CEL that gives the reason, one CamelCase word. Default: ByRule.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub reason: String,
    /// CEL that gives a sentence for people. Default: none.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub message: String,
}

/// What was observed of an adapter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AdapterStatus {
    /// The generation of the spec this was seen at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Aspects of the adapter's state, each type once.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_reads_and_writes_back() {
        let call = json!({
            "url": "http://dns/{{ resource.metadata.name }}", "method": "PUT", "headers": {"a": "b"},
            "body": {"zone": "{{ params.zone }}"}, "timeout": "5s",
            "inProgress": "response.status == 202", "succeeded": "response.status == 200",
            "failed": "response.status >= 400",
        });
        let example = json!({
            "apiVersion": "muster.dev/v1alpha1",
            "kind": "Adapter",
            "metadata": {"name": "dns", "resourceVersion": ""},
            "spec": {
                "resourceType": "clusters",
                "params": [{"name": "zone", "value": "resource.spec.zone"}],
                "preconditions": [{"expression": "true", "message": "never"}],
                "task": {"spec": {"container": {"command": ["true"]}}},
                "manifest": {"template": {"apiVersion": "v1"}},
                "http": call,
                "delete": {"task": {"spec": {"container": {"command": ["true"]}}}, "http": call},
                "lifecycle": {"ttl": "30m", "retry": "untilSuccess", "recreateOn": ["Failed", "Expired"]},
                "report": [{"type": "Available", "status": "true", "reason": "'A'", "message": "'b'"}],
                "reportData": "{'a': 1}",
                "suspend": true,
            },
            "status": {
                "observedGeneration": 1,
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-15T01:00:00Z"}],
            },
        });
        let read: Adapter = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), example);
    }

    #[test]
    fn what_is_not_said_has_a_default() {
        let lifecycle = AdapterLifecycle::default();
        assert_eq!(lifecycle.ttl().as_secs(), 1800);
        assert!(!lifecycle.until_success());
        assert!(RecreateOn::ALL.iter().all(|reason| lifecycle.recreates_on(*reason)));
        let only = AdapterLifecycle { recreate_on: Some(vec![RecreateOn::Expired]), ..lifecycle };
        assert!(!only.recreates_on(RecreateOn::Failed));
    }
}
