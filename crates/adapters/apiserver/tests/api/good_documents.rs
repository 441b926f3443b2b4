//! Documents that are as they should be: one of each kind, and patches of them.

use serde_json::{Value, json};

use crate::server::{APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH};

/// One good object of each kind that uses all of its fields, with the plural of its kind.
pub fn good_objects() -> Vec<(&'static str, Value)> {
    let object = |kind: &str, spec: Value| {
        json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": kind,
            "metadata": {
                "name": "a", "namespace": "default", "labels": {"app": "a", "example.com/part": "b"},
                "annotations": {"note": "free text"}, "finalizers": ["example.com/hold"],
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1", "controller": true}],
            },
            "spec": spec,
        })
    };
    let container = json!({
        "name": "main", "image": "registry/a:1", "command": ["a"], "args": ["-b"],
        "env": [{"name": "C", "value": "d"}], "resources": {"cpu": "500m", "memory": "256Mi"}, "leading": true,
    });
    let task = json!({
        "kind": "analyzer", "container": container, "name": "title", "extensions": ["java"],
        "subject": {"kind": "Application", "name": "inventory"}, "data": {"any": ["document", 1, 2.5, null]},
        "priority": 10, "policy": {"isolated": true, "preemptEnabled": true},
        "ttl": {"created": "72h", "pending": 0, "failed": "P30D"}, "suspend": true, "timeout": "2m", "killTimeout": "PT10S",
        "retry": {"limit": 1, "on": ["Killed"], "lostLimit": 3, "backoff": {"initial": "1s", "factor": 2, "max": "5m"}},
        "retention": {"succeeded": "1s"}, "locator": "text", "runtime": "robot", "robotSelector": {"zone": "a"},
        "targetRobot": "r1", "driver": "exec", "config": {"any": true}, "resources": {"cpu": 2, "memory": "1Gi"},
        "artifacts": [{"source": "https://example.com/a", "destination": "b"}],
    });
    let mut several = task.clone();
    several["containers"] = json!([container, {"name": "side", "image": "b"}]);
    several.as_object_mut().unwrap().remove("container");
    vec![
        ("tasks", object("Task", task.clone())),
        ("tasks", object("Task", several)),
        (
            "taskgroups",
            object(
                "TaskGroup",
                json!({"mode": "replicas", "count": 2, "parallelism": 1, "kind": "k", "data": {"a": 1},
                    "robotSelector": {"zone": "a"}, "tasks": [{"name": "t", "metadata": {"labels": {"a": "b"}}}]}),
            ),
        ),
        (
            "jobs",
            object(
                "Job",
                json!({"deadline": "1h", "failurePolicy": "stop", "taskGroups": [
                    {"name": "a", "kind": "k", "tasks": [{}]},
                    {"name": "b", "dependsOn": ["a"], "when": "failed", "kind": "k", "tasks": [{}]},
                ]}),
            ),
        ),
        (
            "tasktemplates",
            object("TaskTemplate", json!({"template": {"metadata": {"labels": {"a": "b"}}, "spec": task}})),
        ),
        (
            "schedules",
            object(
                "Schedule",
                json!({
                    "schedulePolicy": {
                        "timeSpec": "R5/T01:00:00/PT01", "timeZone": "Europe/Berlin", "execTimeout": 100, "maxRestart": 2,
                        "skipOutdated": true, "concurrency": "Forbid", "catchUpWindow": "1h", "jitter": "30s",
                        "startingDeadline": "10m",
                    },
                    "selector": {"a": "b"},
                    "template": {"metadata": {"labels": {"a": "b"}}, "spec": task},
                    "triggers": [{"on": {"kind": "Task", "selector": {"a": "c"}, "outcome": "Failed"}}],
                    "successfulHistoryLimit": 3, "failedHistoryLimit": 1,
                }),
            ),
        ),
        (
            "robots",
            object(
                "Robot",
                json!({
                    "labels": {"zone": "a"}, "description": "d", "maxTasks": 2, "unschedulable": true, "approved": true,
                }),
            ),
        ),
        (
            "eventsinks",
            object(
                "EventSink",
                json!({
                    "amqp": {"url": "amqp://u:${MUSTER_SINK_P}@broker:5672/%2f", "exchange": "e"}, "profile": "cloudevents",
                    "mode": "binary", "sources": {"work": {"namespaces": ["*"]}}, "window": 10, "suspend": true,
                    "filter": {"kinds": ["Task"], "transitions": ["failed"], "labels": {"a": "b"}},
                    "journal": {"redis": {"url": "redis://localhost:6379/0", "key": "k"}},
                }),
            ),
        ),
        (
            "kubejobs",
            object(
                "KubeJob",
                json!({
                    "jobName": "cds-a", "jobUid": "1b2c3d4e", "outcome": "failed", "failureReason": "late",
                    "document": {"kind": "Job"},
                }),
            ),
        ),
        (
            "taskkinds",
            object(
                "TaskKind",
                json!({"priority": 1, "dependencies": ["b"], "data": {"a": 1}, "metadata": {"b": 2}}),
            ),
        ),
        (
            "addons",
            object("Addon", json!({"task": "a.*", "selector": "tag:Language=Java", "container": container})),
        ),
        ("extensions", object("Extension", json!({"addon": "java", "selector": "", "container": container}))),
        (
            "applications",
            object(
                "Application",
                json!({"tags": [{"category": "Language", "tag": "C#"}], "properties": {"a": []}}),
            ),
        ),
    ]
}

/// Good patches of the objects above, with their media types.
pub fn good_patches() -> Vec<(&'static str, Value)> {
    let merge = json!({
        "metadata": {"labels": {"app": null, "new": "1"}, "finalizers": [], "resourceVersion": ""},
        "spec": {"priority": 3, "timeout": "90s", "data": {"any": null}, "env": [{"name": "C", "value": "e"}]},
    });
    let strategic = json!({
        "metadata": {"labels": {"app": null}, "$deleteFromPrimitiveList/finalizers": ["example.com/hold"]},
        "spec": {
            "containers": [{"name": "side", "$patch": "delete"}, {"name": "third", "image": "c"}],
            "$setElementOrder/containers": [{"name": "main"}, {"name": "third"}],
            "$retainKeys": ["kind", "containers"], "kind": "other",
        },
    });
    let json = json!([
        {"op": "test", "path": "/kind", "value": "Task"},
        {"op": "add", "path": "/metadata/labels/x~1y", "value": "z"},
        {"op": "replace", "path": "/spec/priority", "value": 1},
        {"op": "copy", "from": "/spec/data", "path": "/spec/config"},
        {"op": "move", "from": "/spec/locator", "path": "/spec/name"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
        {"op": "add", "path": "/spec/artifacts/-", "value": {"source": "s"}},
    ]);
    let mut patches = vec![(MERGE_PATCH, merge), (STRATEGIC_PATCH, strategic), (JSON_PATCH, json)];
    patches.extend(good_objects().into_iter().map(|(_, object)| (APPLY_PATCH, object)));
    patches
}
